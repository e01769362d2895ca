#include "portwave/runtime/scenario/part_recipes.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "portwave/coupling/system/derived_systems.hpp"
#include "portwave/runtime/ensemble/ensemble.hpp"
#include "portwave/runtime/scenario/part_parameters.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/name_search.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/catalogue/catalogue_part.hpp"
#include "scenario/parts/without_type.hpp"

namespace portwave {
namespace {

constexpr std::string_view kAllowActive = "allow_active";  // every type has it

/// "masses_kg[1]": a name and a place in a list.
struct Element {
  std::string_view name;
  std::optional<std::size_t> index;
};

Element split(std::string_view parameter) {
  const std::size_t bracket = parameter.find('[');
  if (bracket == std::string_view::npos || !parameter.ends_with(']')) return {parameter, {}};
  const std::string_view digits = parameter.substr(bracket + 1, parameter.size() - bracket - 2);
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (error != std::errc() || end != digits.data() + digits.size()) return {parameter, {}};
  return {parameter.substr(0, bracket), index};
}

template <class Map>
auto& value_of(Map& parameters, const PartType& type, std::string_view name) {
  const auto found = parameters.find(name);
  if (found != parameters.end()) return found->second;
  std::vector<std::string> names;
  for (const ParameterInfo& info : type.parameters) names.push_back(info.name);
  throw std::out_of_range(fmt::format("{} has no parameter {}.{}", type.name,
                                      in_quotes(std::string(name)),
                                      NameSearch(std::move(names)).did_you_mean(name)));
}

[[noreturn]] void refuse(std::string_view parameter, const char* why) {
  throw std::invalid_argument(
      fmt::format("parameter {} {}", in_quotes(std::string(parameter)), why));
}

/// act(number) on the number that is meant, a double& or an int&.
template <class Map, class Act>
void at_number(Map& parameters, const PartType& type, std::string_view parameter, const Act& act) {
  const Element element = split(parameter);
  auto& value = value_of(parameters, type, element.name);
  if (auto* const list = std::get_if<std::vector<double>>(&value)) {
    if (!element.index) refuse(parameter, "is a list: say which number of it, as in \"name[0]\"");
    if (*element.index >= list->size()) {
      throw std::out_of_range(fmt::format("parameter {} has {} numbers, and none of number {}",
                                          in_quotes(std::string(element.name)), list->size(),
                                          *element.index));
    }
    return act((*list)[*element.index]);
  }
  if (element.index) refuse(element.name, "is no list");
  if (auto* const number = std::get_if<double>(&value)) return act(*number);
  if (auto* const number = std::get_if<int>(&value)) return act(*number);
  refuse(parameter, "is no number");
}

bool is_matrix(const ParameterValue& value) {
  return std::holds_alternative<MatrixRows>(value) ||
         std::holds_alternative<MatrixEntries>(value) ||
         std::holds_alternative<ShapedMatrix>(value);
}

/// A parameter as a number, where that is all it is.
std::optional<double> as_number(const ParameterInfo& info, const Parameters& parameters) {
  const auto found = parameters.find(info.name);
  if (found == parameters.end()) return {};
  const ParameterValue& value = found->second;
  switch (info.kind) {
    case ParameterKind::number:
      if (const auto* const number = std::get_if<double>(&value)) return *number;
      break;
    case ParameterKind::integer:
      if (const auto* const number = std::get_if<int>(&value)) return *number;
      break;
    case ParameterKind::boolean:
      if (const auto* const truth = std::get_if<bool>(&value)) return *truth ? 1.0 : 0.0;
      break;
    case ParameterKind::choice:
      if (const auto* const choice = std::get_if<std::string>(&value)) {
        const auto place = std::ranges::find(info.choices, *choice);
        if (place != info.choices.end()) {
          return static_cast<double>(place - info.choices.begin());
        }
      }
      break;
    default:
      break;
  }
  return {};
}

ParameterValue from_number(const ParameterInfo& info, double number) {
  switch (info.kind) {
    case ParameterKind::integer:
      return static_cast<int>(number);
    case ParameterKind::boolean:
      return number != 0.0;
    case ParameterKind::choice:
      return info.choices[static_cast<std::size_t>(number)];
    default:
      return number;
  }
}

struct Place {
  int part;
  std::string_view parameter;
};

Place find_place(const System& system, std::string_view path) {
  const std::size_t dot = path.rfind('.');
  const std::string name(path.substr(0, dot));
  const int part = dot == std::string_view::npos ? -1 : system.find_part(name);
  if (part >= 0) return {part, path.substr(dot + 1)};
  if (system.find_cut(name) != nullptr) {
    throw std::logic_error(fmt::format(
        "part {} is cut into pieces: its parameters cannot be changed while it is stepped",
        in_quotes(name)));
  }
  std::vector<std::string> names;
  for (const Part& own : system.parts()) names.push_back(own.name);
  throw std::out_of_range(fmt::format("no parameter is named {}: no part is named {}.{}",
                                      in_quotes(std::string(path)), in_quotes(name),
                                      NameSearch(std::move(names)).did_you_mean(name)));
}

}  // namespace

void PartRecipes::add(const std::shared_ptr<const Component>& part, const PartType& type,
                      Parameters parameters, bool allow_active) {
  for (const auto& [name, value] : parameters) {
    if (is_matrix(value)) return;
  }
  const std::lock_guard lock(mutex_);
  keep(part, recipe(part, type, std::move(parameters), allow_active));
}

PartRecipes::Recipe PartRecipes::recipe(const std::shared_ptr<const Component>& part,
                                        const PartType& type, Parameters parameters,
                                        bool allow_active) {
  Recipe out{part, &type, allow_active, {}, nullptr};
  const auto active = parameters.find(kAllowActive);  // as checks leave it
  bool all = parameters.size() == type.parameters.size() + 1 && active != parameters.end();
  if (all) out.allow_active = std::get<bool>(active->second);
  out.numbers.reserve(type.parameters.size());
  for (std::size_t k = 0; all && k < type.parameters.size(); ++k) {
    const std::optional<double> number = as_number(type.parameters[k], parameters);
    all = number.has_value();
    out.numbers.push_back(number.value_or(0.0));
  }
  if (!all) {
    out.numbers = {};
    out.others = std::make_unique<const Parameters>(std::move(parameters));
  }
  return out;
}

Parameters PartRecipes::Recipe::parameters() const {
  if (others) return *others;
  Parameters out;
  out.emplace(kAllowActive, allow_active);
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    const ParameterInfo& info = type->parameters[k];
    out.emplace(info.name, from_number(info, numbers[k]));
  }
  return out;
}

