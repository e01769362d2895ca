#include "portwave/runtime/output/summary.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "output/summary/summary_facts.hpp"
#include "portwave/coupling/impedance/integrator_choice.hpp"
#include "signals/table_span.hpp"

namespace portwave {

bool has_waves(const RunSummary& summary) { return summary.method.couples_by_waves(); }

bool is_automatic(const CouplingMethod& method) {
  const auto* const waves = method.as<WaveCoupling>();
  return waves != nullptr && (waves->kind == WaveUpdate::automatic ||
                              waves->impedance_kind == ImpedanceKind::automatic);
}

bool is_open(const RunSummary& summary) {
  return has_waves(summary) && !summary.sizes && !has_tolerance(summary.method);
}

std::string_view name_of(BrokenLaw::Law law) {
  if (law == BrokenLaw::Law::form) return "energy as stepped";
  return law == BrokenLaw::Law::tank ? "tank >= 0" : "energy + tank <= start + supply";
}

std::string_view energy_safety(const RunSummary& summary) {
  if (!summary.has_ledger) return "not_checked";
  const Certificate& certificate = summary.certificate;
  if (certificate.growth || certificate.status == CertificateStatus::violated ||
      certificate.steps_with_excess > 0) {
    return "not_kept";
  }
  if (certificate.uncomputable_islands > 0) return "not_judged";
  return has_waves(summary) && summary.method.waves().guard && summary.guard.steps > 0
             ? "kept_by_guard"
             : "kept";
}

std::string first_part_of(const System& system, int island) {
  for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
    if (system.island_of_part(i) == island) return system.name_of_part(i);
  }
  return {};
}

namespace {

/// Of a part, or of a state or an input of it.
std::string unresolved_name(const RunSummary& summary, const Stepper& stepper) {
  const System& system = stepper.system();
  const Resolution& worst = *summary.resolution;
  if (worst.part < 0 || system.slice() != nullptr) return summary.unresolved_part;
  const Signature& signature =
      system.parts()[static_cast<std::size_t>(worst.part)].component->signature();
  if (worst.state >= 0) {
    return summary.unresolved_part + "." +
           signature.states[static_cast<std::size_t>(worst.state)].name;
  }
  const auto input = static_cast<std::size_t>(worst.input);
  if (worst.input >= 0 && input >= signature.inputs.size()) {  // a driven parameter
    return summary.unresolved_part + "." +
           stepper.signal_graph()->parameter_actuators()[input - signature.inputs.size()].parameter;
  }
  if (worst.input >= 0) {
    return summary.unresolved_part + "." +
           signature.inputs[static_cast<std::size_t>(worst.input)].name;
  }
  return summary.unresolved_part;
}

/// Whether there is a contact in the island of a part: something with an energy that has kinks.
bool springs_back(const System& system, int part) {
  if (system.slice() != nullptr || part < 0) return false;
  const int island = system.island_of_part(part);
  for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
    const Part& own = system.parts()[static_cast<std::size_t>(i)];
    const Subsystem* const physics = own.port_hamiltonian();
    if (system.island_of_part(i) != island || physics == nullptr) continue;
    if (!physics->is_smooth() && !physics->has_vertical_laws() &&
        physics->signature().state_size() > 0) {
      return true;
    }
  }
  return false;
}

/// In slices the energies of single parts are unknown: the total counts.
double moved_J(const RunSummary& summary, bool is_slice) {
  const EnergyTotals& energy = summary.energy;
  const double stored_J =
      is_slice ? std::max(std::abs(energy.initial_J), std::abs(energy.max_J)) : 0.0;
  return std::max(
      {std::abs(energy.supplied_J), std::abs(energy.dissipated_J) + energy.numerical_dissipation_J,
       std::abs(energy.impact_J), summary.coupling.moved_J,
       std::abs(energy.final_J - energy.initial_J), energy.max_J - energy.initial_J, stored_J});
}

}  // namespace

void RunSummary::take(std::optional<StepAgreement> compared) {
  constexpr double kClose = 0.02, kEqual = 0.005;
  agreement = std::move(compared);
  if (!agreement || is_resolved() || !agreement->is_whole || agreement->is_far()) return;
  const bool is_of_dampers =
      resolution->kind == Resolution::Kind::damped_away && agreement->share < kClose;
  const bool is_rest = agreement->state.empty() && resolution->input < 0;  // what moves is rounding
  // An estimate of a step's error against a measurement. Two conserving stages leave where it is what decays far faster
  // than either run's steps; others turn it over, which shows.
  const bool is_less = resolution->kind == Resolution::Kind::jumps && agreement->share < kEqual &&
                       agreement->instant_error() <= StepAgreement::kFarInstant &&
                       (stages != 2 || is_unresolved_damped);
  if (is_of_dampers || is_rest || is_less) resolution = Resolution{};
}

