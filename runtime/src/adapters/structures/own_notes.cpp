#include "adapters/structures/own_notes.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace portwave::structures {

using namespace files;
namespace {

constexpr int kMostNoteDepth = 64;  // of lists and objects in a note

/// The members of an object that is noted, each of a kind.
class Members {
 public:
  Members(const Json& object, std::string place, const Complain& complain)
      : object_(object), place_(std::move(place)), complain_(complain) {}

  const Json* find(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }
  /// The member, if it is there and as it should be; else null, and told.
  template <class Is>
  const Json* need(const char* key, const char* kind, const Is& is) const {
    const Json* const own = find(key);
    if (own == nullptr || is(*own)) return own;
    complain_(fmt::format("\"{}\"{} must be {}", key, place_, kind));
    return nullptr;
  }
  const Json* object(const char* key) const {
    return need(key, "an object", [](const Json& own) { return own.is_object(); });
  }
  const Json* objects(const char* key) const {
    return need(key, "a list of objects", [](const Json& own) {
      return own.is_array() &&
             std::ranges::all_of(own, [](const Json& one) { return one.is_object(); });
    });
  }
  const Json* texts(const char* key) const { return need(key, "a list of texts", is_texts); }
  void text(const char* key) const {
    need(key, "a text", [](const Json& own) { return own.is_string(); });
  }
  void number(const char* key) const {
    need(key, "a number", [](const Json& own) { return own.is_number(); });
  }
  void truth(const char* key) const {
    need(key, "true or false", [](const Json& own) { return own.is_boolean(); });
  }
  void pairs(const char* key) const {
    need(key, "a list of pairs of outputs, such as [[\"mass.v\", \"spring.F\"]]",
         [](const Json& own) {
           return own.is_array() && std::ranges::all_of(own, [](const Json& pair) {
                    return is_texts(pair) && pair.size() == 2;
                  });
         });
  }

 private:
  static bool is_texts(const Json& own) {
    return own.is_array() &&
           std::ranges::all_of(own, [](const Json& one) { return one.is_string(); });
  }

  const Json& object_;
  std::string place_;
  const Complain& complain_;
};

}  // namespace

std::vector<pugi::xml_node> annotations(pugi::xml_node at, std::string_view type) {
  std::vector<pugi::xml_node> out;
  for (const pugi::xml_node own : children(child(at, "Annotations"), "Annotation")) {
    if (attribute(own, "type") == type) out.push_back(own);
  }
  return out;
}

Json parse_note(const std::string& text) {
  bool is_deep = false;
  // Deep values are dropped as they come: who walks through them, walks by calls within calls.
  Json out = Json::parse(
      text,
      [&](int depth, Json::parse_event_t, Json&) {
        is_deep = is_deep || depth > kMostNoteDepth;
        return depth <= kMostNoteDepth;
      },
      false);
  return is_deep || !out.is_object() ? Json() : out;
}

void check_whole_note(const Json& note, const Complain& complain) {
  const Members whole(note, "", complain);
  whole.pairs("bonds");
  whole.pairs("not_bonds");
  if (const Json* const inputs = whole.object("inputs")) {
    for (const auto& [name, own] : inputs->items()) {
      if (!own.is_object()) complain("each of \"inputs\" must be an object");
    }
  }
  if (const Json* const couplings = whole.objects("couplings")) {
    for (const Json& own : *couplings) {
      const Members coupling(own, " of a coupling", complain);
      coupling.text("kind");
      coupling.texts("ports");
      coupling.number("ratio");
    }
  }
  const Json* const scenario = whole.object("scenario");
  if (scenario == nullptr) return;
  const Members rest(*scenario, " of \"scenario\"", complain);
  rest.object("signals");
  if (const Json* const time = rest.object("time")) {
    const Members times(*time, " of \"time\"", complain);
    for (const char* const key : {"start_s", "end_s", "step_s"}) times.number(key);
  }
}

void check_element_note(const Json& note, const Complain& complain) {
  const Members element(note, "", complain);
  if (const Json* const ports = element.objects("ports")) {
    for (const Json& own : *ports) {
      const Members port(own, " of a port", complain);
      for (const char* const key :
           {"name", "effort", "flow", "input", "integral", "domain", "power"}) {
        port.text(key);
      }
    }
  }
  element.texts("outputs");
  element.number("step_s");
  element.number("time_limit_s");
  element.truth("process");
  element.object("settings");
}

}  // namespace portwave::structures
