// Networks that a C program builds: what it says is collected as a scenario, which is read as a file is.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "handles.hpp"
#include "portwave/subsystems/base/printable.hpp"

using Json = nlohmann::json;
using namespace portwave::c_interface;

struct portwave_builder {
  Json document;
  portwave::Issues issues;  ///< what could not be taken into the document
};

namespace {

constexpr int kMostDepth = 100;

/// Nothing, and an issue, where a text is no JSON.
std::optional<Json> json_of(portwave_builder& builder, const std::string& where, const char* text) {
  std::string problem = "is no JSON: ";
  try {
    const Json::parser_callback_t shallow = [](int depth, Json::parse_event_t, const Json&) {
      if (depth > kMostDepth) throw std::invalid_argument("too deep");
      return true;
    };
    return Json::parse(text, shallow);
  } catch (const Json::exception&) {
    problem += portwave::in_quotes(text);
  } catch (const std::invalid_argument& error) {
    problem += error.what();
  }
  builder.issues.push_back({where, problem});
  return std::nullopt;
}

std::string place_of_part(int part) { return "/subsystems/" + std::to_string(part); }

Json* part_of(portwave_builder& builder, int part, const std::string& where = {}) {
  Json& parts = builder.document["subsystems"];
  if (part >= 0 && static_cast<std::size_t>(part) < parts.size()) return &parts[part];
  builder.issues.push_back({where, "there is no part of number " + std::to_string(part)});
  return nullptr;
}

/// The status of a call that is kept for portwave_builder_build to report.
portwave_status kept(const portwave_builder& builder, std::size_t issues_before) {
  if (builder.issues.size() == issues_before) return PORTWAVE_OK;
  const portwave::Issue& last = builder.issues.back();
  const std::string place = last.where.empty() ? "" : last.where + ": ";
  return fail(PORTWAVE_INVALID_ARGUMENT, (place + last.what).c_str());
}

template <class Body>
portwave_status change(portwave_builder* builder, const Body& body) {
  return guarded([&] {
    const std::size_t before = builder->issues.size();
    body();
    return kept(*builder, before);
  });
}

/// Sets `member` of the object `key` of a part.
void set_in_part(portwave_builder& builder, int part, const char* key, const char* member,
                 Json value) {
  Json* const own = part_of(builder, part);
  if (own == nullptr) return;
  Json& object = (*own)[key];
  if (object.is_null() || object.is_object()) object[member] = std::move(value);
  // Else: no object was given, which the scenario's reader reports.
}

/// The part that a pointer "/subsystems/3/…" leads into; null: none.
const Json* part_at(const Json& document, std::string_view pointer) {
  constexpr std::string_view kList = "/subsystems/";
  if (!pointer.starts_with(kList)) return nullptr;
  pointer.remove_prefix(kList.size());
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(pointer.data(), pointer.data() + pointer.size(), index);
  if (error != std::errc() || (end != pointer.data() + pointer.size() && *end != '/')) {
    return nullptr;
  }
  const Json& parts = document["subsystems"];
  return index < parts.size() ? &parts[index] : nullptr;
}

/// True for what the other functions say, and for a part that is not there.
bool is_of_others(const Json& document, const std::string& pointer) {
  if (pointer.empty() || pointer == "/name" || pointer == "/couplings") return true;
  if (pointer.starts_with("/couplings/")) return true;
  if (pointer != "/subsystems" && !pointer.starts_with("/subsystems/")) return false;
  const std::size_t key = pointer.find('/', std::string_view("/subsystems/").size());
  if (part_at(document, pointer) == nullptr || key == std::string::npos) return true;
  const std::string rest = pointer.substr(key);
  return rest == "/" || rest == "/name" || rest == "/type" || rest.starts_with("/name/") ||
         rest.starts_with("/type/");
}

/// Says which part an issue is about, where its text does not.
void name_part(const Json& document, portwave::Issue& issue) {
  const Json* const part = part_at(document, issue.where);
  if (part == nullptr) return;
  const std::string name = portwave::in_quotes((*part)["name"].get<std::string>());
  const std::string of_part = name.substr(0, name.size() - 1) + ".";  // "m.port", and not "mass"
  if (issue.what.find(name) != std::string::npos || issue.what.find(of_part) != std::string::npos) {
    return;
  }
  const std::string type = portwave::printable((*part)["type"].get<std::string>());
  issue.what = name + " (" + type + "): " + issue.what;
}

/// Whether an issue at this place follows from one that is known, of a member of a part or a joint.
bool is_reported(const portwave::Issues& known, std::string_view where) {
  return std::ranges::any_of(known, [where](const portwave::Issue& issue) {
    return std::ranges::count(issue.where, '/') >= 3 && where.starts_with(issue.where);
  });
}

portwave::Scenario scenario_of(const portwave_builder& builder, portwave::Plugins plugins) {
  const std::string name = builder.document["name"].get<std::string>();
  portwave::Issues issues = builder.issues;
  std::optional<portwave::Scenario> scenario;
  try {
    const auto as_text = Json::error_handler_t::replace;  // bytes that are no UTF-8
    scenario = portwave::parse_scenario(builder.document.dump(-1, ' ', false, as_text), name, ".",
                                        {}, {}, plugins);
  } catch (const portwave::ScenarioError& error) {
    for (const portwave::Issue& issue : error.issues()) {
      if (!is_reported(builder.issues, issue.where)) issues.push_back(issue);
    }
  }
  if (scenario && issues.empty()) return *std::move(scenario);
  for (portwave::Issue& issue : issues) name_part(builder.document, issue);
  throw portwave::ScenarioError(name, std::move(issues));
}

}  // namespace

