#include "portwave/runtime/study/step_comparison.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "portwave/runtime/step/wave_view.hpp"
#include "study/order_runs.hpp"

namespace portwave {
namespace {

/// States times steps of a beginning: two times as many are stepped for it.
constexpr std::int64_t kMostWork = 5'000'000;
/// Of these as many are kept; where a run has more, those of every second, fourth, … step.
constexpr std::size_t kMostKept = 500'000;
/// A beginning of fewer steps says too little to prepare a large model for it once more.
constexpr std::int64_t kLeastSteps = 64;
constexpr double kFinerTolerance = 0.1;
/// Differences below this share of the values themselves are rounding, and so is motion with less than its
/// square of all energy.
constexpr double kRounding = 1e-9;
/// Steps with fewer evaluations than that often end by the first one, with the waves of the step before.
constexpr double kFewEvaluations = 1.5;
/// What is held over steps is late by half of one: half of its error shows.
constexpr double kFarOfSamples = 0.5 * StepAgreement::kFar;

/// What one state does in a run, and how another run differs from it.
class StateRecord {
 public:
  void see(double value) {
    least_ = std::min(least_, value);
    most_ = std::max(most_, value);
  }
  double range() const { return most_ - least_ > rounding() ? most_ - least_ : 0.0; }
  /// What counts as rounding of its values.
  double rounding() const { return kRounding * std::max(std::abs(least_), std::abs(most_)); }
  struct Difference {
    double share = 0.0;
    double time_s = 0.0;
  };
  /// Differences at `window` instants in a row will be looked at together.
  void expect(int window) {
    last_.assign(static_cast<std::size_t>(window), 0.0);
    sorted_ = last_;
  }
  void differs(double share, double time_s, double limit) {
    if (share > limit) ++far_;
    Difference own = {share, time_s};
    for (Difference& larger : largest_) {
      if (own.share > larger.share) std::swap(own, larger);
    }
    last_[next_] = share;
    next_ = (next_ + 1) % last_.size();
    if (share <= lasting_.share) return;
    sorted_ = last_;
    const auto half = sorted_.begin() + std::ssize(sorted_) / 2;
    std::ranges::nth_element(sorted_, half, std::greater());
    if (*half > lasting_.share) lasting_ = {*half, time_s};
  }
  /// The largest that half of some window and more exceed; or the third largest of all, unless it is beyond the limit
  /// as rarely as samples at which something jumps.
  Difference lasting(std::int64_t instants, double limit) const {
    constexpr double kMostExceptions = 0.01;
    if (instants < StepAgreement::kFew) return lasting_;
    const Difference third = largest_.back();
    const bool is_rare =
        static_cast<double>(far_) <= kMostExceptions * static_cast<double>(instants);
    if (third.share > limit && is_rare) return lasting_;
    return third.share > lasting_.share ? third : lasting_;
  }
  /// Whether differences grow: those of the first half of the time so far are over.
  void halve() { first_half_ = lasting_.share; }
  bool grows() const { return lasting_.share > 1.5 * first_half_; }