double RunSummary::missing_share() const {
  if (!has_ledger || !(moved_J > 0.0)) return 0.0;
  const double expected_J = energy.initial_J + energy.supplied_J - energy.dissipated_J -
                            energy.numerical_dissipation_J - energy.impact_J - energy.mismatch_J;
  const double missing_J = std::abs(energy.final_J - expected_J);
  const double rounding_J =
      std::max(energy.rounding_J, 1e-9 * (std::abs(energy.initial_J) + std::abs(energy.max_J)));
  return missing_J > rounding_J ? missing_J / moved_J : 0.0;
}

double RunSummary::mismatch_share() const {
  const double astray_J = std::abs(energy.mismatch_J);
  double rounding_J =
      std::max(energy.rounding_J, 1e-12 * (std::abs(energy.initial_J) + std::abs(energy.max_J)));
  // Waves of loads at rest, such as a source behind a blocked diode, carry energy to and fro and move none: what a met
  // tolerance leaves of them may be all that moves. Their rounding tells how much they carry. What moves is no rest.
  constexpr double kRounding = 16.0 * std::numeric_limits<double>::epsilon(), kTightest = 1e-9,
                   kRest = 0.01;
  const double carried_J = energy.rounding_J / kRounding;
  const bool is_at_rest =
      moved_J * static_cast<double>(std::max<std::int64_t>(steps, 1)) < kRest * carried_J;
  if (is_at_rest && has_waves(*this) && has_tolerance(method) && iterations.not_converged == 0) {
    const double left = 2.0 * std::min(method.waves().tolerance, kTightest);
    rounding_J = std::max(rounding_J, left * carried_J);
  }
  // What parts that do not know their energy may hold is in the tank. At a free or a fixed port of theirs goes through
  // what the tolerance of the waves leaves, and all of it astray.
  constexpr double kNothing = 1e-6;
  if (!unjudged_parts.empty()) rounding_J = std::max(rounding_J, kNothing * energy.initial_tank_J);
  if (!has_ledger || !(astray_J > rounding_J)) return 0.0;
  return astray_J / moved_J;
}

int RunSummary::worst_forward_part() const {
  int worst = -1;
  double most = 0.0;
  for (std::size_t i = 0; i < defects.size(); ++i) {
    const double share = defects[i].share();
    if (!(share > most)) continue;
    most = share;
    worst = static_cast<int>(i);
  }
  return worst;
}

double RunSummary::defect_share() const {
  const int worst = worst_forward_part();
  return worst < 0 ? 0.0 : defects[static_cast<std::size_t>(worst)].share();
}

double RunSummary::blind_share() const {
  if (!time.active() || iterations.windows == 0) return 0.0;
  if (iterations.reasons[static_cast<std::size_t>(StopReason::deadline)] == 0) return 0.0;
  return static_cast<double>(iterations.histogram.front()) /
         static_cast<double>(iterations.windows);
}

bool RunSummary::holds_as_measured() const {
  constexpr double kRounding = 1e-9;  // of margins of random waves, whose size is about 1
  const Certificate& c = certificate;
  if (c.status != CertificateStatus::conditional || c.unjudged_parts.empty()) {
    return c.status == CertificateStatus::holds;
  }
  const double margin =
      std::min(c.min_fne_margin.value_or(0.0), c.min_nonexpansiveness_margin.value_or(0.0));
  return !c.growth && c.uncomputable_islands == 0 && c.steps_with_excess == 0 &&
         margin >= -kRounding;
}

