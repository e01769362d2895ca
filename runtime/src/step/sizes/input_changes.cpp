#include "step/sizes/input_changes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "portwave/runtime/step/options.hpp"
#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {
namespace {

constexpr double kNoChange = std::numeric_limits<double>::infinity();
/// Expressions are searched this many reaches ahead, so that most steps need no search.
constexpr double kReachesAhead = 8.0;
/// Beside a jump, whose time is known to some spacings of numbers of its size.
double beside(double time_s, double step_s) {
  constexpr double kOfStep = 1e-9, kSpacings = 16.0 * std::numeric_limits<double>::epsilon();
  return std::max(kOfStep * step_s, kSpacings * std::abs(time_s));
}
/// Of a step: nearer to its ends counts as there.
constexpr double kAtEnd = 1e-7;

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
      if (signal.expression() != nullptr) {
        smooth_.push_back({&signal, -kNoChange, 0.0, 0.0, 0.0, 0.0});
      }
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
  const double beside_s =
      beside(begin_s + step_s, step_s);  // a jump at an end belongs to the step that begins there
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

void InputChanges::find_sudden(double begin_s, double step_s, std::size_t most, bool with_known,
                               std::vector<double>& times_s) {
  constexpr double kSeen = 1e-3, kSlope = 0x1p-14, kEdge = 0.5;
  const double same_s = kAtEnd * step_s, after_s = begin_s + same_s,
               until_s = begin_s + step_s - same_s;
  const double beside_s = beside(begin_s + step_s, step_s), slope_s = kSlope * step_s;
  times_s.clear();
  find_steep(begin_s, step_s, times_s);
  const bool has_known = with_known && next(after_s, 2.0 * step_s) < until_s;
  if (!has_known && times_s.empty()) return;
  const auto find = [&](const Signal& own, const auto& next) {
    const std::size_t first = times_s.size();
    double least = std::numeric_limits<double>::infinity(), most_of = -least, steepest = 0.0;
    double size = std::max(std::abs(own(begin_s)), std::abs(own(until_s)));
    const auto see = [&](double time_s) {
      for (const double sign : {-1.0, 1.0}) {
        const double value = own(time_s + sign * beside_s);
        least = std::min(least, value);
        most_of = std::max(most_of, value);
        size = std::max(size, std::abs(value));
      }
    };
    // An edge may begin in the step before, or end in the next one.
    double from_s = -kNoChange, time_s = next(begin_s - kEdge * step_s);
    for (std::size_t before = 0; time_s <= after_s; time_s = next(time_s)) {
      if (++before > most) return false;
      from_s = time_s;
    }
    for (; time_s < until_s; time_s = next(time_s)) {
      see(time_s);
      times_s.push_back(time_s);
      if (times_s.size() > most) return false;
    }
    if (times_s.size() == first) return true;
    if (times_s[first] - from_s < kEdge * step_s) {
      see(from_s);
    } else {
      from_s = times_s[first];
    }
    if (time_s - times_s.back() < kEdge * step_s) {
      see(time_s);
    } else {
      time_s = times_s.back();
    }
    // Beside them: what it does there in a whole step.
    for (const auto& [near_s, far_s] :
         {std::pair(from_s - beside_s, from_s - beside_s - slope_s),
          std::pair(time_s + beside_s, time_s + beside_s + slope_s)}) {
      steepest = std::max(steepest, std::abs(own(far_s) - own(near_s)) / kSlope);
    }
    if (!(most_of - least > std::max(kSeen * size, steepest))) times_s.resize(first);
    return true;
  };
  const auto all = [&](const std::vector<const Signal*>& signals, const auto& next) {
    return std::ranges::all_of(signals, [&](const Signal* own) {
      return find(*own, [&](double time_s) { return next(*own, time_s); });
    });
  };
  const bool are_few =
      !displacement_jumps(begin_s, step_s) &&
      (!has_known || (all(tables_, [](const Signal& own, double t) { return own.next_kink(t); }) &&
                      all(expressions_, [&](const Signal& own, double t) {
                        return own.next_change(t, until_s);
                      })));
  if (!are_few || times_s.size() > most) return times_s.clear();
  std::ranges::sort(times_s);
  const auto repeated = std::ranges::unique(
      times_s, [same_s](double before, double after) { return after - before <= same_s; });
  times_s.erase(repeated.begin(), repeated.end());
}

void InputChanges::find_steep(double begin_s, double step_s, std::vector<double>& times_s) {
  constexpr double kSeen = 1e-3, kSteep = 4.0, kMost = 0.3;
  constexpr int kHalvings = 3, kMostHalvings = 8;
  const double same_s = kAtEnd * step_s, end_s = begin_s + step_s;
  for (Smooth& own : smooth_) {
    const Signal& u = *own.signal;
    // A jump at an end belongs to the step that begins there.
    const auto at_end = [&](double steps) { return u(begin_s + steps * step_s - same_s); };
    const bool goes_on = std::abs(own.end_s - begin_s) <= 10.0 * same_s;
    own = goes_on ? Smooth{&u, end_s, own.begin, own.end, own.next, at_end(2)}
                  : Smooth{&u, end_s, at_end(-1), at_end(0), at_end(1), at_end(2)};
    const double change = std::abs(own.end - own.begin);
    const double size = std::max(std::abs(own.begin), std::abs(own.end));
    const double beside = std::max(std::abs(own.begin - own.before), std::abs(own.next - own.end));
    if (!(change > std::max(kSeen * size, kSteep * beside))) continue;
    if (u.next_change(begin_s - 2.0 * same_s, end_s) < end_s) continue;  // known exactly
    double from_s = begin_s - same_s, to_s = end_s - same_s, from = own.begin, to = own.end;
    for (int halving = 0; halving < kMostHalvings; ++halving) {
      const double middle_s = std::midpoint(from_s, to_s), middle = u(middle_s);
      const bool is_first = std::abs(middle - from) > std::abs(to - middle);
      const double half = is_first ? middle - from : to - middle;
      if (halving >= kHalvings && !(std::abs(half) > 0.5 * change)) break;
      (is_first ? to_s : from_s) = middle_s;
      (is_first ? to : from) = middle;
    }
    if (!(std::abs(to - from) > kMost * change)) continue;
    for (const double time_s : {from_s, to_s}) {
      if (time_s > begin_s + same_s && time_s < end_s - 2.0 * same_s) times_s.push_back(time_s);
    }
  }
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
