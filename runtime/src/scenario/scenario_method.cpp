#include "scenario/scenario_method.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "execution/method_rules.hpp"
#include "output/observable.hpp"
#include "scenario/scenario_limits.hpp"
#include "scenario/scenario_network_method.hpp"
#include "scenario/scenario_text.hpp"
#include "scenario/scenario_values.hpp"

namespace portwave::scenario_file {
namespace {

void read_end(const Node& node, std::optional<double> step_s, RunSettings& settings) {
  const auto end_s = node.number(NumberRange::positive());
  if (!end_s || !step_s) return;
  if (*end_s / *step_s > static_cast<double>(scenario_limits::kSteps)) {
    return node.fail(fmt::format("{} s in steps of {} s are more than {} steps", *end_s, *step_s,
                                 scenario_limits::kSteps));
  }
  const auto steps = whole_steps(*end_s, *step_s);
  if (steps) {
    settings.steps = *steps;
    return;
  }
  const double below = std::floor(*end_s / *step_s);
  node.fail(fmt::format("must be a whole number of steps of {} s, got {}.\n{} or {} would do.",
                        *step_s, *end_s, std::max(below, 1.0) * *step_s,
                        (std::max(below, 1.0) + 1.0) * *step_s));
}

// One number for each of `count` scalar ports: a number for all of them, or an array.
bool read_per_component(const Node& node, const NumberRange& range, double* values, int count) {
  if (node.json().is_array() && std::cmp_equal(node.size(), count)) {
    bool is_sound = true;
    for (int i = 0; i < count; ++i) {
      const Node element = node.at(static_cast<std::size_t>(i));
      const auto number = element.number(range);
      is_sound = is_sound && number;
      values[i] = number.value_or(1.0);
    }
    return is_sound;
  }
  if (node.json().is_array()) {
    node.fail(fmt::format("must be {}, or an array of {}, one per component of the port, got {}",
                          range.describe(), count, describe(node.json())));
    return false;
  }
  const auto number = node.number(range);
  std::fill_n(values, count, number.value_or(1.0));
  return number.has_value();
}

std::vector<std::string> port_paths(const System& system) {
  std::vector<std::string> paths;
  for (const Part& part : system.parts()) {
    for (const Port& port : part.component->signature().ports) {
      paths.push_back(part.name + "." + port.name);
    }
  }
  return paths;
}

void fail_unknown_port(const Node& node, const std::string& path, Names& names) {
  if (node.defects().is_full() || names.is_missing(path)) return;
  constexpr std::size_t kShown = 12;
  const std::vector<std::string>& paths = names.ports().names();
  const std::vector<std::string> first(
      paths.begin(), paths.begin() + static_cast<std::ptrdiff_t>(std::min(paths.size(), kShown)));
  const std::string more =
      paths.size() > kShown ? fmt::format(", ... ({} in all)", paths.size()) : "";
  node.fail(fmt::format("there is no port {}.\nports: {}{}.{}", in_quotes(path), list_of(first),
                        more, names.ports().did_you_mean(path)));
}

// Reads {"part.port": number or array, …} into values by scalar port. Returns which were given.
std::vector<bool> read_by_port(const Node& node, Names& names, const NumberRange& range,
                               std::vector<double>& values) {
  std::vector<bool> is_given(values.size(), false);
  if (!node.is_object("an object of ports, {\"part.port\": number, ...}")) return is_given;
  for (const auto& [path, value] : node.json().get_ref<const Json::object_t&>()) {
    const Node member = node.member(path, value);
    const auto [part, port] = names.system().find_port(path);
    if (part < 0) {
      fail_unknown_port(member, path, names);
      continue;
    }
    const Part& owner = names.system().parts()[static_cast<std::size_t>(part)];
    const int count = owner.component->signature().ports[static_cast<std::size_t>(port)].dimension;
    const int first = names.system().first_scalar_port(part, port);
    read_per_component(member, range, values.data() + first, count);
    for (int i = first; i < first + count; ++i) is_given[static_cast<std::size_t>(i)] = true;
  }
  return is_given;
}

// A resistor that ends a port takes the impedance of that port unless it has one of its own.
void match_terminations(const System& system, const std::vector<bool>& is_given,
                        std::vector<double>& impedance) {
  for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
    const Part& part = system.parts()[static_cast<std::size_t>(i)];
    if (!part.is_termination) continue;
    const auto [ended, port] = system.find_port(part.name);
    const auto from = static_cast<std::size_t>(system.first_scalar_port(ended, port));
    const auto to = static_cast<std::size_t>(system.first_scalar_port(i));
    const auto count = static_cast<std::size_t>(part.component->signature().wave_size());
    for (std::size_t k = 0; k < count; ++k) {
      if (!is_given[to + k]) impedance[to + k] = impedance[from + k];
    }
  }
}

constexpr std::string_view kUniform = "uniform";
constexpr std::string_view kPerPort = "per_port";

// The kind with that name; nothing for "uniform" and the like.
template <typename Kind, std::size_t size>
std::optional<Kind> kind_named(std::string_view name, const std::array<Kind, size>& kinds) {
  const auto kind =
      std::find_if(kinds.begin(), kinds.end(), [&](Kind each) { return to_string(each) == name; });
  if (kind == kinds.end()) return std::nullopt;
  return *kind;
}

constexpr std::array kMethodKinds = {MethodKind::douglas_rachford, MethodKind::peaceman_rachford,
                                     MethodKind::interface,        MethodKind::automatic,
                                     MethodKind::strang,           MethodKind::impulse,
                                     MethodKind::lions_mercier,    MethodKind::jacobi,
                                     MethodKind::gauss_seidel};
constexpr std::array kTunedImpedances = {ImpedanceKind::fne, ImpedanceKind::matched,
                                         ImpedanceKind::leaf, ImpedanceKind::adapted,
                                         ImpedanceKind::automatic};

// A number that method_rules judges: here only that it is one.
void read_number(const Node& node, std::string_view expected, double& value) {
  if (!node.json().is_number()) return node.fail_expected(expected);
  value = node.number().value_or(value);
}

// False when it cannot be told.
bool read_method_kind(const ObjectReader& object, CouplingMethod& method) {
  const auto kind = object.find("kind");
  if (!kind) return true;
  const auto name = kind->choice(method_kinds());
  if (name) method.kind = *kind_named(*name, kMethodKinds);
  return name.has_value();
}

void read_tolerances(const ObjectReader& object, CouplingMethod& method) {
  const auto relative = object.find("tolerance");
  const auto energy = object.find("energy_tolerance_J");
  const bool expects_one =
      method.kind == MethodKind::automatic || method.kind == MethodKind::interface;
  if (!relative && !energy && expects_one) {
    method.tolerance = CouplingMethod::automatic().tolerance;
  }
  if (relative) method.tolerance = relative->number(method_rules::tolerance()).value_or(0.0);
  if (energy) method.energy_tolerance_J = energy->number(method_rules::tolerance()).value_or(0.0);
  if (const auto per_part = object.find("tolerance_per_part")) {
    method.tolerance_per_part = per_part->boolean().value_or(false);
  }
}

// What "auto" chooses by itself.
void read_iteration_options(const ObjectReader& object, CouplingMethod& method) {
  const auto relaxation = object.find("relaxation");
  const auto acceleration = object.find("acceleration");
  if (method.kind == MethodKind::interface) {
    for (const auto* const unused : {&relaxation, &acceleration}) {
      if (*unused) (*unused)->fail("the method \"interface\" makes no use of it; leave it out");
    }
    return;
  }
  if (method.kind == MethodKind::automatic) {
    for (const auto* const chosen : {&relaxation, &acceleration}) {
      if (*chosen) (*chosen)->fail("the method \"auto\" chooses its own; leave it out");
    }
    return;
  }
  if (relaxation) {
    read_number(*relaxation, method_rules::relaxation(method).describe(), method.relaxation);
  }
  if (acceleration) {
    method.acceleration = static_cast<int>(acceleration->integer(0, kMaxAcceleration).value_or(0));
  }
}

void read_given_impedance(const Node& node, std::string_view kind, CouplingMethod& method) {
  static constexpr std::array<std::string_view, 3> kKeys = {"kind", "value", "ports"};
  const ObjectReader object(node, ObjectReader::Keys(kKeys).first(kind == kPerPort ? 3 : 2));
  const auto value = object.require("value");
  const auto number = value ? value->number(NumberRange::positive()) : std::nullopt;
  if (number) method.impedance = {*number};
}

void read_impedance(const Node& node, CouplingMethod& method) {
  const auto kind = read_kind(node, impedance_kinds());
  if (!kind) return;
  const auto tuned = kind_named(*kind, kTunedImpedances);
  method.impedance_kind = tuned.value_or(ImpedanceKind::given);
  if (!tuned) return read_given_impedance(node, *kind, method);
  const ObjectReader object(node, {"kind", "retune_factor"});
  if (const auto factor = object.find("retune_factor")) {
    read_number(*factor, method_rules::kRetuneFactor, method.retune_factor);
  }
}

void read_tank(const Node& node, TankOptions& tank) {
  const ObjectReader object(node, {"initial_J", "initial_fraction", "cap_J"});
  if (!object.is_object()) return;
  if (const auto initial = object.find("initial_J")) {
    tank.initial_J = initial->number(method_rules::tank());
  }
  if (const auto fraction = object.find("initial_fraction")) {
    tank.initial_fraction = fraction->number(method_rules::tank()).value_or(0.0);
  }
  if (const auto cap = object.find("cap_J")) {
    tank.cap_J = cap->number(method_rules::tank()).value_or(tank.cap_J);
  }
}

void read_port_impedances(const Node& node, Names& names, CouplingMethod& method) {
  const ObjectReader object(node);
  const std::optional<Node> ports = object.find("ports");
  if (!ports) return;
  method.impedance.assign(names.system().scalar_ports().size(), method.impedance.front());
  const std::vector<bool> is_given =
      read_by_port(*ports, names, NumberRange::positive(), method.impedance);
  match_terminations(names.system(), is_given, method.impedance);
}

void read_wave_method(const ObjectReader& object, bool knows_kind, CouplingMethod& method) {
  read_tolerances(object, method);
  read_iteration_options(object, method);
  const bool chooses_impedance =
      method.kind == MethodKind::automatic || method.kind == MethodKind::interface;
  if (chooses_impedance) method.impedance_kind = ImpedanceKind::automatic;
  const bool may_be_left_out = chooses_impedance || !knows_kind;
  const auto impedance = may_be_left_out ? object.find("impedance") : object.require("impedance");
  if (impedance) read_impedance(*impedance, method);
  if (const auto guard = object.find("guard")) method.guard = guard->boolean().value_or(true);
  if (const auto tank = object.find("tank")) read_tank(*tank, method.tank);
}

}  // namespace