void PartRecipes::keep(const std::shared_ptr<const Component>& part, Recipe recipe) {
  if (recipes_.size() >= most_) {
    std::erase_if(recipes_, [](const auto& own) { return own.second.part.expired(); });
    most_ = std::max<std::size_t>(1024, 2 * recipes_.size());
  }
  recipes_.insert_or_assign(part.get(), std::move(recipe));
}

namespace {

[[noreturn]] void refuse_part() {
  throw std::logic_error(
      "has no parameters to change in a run: it is a piece of another part, a resistive end, or "
      "given by matrices or an energy. Build another stepper for other values; set_states takes "
      "the states over");
}

/// Changes one number; errors as PartRecipes::with.
void change(Parameters& parameters, const PartType& type, std::string_view parameter,
            double value) {
  at_number(parameters, type, parameter, [&]<class Number>(Number& number) {
    if constexpr (std::is_same_v<Number, int>) {
      if (value != std::floor(value) || std::abs(value) > 1e9) refuse(parameter, "is an integer");
    }
    number = static_cast<Number>(value);
  });
}

/// Of a part that no scenario knows.
struct Described {
  const PartType* type;
  Parameters parameters;

  explicit Described(const Component& part) {
    const std::optional<CataloguePart> description = description_of(part);
    if (!description) refuse_part();
    type = part.built_from()->type;
    parameters = description->parameters();
  }
};

}  // namespace

PartRecipes::Known PartRecipes::find(const Component& part) const {
  const auto found = recipes_.find(&part);
  if (found != recipes_.end() && found->second.part.lock().get() == &part) {
    const Recipe& own = found->second;
    return {own.type, own.allow_active, own.parameters()};
  }
  if (const BuiltFrom* const built = part.built_from(); built != nullptr) {
    if (std::optional<Parameters> own = recorded_parameters(*built->type, built->values)) {
      const bool allow_active = std::get<bool>(own->at(std::string(kAllowActive)));
      return {built->type, allow_active, *std::move(own)};
    }
  }
  refuse_part();
}

double PartRecipes::value(const Component& part, std::string_view parameter) const {
  const std::lock_guard lock(mutex_);
  const Known own = find(part);
  double out = 0.0;
  at_number(own.parameters, *own.type, parameter,
            [&](const auto& number) { out = static_cast<double>(number); });
  return out;
}

std::shared_ptr<const Component> PartRecipes::with(const Component& part,
                                                   std::string_view parameter, double value) {
  const std::lock_guard lock(mutex_);
  Known own = find(part);
  change(own.parameters, *own.type, parameter, value);
  throw_if_any(check_parameters(*own.type, own.parameters, own.allow_active));
  std::shared_ptr<const Component> built = build_part(*own.type, own.parameters);
  keep(built, recipe(built, *own.type, std::move(own.parameters), own.allow_active));
  return built;
}

