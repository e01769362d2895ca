#include "step/sizes/input_changes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "portwave/runtime/step/options.hpp"
#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {
namespace {

constexpr double kNoChange = std::numeric_limits<double>::infinity();
/// Expressions are searched this many reaches ahead, so that most steps need no search.
constexpr double kReachesAhead = 8.0;

}  // namespace

double longest_for_periods(const System& system, const StepSizes& sizes, double largest_s) {
  constexpr double kPerPeriod = 4.0;
  double frequency_Hz = 0.0;
  for (const Part& part : system.parts()) {
    for (std::size_t i = 0; i < part.inputs.size(); ++i) {
      if (!part.input_is_driven[i]) continue;
      frequency_Hz = std::max(frequency_Hz, part.inputs[i].highest_frequency_Hz());
    }
  }
  while (largest_s * frequency_Hz * kPerPeriod > 1.0 && 0.5 * largest_s >= sizes.smallest_s) {
    largest_s *= 0.5;
  }
  return largest_s;
}

InputChanges::InputChanges(const System& system)
    : kink_s_(-kNoChange), change_s_(kNoChange), searched_s_(-kNoChange) {
  for (const Part& part : system.parts()) {
    for (std::size_t i = 0; i < part.inputs.size(); ++i) {
      if (!part.input_is_driven[i]) continue;
      const Signal& signal = part.inputs[i];
      const bool has_kinks = signal.next_kink(-kNoChange) < kNoChange;
      if (has_kinks) tables_.push_back(&signal);
      if (signal.can_change_over()) expressions_.push_back(&signal);
      if (signal.is_rate() && (has_kinks || signal.can_change_over())) rates_.push_back(&signal);
    }
  }
}

double InputChanges::next(double after_s, double reach_s) {
  if (!(kink_s_ > after_s)) {
    kink_s_ = kNoChange;
    for (const Signal* table : tables_) kink_s_ = std::min(kink_s_, table->next_kink(after_s));
  }
  if (expressions_.empty()) return kink_s_;
  if (change_s_ <= after_s) change_s_ = kNoChange;
  if (std::isinf(change_s_) && searched_s_ < after_s + reach_s) {
    const double from_s = std::max(searched_s_, after_s);
    const double until_s = after_s + kReachesAhead * reach_s;
    for (const Signal* own : expressions_) {
      change_s_ = std::min(change_s_, own->next_change(from_s, std::min(until_s, change_s_)));
    }
    searched_s_ = std::min(until_s, change_s_);
  }
  return std::min(kink_s_, change_s_);
}

void InputChanges::for_each_within(double after_s, double until_s,
                                   const std::function<void(int input)>& visit) const {
  int number = 0;
  for (const Signal* table : tables_) {
    if (table->next_kink(after_s) <= until_s) visit(number);
    ++number;
  }
  for (const Signal* own : expressions_) {
    if (own->next_change(after_s, until_s) <= until_s) visit(number);
    ++number;
  }
}

bool InputChanges::jumps(double begin_s, double step_s) const {
  constexpr double kSeen = 1e-3;
  const double beside_s = 1e-9 * step_s;  // a jump at an end belongs to the step that begins there
  const double after_s = begin_s - beside_s, until_s = begin_s + step_s - beside_s;
  const auto jumps_at = [&](const Signal& own, double time_s) {
    const double before = own(time_s - beside_s), after = own(time_s + beside_s);
    const double size =
        std::max({std::abs(before), std::abs(own(begin_s)), std::abs(own(until_s))});
    return std::abs(after - before) > kSeen * size;
  };
  const auto any = [&](const std::vector<const Signal*>& signals, const auto& next) {
    return std::ranges::any_of(signals, [&](const Signal* own) {
      double time_s = next(*own, after_s);
      while (time_s <= until_s && !jumps_at(*own, time_s)) time_s = next(*own, time_s);
      return time_s <= until_s;
    });
  };
  return any(tables_, [](const Signal& own, double t) { return own.next_kink(t); }) ||
         any(expressions_,
             [&](const Signal& own, double t) { return own.next_change(t, until_s); });
}

bool InputChanges::displacement_jumps(double begin_s, double step_s) const {
  const double rounding_s =
      1e-9 * step_s;  // a jump at an end belongs to the step that begins there
  return std::ranges::any_of(rates_, [&](const Signal* own) {
    return own->displacement_jump(begin_s - rounding_s, begin_s + step_s - rounding_s).has_value();
  });
}

void InputChanges::archive(StateArchive& archive) {
  archive.values(kink_s_, change_s_, searched_s_);
  for (const double time_s : {kink_s_, change_s_, searched_s_}) {
    archive.expect(!std::isnan(time_s), "the time at which an input changes");
  }
}

}  // namespace portwave
