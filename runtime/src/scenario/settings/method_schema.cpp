#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "portwave/coupling/method/method_table.hpp"
#include "scenario/reader/key_table.hpp"
#include "scenario/settings/method_keys.hpp"
#include "scenario/settings/settings.hpp"

namespace portwave::scenario_file {
namespace {

/// The kinds that an option is for, "strang: "; "" for what waves have, and for a key of several
/// families.
std::string prefix_of(const MethodFamily& family, const OptionInfo& option, bool is_shared) {
  if (!option.only.empty()) {
    std::string names;
    for (const MethodKind kind : option.only) {
      names += (names.empty() ? "" : ", ") + std::string(to_string(kind));
    }
    return names + ": ";
  }
  return family.couples_by_waves || is_shared ? "" : std::string(family.title) + ": ";
}

/// Adds the words of a choice that another family has under the same key; whether there are any.
bool add_words(const Json& other, Json& schema) {
  if (!other.contains("enum") || !schema.contains("enum")) return false;
  bool has_more = false;
  for (const Json& word : other["enum"]) {
    Json& words = schema["enum"];
    if (std::find(words.begin(), words.end(), word) != words.end()) continue;
    words.push_back(word);
    has_more = true;
  }
  return has_more;
}

/// The keys of "method", of all kinds. A key that several families have stands with its first.
Json method_properties() {
  Json properties = {
      {"kind", with_default(described(choice(method_names()),
                                      "how the parts are coupled; with \"impedance\" and without "
                                      "a kind douglas-rachford"),
                            std::string(to_string(CouplingMethod().kind())))}};
  std::vector<std::pair<std::string_view, std::string_view>> summaries;  // by key
  for (const MethodFamily* const family : method_families()) {
    const std::vector<Key<CouplingMethod>>& keys = option_keys(*family);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const OptionInfo& option = family->options[i];
      const std::string key(option.key);
      const bool is_shared = properties.contains(key);
      const std::string description = prefix_of(*family, option, is_shared) + keys[i].text;
      if (!is_shared) {
        properties[key] = described(keys[i].schema(), description);
        summaries.emplace_back(option.key, option.summary);
        continue;
      }
      const auto first = std::find_if(summaries.begin(), summaries.end(),
                                      [&](const auto& each) { return each.first == option.key; });
      const bool has_own_words = add_words(keys[i].schema(), properties[key]);
      if (first->second == option.summary) continue;
      auto& text = properties[key]["description"].get_ref<std::string&>();
      text += "; " + (has_own_words ? prefix_of(*family, option, false) : "") + description;
    }
  }
  return properties;
}

Json kind_is_one_of(const std::vector<std::string>& kinds) {
  return {{"properties", {{"kind", {{"enum", kinds}}}}}, {"required", Json::array({"kind"})}};
}

Json unless_kind_is_one_of(const std::vector<std::string>& kinds, Json otherwise) {
  return {{"if", kind_is_one_of(kinds)}, {"then", Json::object()}, {"else", std::move(otherwise)}};
}

/// No key of another kind.
Json without_others(MethodKind kind, const Json& properties) {
  const auto& options = family_of(kind).options;
  Json keys = Json::object();
  for (const auto& property : properties.items()) {
    const std::string& key = property.key();
    const bool is_own =
        key == "kind" || std::any_of(options.begin(), options.end(), [&](const OptionInfo& each) {
          return each.key == key && each.is_for(kind);
        });
    if (!is_own) keys[key] = false;
  }
  for (std::size_t i = 0; i < options.size(); ++i) {  // a choice among other words than elsewhere
    const std::string key(options[i].key);
    const Json own = option_keys(family_of(kind))[i].schema();
    if (options[i].is_for(kind) && own.contains("enum") && own["enum"] != properties[key]["enum"]) {
      keys[key] = {{"enum", own["enum"]}};
    }
  }
  return {{"properties", std::move(keys)}};
}

/// Where the range of an option is narrower with one kind of its family.
void add_narrow_ranges(const MethodFamily& family, Json& conditions) {
  for (const OptionInfo& option : family.options) {
    if (option.range_of == nullptr) continue;
    for (const MethodInfo& method : family.kinds) {
      const auto narrow = option.range_of(CouplingMethod::of_kind(method.kind));
      if (!narrow) continue;
      Json limits = Json::object();
      if (narrow->range.minimum != option.range.minimum) {
        limits["minimum"] = plain(narrow->range.minimum);
      }
      if (narrow->range.maximum != option.range.maximum) {
        limits["maximum"] = plain(narrow->range.maximum);
      }
      if (limits.empty()) continue;
      conditions.push_back(
          when_key_is("kind", std::string(method.name),
                      {{"properties", {{std::string(option.key), std::move(limits)}}}}));
    }
  }
}

/// The kinds of a family that refuse an option or narrow a special one, in the order in which the
/// options name them.
void add_refusals(const MethodFamily& family, Json& conditions) {
  std::vector<MethodKind> kinds;
  for (const OptionInfo& option : family.options) {
    for (const OptionRefusal& refusal : option.refused) {
      if (std::find(kinds.begin(), kinds.end(), refusal.kind) == kinds.end()) {
        kinds.push_back(refusal.kind);
      }
    }
  }
  for (const MethodKind kind : kinds) {
    Json keys = Json::object();
    for (const OptionInfo& option : family.options) {
      const std::string key(option.key);
      if (!option.refusal_by(kind).empty()) keys[key] = false;
      if (!std::holds_alternative<SpecialOption>(option.value)) continue;
      Json narrow = special_option(key).narrowed_by(kind);
      if (!narrow.is_null()) keys[key] = std::move(narrow);
    }
    if (kind == CouplingMethod().kind()) {
      const Json said = {{"anyOf", Json::array({{{"required", Json::array({"kind"})}},
                                                {{"required", Json::array({"impedance"})}}})}};
      conditions.push_back(
          {{"if", said}, {"then", Json::object()}, {"else", {{"properties", keys}}}});
    }
    conditions.push_back(
        when_key_is("kind", std::string(to_string(kind)), {{"properties", std::move(keys)}}));
  }
}

/// The keys of a kind that is not of the default family, and those that it needs.
Json own_keys(const MethodFamily& family, MethodKind kind, const Json& properties) {
  Json own = without_others(kind, properties);
  for (const OptionInfo& option : family.options) {
    if (option.is_required_by(kind)) own["required"].push_back(std::string(option.key));
  }
  return own;
}

/// What depends on the kind of method. Without a kind it is one of waves: `auto`, or, where impedances
/// are given, Douglas–Rachford.
Json method_conditions(const Json& properties) {
  const MethodKind usual = CouplingMethod().kind();
  const MethodFamily& waves = family_of(usual);
  Json conditions = Json::array();
  add_narrow_ranges(waves, conditions);
  add_narrow_ranges(splitting_family(), conditions);
  add_refusals(waves, conditions);
  std::vector<std::string> others;
  for (const MethodFamily* const family : method_families()) {
    if (family == &waves) continue;
    for (const MethodInfo& method : family->kinds) {
      others.emplace_back(method.name);
      conditions.push_back(
          when_key_is("kind", others.back(), own_keys(*family, method.kind, properties)));
    }
  }
  conditions.push_back(unless_kind_is_one_of(others, without_others(usual, properties)));
  for (const OptionInfo& option : waves.options) {
    if (!option.required) continue;
    std::vector<std::string> optional_for = others;
    for (const MethodKind kind : option.optional_for) optional_for.emplace_back(to_string(kind));
    Json needed = {{"required", Json::array({std::string(option.key)})}};
    conditions.push_back({{"if", {{"required", Json::array({"kind"})}}},
                          {"then", unless_kind_is_one_of(optional_for, std::move(needed))}});
  }
  return conditions;
}

}  // namespace

Json method_schema() {
  Json properties = method_properties();
  Json conditions = method_conditions(properties);
  Json schema = object(std::move(properties), {});
  schema["allOf"] = std::move(conditions);
  return schema;
}

}  // namespace portwave::scenario_file