namespace {

/// "m" (mass): what is wrong.
std::string of_part(const Part& part, const std::string& what) {
  const std::string& type = part.component->signature().type;
  return fmt::format("{} ({}): {}", in_quotes(part.name), type, without_type(what, type));
}

/// What `make` returns; errors about names and kinds of parameters name the part, those of values do not.
template <class Make>
auto naming(const System& system, int part, const Make& make) {
  const auto named = [&](const std::exception& error) {
    return of_part(system.parts()[at(part)], error.what());
  };
  try {
    return make();
  } catch (const std::out_of_range& error) {
    throw std::out_of_range(named(error));
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(named(error));
  } catch (const std::logic_error& error) {
    throw std::logic_error(named(error));
  }
}

/// The same, and those of values name it, too.
template <class Make>
auto of_part(const Stepper& stepper, int part, const Make& make) {
  try {
    return naming(stepper.system(), part, make);
  } catch (const ConfigError& error) {
    Issues issues = error.issues();
    for (Issue& issue : issues) {
      issue.what = of_part(stepper.system().parts()[at(part)], issue.what);
    }
    throw ConfigError(std::move(issues));
  }
}

/// An FMU is not built from its parameters: those that may change in a run are settable inputs of the part.
std::optional<InputSlot> input_of_fmu(const Stepper& stepper, const Place& place,
                                      std::string_view path) {
  const Part& part = stepper.system().parts()[at(place.part)];
  if (part.component->signature().type != "fmu") return std::nullopt;
  try {
    return stepper.find_input(path);
  } catch (const std::out_of_range&) {
    throw ConfigError(
        "", fmt::format("{} is no settable input of the FMU {}: tunable parameters of an FMU are "
                        "set in a run where its \"inputs\" name them, \"{}\": \"settable\"",
                        in_quotes(path), in_quotes(part.name), printable(place.parameter)));
  }
}

}  // namespace

void set_parameter(Stepper& stepper, const Scenario& scenario, const ParameterSlot& slot,
                   double value) {
  const auto parts = stepper.system().parts();
  if (slot.part < 0 || at(slot.part) >= parts.size()) {
    throw std::out_of_range(fmt::format("there is no part {} of {}", slot.part, parts.size()));
  }
  const Component& present = *parts[at(slot.part)].component;
  stepper.set_component(slot.part, of_part(stepper, slot.part, [&] {
                          return scenario.recipes->with(present, slot.parameter, value);
                        }));
}

void set_parameter(Stepper& stepper, const Scenario& scenario, std::string_view path,
                   double value) {
  const Place place = find_place(stepper.system(), path);
  if (const auto input = input_of_fmu(stepper, place, path)) {
    return stepper.set_input(*input, value);
  }
  const Component& present = *stepper.system().parts()[at(place.part)].component;
  stepper.set_component(place.part, of_part(stepper, place.part, [&] {
                          return scenario.recipes->with(present, place.parameter, value);
                        }));
}

void set_parameter(Stepper& stepper, std::string_view path, double value) {
  const Place place = find_place(stepper.system(), path);
  if (const auto input = input_of_fmu(stepper, place, path)) {
    return stepper.set_input(*input, value);
  }
  stepper.set_component(place.part, of_part(stepper, place.part, [&] {
                          Described own(*stepper.system().parts()[at(place.part)].component);
                          change(own.parameters, *own.type, place.parameter, value);
                          throw_if_any(check_parameters(*own.type, own.parameters, false));
                          return build_part(*own.type, own.parameters);
                        }));
}

double parameter(const Stepper& stepper, std::string_view path) {
  const Place place = find_place(stepper.system(), path);
  if (const auto input = input_of_fmu(stepper, place, path)) return stepper.input(*input);
  return of_part(stepper, place.part, [&] {
    const Described own(*stepper.system().parts()[at(place.part)].component);
    double out = 0.0;
    at_number(own.parameters, *own.type, place.parameter,
              [&](const auto& number) { out = static_cast<double>(number); });
    return out;
  });
}

ParameterSlot find_parameter(const Stepper& stepper, const Scenario& scenario,
                             std::string_view path) {
  const Place place = find_place(stepper.system(), path);
  const Component& present = *stepper.system().parts()[at(place.part)].component;
  of_part(stepper, place.part, [&] { return scenario.recipes->value(present, place.parameter); });
  return {place.part, std::string(place.parameter)};
}

