#include "portwave/runtime/study/step_comparison.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "study/order_runs.hpp"

namespace portwave {
namespace {

/// States times steps of a beginning.
constexpr std::int64_t kMostNumbers = 500'000;
/// A beginning of fewer steps says too little to prepare a large model for it once more.
constexpr std::int64_t kLeastSteps = 64;
constexpr double kFinerTolerance = 0.1;
/// Differences below this share of the values themselves are rounding.
constexpr double kRounding = 1e-9;

/// What one state does in a run, and how another run differs from it.
class StateRecord {
 public:
  void see(double value) {
    least_ = std::min(least_, value);
    most_ = std::max(most_, value);
  }
  double range() const {
    const double rounding = kRounding * std::max(std::abs(least_), std::abs(most_));
    return most_ - least_ > rounding ? most_ - least_ : 0.0;
  }
  void differs(double by, double time_s) {
    Difference own = {by, time_s};
    for (Difference& larger : largest_) {
      if (own.size > larger.size) std::swap(own, larger);
    }
  }
  struct Difference {
    double size = 0.0;
    double time_s = 0.0;
  };
  /// The largest but for the exceptions.
  const Difference& lasting() const { return largest_.back(); }

 private:
  double least_ = std::numeric_limits<double>::infinity();
  double most_ = -std::numeric_limits<double>::infinity();
  std::array<Difference, StepAgreement::kExceptions + 1> largest_;  // the largest first
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

/// By state: the range that its differences are compared with.
std::vector<double> scales_of(const System& system, const std::vector<StateRecord>& records) {
  std::map<std::pair<std::string, std::string>, double> kinds;
  const auto kind_of = [&](int part, std::size_t state) -> double& {
    const Signature& signature =
        system.parts()[static_cast<std::size_t>(part)].component->signature();
    return kinds[{signature.type, signature.states[state].unit}];
  };
  std::size_t i = 0;
  for_each_state(system, [&](int part, std::size_t state) {
    double& kind = kind_of(part, state);
    kind = std::max(kind, records[i++].range());
  });
  std::vector<double> scales;
  scales.reserve(records.size());
  for_each_state(system, [&](int part, std::size_t state) {
    scales.push_back(std::max(records[scales.size()].range(),
                              StepAgreement::kLeastOfKind * kind_of(part, state)));
  });
  return scales;
}

/// The run with finer steps, read at the ends of the steps of the other.
class FinerRun {
 public:
  FinerRun(const Scenario& scenario, const StepperOptions& options, std::size_t states)
      : scenario_(scenario),
        is_chosen_(options.sizes.has_value()),
        stepper_(scenario.system, options),
        states_(states) {}

  /// Of all parts, where the next step of the other run ends.
  std::span<const double> states_at(double time_s) {
    if (is_chosen_) {
      while (stepper_.time_s() < time_s) stepper_.step_towards(scenario_.end_s);
    } else {
      stepper_.step(2);
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
  Stepper stepper_;
  std::vector<double> states_;
};

}  // namespace

StepComparison::StepComparison(const Scenario& scenario, const StepperOptions& options,
                               Extent extent)
    : scenario_(scenario), options_(options), states_(states_of(scenario.system)) {
  const bool is_finest = options.sizes && !StepSizes::tolerances().contains(
                                              kFinerTolerance * options.sizes->tolerance);
  if (extent == Extent::none || states_ == 0 || is_finest) return;
  const std::int64_t most = kMostNumbers / static_cast<std::int64_t>(states_);
  const bool is_short = scenario.steps > 0 && scenario.steps <= most;
  if (extent == Extent::whole) {
    steps_most_ = std::numeric_limits<std::int64_t>::max();
  } else if (is_short || most >= kLeastSteps) {
    steps_most_ = most;
  }
}

void StepComparison::keep(const Stepper& stepper) {
  times_.push_back(stepper.time_s());
  for (int part = 0; part < static_cast<int>(scenario_.system.parts().size()); ++part) {
    const std::span<const double> x = stepper.state(part);
    values_.insert(values_.end(), x.begin(), x.end());
  }
}

void StepComparison::record(const Stepper& stepper) {
  if (!is_told_whole_ || is_full()) return;
  is_told_whole_ = stepper.step_index() == static_cast<std::int64_t>(times_.size()) + 1;
  if (is_told_whole_) keep(stepper);
}

void StepComparison::run_again(std::int64_t steps) {
  times_.clear();
  values_.clear();
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

StepperOptions StepComparison::finer_options() const {
  StepperOptions options = options_;
  options.time = {};
  options.profile.reset();
  options.timed = false;
  options.certify = Certify::none;
  if (options.sizes) {
    options.sizes->tolerance *= kFinerTolerance;
    return options;
  }
  if (options.signals != nullptr && options.signals_every_s == 0.0) {
    options.signals_every_s = options.step_s;
  }
  options.step_s *= 0.5;
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

  StepAgreement out;
  out.is_chosen = finer.sizes.has_value();
  out.finer = out.is_chosen ? finer.sizes->tolerance : finer.step_s;
  try {
    FinerRun run(scenario_, finer, states_);
    for (std::size_t row = 0; row < times_.size(); ++row) {
      if (finer.interrupted && finer.interrupted()) break;
      const std::span<const double> x = run.states_at(times_[row]);
      const double* const own = values_.data() + row * states_;
      for (std::size_t k = 0; k < states_; ++k) {
        records[k].differs(std::abs(x[k] - own[k]), times_[row]);
      }
      out.until_s = times_[row];
      ++out.instants;
    }
  } catch (const StepError& error) {
    out.failure = error.what();
  }

  const std::vector<double> scales = scales_of(system, records);
  i = 0;
  for_each_state(system, [&](int part, std::size_t state) {
    const StateRecord::Difference& own = records[i].lasting();
    const double share = scales[i] > 0.0 ? own.size / scales[i] : 0.0;
    ++i;
    if (!(share > out.share)) return;
    out.share = share;
    out.time_s = own.time_s;
    out.state = fmt::format("{}.{}", system.name_of_part(part), variable(system, part, state).name);
  });
  return out;
}

std::optional<StepAgreement> StepComparison::finish(std::int64_t steps,
                                                    const PhaseCallback& listener) {
  if (steps_most_ == 0 || steps == 0) return {};
  tell(listener, {options_.sizes ? "comparing with a run of a tenth of the tolerance"
                                 : "comparing with a run of half the step size"});
  if (!is_told_whole_ || times_.empty()) run_again(steps);
  StepAgreement out;
  try {
    out = compare(finer_options());
  } catch (const ConfigError&) {  // such as a window of too many steps
    return {};
  }
  if (out.instants == 0 && out.failure.empty()) return {};  // interrupted
  out.is_whole = out.instants == steps || (out.is_chosen && out.until_s >= scenario_.end_s);
  return out;
}

}  // namespace portwave