bool Names::is_missing(const std::string& path) const {
  if (is_complete_) return false;
  for (std::size_t end = path.find('.');; end = path.find('.', end + 1)) {
    if (missing_.contains(path.substr(0, end))) return true;
    if (end == std::string::npos) break;
  }
  const std::size_t last = path.rfind('.');  // a termination's ports are "part.port.resistor"
  return last != std::string::npos && system_.find_port(path.substr(0, last)).first >= 0;
}

NameSearch& Names::parts() {
  if (!parts_) parts_.emplace(names_of_parts(system_));
  return *parts_;
}

NameSearch& Names::ports() {
  if (!ports_) ports_.emplace(port_paths(system_));
  return *ports_;
}

const std::vector<std::string>& method_kinds() {
  static const std::vector<std::string> kinds = [] {
    std::vector<std::string> names;
    for (const MethodKind kind : kMethodKinds) names.emplace_back(to_string(kind));
    return names;
  }();
  return kinds;
}

const std::vector<std::string>& tuned_impedance_kinds() {
  static const std::vector<std::string> kinds = [] {
    std::vector<std::string> names;
    for (const ImpedanceKind kind : kTunedImpedances) names.emplace_back(to_string(kind));
    return names;
  }();
  return kinds;
}

const std::vector<std::string>& impedance_kinds() {
  static const std::vector<std::string> kinds = [] {
    std::vector<std::string> names = {std::string(kUniform), std::string(kPerPort)};
    const std::vector<std::string>& tuned = tuned_impedance_kinds();
    names.insert(names.end(), tuned.begin(), tuned.end());
    return names;
  }();
  return kinds;
}

