#include "scenario_parts.hpp"

#include <algorithm>
#include <new>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "scenario_limits.hpp"
#include "scenario_text.hpp"
#include "scenario_values.hpp"

namespace portwave::scenario_file {
namespace {

std::vector<std::string> type_names() {
  std::vector<std::string> names;
  for (const PartType& type : catalogue()) names.push_back(type.name);
  return names;
}

void fail_unknown_parameter(const Node& node, const std::string& key, const PartType& type) {
  if (key == "allow_active") {
    return node.fail("\"allow_active\" belongs beside \"parameters\", not inside");
  }
  std::vector<std::string> names;
  for (const ParameterInfo& info : type.parameters) names.push_back(info.name);
  node.fail(fmt::format("{} has no parameter {}.\nparameters: {}.{}", type.name, in_quotes(key),
                        list_of(names), did_you_mean(key, names)));
}

// Reads what is given into draft.parameters; false if some of it has a defect. Nothing is said about
// what is missing.
bool read_given_parameters(const Node& node, PartDraft& draft) {
  if (!node.is_object("an object of parameters")) return false;
  bool is_sound = true;
  const std::vector<ParameterInfo>& known = draft.type->parameters;
  for (const auto& [key, value] : node.json().get_ref<const Json::object_t&>()) {
    const Node member = node.member(key, value);
    const auto info = std::find_if(known.begin(), known.end(),
                                   [&key = key](const auto& each) { return each.name == key; });
    if (info == known.end()) {
      fail_unknown_parameter(member, key, *draft.type);
      is_sound = false;
    } else if (auto parameter = read_parameter(member, *info)) {
      draft.parameters.insert_or_assign(key, *std::move(parameter));
    } else {
      is_sound = false;
    }
  }
  return is_sound;
}

// Issues about "/J/3", the entry of a matrix by entries, belong to "/J/entries/3" in the file.
void point_into_entries(Issues& issues, const Parameters& parameters) {
  for (Issue& issue : issues) {
    const std::size_t slash = issue.where.find('/', 1);
    if (slash == std::string::npos) continue;
    const auto parameter = parameters.find(issue.where.substr(1, slash - 1));
    if (parameter == parameters.end()) continue;
    if (!std::holds_alternative<MatrixEntries>(parameter->second)) continue;
    issue.where.insert(slash, "/entries");
  }
}

// A matrix that the part makes of its parameters has no place of its own in the file.
void place_derived(Issues& issues, const PartType& type) {
  for (Issue& issue : issues) {
    const std::string_view key = std::string_view(issue.where).substr(issue.where.empty() ? 0 : 1);
    const bool is_known = std::any_of(
        type.parameters.begin(), type.parameters.end(),
        [&](const ParameterInfo& info) { return info.name == key.substr(0, key.find('/')); });
    if (issue.where.empty() || is_known) continue;
    issue = {"", "these values give a matrix that cannot be computed with: " + issue.what};
  }
}

// Ranges, and what is required and not there. What could not be read is not missing.
bool check_ranges(const PartDraft& draft, const std::string& where, Defects& defects) {
  Issues issues;
  Parameters checked = draft.parameters;
  append(issues, where, check_parameters(*draft.type, checked, draft.allow_active));
  std::erase_if(issues, [&](const Issue& issue) { return defects.has_within(issue.where); });
  defects.add(issues);
  return issues.empty();
}

void make_part_of(PartDraft& draft, const std::string& where, Defects& defects) {
  try {
    draft.part = make_part(draft.type->name, draft.parameters, draft.allow_active);
    draft.ports = draft.part->signature().ports;
    draft.is_built = true;
  } catch (const ConfigError& error) {
    Issues found = error.issues();
    point_into_entries(found, draft.parameters);
    place_derived(found, *draft.type);
    Issues placed;
    append(placed, where, found);
    defects.add(placed);
  } catch (const std::bad_alloc&) {
    defects.add(where, "not enough memory for a part of this size");
  }
}

void read_parameters(const ObjectReader& object, PartDraft& draft) {
  Defects& defects = object.node().defects();
  bool is_sound = true;
  if (const auto allow_active = object.find("allow_active")) {
    const auto value = allow_active->boolean();
    is_sound = value.has_value();
    draft.allow_active = value.value_or(true);
  }
  if (const auto parameters = object.find("parameters")) {
    is_sound = read_given_parameters(*parameters, draft) && is_sound;
    if (!parameters->json().is_object()) return;
  }
  const std::string where = object.node().where() + "/parameters";
  is_sound = check_ranges(draft, where, defects) && is_sound;
  if (is_sound) make_part_of(draft, where, defects);
}

std::vector<std::string> state_names(const Subsystem& part) {
  std::vector<std::string> names;
  for (const StateVariable& state : part.signature().states) names.push_back(state.name);
  return names;
}

std::string shown(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 12;
  if (names.size() <= kMost) return list_of(names);
  const std::vector<std::string> first(names.begin(), names.begin() + kMost);
  return fmt::format("{}, ... ({} in all)", list_of(first), names.size());
}

// {"q1": 0.4, …}: the states that are not named keep the part's default.
std::optional<std::vector<double>> read_named_state(const Node& node, const Subsystem& part) {
  const std::vector<std::string> names = state_names(part);
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < names.size(); ++i) places.emplace(names[i], i);
  std::vector<double> state = part.default_state();
  for (const auto& [key, value] : node.json().get_ref<const Json::object_t&>()) {
    const Node member = node.member(key, value);
    const auto place = places.find(key);
    if (place == places.end()) {
      member.fail(fmt::format("{} has no state {}.\nstates: {}.{}", part.signature().type,
                              in_quotes(key), shown(names), did_you_mean(key, names)));
    } else if (const auto number = member.number()) {
      state[place->second] = *number;
    }
  }
  return state;
}

void read_initial_state(const Node& node, PartDraft& draft) {
  const Json& json = node.json();
  if (json.is_array()) {
    const auto state = read_numbers(node);
    const auto size = draft.part ? draft.part->signature().states.size() : node.size();
    if (state && state->size() != size) {
      return node.fail(fmt::format("must have {} numbers ({}), got {}", size,
                                   shown(state_names(*draft.part)), state->size()));
    }
    draft.options.initial_state = state.value_or(std::vector<double>());
  } else if (node.is_object("an object of states or an array of numbers") && draft.part) {
    draft.options.initial_state =
        read_named_state(node, *draft.part).value_or(std::vector<double>());
  }
}

void read_inputs(const Node& node, PartDraft& draft, const std::filesystem::path& folder) {
  if (!node.is_object("an object of inputs")) return;
  for (const auto& [key, value] : node.json().get_ref<const Json::object_t&>()) {
    const Node member = node.member(key, value);
    // An input that cannot be read still has its name checked.
    draft.options.inputs.insert_or_assign(key, read_signal(member, folder).value_or(Signal{}));
  }
}

std::string read_name(const Node& node) {
  const auto name = node.text();
  if (name && name->empty()) node.fail("must not be empty");
  return name.value_or("");
}

PartDraft read_part(const Node& node, const std::filesystem::path& folder) {
  PartDraft draft;
  const ObjectReader object(
      node, {"name", "type", "parameters", "initial_state", "inputs", "allow_active"});
  if (const auto name = object.require("name")) draft.name = draft.given_name = read_name(*name);
  if (const auto type = object.require("type")) {
    draft.type = find_part_type(type->choice(type_names()).value_or(""));
  }
  if (draft.type != nullptr) read_parameters(object, draft);
  if (const auto state = object.find("initial_state")) read_initial_state(*state, draft);
  if (const auto inputs = object.find("inputs")) read_inputs(*inputs, draft, folder);
  return draft;
}

// Counts what the parts hold together; notes the part with which it becomes too much.
class SizeCount {
 public:
  bool add(const PartDraft& draft, const Node& node) {
    if (!draft.part) return true;
    states_ += draft.part->signature().state_size();
    ports_ += draft.part->signature().wave_size();
    return within(states_, scenario_limits::kStates, "states", node) &&
           within(ports_, scenario_limits::kScalarPorts, "scalar ports", node);
  }