std::vector<std::string> RunSummary::shortcomings() const {
  std::vector<std::string> out;
  if (!failure.empty()) out.push_back("the run failed: " + failure);
  if (!holds_as_measured()) {
    out.push_back(fmt::format("the energy certificate is {}", to_string(certificate.status)));
  }
  if (iterations.not_converged > 0) {
    const auto late = iterations.reasons[static_cast<std::size_t>(StopReason::deadline)];
    out.push_back(
        fmt::format("{} of {} inner iterations missed their tolerance{}", iterations.not_converged,
                    iterations.windows,
                    late > 0 ? fmt::format(", {} of them since their time was over", late) : ""));
  }
  if (missing_share() > kMissing) {
    out.push_back(fmt::format("{:.2g} % of the energy that was moved is in no account",
                              100.0 * missing_share()));
  }
  if (guard.missed_steps > 0) {
    out.push_back(
        fmt::format("the guard changed the motion in {} of {} steps", guard.missed_steps, steps));
  }
  if (!is_resolved()) {
    const bool is_input = resolution->input >= 0;
    out.push_back(fmt::format("the steps do not {} \"{}\"",
                              is_input ? "follow the input" : "resolve the motion of",
                              unresolved_name));
  }
  if (agreement && agreement->is_far()) {
    out.push_back(agreement->failure.empty()
                      ? fmt::format("finer steps change \"{}\" by {:.3g} % of its range",
                                    agreement->state,
                                    100.0 * std::max(agreement->share, agreement->expected))
                      : "the same run with finer steps failed");
  }
  if (is_switch_moved()) {
    out.push_back(
        fmt::format("steps move the changes of \"{}\" by {:.2g} % of the time between them",
                    moved_switch.part, 100.0 * moved_switch.share));
  }
  if (blind_share() > kPoorMismatch) {
    out.push_back(
        fmt::format("{:.2g} % of the steps had no time for an evaluation", 100.0 * blind_share()));
  }
  if (mismatch_share() > kPoorMismatch) {
    out.push_back(
        fmt::format("the coupling is poor: {:.2g} % of the energy that the run moved went astray",
                    100.0 * mismatch_share()));
  }
  if (const double share = defect_share(); share > kPoorMismatch) {
    out.push_back(
        fmt::format("what was foretold of \"{}\", which takes no step back, missed {:.2g} % of the "
                    "energy through "
                    "its ports",
                    forward_parts[static_cast<std::size_t>(worst_forward_part())], 100.0 * share));
  }
  if (starts_at_odds.count > 0) {
    out.push_back(fmt::format("{} steps started from states that violate a rigid joint",
                              starts_at_odds.count));
  }
  return out;
}

/// A part with vertical laws, in the island of another one or, for −1, in any; empty: there is none.
std::string ideal_part_of(const System& system, int beside) {
  for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
    const Subsystem* const physics = system.parts()[static_cast<std::size_t>(i)].port_hamiltonian();
    if (physics == nullptr || !physics->has_vertical_laws()) continue;
    if (beside < 0 || system.island_of_part(i) == system.island_of_part(beside)) {
      return system.name_of_part(i);
    }
  }
  return {};
}

RunSummary::MovedSwitch moved_switch_of(const Stepper& stepper, double step_s) {
  RunSummary::MovedSwitch out;
  const System& system = stepper.system();
  if (stepper.waves() == nullptr || system.slice() != nullptr) return out;
  for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
    const Subsystem* const physics = system.parts()[static_cast<std::size_t>(i)].port_hamiltonian();
    if (physics == nullptr || !physics->has_vertical_laws()) continue;
    const SwitchTimes times = stepper.waves()->switch_times(i);
    const double share = times.moved_share(step_s);
    if (share > out.share) out = {system.name_of_part(i), times, share};
  }
  return out;
}

