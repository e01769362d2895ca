#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "portwave/runtime/parallel/arena.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "step/stepper_options.hpp"
#include "study/energy_meter.hpp"

namespace portwave {

/// `level` from 0 to 1, of at least one value.
inline double quantile(std::vector<double> values, double level) {
  std::sort(values.begin(), values.end());
  const double place = level * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - std::floor(place)) * (values[above] - values[below]);
}

/// Median of what `of` makes of the values of each repetition: neighbours in time share what the
/// machine was doing, so that little of it is left in their ratio.
template <class Of>
double paired(const std::vector<double>& x, const std::vector<double>& y, const Of& of) {
  std::vector<double> values;
  for (std::size_t r = 0; r < x.size(); ++r) values.push_back(of(x[r], y[r]));
  return quantile(std::move(values), 0.5);
}

/// One configuration of one network, whose steps are timed over and over.
class Subject {
 public:
  using Clock = std::chrono::steady_clock;

  Subject(const Scenario& scenario, const StepperOptions& options)
      : threads_(options.threads), stepper_(scenario.system, options) {}

  /// The options of a scenario for steps that are measured: all configurations are to do the same work.
  static StepperOptions settings(const Scenario& scenario, ExecutorKind executor, Grain grain,
                                 int threads) {
    StepperOptions options = scenario.options;
    options.executor = executor;
    options.grain = grain;
    options.threads = threads;
    options.timed = true;
    options.time = {};
    go_past_ends(options);
    return options;
  }

  int threads() const { return threads_; }  ///< that were asked for
  const Stepper& stepper() const { return stepper_; }
  Stepper& stepper() { return stepper_; }

  /// Steps without looking; returns the time of one [s].
  double warm(std::int64_t steps) {
    const auto start = Clock::now();
    stepper_.step(steps);
    return seconds_since(start) / static_cast<double>(steps);
  }

  /// `meter`: null, or what counts the energy.
  void measure(std::int64_t steps, EnergyMeter* meter = nullptr) {
    StepTimes sum;
    if (meter != nullptr) (void)meter->read_J();
    const auto start = Clock::now();
    for (std::int64_t n = 0; n < steps; ++n) {
      const StepTimes times = stepper_.step().times;
      sum.begin_s += times.begin_s;
      sum.iterate_s += times.iterate_s;
      sum.commit_s += times.commit_s;
    }
    const auto count = static_cast<double>(steps);
    const double taken_s = seconds_since(start);
    if (meter != nullptr) {
      if (const auto energy_J = meter->read_J()) energy_J_.push_back(*energy_J / count);
    }
    step_s_.push_back(taken_s / count);
    begin_s_.push_back(sum.begin_s / count);
    iterate_s_.push_back(sum.iterate_s / count);
    commit_s_.push_back(sum.commit_s / count);
  }

  const std::vector<double>& steps_s() const { return step_s_; }  ///< by repetition

  double step_s() const { return quantile(step_s_, 0.5); }
  /// Empty unless every repetition had one.
  std::optional<double> energy_J() const {
    if (energy_J_.empty() || energy_J_.size() != step_s_.size()) return std::nullopt;
    return quantile(energy_J_, 0.5);
  }
  StepTimes phases() const {
    return {quantile(begin_s_, 0.5), quantile(iterate_s_, 0.5), quantile(commit_s_, 0.5)};
  }
  double spread() const {
    return 0.5 * (quantile(step_s_, 0.75) - quantile(step_s_, 0.25)) / step_s();
  }
  double undisturbed_s() const { return quantile(step_s_, 0.1); }
  double fastest_s() const { return quantile(step_s_, 0.0); }
  double slowest_s() const { return quantile(step_s_, 1.0); }

 private:
  static double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  int threads_;
  Stepper stepper_;
  std::vector<double> step_s_, begin_s_, iterate_s_, commit_s_, energy_J_;
};

/// Time of a over that of b.
inline double ratio(const Subject& a, const Subject& b) {
  return paired(a.steps_s(), b.steps_s(), [](double x, double y) { return x / y; });
}

inline bool equal_states(const Stepper& a, const Stepper& b) {
  for (int part = 0; part < static_cast<int>(a.system().parts().size()); ++part) {
    const std::span<const double> x = a.state(part), y = b.state(part);
    if (std::memcmp(x.data(), y.data(), x.size_bytes()) != 0) return false;
  }
  return true;
}

/// Wall time of a measurement whose steps are not given [s], and of the steps before it that call
/// the workers in.
inline constexpr double kMeasurement_s = 50e-3;
inline constexpr double kWarming_s = 3e-3;
inline constexpr std::int64_t kFirstSteps = 8;
/// Steps before the first measurement: the first of a run are examined more closely than others.
inline constexpr std::int64_t kSettlingSteps = 32;

/// How many steps a measurement has, and how many come before it.
struct MeasuredSteps {
  std::int64_t steps, warming;
};
/// `given`: 0, or as asked for. `slowest_s`: a step on one thread.
inline MeasuredSteps measured_steps(std::int64_t given, double slowest_s) {
  const auto within = [&](double time_s, double least) {
    return static_cast<std::int64_t>(std::clamp(time_s / slowest_s, least, 1e6));
  };
  if (given > 0) return {given, std::min<std::int64_t>(given, kFirstSteps)};
  return {within(kMeasurement_s, 5.0), within(kWarming_s, 2.0)};
}

/// Cores that this process may use. `given`: 0, or as asked for.
inline int cores_of_process(int given) {
  if (given > 0) return given;
  return threads_allowed(std::max(static_cast<int>(std::thread::hardware_concurrency()), 1));
}

}  // namespace portwave