std::optional<std::int64_t> whole_steps(double end_s, double step_s) {
  const double ratio = end_s / step_s;
  const double steps = std::round(ratio);
  const double round_off = 1e-6 + 4.0 * std::numeric_limits<double>::epsilon() * ratio;
  if (steps < 1.0 || std::abs(ratio - steps) > round_off) return std::nullopt;
  return static_cast<std::int64_t>(steps);
}

void read_time(const Node& node, RunSettings& settings) {
  const ObjectReader object(node, {"step_s", "end_s", "steps"});
  if (!object.is_object()) return;
  const auto step_node = object.require("step_s");
  const auto step_s = step_node ? step_node->number(NumberRange::positive()) : std::nullopt;
  settings.options.step_s = step_s.value_or(settings.options.step_s);
  const auto end = object.find("end_s");
  const auto steps = object.find("steps");
  if (end.has_value() == steps.has_value()) {
    node.fail(
        fmt::format("must have either \"end_s\" or \"steps\", got {}", end ? "both" : "neither"));
  }
  if (end) read_end(*end, step_s, settings);
  if (steps) settings.steps = steps->integer(1, scenario_limits::kSteps).value_or(0);
}

void read_method(const Node& node, CouplingMethod& method) {
  if (!node.is_object("an object")) return;
  const ObjectReader object(node);
  const bool knows_kind = read_method_kind(object, method);
  check_method_keys(node, knows_kind ? &method.kind : nullptr);
  const auto iterations = is_splitting(method.kind) ? std::nullopt : object.find("iterations");
  if (iterations) {
    method.iterations =
        static_cast<int>(iterations->integer(0, scenario_limits::kIterations).value_or(0));
  } else if (method.kind == MethodKind::automatic) {
    method.iterations = CouplingMethod::automatic().iterations;
  }
  if (is_wave_method(method.kind)) {
    read_wave_method(object, knows_kind, method);
  } else {
    read_network_method(object, method);
  }
  for (Issue& issue : method_rules::check(method)) {
    if (node.defects().has(issue.where)) continue;
    node.defects().add(std::move(issue.where), std::move(issue.what));
  }
}

