#include <algorithm>
#include <exception>
#include <map>
#include <new>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/few_of.hpp"
#include "portwave/subsystems/base/name_search.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "scenario/parts/fmu_entry.hpp"
#include "scenario/parts/inputs.hpp"
#include "scenario/parts/part_damping.hpp"
#include "scenario/parts/system_draft.hpp"
#include "scenario/parts/values.hpp"
#include "scenario/reader/key_table.hpp"
#include "scenario/reader/limits.hpp"
#include "scenario/reader/text.hpp"
#include "scenario/templates/template_schema.hpp"

namespace portwave::scenario_file {
namespace {

/// Of all types that there are now: a program may add some.
std::vector<std::string> type_names() {
  std::vector<std::string> names;
  for (const PartType& type : catalogue()) names.push_back(type.name);
  names.emplace_back(kFmuType);
  return names;
}

// What decides the physics of a part, and the part as it was built from it.
struct PartModel {
  const PartType* type;
  bool allow_active;
  const Json* parameters;  // as in the file
  std::shared_ptr<const Component> part;
};

// The parts that were built so far, so that those with equal parameters share one.
class PartModels {
 public:
  explicit PartModels(PartRecipes& recipes) : recipes_(recipes) {}
  std::shared_ptr<const Component> find(const PartType& type, bool allow_active,
                                        const Json& parameters) const {
    const auto [begin, end] = models_.equal_range(std::hash<Json>()(parameters));
    const auto found = std::find_if(begin, end, [&](const auto& entry) {
      const PartModel& model = entry.second;
      return model.type == &type && model.allow_active == allow_active &&
             *model.parameters == parameters;
    });
    return found == end ? nullptr : found->second.part;
  }
  void add(PartModel model) {
    const std::size_t hash = std::hash<Json>()(*model.parameters);
    models_.emplace(hash, std::move(model));
  }
  PartRecipes& recipes() { return recipes_; }
  // Null until it is cut.
  std::shared_ptr<const Cut>& cut_of(const Component& part, int pieces) {
    return cuts_[{&part, pieces}];
  }