extern "C" {

portwave_status portwave_builder_new(const char* name, double step_s, portwave_builder** builder) {
  if (name == nullptr || builder == nullptr) return null_pointer();
  *builder = nullptr;
  return guarded([&] {
    if (!(step_s > 0.0) || !std::isfinite(step_s)) {
      const std::string text =
          "step_s must be finite and > 0, got " + portwave::shown_number(step_s) + " s";
      return fail(PORTWAVE_INVALID_ARGUMENT, text.c_str());
    }
    // A simulation steps as long as it is asked to.
    *builder = new portwave_builder{{{"name", name},
                                     {"time", {{"step_s", step_s}, {"steps", 1}}},
                                     {"subsystems", Json::array()},
                                     {"couplings", Json::array()}},
                                    {}};
    return PORTWAVE_OK;
  });
}

void portwave_builder_free(portwave_builder* builder) { delete builder; }

int portwave_builder_add(portwave_builder* builder, const char* name, const char* type,
                         const char* parameters) {
  int index = -1;
  if (builder == nullptr || name == nullptr || type == nullptr) {
    (void)null_pointer();
    return index;
  }
  (void)change(builder, [&] {
    Json& parts = builder->document["subsystems"];
    const int next = static_cast<int>(parts.size());
    Json part = {{"name", name}, {"type", type}};
    if (parameters != nullptr) {
      auto given = json_of(*builder, place_of_part(next) + "/parameters", parameters);
      if (given) part["parameters"] = *std::move(given);
    }
    parts.push_back(std::move(part));
    index = next;
  });
  return index;
}

portwave_status portwave_builder_set_parameter(portwave_builder* builder, int part,
                                               const char* parameter, double value) {
  if (builder == nullptr || parameter == nullptr) return null_pointer();
  return change(builder, [&] { set_in_part(*builder, part, "parameters", parameter, value); });
}

portwave_status portwave_builder_set_state(portwave_builder* builder, int part, const char* state,
                                           double value) {
  if (builder == nullptr || state == nullptr) return null_pointer();
  return change(builder, [&] { set_in_part(*builder, part, "initial_state", state, value); });
}

portwave_status portwave_builder_set_input(portwave_builder* builder, int part, const char* input,
                                           const char* signal) {
  if (builder == nullptr || input == nullptr) return null_pointer();
  return change(builder, [&] {
    std::optional<Json> own = Json{{"kind", "settable"}};
    if (signal != nullptr) {
      own =
          json_of(*builder, place_of_part(part) + "/inputs/" + portwave::escape_key(input), signal);
    }
    if (own) set_in_part(*builder, part, "inputs", input, *std::move(own));
  });
}

portwave_status portwave_builder_cut(portwave_builder* builder, int part, int pieces) {
  if (builder == nullptr) return null_pointer();
  return change(builder, [&] {
    if (Json* const own = part_of(*builder, part)) (*own)["cut"] = {{"parts", pieces}};
  });
}

portwave_status portwave_builder_join(portwave_builder* builder, const char* kind,
                                      const portwave_port* ports, size_t count,
                                      const char* options) {
  if (builder == nullptr || kind == nullptr || (ports == nullptr && count > 0)) {
    return null_pointer();
  }
  return change(builder, [&] {
    Json& joints = builder->document["couplings"];
    const std::string where = "/couplings/" + std::to_string(joints.size());
    Json joint = Json::object();
    if (options != nullptr) {
      const auto given = json_of(*builder, where, options);
      if (given && given->is_object()) joint = *given;
      if (given && !given->is_object()) {
        builder->issues.push_back({where, "the options of a joint are an object"});
      }
    }
    joint["kind"] = kind;
    Json& own = joint["ports"] = Json::array();
    for (size_t i = 0; i < count; ++i) {
      const Json* const part =
          part_of(*builder, ports[i].part, where + "/ports/" + std::to_string(i));
      const std::string name = part == nullptr ? "" : (*part)["name"].get<std::string>();
      own.push_back(name + "." + (ports[i].port == nullptr ? "" : ports[i].port));
    }
    joints.push_back(std::move(joint));
  });
}

portwave_status portwave_builder_connect(portwave_builder* builder, int part_1, const char* port_1,
                                         int part_2, const char* port_2) {
  const portwave_port ports[] = {{part_1, port_1}, {part_2, port_2}};
  return portwave_builder_join(builder, "connection", ports, 2, nullptr);
}

portwave_status portwave_builder_set(portwave_builder* builder, const char* pointer,
                                     const char* value) {
  if (builder == nullptr || pointer == nullptr || value == nullptr) return null_pointer();
  return change(builder, [&] {
    auto own = json_of(*builder, pointer, value);
    if (!own) return;
    if (is_of_others(builder->document, pointer)) {
      builder->issues.push_back({pointer, "cannot be set: other functions of the builder give it"});
      return;
    }
    try {
      builder->document[Json::json_pointer(pointer)] = *std::move(own);
    } catch (const Json::exception&) {
      builder->issues.push_back({pointer, "leads nowhere in the scenario"});
    }
  });
}

portwave_status portwave_builder_build(const portwave_builder* builder,
                                       const portwave_options* options,
                                       portwave_simulation** simulation) {
  if (builder == nullptr || simulation == nullptr) return null_pointer();
  *simulation = nullptr;
  return guarded([&] {
    const portwave_options own = options_of(options);
    *simulation = simulation_of(scenario_of(*builder, plugins_of(own)), own);
    return PORTWAVE_OK;
  });
}

}  // extern "C"