 private:
  double least_ = std::numeric_limits<double>::infinity();
  double most_ = -std::numeric_limits<double>::infinity();
  double first_half_ = std::numeric_limits<double>::infinity();
  std::vector<double> last_, sorted_;  // of a window, in any order; scratch
  std::size_t next_ = 0;
  Difference lasting_;
  std::array<Difference, 3> largest_;  // of all, the largest first
  std::int64_t far_ = 0;               // instants beyond the limit
};

std::size_t states_of(const System& system) {
  std::size_t count = 0;
  for (const Part& part : system.parts()) count += part.initial_state.size();
  return count;
}

/// Calls `each(part, state)` for every state, in order.
template <class Each>
void for_each_state(const System& system, const Each& each) {
  for (int part = 0; part < static_cast<int>(system.parts().size()); ++part) {
    const std::size_t size = system.parts()[static_cast<std::size_t>(part)].initial_state.size();
    for (std::size_t state = 0; state < size; ++state) each(part, state);
  }
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
  std::map<Kind, double> kinds;
  const auto kind_of = [&](int part, std::size_t state) -> double& {
    const Signature& signature =
        system.parts()[static_cast<std::size_t>(part)].component->signature();
    return kinds[{system.island_of_part(part), signature.type, signature.states[state].unit}];
  };
  std::size_t i = 0;
  for_each_state(system, [&](int part, std::size_t state) {
    double& kind = kind_of(part, state);
    kind = std::max(kind, records[i++].range());
  });
  std::vector<Scale> scales;
  scales.reserve(records.size());
  for_each_state(system, [&](int part, std::size_t state) {
    const StateRecord& record = records[scales.size()];
    const Motion own = motion[static_cast<std::size_t>(part)];
    const double range = record.range(), least = StepAgreement::kLeastOfKind * kind_of(part, state);
    Scale scale;
    if (own == Motion::judged) scale.judged = std::max(range, least);
    if (scale.judged > 0.0) scale.judged = std::max(scale.judged, record.rounding());
    if (own == Motion::too_small || (own == Motion::judged && range < least))
      scale.too_small = range;
    scales.push_back(scale);
  });
  return scales;
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

/// Steps of order 1: those of one stage of which any may be damped, and those over the changes of a law.
bool is_of_first_order(const Stepper& stepper) {
  const WaveView* const waves = stepper.waves();
  if (waves != nullptr && waves->stages() == 1 && waves->may_damp()) return true;
  return std::ranges::any_of(stepper.system().parts(), [](const Part& part) {
    const Subsystem* const physics = part.port_hamiltonian();
    return physics != nullptr && (physics->has_port_laws() || physics->has_vertical_laws());
  });
}

/// The run with finer steps, read at the ends of the steps of the other.
class FinerRun {
 public:
  FinerRun(const Scenario& scenario, const StepperOptions& options, std::size_t states)
      : scenario_(scenario),
        is_chosen_(options.sizes.has_value()),
        step_s_(options.step_s),
        stepper_(scenario.system, options),
        states_(states) {}

  const Stepper& stepper() const { return stepper_; }
  /// Its steps to where another run has gone `steps` of its own.
  std::int64_t steps_between(std::int64_t steps, double step_s) const {
    return is_chosen_ ? steps : steps * std::llround(step_s / step_s_);
  }
  /// Of all parts, `steps` steps farther.
  std::span<const double> states_at(double time_s, std::int64_t steps) {
    if (is_chosen_) {
      while (stepper_.time_s() < time_s) stepper_.step_towards(scenario_.end_s);
    } else {
      stepper_.step(steps);
    }
    const bool is_within = is_chosen_ && stepper_.time_s() > time_s;
    std::size_t first = 0;
    for (int part = 0; part < static_cast<int>(scenario_.system.parts().size()); ++part) {
      const std::span<const double> now = stepper_.state(part);
      const std::span<double> there(states_.data() + first, now.size());
      if (is_within) {
        stepper_.state_at(part, time_s, there);
      } else {
        std::ranges::copy(now, there.begin());
      }
      first += now.size();
    }
    return states_;
  }

 private:
  const Scenario& scenario_;
  bool is_chosen_;
  double step_s_;
  Stepper stepper_;
  std::vector<double> states_;
};

}  // namespace

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
  } else if (is_short || most >= kLeastSteps) {
    steps_most_ = most;
  } else {
    is_too_large_ = true;
  }
}

