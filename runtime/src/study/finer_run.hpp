#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/step_agreement.hpp"
#include "portwave/runtime/step/stepper.hpp"

// Runs that are compared state by state (StepComparison).

namespace portwave {

inline constexpr double kFinerTolerance = 0.1;
/// A beginning of fewer steps says too little to prepare a large model for it once more.
inline constexpr std::int64_t kLeastComparedSteps = 64;
/// Differences below this share of the values themselves are rounding, and so is motion with less than its
/// square of all energy.
inline constexpr double kRowRounding = 1e-9;

/// The same with half of the steps, or a tenth of the tolerance.
inline void refine(StepperOptions& options) {
  options.step_s *= 0.5;
  if (options.sizes) options.sizes->tolerance *= kFinerTolerance;
}

/// Calls `each(part, state)` for every state, in order.
template <class Each>
void for_each_state(const System& system, const Each& each) {
  for (int part = 0; part < static_cast<int>(system.parts().size()); ++part) {
    const std::size_t size = system.parts()[static_cast<std::size_t>(part)].initial_state.size();
    for (std::size_t state = 0; state < size; ++state) each(part, state);
  }
}

/// "part.state".
std::string name_of_state(const System& system, int part, std::size_t state);

/// What one state does in a run, and how another run differs from it.
class StateRecord {
 public:
  void see(double value) {
    least_ = std::min(least_, value);
    most_ = std::max(most_, value);
  }
  double range() const { return most_ - least_ > rounding() ? most_ - least_ : 0.0; }
  /// What counts as rounding of its values.
  double rounding() const { return kRowRounding * std::max(std::abs(least_), std::abs(most_)); }
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
  /// The largest at any instant.
  Difference largest() const { return largest_.front(); }
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

/// By state: the largest lasting difference of the rows of two runs at `times`, relative to `scale`; 0 where that is 0.
inline std::vector<StateRecord::Difference> lasting_differences(const std::vector<double>& a,
                                                                const std::vector<double>& b,
                                                                const std::vector<double>& scale,
                                                                const std::vector<double>& times,
                                                                double limit) {
  std::vector<StateRecord> records(scale.size());
  for (StateRecord& record : records) record.expect(StepAgreement::window(std::ssize(times)));
  for (std::size_t k = 0; k < a.size(); ++k) {
    const std::size_t state = k % scale.size();
    if (!(scale[state] > 0.0)) continue;
    records[state].differs(std::abs(a[k] - b[k]) / scale[state], times[k / scale.size()], limit);
  }
  std::vector<StateRecord::Difference> out;
  for (const StateRecord& record : records) {
    out.push_back(record.lasting(std::ssize(times), limit));
  }
  return out;
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
  /// Steps that choose their size go no farther.
  void end_after(std::int64_t steps) { most_steps_ = steps; }
  bool is_spent() const { return is_chosen_ && stepper_.step_index() >= most_steps_; }
  /// Its steps to where another run has gone `steps` of its own.
  std::int64_t steps_between(std::int64_t steps, double step_s) const {
    return is_chosen_ ? steps : steps * std::llround(step_s / step_s_);
  }
  /// Of all parts, `steps` steps farther.
  std::span<const double> states_at(double time_s, std::int64_t steps) {
    if (is_chosen_) {
      while (stepper_.time_s() < time_s && !is_spent()) stepper_.step_towards(scenario_.end_s);
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
  std::int64_t most_steps_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace portwave