void read_method_ports(const Node& node, Names& names, CouplingMethod& method) {
  const ObjectReader object(node);
  if (method.kind == MethodKind::impulse) read_fast(object, names);
  if (!is_wave_method(method.kind)) return;
  if (const auto impedance = object.find("impedance")) {
    const bool is_given = method.impedance_kind == ImpedanceKind::given;
    if (is_given && impedance->json().is_object()) read_port_impedances(*impedance, names, method);
  }
  if (const auto waves = object.find("initial_waves")) {
    method.initial_waves.assign(names.system().scalar_ports().size(), 0.0);
    read_by_port(*waves, names, {}, method.initial_waves);
  }
}

void read_outputs(const Node& node, RunSettings& settings) {
  const ObjectReader object(node, {"observe", "every"});
  if (const auto every = object.find("every")) {
    settings.record_every =
        static_cast<int>(every->integer(1, scenario_limits::kRecordEvery).value_or(1));
  }
  const auto observe = object.find("observe");
  if (!observe || !observe->is_array("an array of quantities \"part.state\"")) return;
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < observe->size(); ++i) {
    const Node element = observe->at(i);
    const auto label = element.text();
    if (!label) continue;
    const auto [first, is_new] = places.emplace(*label, i);
    if (is_new) continue;
    element.fail(fmt::format("{} is already observed by /outputs/observe/{}", in_quotes(*label),
                             first->second));
  }
}

void read_observables(const Node& node, Names& names, RunSettings& settings) {
  const ObjectReader object(node);
  const auto observe = object.find("observe");
  if (!observe) {
    settings.observables = all_states(names.system());
    return;
  }
  if (!observe->json().is_array()) return;
  const auto part_names = [&names]() -> NameSearch& { return names.parts(); };
  for (std::size_t i = 0; i < observe->size(); ++i) {
    const Node element = observe->at(i);
    if (!element.json().is_string()) continue;
    const auto& label = element.json().get_ref<const std::string&>();
    if (node.defects().is_full()) return;
    if (names.is_missing(label) || node.defects().has(element.where())) continue;
    std::string defect;
    auto observable =
        find_observable(names.system(), label, settings.options.method.kind, part_names, defect);
    if (observable) {
      settings.observables.push_back(*std::move(observable));
    } else {
      element.fail(std::move(defect));
    }
  }
}

std::vector<Observable> all_states(const System& system) {
  std::vector<Observable> observables;
  for (std::size_t i = 0; i < system.parts().size(); ++i) {
    const Part& part = system.parts()[i];
    const std::vector<StateVariable>& states = part.component->signature().states;
    for (std::size_t k = 0; k < states.size(); ++k) {
      Observable observable;
      observable.label = part.name + "." + states[k].name;
      observable.kind = Observable::Kind::state;
      observable.part = static_cast<int>(i);
      observable.index = static_cast<int>(k);
      observable.unit = states[k].unit;
      observables.push_back(std::move(observable));
    }
  }
  return observables;
}

}  // namespace portwave::scenario_file