void StepComparison::keep(const Stepper& stepper) {
  last_step_ = stepper.step_index();
  if (last_step_ % stride_ != 0) return;
  if (values_.size() >= kMostKept && times_.size() > 2 * kLeastSteps) thin_out();
  if (last_step_ % stride_ != 0) return;
  if (times_.empty()) is_of_first_order_ = is_of_first_order(stepper);
  evaluations_ = stepper.iterations().per_step();
  times_.push_back(stepper.time_s());
  for (int part = 0; part < static_cast<int>(scenario_.system.parts().size()); ++part) {
    const std::span<const double> x = stepper.state(part);
    values_.insert(values_.end(), x.begin(), x.end());
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

/// The same with half of the steps, or a tenth of the tolerance.
void refine(StepperOptions& options) {
  options.step_s *= 0.5;
  if (options.sizes) options.sizes->tolerance *= kFinerTolerance;
}

StepperOptions StepComparison::finer_options() const {
  StepperOptions options = options_;
  options.time = {};
  options.profile.reset();
  options.timed = false;
  if (options.certify == Certify::full) options.certify = Certify::energy;
  if (options.sizes) {
    refine(options);  // the largest step, too, which may be what bounds them
    return options;
  }
  if (options.signals != nullptr && options.signals_every_s == 0.0 &&
      !has_unasked_rate(options, true)) {
    options.signals_every_s = options.step_s;
  }
  if (has_unasked_rate(options, true)) {
    options.signals = std::make_shared<const SignalGraph>(options.signals->at_half_steps());
  }
  refine(options);
  options.method = method_of_kind(scenario_, options.method.kind(), options.step_s);
  return options;
}

StepAgreement StepComparison::compare(const StepperOptions& finer) const {
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
  std::vector<Scale> scales;
  std::vector<StateRecord> small = records;
  std::vector<double> finer_values;
  finer_values.reserve(values_.size());
  try {
    FinerRun run(scenario_, finer, states_);
    if (is_of_first_order_ || is_of_first_order(run.stepper())) {
      out.limit = std::min(out.limit, StepAgreement::kFarOfFirstOrder);
    }
    scales = scales_of(system, records, motion_of(run.stepper(), values_));
    for (std::size_t row = 0; row < times_.size(); ++row) {
      if (finer.interrupted && finer.interrupted()) break;
      const std::span<const double> x =
          run.states_at(times_[row], run.steps_between(stride_, options_.step_s));
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

  i = 0;
  for_each_state(system, [&](int part, std::size_t state) {
    const auto name = [&] {
      return fmt::format("{}.{}", system.name_of_part(part), variable(system, part, state).name);
    };
    if (const double share = small[i].lasting(out.instants, out.limit).share;
        share > std::max(out.limit, out.unjudged_share)) {
      out.unjudged_share = share;
      out.unjudged = name();
    }
    const StateRecord& record = records[i++];
    const StateRecord::Difference own = record.lasting(out.instants, out.limit);
    if (!(own.share > out.share)) return;
    out.share = own.share;
    out.time_s = own.time_s;
    out.grows = record.grows();
    out.state = name();
  });
  std::vector<bool> is_too_small;
  for (const Scale& scale : scales) is_too_small.push_back(scale.too_small > 0.0);
  if (finer_values.size() == values_.size()) look_beneath(out, finer, finer_values, is_too_small);
  return out;
}

void StepComparison::look_beneath(StepAgreement& out, const StepperOptions& finer,
                                  const std::vector<double>& finer_values,
                                  const std::vector<bool>& is_too_small) const {
  // Of its range: two runs that differ by more do not know how it moves.
  constexpr double kKnown = 0.3;
  constexpr int kMostBeneath = 8;  // evaluations, and four times as many as the run took
  StepperOptions options = finer;
  auto* const waves = options.method.as<WaveCoupling>();
  if (waves == nullptr || waves->tolerance <= 0.0 || out.is_far()) return;
  if (out.unjudged.empty() && evaluations_ >= kFewEvaluations) return;
  const bool is_asked = waves->tolerance_per_part;
  waves->tolerance_per_part = true;
  // Parts whose waves are rounding never meet it.
  waves->iterations =
      std::min(waves->iterations, kMostBeneath + static_cast<int>(4.0 * evaluations_));
  const int window = StepAgreement::window(std::ssize(times_));
  std::vector<Motion> motion;
  const auto rows_of = [&](const StepperOptions& of) {
    std::vector<double> rows;
    rows.reserve(values_.size());
    FinerRun run(scenario_, of, states_);
    for (const double time_s : times_) {
      if (of.interrupted && of.interrupted()) break;
      const std::span<const double> x =
          run.states_at(time_s, run.steps_between(stride_, options_.step_s));
      rows.insert(rows.end(), x.begin(), x.end());
    }
    if (rows.size() == values_.size() && motion.empty()) motion = motion_of(run.stepper(), rows);
    return rows;
  };
  const auto ranges_of = [&](const std::vector<double>& rows) {
    std::vector<StateRecord> records(states_);
    for (std::size_t k = 0; k < rows.size(); ++k) records[k % states_].see(rows[k]);
    return records;
  };
  const auto differences = [&](const std::vector<double>& a, const std::vector<double>& b,
                               const std::vector<double>& scale) {
    std::vector<StateRecord> records(states_);
    for (StateRecord& record : records) record.expect(window);
    for (std::size_t k = 0; k < a.size(); ++k) {
      const std::size_t state = k % states_;
      if (!(scale[state] > 0.0)) continue;
      records[state].differs(std::abs(a[k] - b[k]) / scale[state], times_[k / states_], out.limit);
    }
    return records;
  };
  const auto lasting = [&](const StateRecord& record) {
    return record.lasting(out.instants, out.limit);
  };
  try {
    const std::vector<double> second = rows_of(options);
    if (second.size() != values_.size()) return;
    const std::vector<StateRecord> own = ranges_of(values_), other = ranges_of(second);
    std::vector<double> larger(states_), known(states_);
    std::size_t i = 0;
    for_each_state(scenario_.system, [&](int part, std::size_t) {
      known[i] =
          motion[static_cast<std::size_t>(part)] == Motion::rounding ? 0.0 : other[i].range();
      const bool is_small = own[i].range() == 0.0 || is_too_small[i];
      if (is_small && known[i] > StepAgreement::kLeastOfKind * own[i].range())
        larger[i] = std::max(own[i].range(), known[i]);
      ++i;
    });
    const std::vector<StateRecord> off = differences(values_, second, larger);
    const auto is_off = [&](const StateRecord& record) {
      return lasting(record).share > out.limit;
    };
    if (std::ranges::none_of(off, is_off)) return;
    refine(options);
    const std::vector<double> third = rows_of(options);
    if (third.size() != values_.size()) return;
    const std::vector<StateRecord> unknown = differences(second, third, known);
    const std::vector<StateRecord> by_steps = differences(finer_values, second, larger);
    i = 0;
    for_each_state(scenario_.system, [&](int part, std::size_t state) {
      const std::size_t k = i++;
      const StateRecord::Difference most = lasting(off[k]);
      if (!(most.share > std::max(out.limit, out.share)) || lasting(unknown[k]).share > kKnown)
        return;
      out.share = most.share;
      out.time_s = most.time_s;
      out.grows = false;
      out.state = fmt::format("{}.{}", scenario_.system.name_of_part(part),
                              variable(scenario_.system, part, state).name);
      out.is_beneath_waves = !is_asked && is_off(by_steps[k]);
      if (out.unjudged == out.state) out.unjudged.clear();
    });
  } catch (const StepError&) {
    // What two finer runs cannot say stays as the first has left it.
  } catch (const ConfigError&) {
  }
}

/// By part: whether its motion is too small beside all energy of its island, as of what hangs at rest.
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
    constexpr double kOfDoubles = 1e-13;
    const double island_J = all_J[island_of(part)];
    if (moved_J[part] == 0.0 || moved_J[part] > kRounding * kRounding * island_J) continue;
    const bool is_rounding = moved_J[part] <= kOfDoubles * kOfDoubles * island_J;
    out[part] = is_rounding ? Motion::rounding : Motion::too_small;
  }
  return out;
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
  try {
    out = compare(finer_options());
  } catch (const ConfigError&) {  // such as a window of too many steps
    return {};
  }
  if (out.instants == 0 && out.failure.empty()) return {};  // interrupted
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
