#include "portwave/runtime/study/step_comparison.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "portwave/coupling/impedance/integrator_choice.hpp"
#include "portwave/coupling/system/derived_systems.hpp"
#include "portwave/runtime/step/wave_view.hpp"
#include "portwave/subsystems/core/opaque_facets.hpp"
#include "step/sizes/part_kinds.hpp"
#include "step/stepper_options.hpp"
#include "study/energy_of_range.hpp"
#include "study/finer_run.hpp"
#include "study/order_runs.hpp"
#include "study/travel.hpp"

namespace portwave {
namespace {

/// States times steps of a beginning: two times as many are stepped for it.
constexpr std::int64_t kMostWork = 5'000'000;
/// Three stages in quarter steps take about so many times as long as the run, at most.
constexpr std::int64_t kWorkOfQuarters = 64;
/// Of these as many are kept; where a run has more, those of every second, fourth, … step.
constexpr std::size_t kMostKept = 500'000;
/// Chosen steps of a finer run: so many times those of the run that it is compared with, and some more.
constexpr std::int64_t kMostTimes = 64, kFewSteps = 5000;
/// What is held over steps is late by half of one: half of its error shows.
constexpr double kFarOfSamples = 0.5 * StepAgreement::kFar;

std::size_t states_of(const System& system) {
  std::size_t count = 0;
  for (const Part& part : system.parts()) count += part.initial_state.size();
  return count;
}

const StateVariable& variable(const System& system, int part, std::size_t state) {
  const Signature& signature =
      system.parts()[static_cast<std::size_t>(part)].component->signature();
  return signature.states[state];
}

using Motion = StepComparison::Motion;

/// The range that differences of a state are compared with.
struct Scale {
  double judged = 0.0;     ///< 0 where it is rounding
  double too_small = 0.0;  ///< its own range, where that is too small to be judged by; else 0
};

std::vector<Scale> scales_of(const System& system, const std::vector<StateRecord>& records,
                             const std::vector<Motion>& motion) {
  using Kind = std::tuple<int, std::string, std::string>;
  std::map<Kind, std::pair<double, double>> kinds;  // the largest range, and root of energy
  const auto kind_of = [&](int part, std::size_t state) -> std::pair<double, double>& {
    const Signature& own = system.parts()[static_cast<std::size_t>(part)].component->signature();
    return kinds[{system.island_of_part(part), own.type, own.states[state].unit}];
  };
  std::vector<double> roots_J;
  for_each_state(system, [&](int part, std::size_t state) {
    const double range = records[roots_J.size()].range();
    const bool has_unit = !variable(system, part, state).unit.empty();
    roots_J.push_back(
        has_unit ? 0.0
                 : root_of_energy(system.parts()[static_cast<std::size_t>(part)], state, range));
    auto& [largest, root_J] = kind_of(part, state);
    largest = std::max(largest, range);
    root_J = std::max(root_J, roots_J.back());
  });
  const auto least_of = [&](int part, std::size_t state, double range, double own_J) {
    const auto& [largest, root_J] = kind_of(part, state);
    const bool has_unit = !variable(system, part, state).unit.empty();
    const double of_energy = own_J > 0.0 ? std::min(largest, root_J / own_J * range) : range;
    return StepAgreement::kLeastOfKind * (has_unit ? largest : of_energy);
  };
  std::vector<Scale> scales;
  scales.reserve(records.size());
  for_each_state(system, [&](int part, std::size_t state) {
    const StateRecord& record = records[scales.size()];
    const Component& component = *system.parts()[static_cast<std::size_t>(part)].component;
    const auto* const shows = dynamic_cast<const ShowsMeans*>(&component);
    if (shows != nullptr && shows->is_mean(state))
      return scales.push_back({});  // at one time no two steps have the same
    const Motion own = motion[scales.size()];
    const double range = record.range();
    const double least = least_of(part, state, range, roots_J[scales.size()]);
    Scale scale;
    const bool is_judged = own == Motion::judged || own == Motion::unseen;
    if (is_judged) scale.judged = std::max(range, least);
    if (scale.judged > 0.0) scale.judged = std::max(scale.judged, record.rounding());
    if (own == Motion::too_small || (is_judged && range < least)) scale.too_small = range;
    scales.push_back(scale);
  });
  return scales;
}

/// The states that damped steps damp for the whole run, by part.
std::vector<std::uint64_t> damped_states(const Stepper& stepper) {
  if (stepper.waves() == nullptr) return {};
  const StagePlan& plan = stepper.waves()->integrators().plan;
  std::vector<std::uint64_t> out(plan.is_damped.size(), 0);
  for (std::size_t part = 0; part < out.size(); ++part) {
    const int number = static_cast<int>(part);
    if (plan.damps(number)) out[part] = ~plan.damping_of(number).conserved;
  }
  return out;
}

/// Whether some of these states are not among those of another run.
bool lacks(const std::vector<std::uint64_t>& others, const std::vector<std::uint64_t>& states) {
  for (std::size_t part = 0; part < states.size(); ++part) {
    const std::uint64_t there = part < others.size() ? others[part] : 0;
    if ((states[part] & ~there) != 0) return true;
  }
  return false;
}

/// The energy of a part's motion from x₀ to x [J]: by how much H changes, or changes beyond ∇H(x₀).
double motion_J(const Subsystem& part, std::span<const double> start, std::span<const double> x,
                std::vector<double>& gradient) {
  gradient.resize(start.size());
  part.gradient(start.data(), gradient.data());
  const double change_J = part.storage(x.data()) - part.storage(start.data());
  double along_J = 0.0;
  for (std::size_t i = 0; i < start.size(); ++i) along_J += gradient[i] * (x[i] - start[i]);
  return std::max(std::abs(change_J), std::abs(change_J - along_J));
}

/// Parts of kinds whose own motion is less than what the finer run's errors are measured beside, by more than its
/// tolerance makes up for.
void find_unseen(const System& system, const std::vector<double>& moved_J, double tolerance,
                 std::vector<Motion>& motion) {
  constexpr double kSeen = 0.01;  // an error of this much of its own motion is
  std::map<std::pair<int, std::string>, double> kinds;
  std::vector<double> islands(static_cast<std::size_t>(system.island_count()), 0.0);
  const auto island_of = [&](std::size_t part) {
    return system.island_of_part(static_cast<int>(part));
  };
  const auto kind_of = [&](std::size_t part) -> double& {
    return kinds[{island_of(part), kind_name(*system.parts()[part].component)}];
  };
  for (std::size_t part = 0; part < moved_J.size(); ++part) {
    double& island_J = islands[static_cast<std::size_t>(island_of(part))];
    island_J = std::max(island_J, moved_J[part]);
    kind_of(part) = std::max(kind_of(part), moved_J[part]);
  }
  const double share = kLeastShareOfMotion * (tolerance / kSeen) * (tolerance / kSeen);
  for (std::size_t part = 0; part < moved_J.size(); ++part) {
    const double least_J = share * islands[static_cast<std::size_t>(island_of(part))];
    if (motion[part] == Motion::judged && moved_J[part] > 0.0 && kind_of(part) < least_J)
      motion[part] = Motion::unseen;
  }
}

/// Steps of order 1: those of one stage of which any may be damped, and those over the changes of a law.
bool is_of_first_order(const Stepper& stepper) {
  const WaveView* const waves = stepper.waves();
  if (waves != nullptr && waves->stages() == 1 && waves->may_damp()) return true;
  return std::ranges::any_of(stepper.system().parts(), [](const Part& part) {
    const Subsystem* const physics = part.port_hamiltonian();
    return physics != nullptr && (physics->has_port_laws() || physics->has_vertical_laws());
  });
}

int stages_of(const Stepper& stepper) {
  return stepper.waves() == nullptr ? 1 : stepper.waves()->stages();
}

}  // namespace

std::string name_of_state(const System& system, int part, std::size_t state) {
  return fmt::format("{}.{}", system.name_of_part(part), variable(system, part, state).name);
}

StepComparison::StepComparison(const Scenario& scenario, const StepperOptions& options,
                               Extent extent)
    : scenario_(scenario), options_(options), states_(states_of(scenario.system)) {
  if (extent == Extent::none || states_ == 0) return;
  // Another program may keep its state where a second run meets it.
  if (std::ranges::any_of(scenario.system.parts(), [](const Part& part) {
        return !part.component->capabilities().repeatable;
      })) {
    return;
  }
  if (options.sizes &&
      !StepSizes::tolerances().contains(kFinerTolerance * options.sizes->tolerance)) {
    return;
  }
  const std::int64_t most = kMostWork / static_cast<std::int64_t>(states_);
  const bool is_short = scenario.steps > 0 && scenario.steps <= most;
  if (extent == Extent::whole) {
    steps_most_ = std::numeric_limits<std::int64_t>::max();
  } else if (is_short || most >= kLeastComparedSteps) {
    steps_most_ = most;
  } else {
    is_too_large_ = true;
  }
}

bool StepComparison::is_short() const { return std::ssize(values_) <= kMostWork / kWorkOfQuarters; }

void StepComparison::keep(const Stepper& stepper) {
  last_step_ = stepper.step_index();
  if (last_step_ % stride_ != 0) return;
  if (values_.size() >= kMostKept && times_.size() > 2 * kLeastComparedSteps) thin_out();
  if (last_step_ % stride_ != 0) return;
  if (times_.empty()) {
    is_of_first_order_ = is_of_first_order(stepper);
    damped_ = damped_states(stepper);
    stages_ = stages_of(stepper);
  }
  see_waves(stepper);
  has_halved_ = stepper.halved_steps() > 0;
  evaluations_ = stepper.iterations().per_step();
  times_.push_back(stepper.time_s());
  for (int part = 0; part < static_cast<int>(scenario_.system.parts().size()); ++part) {
    const std::span<const double> x = stepper.state(part);
    values_.insert(values_.end(), x.begin(), x.end());
  }
}

/// Now and then: what the waves of a step move.
void StepComparison::see_waves(const Stepper& stepper) {
  const WaveView* const waves = stepper.waves();
  if (waves == nullptr || !std::has_single_bit(times_.size() + 1)) return;
  const System& system = scenario_.system;
  std::vector<double> moved_J(static_cast<std::size_t>(system.island_count()), 0.0);
  const std::vector<bool> is_idle = idle_ports(system);  // their waves depend on the units
  for (std::size_t port = 0; port < is_idle.size(); ++port) {
    if (is_idle[port]) continue;
    const int island = system.island_of_part(system.scalar_ports()[port].part);
    const WavePair own = waves->waves_at(static_cast<int>(port));
    moved_J[static_cast<std::size_t>(island)] +=
        0.5 * (own.incident * own.incident + own.outgoing * own.outgoing);
  }
  waves_J_.resize(moved_J.size(), 0.0);
  for (std::size_t i = 0; i < moved_J.size(); ++i) {
    if (std::isfinite(moved_J[i])) waves_J_[i] = std::max(waves_J_[i], moved_J[i]);
  }
}

/// Keeps every second of the rows.
void StepComparison::thin_out() {
  stride_ *= 2;
  const std::size_t rows = times_.size() / 2;
  for (std::size_t row = 0; row < rows; ++row) {
    times_[row] = times_[2 * row + 1];
    std::copy_n(values_.begin() + static_cast<std::ptrdiff_t>((2 * row + 1) * states_), states_,
                values_.begin() + static_cast<std::ptrdiff_t>(row * states_));
  }
  times_.resize(rows);
  values_.resize(rows * states_);
}

void StepComparison::record(const Stepper& stepper) {
  if (!is_told_whole_ || is_full()) return;
  is_told_whole_ = stepper.step_index() == last_step_ + 1;
  if (is_told_whole_) keep(stepper);
}

void StepComparison::run_again(std::int64_t steps) {
  times_.clear();
  values_.clear();
  last_step_ = 0;
  stride_ = 1;
  StepperOptions options = options_;
  options.time = {};
  options.profile.reset();
  Stepper stepper(scenario_.system, options);
  while (stepper.step_index() < steps && !is_full()) {
    if (options.sizes) {
      if (stepper.time_s() >= scenario_.end_s) break;
      stepper.step_towards(scenario_.end_s);
    } else {
      stepper.step();
    }
    keep(stepper);
  }
}

/// Whether something is sampled before every step only because nobody said how often: controllers, or also functions
/// of time that parameters follow.
bool has_unasked_rate(const StepperOptions& options, bool of_functions = false) {
  if (options.signals == nullptr || options.sizes || options.signals_every_s != 0.0) return false;
  const SignalGraph& graph = *options.signals;
  const auto is_function = [&](const SignalGraph::Node& node) {
    const auto drives = [&](const auto& own) { return own.signal == node.first_output; };
    return node.inputs.empty() && std::ranges::any_of(graph.parameter_actuators(), drives);
  };
  const auto is_unasked = [&](const SignalGraph::Node& node) {
    if (node.block == nullptr || node.every != 1) return false;
    return is_function(node) ? of_functions : !graph.actuators().empty();
  };
  return std::ranges::any_of(graph.nodes(), is_unasked);
}

StepperOptions StepComparison::finer_options() const {
  StepperOptions options = options_;
  go_past_ends(options);
  options.time = {};
  options.profile.reset();
  options.timed = false;
  if (options.certify == Certify::full) options.certify = Certify::energy;
  // Steps of half the size would be halved to the same ones, or cut at the same places.
  options.halves_once_more = has_halved_ || options.method.as<WaveCoupling>() != nullptr;
  if (options.sizes) {
    // The largest step, too, which may be what bounds them; or samples do.
    if (options.signals_every_s > 0.0) {
      options.step_s = std::min(options.step_s, options.signals_every_s);
    }
    refine(options);
    return options;
  }
  if (has_unasked_rate(options, true)) {
    options.signals = std::make_shared<const SignalGraph>(options.signals->at_half_steps());
  } else if (options.signals != nullptr && options.signals_every_s == 0.0) {
    options.signals_every_s = options.step_s;
  }
  refine(options);
  options.method = method_of_kind(scenario_, options.method.kind(), options.step_s);
  return options;
}

StepAgreement StepComparison::compare(const StepperOptions& finer, bool& damps_less) const {
  const System& system = scenario_.system;
  std::vector<StateRecord> records(states_);
  std::size_t i = 0;
  for_each_state(system, [&](int part, std::size_t state) {
    records[i++].see(system.parts()[static_cast<std::size_t>(part)].initial_state[state]);
  });
  for (std::size_t k = 0; k < values_.size(); ++k) records[k % states_].see(values_[k]);
  const int window = StepAgreement::window(std::ssize(times_));
  for (StateRecord& record : records) record.expect(window);

  StepAgreement out;
  out.is_chosen = finer.sizes.has_value();
  out.finer = out.is_chosen ? finer.sizes->tolerance : finer.step_s;
  out.samples_faster = has_unasked_rate(options_);
  if (out.samples_faster) out.limit = kFarOfSamples;
  std::vector<Scale> scales(states_);
  std::vector<Motion> motion(states_, Motion::judged);
  std::vector<StateRecord> small = records;
  std::vector<double> finer_values;
  finer_values.reserve(values_.size());
  try {
    FinerRun run(scenario_, finer, states_);
    // A tenth of the tolerance takes ten times as many steps at most, unless it is out of reach.
    const std::int64_t most = kMostTimes * last_step_ + kFewSteps;
    run.end_after(most);
    const bool is_of_first = is_of_first_order_ || is_of_first_order(run.stepper());
    if (is_of_first) out.limit = std::min(out.limit, StepAgreement::kFarOfFirstOrder);
    const bool has_same_stages = stages_of(run.stepper()) == stages_;
    if (!out.is_chosen && has_same_stages) {
      out.error_of_difference =
          StepAgreement::error_of_half(is_of_first || out.samples_faster ? 1 : 2 * stages_);
    }
    damps_less = lacks(damped_states(run.stepper()), damped_);
    motion = motion_of(run.stepper(), values_);
    scales = scales_of(system, records, motion);
    for (std::size_t row = 0; row < times_.size(); ++row) {
      if (finer.interrupted && finer.interrupted()) break;
      const std::span<const double> x =
          run.states_at(times_[row], run.steps_between(stride_, options_.step_s));
      if (run.is_spent()) {
        out.failure =
            fmt::format("it has taken {} steps by {:.6g} s, where this one takes {} in all", most,
                        run.stepper().time_s(), last_step_);
        break;
      }
      finer_values.insert(finer_values.end(), x.begin(), x.end());
      const double* const own = values_.data() + row * states_;
      for (std::size_t k = 0; k < states_; ++k) {
        const double off = std::abs(x[k] - own[k]);
        if (scales[k].judged > 0.0)
          records[k].differs(off / scales[k].judged, times_[row], out.limit);
        if (scales[k].too_small > 0.0)
          small[k].differs(off / scales[k].too_small, times_[row], out.limit);
      }
      out.until_s = times_[row];
      ++out.instants;
      if (row + 1 == times_.size() / 2) {
        for (StateRecord& record : records) record.halve();
      }
    }
  } catch (const StepError& error) {
    out.failure = error.what();
  }

  std::vector<Doubt> doubts;
  for_each_state(system, [&](int part, std::size_t state) {
    const std::size_t k = doubts.size();
    const bool is_small =
        scales[k].too_small > 0.0 || records[k].range() == 0.0 || motion[k] != Motion::judged;
    doubts.push_back(
        {is_small, small[k].lasting(out.instants, out.limit).share, small[k].largest().share});
    if (const StateRecord::Difference at = records[k].largest(); at.share > out.instant_share) {
      out.instant_share = at.share;
      out.instant_s = at.time_s;
      out.state_of_instant = name_of_state(system, part, state);
    }
    const StateRecord::Difference own = records[k].lasting(out.instants, out.limit);
    if (!(own.share > out.share)) return;
    out.share = own.share;
    out.time_s = own.time_s;
    out.grows = records[k].grows();
    out.state = name_of_state(system, part, state);
  });
  if (finer_values.size() == values_.size()) look_beneath(out, finer, finer_values, motion, doubts);
  i = 0;
  for_each_state(system, [&](int part, std::size_t state) {
    const Doubt& own = doubts[i++];
    const double off = std::max(own.off, own.off_at_once);
    if (own.is_known || !(off > std::max(out.limit, out.unjudged_share))) return;
    out.unjudged_share = off;
    out.unjudged = name_of_state(system, part, state);
  });
  return out;
}

/// Its rows, and the ranges that states are judged by; empty where it has not come to its end.
StepComparison::DampedRun StepComparison::damped_run(bool in_quarters) const {
  DampedRun out;
  auto options = damped_options();
  if (!options || times_.empty()) return out;
  if (in_quarters) refine(*options);
  std::vector<Motion> motion;
  out.rows = rows_of(*options, motion);
  if (out.rows.size() != values_.size()) return {};
  std::vector<StateRecord> records(states_);
  for (std::size_t k = 0; k < values_.size(); ++k) records[k % states_].see(values_[k]);
  for (const Scale& scale : scales_of(scenario_.system, records, motion)) {
    out.ranges.push_back(scale.judged);
  }
  return out;
}

/// By state: whether its motion is too small beside all energy of its island, as of what hangs at rest.
std::vector<StepComparison::Motion> StepComparison::motion_of(
    const Stepper& finer, const std::vector<double>& values) const {
  constexpr std::size_t kRows = 64;  // looked at
  const System& system = scenario_.system;
  const auto island_of = [&](std::size_t part) {
    return static_cast<std::size_t>(system.island_of_part(static_cast<int>(part)));
  };
  std::vector<Motion> out(system.parts().size(), Motion::judged);
  std::vector<double> moved_J(out.size(), 0.0), gradient;
  std::vector<double> all_J(static_cast<std::size_t>(system.island_count()), 0.0);
  // What passes through an island is known of all together.
  if (all_J.size() == 1) all_J[0] = std::max(energy_J_, std::abs(finer.energy().initial_J));
  // Where a diode blocks a source waves go to and fro, and nothing else moves.
  for (std::size_t i = 0; i < waves_J_.size(); ++i) all_J[i] = std::max(all_J[i], waves_J_[i]);
  const std::size_t every = std::max<std::size_t>(times_.size() / kRows, 1);
  std::size_t first = 0;
  for (std::size_t part = 0; part < out.size(); ++part) {
    const std::vector<double>& start = system.parts()[part].initial_state;
    const Subsystem* const physics = system.parts()[part].port_hamiltonian();
    double& island_J = all_J[island_of(part)];
    for (std::size_t row = 0; physics != nullptr && row < times_.size(); row += every) {
      const std::span<const double> x(values.data() + row * states_ + first, start.size());
      moved_J[part] = std::max(moved_J[part], motion_J(*physics, start, x, gradient));
      island_J = std::max({island_J, std::abs(physics->storage(x.data())), moved_J[part]});
    }
    first += start.size();
  }
  for (std::size_t part = 0; part < out.size(); ++part) {
    // Chosen steps hold a part to its own motion: a hundred ε of the amplitude of others are no rounding yet.
    const double of_doubles = options_.sizes ? 1e-14 : 1e-13;
    const double island_J = all_J[island_of(part)];
    if (moved_J[part] == 0.0 || moved_J[part] > kRowRounding * kRowRounding * island_J) continue;
    const bool is_rounding = moved_J[part] <= of_doubles * of_doubles * island_J;
    out[part] = is_rounding ? Motion::rounding : Motion::too_small;
  }
  if (options_.sizes)
    find_unseen(system, moved_J, kFinerTolerance * options_.sizes->tolerance, out);

  // What moves and stops between two rows stores nothing in either, but has travelled.
  std::vector<Motion> by_state;
  by_state.reserve(states_);
  for (std::size_t part = 0; part < out.size(); ++part) {
    const std::vector<double>& start = system.parts()[part].initial_state;
    const Subsystem* const physics = system.parts()[part].port_hamiltonian();
    const bool may_travel = physics != nullptr && out[part] != Motion::judged;
    const StateRows rows{times_, std::span(values).subspan(by_state.size()), states_};
    const std::vector<double> travel = may_travel
                                           ? travel_J(*physics, start, options_.start_s, rows)
                                           : std::vector<double>(start.size(), 0.0);
    for (const double own_J : travel) {
      const bool travels = own_J > kRowRounding * kRowRounding * all_J[island_of(part)];
      by_state.push_back(travels ? Motion::judged : out[part]);
    }
  }
  return by_state;
}

std::optional<StepAgreement> StepComparison::finish(std::int64_t steps, double moved_J,
                                                    const PhaseCallback& listener) {
  if (is_too_large_) {
    StepAgreement out;
    out.is_skipped = true;
    return out;
  }
  if (steps_most_ == 0 || steps == 0) return {};
  energy_J_ = moved_J;
  tell(listener, {options_.sizes ? "comparing with a run of a tenth of the tolerance"
                                 : "comparing with a run of half the step size"});
  if (!is_told_whole_ || last_step_ == 0) run_again(steps);
  StepAgreement out;
  bool is_beside_damped = false;
  try {
    bool damps_less = false;
    out = compare(finer_options(), damps_less);
    // What decays within this run's steps dies in them; half of it, and the finer run conserves what should die.
    if (out.is_far() && damps_less) {
      if (auto beside = compare_with_damped(false); beside && beside->instants == out.instants) {
        out = *beside;
        is_beside_damped = true;
      }
    }
    if (out.is_far() && out.failure.empty() && !is_beside_damped) {
      if (auto other = second_opinion(); other && other->instants == out.instants) out = *other;
    }
  } catch (const ConfigError&) {  // such as a window of too many steps
    return {};
  }
  if (out.instants == 0 && out.failure.empty()) return {};  // interrupted
  if (!is_beside_damped) judge_instant(out);
  out.is_whole = last_step_ == steps || (out.is_chosen && out.until_s >= scenario_.end_s);
  if (!out.is_whole && out.grows && out.until_s > options_.start_s) {
    const double end_s = options_.sizes || scenario_.steps == 0
                             ? scenario_.end_s
                             : options_.start_s + static_cast<double>(steps) * options_.step_s;
    out.expected = out.share * (end_s - options_.start_s) / (out.until_s - options_.start_s);
  }
  return out;
}

}  // namespace portwave