/// A part that was cut counts once.
std::vector<std::string> names_of(const System& system, const std::vector<int>& parts) {
  std::vector<std::string> names;
  for (const int part : parts) {
    const std::string& name = system.name_of_part(part);
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  return names;
}

RunSummary summarize(std::string scenario, const StepperOptions& options, const Stepper& stepper,
                     double wall_s, const StepTimes& times) {
  RunSummary summary;
  summary.scenario = std::move(scenario);
  summary.steps = stepper.step_index();
  summary.step_s = options.step_s;
  summary.sizes = options.sizes;
  if (stepper.step_sizes() != nullptr) summary.step_sizes = *stepper.step_sizes();
  summary.start_s = options.start_s;
  summary.starts_at_odds = stepper.starts_at_odds();
  summary.impulses = stepper.impulses();
  summary.time_s = stepper.time_s();
  for (std::size_t i = 0; i < stepper.watches().size(); ++i) {
    const Watch& watch = stepper.watches()[i];
    summary.events.push_back({watch.name, watch.rising, watch.falling, stepper.event_counts()[i]});
  }
  if (const Watch* const last = stepper.ending_watch()) summary.ended_by = last->name;
  summary.choice = stepper.method();
  const bool has_left_waves = stepper.waves() == nullptr;
  summary.method = has_left_waves ? summary.choice.method : options.method;
  summary.remarks = stepper.remarks();
  if (const WaveView* const waves = stepper.waves(); waves != nullptr) {
    summary.method.waves().start = summary.choice.method.waves().start;  // what was taken
    summary.tuning = waves->tuning();
    summary.stages = waves->stages();
    summary.damped_parts = waves->damped_parts();
    summary.integrator = waves->integrator();
    summary.follows_state = waves->follows_state();
    if (waves->guard() != nullptr) summary.guard = *waves->guard();
    if (const int island = summary.guard.worst_island; island >= 0) {
      summary.guarded_part = first_part_of(stepper.system(), island);
    }
  }
  summary.has_ledger = stepper.keeps_ledger();
  summary.iterations = stepper.iterations();
  summary.energy = stepper.energy();
  summary.coupling = stepper.coupling();
  summary.moved_J = moved_J(summary, stepper.system().slice() != nullptr);
  summary.certificate = stepper.certificate();
  if (const int worst = summary.certificate.worst_passivity_part; worst >= 0) {
    summary.worst_passivity_part = stepper.name_of_part(worst);
  }
  summary.resolution = stepper.resolution();
  if (!summary.is_resolved()) {
    const Resolution& worst = *summary.resolution;
    const System& system = stepper.system();
    if (worst.port >= 0) summary.unresolved_port = system.port_label(worst.port);
    const int part = worst.port < 0
                         ? worst.part
                         : system.scalar_ports()[static_cast<std::size_t>(worst.port)].part;
    summary.unresolved_part = stepper.name_of_part(part);
    summary.unresolved_name = unresolved_name(summary, stepper);
    summary.has_unresolved_substeps = system.slice() == nullptr &&
                                      worst.kind == Resolution::Kind::jumps &&
                                      system.parts()[static_cast<std::size_t>(part)].substeps > 1;
    summary.is_unresolved_contact = springs_back(system, part);
    const bool is_whole = system.slice() == nullptr && stepper.waves() != nullptr;
    if (is_whole) {
      const StagePlan& plan = stepper.waves()->integrators().plan;
      summary.is_unresolved_damped =
          plan.stages > 1 && plan.damps(part) && plan.damping_of(part) == StageDamping{};
    }
  }
  if (const int part = summary.certificate.missed.part; part >= 0) {
    summary.missed_part = stepper.name_of_part(part);
  }
  summary.moved_switch = moved_switch_of(stepper, options.step_s);
  summary.ideal_part = ideal_part_of(stepper.system(), summary.certificate.missed.part);
  summary.unjudged_parts = names_of(stepper.system(), summary.certificate.unjudged_parts);
  for (const int part : summary.certificate.unjudged_parts) {
    if (stepper.system().slice() != nullptr) break;
    summary.metered_J.push_back(stepper.storage(part));
  }
  const auto known = defects_of(stepper);
  summary.defects.assign(known.begin(), known.end());
  for (const PartDefects& own : known) {
    summary.forward_parts.push_back(stepper.name_of_part(own.part));
  }
  summary.unrepeatable_parts = names_of(stepper.system(), summary.certificate.unrepeatable_parts);
  if (summary.steps > 0) {
    summary.notes = tables_out_of_reach(stepper.system(), stepper.signal_graph(), summary.start_s,
                                        summary.time_s);
  }
  summary.certify = options.certify;
  summary.time = options.time;
  summary.deadline = stepper.deadline();
  summary.timed = options.timed || options.time.active();
  summary.times = times;
  summary.threads = stepper.threads();
  summary.tasks = stepper.tasks();
  summary.grain = options.grain;
  summary.executor = options.executor;
  summary.execution = stepper.execution();
  summary.wall_s = wall_s;
  return summary;
}

int iteration_quantile(const IterationStatistics& iterations, double level) {
  const std::vector<std::int64_t>& bins = iterations.histogram;
  const std::int64_t all = std::accumulate(bins.begin(), bins.end(), std::int64_t{0});
  const double wanted = level * static_cast<double>(all);
  std::int64_t windows = 0;
  for (std::size_t k = 0; k < bins.size(); ++k) {
    windows += bins[k];
    if (windows > 0 && static_cast<double>(windows) >= wanted) return static_cast<int>(k);
  }
  return 0;
}

std::string_view version() { return PORTWAVE_VERSION; }

}  // namespace portwave