 private:
  PartRecipes& recipes_;
  std::unordered_multimap<std::size_t, PartModel> models_;
  std::map<std::pair<const Component*, int>, std::shared_ptr<const Cut>> cuts_;
};

void fail_unknown_parameter(const Node& node, const std::string& key, const PartType& type) {
  if (key == "allow_active") {
    return node.fail("\"allow_active\" belongs beside \"parameters\", not inside");
  }
  std::vector<std::string> names;
  for (const ParameterInfo& info : type.parameters) names.push_back(info.name);
  node.fail(fmt::format("{} has no parameter {}.\nparameters: {}.{}", type.name, in_quotes(key),
                        list_of(names), did_you_mean(key, names)));
}

// Reads what is given into `given`; false if some of it has a defect. Nothing is said about what is
// missing.
bool read_given_parameters(const Node& node, const PartType& type,
                           const std::filesystem::path& folder, Parameters& given) {
  if (!node.is_object("an object of parameters")) return false;
  bool is_sound = true;
  const std::vector<ParameterInfo>& known = type.parameters;
  for (const auto& [key, value] : node.json().get_ref<const Json::object_t&>()) {
    const Node member = node.member(key, value);
    const auto info = std::find_if(known.begin(), known.end(),
                                   [&key = key](const auto& each) { return each.name == key; });
    if (info == known.end()) {
      fail_unknown_parameter(member, key, type);
      is_sound = false;
    } else if (auto parameter = read_parameter(member, *info, folder)) {
      given.insert_or_assign(key, *std::move(parameter));
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

// A matrix that was read is wrong in its file.
void name_matrix_files(Issues& issues, const Parameters& parameters) {
  for (Issue& issue : issues) {
    const std::string_view key = std::string_view(issue.where).substr(issue.where.empty() ? 0 : 1);
    const auto parameter = parameters.find(key.substr(0, key.find('/')));
    if (parameter == parameters.end()) continue;
    const auto* const matrix = std::get_if<ShapedMatrix>(&parameter->second);
    if (matrix == nullptr || matrix->source.empty()) continue;
    issue.what = fmt::format("the matrix {}: {}", in_quotes(matrix->source), issue.what);
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
bool check_ranges(const PartType& type, Parameters& parameters, bool allow_active,
                  const std::string& where, Defects& defects) {
  Issues issues;
  append(issues, where, check_parameters(type, parameters, allow_active));
  std::erase_if(issues, [&](const Issue& issue) { return defects.has_within(issue.where); });
  defects.add(issues);
  return issues.empty();
}

// Of parameters that are checked; null, and noted, when that fails.
std::shared_ptr<const Component> built_part(const PartType& type, const Parameters& parameters,
                                            const std::string& where, Defects& defects) {
  try {
    if (auto part = portwave::build_part(type, parameters)) return part;
    defects.add(where, fmt::format("the type {} built nothing", in_quotes(type.name)));
  } catch (const ConfigError& error) {
    Issues found = error.issues();
    point_into_entries(found, parameters);
    name_matrix_files(found, parameters);
    place_derived(found, type);
    Issues placed;
    append(placed, where, found);
    defects.add(placed);
  } catch (const std::bad_alloc&) {
    defects.add(where, "not enough memory for a part of this size");
  } catch (const std::exception& error) {  // of a type that a program has added
    defects.add(where, fmt::format("the part could not be built: {}", printable(error.what())));
  }
  return nullptr;
}

struct PartKeys : FmuKeys {
  std::string name;
  std::optional<bool> allow_active;  ///< nothing where it could not be read
  int substeps = 1;
  std::optional<StageKind> integrator;
  std::optional<double> theta;
  std::optional<Node> type, parameters, initial_state, inputs, cut;
};

constexpr const char* kPartName = "^[^\\s.,\\[\\]\"']+$";

Json initial_state_schema() { return {{"anyOf", Json::array({map_of(number()), list(number())})}}; }

struct CutKeys {
  int parts = 0;
};

const KeyTable<CutKeys>& cut_keys() {
  static const KeyTable<CutKeys> keys(
      {required_key("parts", "about equal pieces",
                    to(&CutKeys::parts, form::integer(1, scenario_limits::kCutParts)))});
  return keys;
}

const KeyTable<PartKeys>& part_keys() {
  Form<std::string> name = form::name();
  name.schema = {{"type", "string"}, {"pattern", kPartName}};
  static const KeyTable<PartKeys> keys({
      required_key("name", "name of the part", to(&PartKeys::name, std::move(name))),
      required_key("type", "", later(&PartKeys::type, text())),
      optional_key("parameters", "", later(&PartKeys::parameters, {{"type", "object"}})),
      optional_key("initial_state",
                   "states by name, the others keep their defaults; or all in order",
                   later(&PartKeys::initial_state, initial_state_schema())),
      optional_key("inputs",
                   "external inputs by name, others are 0; and numbers among the parameters that "
                   "follow a signal or a function of time",
                   later(&PartKeys::inputs, map_of(reference("signal")))),
      optional_key("allow_active", "the part may create energy",
                   to(&PartKeys::allow_active, form::boolean()), false),
      optional_key("substeps", "steps that the part takes within each step",
                   to(&PartKeys::substeps, form::integer(1, kMostPartSubsteps)), 1),
      optional_key(
          "integrator", "stages of the part; absent: as the method says",
          to(&PartKeys::integrator, form::choice<StageKind>({{"gauss", StageKind::gauss},
                                                             {"damped", StageKind::damped},
                                                             {"auto", StageKind::automatic}}))),
      optional_key("damped_states", "of a damped part: the states whose motion dies; absent: all",
                   elsewhere<PartKeys>(list(text()))),
      optional_key("theta", "of a damped part: how much of the damping it has; absent: 1",
                   to(&PartKeys::theta, form::number({.minimum = 0.0, .maximum = 1.0}))),
      optional_key("cut", "cuts a linear part into pieces that are stepped in parallel",
                   later(&PartKeys::cut, cut_keys().schema())),
      optional_key("count", "", elsewhere<PartKeys>(count_schema())),
      optional_key("path", "of an FMU: its file; loaded only with --allow-plugins",
                   later(&FmuKeys::path, text())),
      optional_key("ports", "", later(&FmuKeys::ports, fmu_ports_schema())),
      optional_key("start", "", later(&FmuKeys::start, fmu_start_schema())),
      optional_key("outputs",
                   "of an FMU: variables that are shown as states of the part; absent: its outputs",
                   later(&FmuKeys::outputs, list(text()))),
      optional_key("rollback", "", later(&FmuKeys::rollback, fmu_rollback_schema())),
      optional_key("process", "", later(&FmuKeys::process, fmu_process_schema())),
      optional_key("time_limit_s", "", later(&FmuKeys::time_limit, fmu_time_limit_schema())),
      optional_key("held_J", "", later(&FmuKeys::held, fmu_held_schema())),
  });
  return keys;
}

// The part of this type, built or shared; null when there are defects.
std::shared_ptr<const Component> read_physics(const Node& node, const PartKeys& keys,
                                              const PartType& type,
                                              const std::filesystem::path& folder,
                                              PartModels& models) {
  bool is_sound = keys.allow_active.has_value();
  const bool is_active = keys.allow_active.value_or(true);
  Parameters parameters;
  const auto& given = keys.parameters;
  if (given) {
    if (auto part = models.find(type, is_active, given->json()); part && is_sound) return part;
    is_sound = read_given_parameters(*given, type, folder, parameters) && is_sound;
    if (!given->json().is_object()) return nullptr;
  }
  Defects& defects = node.defects();
  const std::string where = node.where() + "/parameters";
  is_sound = check_ranges(type, parameters, is_active, where, defects) && is_sound;
  if (!is_sound) return nullptr;
  auto part = built_part(type, parameters, where, defects);
  if (part) models.recipes().add(part, type, std::move(parameters), is_active);
  if (part && given) models.add({&type, is_active, &given->json(), part});
  return part;
}

std::vector<std::string> state_names(const Component& part) {
  std::vector<std::string> names;
  for (const StateVariable& state : part.signature().states) names.push_back(state.name);
  return names;
}

// {"q1": 0.4, …}: the states that are not named keep the part's default.
std::optional<std::vector<double>> read_named_state(const Node& node, const Component& part) {
  const std::vector<std::string> names = state_names(part);
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < names.size(); ++i) places.emplace(names[i], i);
  std::optional<NameSearch> search;  // when a name is wrong
  std::vector<double> state = part.default_state();
  for (const auto& [key, value] : node.json().get_ref<const Json::object_t&>()) {
    const Node member = node.member(key, value);
    const auto place = places.find(key);
    if (place == places.end()) {
      if (member.defects().is_full()) continue;
      if (!search) search.emplace(names);
      member.fail(fmt::format("{} has no state {}.\nstates: {}.{}", part.signature().type,
                              in_quotes(key), few_of(names), search->did_you_mean(key)));
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
                                   few_of(state_names(*draft.part)), state->size()));
    }
    draft.options.initial_state = state.value_or(std::vector<double>());
  } else if (node.is_object("an object of states or an array of numbers") && draft.part) {
    draft.options.initial_state =
        read_named_state(node, *draft.part).value_or(std::vector<double>());
  }
}

// {"parts": 8}
void read_cut(const Node& node, PartModels& models, PartDraft& draft) {
  CutKeys keys;
  if (!node.is_object(R"(an object such as {"parts": 8})") || !cut_keys().read(node, keys) ||
      draft.part == nullptr) {
    return;
  }
  try {
    std::shared_ptr<const Cut>& cut = models.cut_of(*draft.part, keys.parts);
    if (cut == nullptr) {
      cut = std::make_shared<const Cut>(cut_part(*draft.part, keys.parts));
    }
    draft.cut = cut;
  } catch (const ConfigError& error) {
    for (const Issue& issue : error.issues()) {
      node.fail(issue.where.empty() ? issue.what
                                    : fmt::format("a piece: {}: {}", issue.where, issue.what));
    }
  } catch (const std::bad_alloc&) {
    node.fail("not enough memory to cut this part");
  }
}

// Keys that belong to FMUs, or to all other parts.
void refuse_keys_of_others(const PartKeys& keys, bool is_fmu) {
  if (is_fmu) {
    if (keys.parameters) {
      keys.parameters->fail("an FMU has no parameters here: give its start values in \"start\"");
    }
    return;
  }
  for (const std::optional<Node>* const own :
       {&keys.path, &keys.ports, &keys.start, &keys.outputs, &keys.rollback, &keys.process,
        &keys.time_limit, &keys.held}) {
    if (*own) (*own)->fail("is for parts of the type \"fmu\"");
  }
}

PartDraft read_part(const Node& node, const std::filesystem::path& folder,
                    const std::vector<std::string>& types, bool knows_all_types, PartModels& models,
                    SystemDraft& whole) {
  PartDraft draft;
  PartKeys keys;
  part_keys().read(node, keys, {"assembly"});
  draft.name = draft.given_name = keys.name;
  if (keys.type) {
    const bool may_be_missing = !knows_all_types && keys.type->json().is_string();
    const auto name = may_be_missing ? keys.type->text() : keys.type->choice(types);
    draft.type = find_part_type(name.value_or(""));
    draft.is_fmu = draft.type == nullptr && name == kFmuType;
    refuse_keys_of_others(keys, draft.is_fmu);
  }
  if (draft.is_fmu) {
    draft.part = read_fmu(node, keys.name, keys, keys.inputs ? &*keys.inputs : nullptr, whole);
  }
  if (draft.type != nullptr) draft.part = read_physics(node, keys, *draft.type, folder, models);
  if (keys.initial_state) read_initial_state(*keys.initial_state, draft);
  if (keys.inputs) read_inputs(*keys.inputs, draft, folder, whole);
  draft.options.substeps = keys.substeps;
  draft.options.integrator = keys.integrator;
  draft.options.damping =
      read_damping(node, {keys.integrator, keys.theta, draft.part.get(), keys.cut.has_value()});
  if (!keys.cut) return draft;
  if (const auto substeps = ObjectReader(node).find("substeps")) {
    substeps->fail(
        "a part that is cut takes the steps of the system: its pieces are joined rigidly");
  }
  read_cut(*keys.cut, models, draft);
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

void read_parts(const Node& node, const std::filesystem::path& folder, SystemDraft& draft,
                const PhaseCallback& listener) {
  if (!node.json().is_array() || node.size() == 0) {
    node.fail_expected("an array of at least one subsystem");
    draft.knows_all_parts = false;
    return;
  }
  SizeCount sizes;
  PartModels models(*draft.recipes);
  const std::vector<std::string> types = type_names();
  for (std::size_t i = 0; i < node.size() && draft.knows_all_parts; ++i) {
    if (node.defects().is_full()) {  // of what follows nothing would be told
      draft.knows_all_parts = false;
      return;
    }
    tell(listener, {"building subsystem", static_cast<std::int64_t>(i) + 1,
                    static_cast<std::int64_t>(node.size())});
    const Node element = node.at(i);
    draft.parts.push_back(read_part(element, folder, types, draft.knows_all_types, models, draft));
    draft.knows_all_parts = sizes.add(draft.parts.back(), element);
  }
}

std::optional<System> build_name_table(const SystemDraft& draft, const Defects& defects) {
  SystemBuilder builder;
  bool is_empty = true;
  for (std::size_t i = 0; i < draft.parts.size(); ++i) {
    const PartDraft& part = draft.parts[i];
    if (part.part == nullptr || defects.has(fmt::format("/subsystems/{}/name", i))) continue;
    SystemBuilder::PartOptions options;  // any input may be driven: others are told elsewhere
    for (const ExternalInput& input : part.part->signature().inputs) {
      options.inputs.emplace(input.name, Signal::settable());
    }
    builder.add(part.name, part.part, std::move(options));
    for (const Port& port : part.part->signature().ports) {
      builder.join(joint::Free{}, {part.name + "." + port.name});
    }
    is_empty = false;
  }
  if (is_empty || !builder.check().empty()) return std::nullopt;
  return builder.build();
}

Json part_schema() { return part_keys().schema(); }

}  // namespace portwave::scenario_file
