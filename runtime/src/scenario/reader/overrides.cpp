#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "scenario/reader/document.hpp"
#include "scenario/reader/limits.hpp"
#include "scenario/reader/text.hpp"

namespace portwave::scenario_file {
namespace {

std::optional<std::string> unescape_key(std::string_view token) {
  std::string key;
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] != '~') {
      key += token[i];
      continue;
    }
    const char next = i + 1 < token.size() ? token[i + 1] : '\0';
    if (next != '0' && next != '1') return std::nullopt;
    key += next == '0' ? '~' : '/';
    ++i;
  }
  return key;
}

// Deeper than a document may be, where nothing can be.
bool is_too_deep(std::string_view pointer) {
  return std::count(pointer.begin(), pointer.end(), '/') > scenario_limits::kNesting;
}

// The keys of a JSON pointer; nothing when its syntax is wrong or it names the whole document.
std::optional<std::vector<std::string>> split_pointer(std::string_view pointer) {
  if (!pointer.starts_with('/')) return std::nullopt;
  std::vector<std::string> keys;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const std::size_t end = std::min(pointer.find('/'), pointer.size());
    const std::optional<std::string> key = unescape_key(pointer.substr(0, end));
    if (!key) return std::nullopt;
    keys.push_back(*key);
    pointer.remove_prefix(end);
  }
  return keys;
}

std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.get_ref<const Json::object_t&>()) keys.push_back(key);
  return keys;
}

Json* member_of(Json& object, const std::string& key) {
  for (auto& [name, value] : object.get_ref<Json::object_t&>()) {
    if (name == key) return &value;
  }
  return nullptr;
}

// Objects of a scenario that it need not have, so that /method/stages can be set in any.
bool may_be_left_out(std::string_view key) { return key == "method" || key == "outputs"; }

// The value under `key`, made if `may_create`. Null, and why in `problem`, when there is none.
Json* descend(Json& value, const std::string& key, bool may_create, std::string& problem) {
  if (value.is_object()) {
    Json* member = member_of(value, key);
    if (member == nullptr && may_create) {
      member = &value.get_ref<Json::object_t&>().emplace_back(key, nullptr).second;
    }
    if (member == nullptr) {
      problem = fmt::format("has no key {}.{}", in_quotes(key), did_you_mean(key, keys_of(value)));
    }
    return member;
  }
  if (!value.is_array()) {
    problem = "is neither an object nor an array";
    return nullptr;
  }
  std::size_t index = 0;
  const char* const end = key.data() + key.size();
  const auto [stop, error] = std::from_chars(key.data(), end, index);
  const bool is_index = error == std::errc{} && stop == end && (key == "0" || key[0] != '0');
  if (is_index && index < value.size()) return &value[index];
  problem =
      fmt::format("is an array of {}; {} is not an index into it", value.size(), in_quotes(key));
  return nullptr;
}

void apply(Document& document, const Override& setting) {
  const auto fail = [&](std::string where, const std::string& what) {
    document.issues.push_back({std::move(where), "--set " + what});
  };
  if (is_too_deep(setting.pointer)) {
    return fail("", fmt::format("{}: leads deeper than {} levels", in_quotes(setting.pointer),
                                scenario_limits::kNesting));
  }
  const auto keys = split_pointer(setting.pointer);
  if (!keys) {
    return fail("", fmt::format("{}: must be a JSON pointer such as /time/step_s",
                                in_quotes(setting.pointer)));
  }
  Json* place = &document.root;
  std::string where;
  for (std::size_t i = 0; i < keys->size(); ++i) {
    // A new parameter of the scenario would be one that nothing uses.
    const bool is_last = i + 1 == keys->size();
    const bool may_create =
        is_last ? where != "/parameters" : i == 0 && may_be_left_out(keys->front());
    std::string problem;
    Json* const next = descend(*place, (*keys)[i], may_create, problem);
    if (next == nullptr) {
      return fail(setting.pointer,
                  fmt::format("does not fit: {} {}", where.empty() ? "the file" : where, problem));
    }
    place = next;
    if (!is_last && place->is_null()) *place = Json::object();
    where += '/' + escape_key((*keys)[i]);
  }
  Document value = parse_document(setting.value);
  if (!value.readable) {
    *place = printable(setting.value, setting.value.size());
    return;
  }
  *place = std::move(value.root);
  append(document.issues, where, value.issues);
  for (const std::string& settled : value.settled) document.settled.insert(where + settled);
}

// Gives every place that an issue names, and all above it, its position in a walk of the document.
class PlaceOrder {
 public:
  PlaceOrder(const Issues& issues, const Json& root) {
    for (const Issue& issue : issues) {
      std::string where = issue.where;
      while (positions_.emplace(where, kUnknown).second && !where.empty()) {
        where.resize(where.rfind('/'));
      }
    }
    visit(root, "");
  }

  // The position of a place; that of the nearest place above it if the document does not have it.
  std::size_t position(std::string where) const {
    for (;;) {
      const auto found = positions_.find(where);
      if (found != positions_.end() && found->second != kUnknown) return found->second;
      if (where.empty()) return 0;
      where.resize(where.rfind('/'));
    }
  }

 private:
  static constexpr std::size_t kUnknown = std::numeric_limits<std::size_t>::max();

  void visit(const Json& value, const std::string& where) {
    const auto wanted = positions_.find(where);
    if (wanted == positions_.end()) return;
    wanted->second = next_++;
    if (value.is_object()) {
      for (const auto& [key, member] : value.get_ref<const Json::object_t&>()) {
        visit(member, where + '/' + escape_key(key));
      }
    } else if (value.is_array()) {
      for (std::size_t i = 0; i < value.size(); ++i) {
        visit(value[i], where + '/' + std::to_string(i));
      }
    }
  }

  std::unordered_map<std::string, std::size_t> positions_;
  std::size_t next_ = 0;
};

}  // namespace

void apply_overrides(Document& document, const std::vector<Override>& overrides) {
  for (const Override& setting : overrides) apply(document, setting);
}

void sort_by_place(Issues& issues, const Json& root) {
  const bool are_places = std::all_of(issues.begin(), issues.end(), [](const Issue& issue) {
    return issue.where.empty() || issue.where.starts_with('/');
  });
  if (!are_places) return;
  const PlaceOrder order(issues, root);
  std::stable_sort(issues.begin(), issues.end(), [&order](const Issue& a, const Issue& b) {
    return order.position(a.where) < order.position(b.where);
  });
}

}  // namespace portwave::scenario_file