namespace {

/// Defects of a part whose parameters were changed: "part.parameter: …".
Issues defects_of(const Part& part, const Issues& issues, std::string_view whose = {}) {
  Issues out;
  for (const Issue& own : issues) {
    const std::string what = without_type(own.what, part.component->signature().type);
    const bool is_whole = own.where.empty();
    out.push_back({"", fmt::format("{}{}{}{}: {}", whose, printable(part.name), is_whole ? "" : ".",
                                   is_whole ? own.where : own.where.substr(1), what)});
  }
  return out;
}

constexpr int kToldReplicas = 20;

/// Every defect of replicas from `first` on. `make`: the system of one.
template <class Make>
[[noreturn]] void refuse_replicas(int first, int replicas, const Make& make) {
  Issues issues;
  int wrong = 0;
  for (int i = first; i < replicas; ++i) {
    try {
      static_cast<void>(make(i));
    } catch (const ConfigError& error) {
      if (++wrong > kToldReplicas) continue;
      for (const Issue& own : error.issues()) {
        issues.push_back({own.where, fmt::format("replica {}, {}", i, own.what)});
      }
    } catch (const std::invalid_argument& error) {
      if (++wrong > kToldReplicas) continue;
      issues.push_back({"", fmt::format("replica {}: {}", i, error.what())});
    }
  }
  if (wrong > kToldReplicas) {
    issues.push_back({"", fmt::format("and {} more replicas", wrong - kToldReplicas)});
  }
  throw ConfigError(std::move(issues));
}

}  // namespace

void set_parameter(Ensemble& ensemble, const Scenario& scenario, int replica, std::string_view path,
                   double value) {
  const Place place = find_place(ensemble.system(), path);
  const Component& present = ensemble.component(replica, place.part);
  std::shared_ptr<const Component> component;
  try {
    component = naming(ensemble.system(), place.part,
                       [&] { return scenario.recipes->with(present, place.parameter, value); });
  } catch (const ConfigError& error) {
    throw ConfigError(defects_of(ensemble.system().parts()[at(place.part)], error.issues(),
                                 fmt::format("replica {}, ", replica)));
  }
  ensemble.set_component(replica, place.part, std::move(component));
}

double parameter(const Ensemble& ensemble, const Scenario& scenario, int replica,
                 std::string_view path) {
  const Place place = find_place(ensemble.system(), path);
  const Component& present = ensemble.component(replica, place.part);
  return naming(ensemble.system(), place.part,
                [&] { return scenario.recipes->value(present, place.parameter); });
}

System changed_system(const System& system, const Scenario& scenario,
                      std::span<const ParameterChange> changes) {
  const System* const one[] = {&system};
  System out = gathered_system(one);
  Issues issues;
  for (const ParameterChange& change : changes) {
    const Place place = find_place(out, change.path);
    const Component& present = *out.parts()[at(place.part)].component;
    std::shared_ptr<const Component> component;
    try {
      component = naming(out, place.part, [&] {
        return scenario.recipes->with(present, place.parameter, change.value);
      });
    } catch (const ConfigError& error) {
      append(issues, "", defects_of(out.parts()[at(place.part)], error.issues()));
      continue;
    }
    if (const std::string defect = exchange_defect(present, *component); !defect.empty()) {
      throw std::invalid_argument(
          fmt::format("with {} = {:g} it is another part: {}", change.path, change.value, defect));
    }
    exchange_component(out, place.part, std::move(component));
  }
  throw_if_any(std::move(issues));
  return out;
}

Ensemble make_ensemble(const System& system, const Scenario& scenario, int replicas,
                       std::span<const std::string> paths, std::span<const double> values,
                       const StepperOptions& options, const EnsembleOptions& ensemble) {
  if (paths.empty()) return {system, replicas, options, ensemble};
  const std::size_t wanted = at(std::max(replicas, 0)) * paths.size();
  if (values.size() != wanted) {
    throw std::invalid_argument(
        fmt::format("{} numbers are given, and {} are needed: {} for each replica", values.size(),
                    wanted, paths.size()));
  }
  std::vector<ParameterChange> changes;
  for (const std::string& path : paths) changes.push_back({path, 0.0});
  const auto changed = [&](int i) {
    for (std::size_t k = 0; k < changes.size(); ++k) {
      changes[k].value = values[at(i) * changes.size() + k];
    }
    return changed_system(system, scenario, changes);
  };
  const auto replica = [&](int i) {
    try {
      return changed(i);
    } catch (const ConfigError&) {
      refuse_replicas(i, replicas, changed);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(fmt::format("replica {}: {}", i, error.what()));
    }
  };
  return {replicas, replica, options, ensemble};
}

double parameter(const Stepper& stepper, const Scenario& scenario, std::string_view path) {
  const Place place = find_place(stepper.system(), path);
  if (const auto input = input_of_fmu(stepper, place, path)) return stepper.input(*input);
  const Component& present = *stepper.system().parts()[at(place.part)].component;
  return of_part(stepper, place.part,
                 [&] { return scenario.recipes->value(present, place.parameter); });
}

}  // namespace portwave
