#include "step/stepper_options.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "parallel/fast_parts.hpp"
#include "portwave/coupling/impedance/integrator_choice.hpp"
#include "portwave/coupling/method/method_table.hpp"
#include "portwave/coupling/network/kick_drift.hpp"
#include "portwave/coupling/network/taylor.hpp"
#include "portwave/coupling/system/derived_systems.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "step/event_watch.hpp"

namespace portwave {
namespace {

std::string_view describe(StepFault fault) {
  switch (fault) {
    case StepFault::none:
      return "no fault";
    case StepFault::not_converged:
      return "the implicit step did not converge";
    case StepFault::not_finite:
      return "a wave or state is not finite";
    case StepFault::threw:
      return "a callback threw";
    case StepFault::at_odds:
      return "its state is at odds with a rigid joint";
    case StepFault::too_inaccurate:
      return "its step is not accurate enough";
  }
  return "unknown fault";
}

std::string_view describe_network(StepFault fault) {
  return fault == StepFault::not_converged ? "the iteration did not converge" : describe(fault);
}

std::string step_error_text(const std::string& part, std::int64_t step, int iteration, int budget,
                            StepFault fault, const std::string& detail) {
  std::string where = fmt::format("inner iteration {}", iteration);
  if (iteration < 0) where = "freezing";
  if (iteration >= budget) where = "the commit";
  if (budget == StepError::kNoIterations) where.clear();
  if (budget != StepError::kNoIterations) where = ", " + where;
  const bool is_network = part.empty();
  std::string text = is_network ? "the network" : fmt::format("part \"{}\"", part);
  text += fmt::format(" failed in step {}{}: {}", step, where,
                      is_network ? describe_network(fault) : describe(fault));
  if (!detail.empty()) text += " (" + detail + ")";
  return text + "; the state is that before the step";
}

void refuse_where_not_linearisable(const System& system, Issues& issues) {
  for (std::size_t i = 0; i < system.parts().size(); ++i) {
    const Component& component = *system.parts()[i].component;
    const Capabilities capabilities = component.capabilities();
    if (capabilities.linear || capabilities.linearisable) continue;
    issues.push_back(
        {fmt::format("/subsystems/{}", i),
         fmt::format("the method \"interface\" needs derivatives, and subsystem \"{}\" "
                     "({}) cannot be linearised",
                     system.parts()[i].name, component.signature().type)});
  }
}

constexpr const char* kNoTolerance =
    "\"auto\" goes by the tolerance of steps that choose their size, and these are of one size: "
    "give "
    "1, 2 or 3";

void check_sizes(const StepperOptions& options, Issues& issues) {
  const StepSizes& sizes = *options.sizes;
  const auto expect = [&](bool good, const char* where, const char* what) {
    if (!good) issues.push_back({where, what});
  };
  expect(StepSizes::tolerances().contains(sizes.tolerance), "/time/step/tolerance",
         "must be in [1e-13, 0.1]");
  expect(sizes.smallest_s >= 0.0 && sizes.smallest_s <= options.step_s, "/time/step/smallest_s",
         "must be >= 0 and no longer than the largest step");
  expect(sizes.event_tolerance_s >= 0.0 && sizes.event_tolerance_s <= options.step_s,
         "/time/step/event_tolerance_s", "must be >= 0 and no longer than the largest step");
  expect(!options.time.active(), "/time/step",
         "steps that choose their size keep no pace and no deadline: they are taken again where "
         "they are not accurate enough");
  if (!can_choose_sizes(options.method)) {
    issues.push_back(
        {"/time/step",
         fmt::format("the method \"{}\" takes steps of one size: give \"step_s\"; wave coupling, "
                     "\"kick-drift\" and \"taylor\" choose theirs",
                     to_string(options.method.kind()))});
  }
}

/// Parts with private states cannot take them to steps of another size.
void refuse_opaque_parts(const System& system, Issues& issues) {
  for (std::size_t i = 0; i < system.parts().size(); ++i) {
    const Part& part = system.parts()[i];
    if (part.port_hamiltonian() != nullptr) continue;
    issues.push_back({fmt::format("/subsystems/{}", i),
                      fmt::format("subsystem {} is opaque: it takes steps of one size only, and "
                                  "\"step\" asks for others",
                                  in_quotes(part.name))});
  }
}

void refuse_substeps(const System& system, const StepperOptions& options, Issues& issues) {
  for (std::size_t i = 0; i < system.parts().size(); ++i) {
    const Part& part = system.parts()[i];
    if (part.substeps == 1) continue;
    const std::string why =
        options.method.couples_by_waves()
            ? std::string("steps that choose their size measure the error of whole steps")
            : fmt::format("the method \"{}\" couples without waves and steps all parts alike",
                          to_string(options.method.kind()));
    issues.push_back({fmt::format("/subsystems/{}/substeps", i),
                      fmt::format("must be 1 for subsystem {}: {}", in_quotes(part.name), why)});
  }
}

void refuse_integrators(const System& system, const CouplingMethod& method, Issues& issues) {
  for (std::size_t i = 0; i < system.parts().size(); ++i) {
    if (!system.parts()[i].integrator) continue;
    issues.push_back(
        {fmt::format("/subsystems/{}/integrator", i),
         fmt::format("the method \"{}\" couples without waves and steps all parts alike",
                     to_string(method.kind()))});
  }
}

void check_integrators(const System& system, const StepperOptions& options, Issues& issues) {
  const WaveCoupling& waves = options.method.waves();
  WaveCoupling asked = waves;  // by name, not by `automatic`
  if (asked.integrator == StageKind::automatic) asked.integrator = StageKind::gauss;
  asked.stages = std::max(asked.stages, 1);
  const IntegratorChoice choice =
      choose_integrators(system, asked, options.step_s, options.sizes.has_value());
  append(issues, "", check_damping(system, choice.plan));
  for (std::size_t i = 0; system.slice() != nullptr && i < system.parts().size(); ++i) {
    if (!system.parts()[i].integrator) continue;
    issues.push_back({fmt::format("/subsystems/{}/integrator", i),
                      "in slices all parts have the integrator of the method"});
  }
}

void check_ranks(const StepperOptions& options, Issues& issues) {
  const bool is_local =
      options.executor != ExecutorKind::automatic && options.executor != ExecutorKind::serial;
  if (is_local) {
    issues.push_back(
        {"/executor", fmt::format("\"{}\" runs in one process: several ranks take \"auto\"",
                                  to_string(options.executor))});
  }
  if (options.time.active()) {
    issues.push_back(
        {"/time", "deadlines and a pace go by the clock of one process: several ranks have none"});
  }
}

/// Options that need more than a rank of slices knows.
void check_slice(const System& system, const StepperOptions& options, Issues& issues) {
  const SystemSlice& slice = *system.slice();
  const auto refuse = [&](bool bad, const char* where, const char* what) {
    if (bad) issues.push_back({where, what});
  };
  const bool has_ranks =
      options.ranks != nullptr && options.ranks->size() > 1 && options.ranks->rank() == slice.rank;
  refuse(!has_ranks, "/ranks", "a slice is stepped by the ranks that it was built with");
  refuse(options.sizes.has_value(), "/time/step",
         "a system in slices takes steps of one size: give \"step_s\"");
  refuse(options.signals != nullptr, "/signals",
         "sensors and actuators reach all parts, and no rank has all slices");
  refuse(!system.settable_inputs().empty(), "/subsystems",
         "inputs that are set between steps reach all parts, and no rank has all slices");
  refuse(!watches_of(system, options).empty(), "/events",
         "events are watched by one rank, and none has all slices");
  refuse(options.certify == Certify::full, "/certify",
         "\"full\" looks at the waves of all parts, and no rank has all slices: give \"energy\"");
  refuse(options.profile.has_value(), "/profile", "slices are not profiled");
  for (std::size_t i = 0; i < at(slice.own_parts); ++i) {
    const Part& part = system.parts()[i];
    if (part.component->capabilities().knows_energy) continue;
    issues.push_back(
        {fmt::format("/subsystems/{}", i),
         fmt::format("subsystem {} does not know its energy: it needs a run that is not in slices",
                     in_quotes(part.name))});
  }
  const auto* const waves = options.method.as<WaveCoupling>();
  refuse(waves == nullptr, "/method/kind",
         "slices are coupled by waves: \"douglas-rachford\" or \"peaceman-rachford\"");
  if (waves == nullptr) return;
  refuse(waves->kind == WaveUpdate::automatic || waves->kind == WaveUpdate::interface,
         "/method/kind",
         "is chosen or solved from the whole system, and no rank has that: give "
         "\"douglas-rachford\" or \"peaceman-rachford\"");
  refuse(waves->impedance_kind != ImpedanceKind::given, "/method/impedance",
         "is tuned for the whole system, and no rank has that: give numbers");
  refuse(waves->start == InnerStart::extrapolated, "/method/start",
         "\"extrapolated\" goes by the waves of all parts, and no rank has all slices");
  refuse(waves->exchange.delay() > 0, "/method/exchange/kind",
         "slices exchange waves synchronously");
  const bool is_checked =
      waves->tolerance > 0.0 || waves->energy_tolerance_J > 0.0 || waves->acceleration > 0;
  const bool is_partly_cut =
      options.ranks != nullptr && std::ranges::any_of(slice.islands, [&](const auto& shares) {
        return shares.size() > 1 && shares.size() < at(options.ranks->size());
      });
  refuse(
      is_checked && is_partly_cut, "/method/tolerance",
      "an island that is cut has no parts on some rank, which cannot judge its gap: give a fixed "
      "budget, without acceleration");
}

void check_signals(const StepperOptions& options, Issues& issues) {
  const double every_s = options.signals_every_s;
  if (options.sizes && !(every_s > 0.0 && std::isfinite(every_s))) {
    issues.push_back(
        {"/signals/every_s",
         "steps that choose their size need the time between samples [s] of what signals "
         "drive, inputs and parameters: finite and > 0. Also of parameters that follow functions "
         "of "
         "time, which have the value halfway between two samples (jumps end steps): "
         "\"signals\": {\"every_s\": 0.001}, for example, or steps of one size"});
  }
  const double steps = every_s / options.step_s;
  const bool is_whole = steps > 0.5 && std::abs(steps - std::round(steps)) < 1e-6 * steps;
  if (!options.sizes && every_s != 0.0 && !is_whole) {
    issues.push_back({"/signals/every_s",
                      fmt::format("must be a whole number of steps of {} s, or be left out: the "
                                  "signals are then sampled before every step",
                                  shown_number(options.step_s))});
  }
  const bool has_ranks = options.ranks != nullptr && options.ranks->size() > 1;
  if (has_ranks && !options.signals->parameter_actuators().empty()) {
    issues.push_back({"/signals",
                      "signals drive parameters of parts, and with several ranks no part can be "
                      "exchanged: step it in one process"});
  }
  if (!options.signals->parameter_actuators().empty() && !can_choose_sizes(options.method)) {
    issues.push_back({"/signals",
                      "signals drive parameters of parts, and without waves no part can be "
                      "exchanged, but for \"kick-drift\" and \"taylor\""});
  }
  if (!can_choose_sizes(options.method)) {
    issues.push_back(
        {"/signals",
         fmt::format("the method \"{}\" couples without waves and takes "
                     "inputs as functions of time only: controllers need "
                     "\"kick-drift\", \"taylor\" or wave coupling, such as {{\"kind\": \"auto\"}}",
                     to_string(options.method.kind()))});
  }
}

void check_watches(const System& system, const StepperOptions& options, Issues& issues) {
  const auto is_index = [](int index, std::size_t size) {
    return index >= 0 && static_cast<std::size_t>(index) < size;
  };
  const auto is_there = [&](const Watch& watch) {
    if (watch.signal >= 0) {
      return options.signals != nullptr && watch.signal < options.signals->signals();
    }
    const Sensor& of = watch.of;
    if (of.kind == Sensor::Kind::effort || of.kind == Sensor::Kind::flow) {
      return is_index(of.index, system.scalar_ports().size());
    }
    if (!is_index(of.part, system.parts().size())) return false;
    if (of.kind == Sensor::Kind::storage) return true;
    const Component& part = *system.parts()[static_cast<std::size_t>(of.part)].component;
    return is_index(of.index, static_cast<std::size_t>(part.signature().state_size()));
  };
  for (std::size_t i = 0; i < options.watches.size(); ++i) {
    const Watch& watch = options.watches[i];
    const std::string where = fmt::format("/events/{}", i);
    if (!std::isfinite(watch.level)) issues.push_back({where + "/level", "must be finite"});
    if (!is_there(watch)) issues.push_back({where + "/of", "there is no such quantity"});
  }
}

template <class Enum>
bool is_up_to(Enum value, Enum last) {
  return static_cast<int>(value) >= 0 && static_cast<int>(value) <= static_cast<int>(last);
}

/// Numbers that were cast to enumerations: their meaning is undefined from here on.
Issues check_enumerations(const StepperOptions& options) {
  Issues issues;
  const auto expect = [&](bool good, std::string where) {
    if (!good) issues.push_back({std::move(where), "is not one of the enumerators"});
  };
  expect(is_up_to(options.executor, ExecutorKind::graph), "/executor");
  expect(is_up_to(options.certify, Certify::full), "/certify");
  expect(is_up_to(options.grain.kind, Grain::Kind::parts), "/grain");
  if (const auto* const waves = options.method.as<WaveCoupling>(); waves != nullptr) {
    expect(is_up_to(waves->kind, WaveUpdate::automatic), "/method/kind");
    expect(is_up_to(waves->impedance_kind, ImpedanceKind::automatic), "/method/impedance");
    expect(is_up_to(waves->start, InnerStart::automatic), "/method/start");
    expect(is_up_to(waves->integrator, StageKind::automatic), "/method/integrator");
    expect(is_up_to(waves->exchange.kind, ExchangeKind::asynchronous), "/method/exchange/kind");
  }
  if (const auto* const dynamic = options.method.as<DynamicIteration>(); dynamic != nullptr) {
    expect(is_up_to(dynamic->kind, IterationKind::gauss_seidel), "/method/kind");
    expect(is_up_to(dynamic->integrator, Integrator::radau_iia), "/method/integrator");
    expect(is_up_to(dynamic->metric, IterationMetric::energy), "/method/metric");
  }
  if (const auto* const splitting = options.method.as<Splitting>(); splitting != nullptr) {
    expect(is_up_to(splitting->kind, SplittingKind::taylor), "/method/kind");
    expect(is_up_to(splitting->coupling_flow, CouplingFlow::low_rank), "/method/coupling_flow");
  }
  for (std::size_t i = 0; i < options.watches.size(); ++i) {
    const Watch& watch = options.watches[i];
    expect(is_up_to(watch.direction, Watch::Direction::both),
           fmt::format("/events/{}/direction", i));
    expect(is_up_to(watch.of.kind, Sensor::Kind::coenergy), fmt::format("/events/{}/of", i));
  }
  return issues;
}

Issues check(const System& system, const StepperOptions& options) {
  if (system.parts().empty()) {  // a builder makes none such
    return {{"/subsystems",
             "the system has no parts: it was moved from, as into another stepper. Build a system "
             "for each "
             "stepper, or clone() the first one"}};
  }
  if (Issues issues = check_enumerations(options); !issues.empty()) return issues;
  if (!(options.step_s > 0.0) || !std::isfinite(options.step_s)) {
    return {{"/time/step_s",
             fmt::format("must be finite and > 0, got {} s", shown_number(options.step_s))}};
  }
  Issues issues = check_method(options.method);
  const auto expect = [&](bool good, const char* where, const char* what) {
    if (!good) issues.push_back({where, what});
  };
  if (options.threads < 1 || options.threads > kMaxThreads) {
    issues.push_back(
        {"/threads", fmt::format("must be in 1..{}, got {}", kMaxThreads, options.threads)});
  }
  expect(options.grain.kind != Grain::Kind::parts || options.grain.count >= 1, "/grain",
         "must be \"auto\", \"part\" or a number >= 1");
  const auto expect_time = [&](double value, const char* where, const char* unit) {
    if (value >= 0.0 && std::isfinite(value)) return;
    issues.push_back(
        {where, fmt::format("must be finite and >= 0, got {}{}", shown_number(value), unit)});
  };
  expect_time(options.time.deadline_s, "/deadline_s", " s");
  expect(std::isfinite(options.start_s), "/time/start_s", "must be finite");
  if (options.sizes) check_sizes(options, issues);
  if (options.ranks != nullptr) check_ranks(options, issues);
  if (system.slice() != nullptr) check_slice(system, options, issues);
  if (options.signals != nullptr) check_signals(options, issues);
  check_watches(system, options, issues);
  expect_time(options.time.pace, "/pace", "");
  if (options.sizes || !options.method.couples_by_waves()) refuse_substeps(system, options, issues);
  const auto* const waves = options.method.as<WaveCoupling>();
  if (waves == nullptr) {
    refuse_integrators(system, options.method, issues);
    if (options.time.deadline_s > 0.0) {
      issues.push_back(
          {"/deadline_s", fmt::format("the method \"{}\" takes its time: only inner "
                                      "iterations of waves can stop for a deadline. Take "
                                      "such a method, as auto is, or a pace alone, which "
                                      "counts late steps",
                                      to_string(options.method.kind()))});
    }
    append(issues, "", check_fast_parts(options.method, system));
    return issues;
  }
  const std::size_t ports = system.scalar_ports().size();
  const WaveCoupling& m = *waves;
  const std::size_t ports_of_stages = ports * static_cast<std::size_t>(std::max(m.stages, 1));
  // A method that was chosen for the system without its idle ports has none for them.
  const auto is_by_live_port = [&](const std::vector<double>& values) {
    const auto stages = static_cast<std::size_t>(std::max(m.stages, 1));
    return (m.by_stepped_port || values.size() < ports_of_stages) &&
           values.size() == stages * live_system(system, m.stages).system.scalar_ports().size();
  };
  const auto is_by_port = [&](const std::vector<double>& values) {
    return values.size() == ports || values.size() == ports_of_stages || is_by_live_port(values);
  };
  const bool has_impedances = m.impedance.size() == 1 || is_by_port(m.impedance);
  expect(m.impedance_kind != ImpedanceKind::given || has_impedances, "/method/impedance",
         "must have one value, or one per scalar port");
  if (m.kind == WaveUpdate::interface) refuse_where_not_linearisable(system, issues);
  if (options.sizes) refuse_opaque_parts(system, issues);
  expect(m.stages != 0 || options.sizes, "/method/stages", kNoTolerance);
  expect(!m.explicit_steps || m.stages != 1, "/method/explicit_steps",
         "is for steps of high order: give 2 or 3 \"stages\" with it, or steps that choose their "
         "size and no \"stages\"");
  if (m.stages > 1) append(issues, "", check_stages(system));
  if (issues.empty()) check_integrators(system, options, issues);
  expect(m.initial_waves.empty() || is_by_port(m.initial_waves), "/method/initial_waves",
         "must be empty or have one value per scalar port");
  expect(std::all_of(m.initial_waves.begin(), m.initial_waves.end(),
                     [](double b) { return std::isfinite(b); }),
         "/method/initial_waves", "must be finite");
  return issues;
}

}  // namespace

std::vector<double> impedance_by_port(const System& system, const WaveCoupling& method) {
  if (method.impedance.size() != 1) return method.impedance;
  return std::vector<double>(system.scalar_ports().size(), method.impedance.front());
}

const System& checked(const System& system, const StepperOptions& options) {
  throw_if_any(check(system, options));
  return system;
}

bool can_choose_sizes(const CouplingMethod& method) {
  const auto* const splitting = method.as<Splitting>();
  return method.couples_by_waves() ||
         (splitting != nullptr && (splitting->kind == SplittingKind::kick_drift ||
                                   splitting->kind == SplittingKind::taylor));
}

bool gains_by_stages(const System& system) {
  return check_stages(system).empty() && std::ranges::all_of(system.parts(), [](const Part& part) {
           const Subsystem* const physics = part.port_hamiltonian();
           return physics == nullptr || physics->is_smooth();
         });
}

int chosen_stages(const System& system, const StepperOptions& options) {
  const int asked = options.method.waves().stages;
  if (asked != 0) return asked;
  if (!options.sizes) throw ConfigError("/method/stages", kNoTolerance);
  if (!gains_by_stages(system)) return 1;
  // Two stages keep the remainder of a stiff decay, of one sign; one and three stages turn it over.
  return options.sizes->tolerance >= 1e-2 ? 1 : 3;
}

InnerStart chosen_start(const System& system, const StepperOptions& options) {
  const WaveCoupling& waves = options.method.waves();
  if (waves.start != InnerStart::automatic) return waves.start;
  const bool may_gain = waves.kind == WaveUpdate::automatic && waves.stages > 1 &&
                        waves.iterations > 0 && options.time.deadline_s == 0.0 &&
                        (options.sizes || has_tolerance(options.method));
  if (!may_gain || !gains_by_stages(system)) return InnerStart::last;
  bool is_nonlinear = false;
  for (const Part& part : system.parts()) {
    const Subsystem* const physics = part.port_hamiltonian();
    if (physics == nullptr) continue;
    // Behind a change-over what was before says nothing.
    if (physics->has_port_laws() || physics->has_vertical_laws()) return InnerStart::last;
    is_nonlinear = is_nonlinear || !physics->is_linear();
  }
  return is_nonlinear ? InnerStart::extrapolated : InnerStart::last;
}

namespace {

/// Why nothing but waves has what is asked for; empty where it is not so.
std::string needs_waves(const System& system, const StepperOptions& options) {
  if (options.time.deadline_s > 0.0) return "they cannot stop for a deadline";
  if (options.signals != nullptr && !options.signals->parameter_actuators().empty()) {
    return "they take no parameters that signals drive";
  }
  if (!options.method.waves().initial_waves.empty()) return "initial waves are given";
  if (system.slice() != nullptr) return "they need the whole system";
  if (std::ranges::any_of(system.parts(), [](const Part& part) {
        return part.substeps != 1 || part.integrator.has_value();
      })) {
    return "a part has substeps or an integrator of its own";
  }
  return {};
}

}  // namespace

StepperOptions with_choice(const System& system, const StepperOptions& options, std::string& note) {
  const auto* const waves = options.method.as<WaveCoupling>();
  if (waves == nullptr || waves->kind != WaveUpdate::automatic || !waves->explicit_steps) {
    return options;
  }
  if (const std::string why = needs_waves(system, options); !why.empty()) {
    note = fmt::format("auto: waves, not Taylor series or kicks and drifts: {}", why);
    return options;
  }
  const bool steps_choose = options.sizes.has_value();
  StepperOptions chosen = options;
  const TaylorFit linear = suits_taylor(system, options.start_s, options.step_s, steps_choose);
  if (linear.suits) {
    note = fmt::format("auto: Taylor series of order {}, as {}", linear.order, linear.reason);
    chosen.method = Splitting{.kind = SplittingKind::taylor, .order = linear.order};
    return chosen;
  }
  // Where the number of stages is left open, that of the highest order is the cheapest at all tolerances.
  const int order = waves->stages == 0 ? 6 : 2 * waves->stages;
  const KickDriftFit fit =
      suits_kick_drift(system, options.start_s, options.step_s, order, steps_choose);
  if (!fit.suits) {
    note = fmt::format("auto: waves, not Taylor series: {}; not kicks and drifts: {}",
                       linear.reason, fit.reason);
    return options;
  }
  note = fmt::format("auto: kicks and drifts, as {}; not Taylor series: {}", fit.reason,
                     linear.reason);
  chosen.method = Splitting{.kind = SplittingKind::kick_drift, .order = order};
  return chosen;
}

void refuse_without_waves(const CouplingMethod& method) {
  if (method.couples_by_waves()) return;
  throw ConfigError("/method/kind",
                    fmt::format("the method \"{}\" couples without waves: there are no impedances "
                                "and no inner iteration to judge.\n"
                                "With waves: --set '/method={{\"kind\":\"auto\"}}'",
                                to_string(method.kind())));
}

std::string_view to_string(ExecutorKind kind) {
  switch (kind) {
    case ExecutorKind::automatic:
      return "auto";
    case ExecutorKind::serial:
      return "serial";
    case ExecutorKind::async:
      return "async";
    case ExecutorKind::graph:
      return "graph";
  }
  return "unknown";
}

StepError::StepError(std::string part, std::int64_t step, int iteration, int budget,
                     StepFault fault, const std::string& detail)
    : std::runtime_error(step_error_text(part, step, iteration, budget, fault, detail)),
      part_(std::move(part)),
      step_(step),
      iteration_(iteration),
      fault_(fault) {}

StepError::StepError(const std::string& text, std::int64_t step, StepFault fault)
    : std::runtime_error(text), step_(step), iteration_(-1), fault_(fault) {}

StepError StepError::of_odds(std::string part, std::int64_t step, const std::string& detail) {
  StepError error(fmt::format("step {} cannot begin: {}", step, detail), step, StepFault::at_odds);
  error.part_ = std::move(part);
  return error;
}

StepError StepError::of_signal(const std::string& name, std::int64_t step, StepFault fault,
                               const std::string& detail) {
  return {fmt::format("signal {} failed before step {}: {}; the state is that before the step",
                      in_quotes(name), step, detail),
          step, fault};
}

}  // namespace portwave