 private:
  static bool within(std::int64_t count, std::int64_t limit, std::string_view what,
                     const Node& node) {
    if (count <= limit) return true;
    node.fail(fmt::format("with this part the system has more than {} {}", limit, what));
    return false;
  }

  std::int64_t states_ = 0;
  std::int64_t ports_ = 0;
};

}  // namespace

void read_parts(const Node& node, const std::filesystem::path& folder, SystemDraft& draft) {
  if (!node.json().is_array() || node.size() == 0) {
    node.fail_expected("an array of at least one subsystem");
    draft.knows_all_parts = false;
    return;
  }
  SizeCount sizes;
  for (std::size_t i = 0; i < node.size() && draft.knows_all_parts; ++i) {
    const Node element = node.at(i);
    draft.parts.push_back(read_part(element, folder));
    draft.knows_all_parts = sizes.add(draft.parts.back(), element);
  }
}

std::optional<System> build_name_table(const SystemDraft& draft, const Defects& defects) {
  SystemBuilder builder;
  bool is_empty = true;
  for (std::size_t i = 0; i < draft.parts.size(); ++i) {
    const PartDraft& part = draft.parts[i];
    if (!part.is_built || defects.has(fmt::format("/subsystems/{}/name", i))) continue;
    builder.add(part.name, make_part(part.type->name, part.parameters, part.allow_active));
    for (const Port& port : part.ports) builder.join(joint::Free{}, {part.name + "." + port.name});
    is_empty = false;
  }
  if (is_empty || !builder.check().empty()) return std::nullopt;
  return builder.build();
}

}  // namespace portwave::scenario_file
