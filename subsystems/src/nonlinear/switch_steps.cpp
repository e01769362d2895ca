#include "portwave/subsystems/nonlinear/switch_steps.hpp"

#include <algorithm>

#include "portwave/subsystems/nonlinear/ideal_switch.hpp"

namespace portwave {
namespace {

/// A share of a step that is rounding of the time of a change.
constexpr double kRounding = 1e-9;

}  // namespace

double SwitchTimes::moved_share(double step_s) const {
  constexpr double kBothChanges = 2.0;  // of a time between two changes each end moves
  if (!(moved_s > step_s)) return 0.0;
  return moved_s / (kBothChanges * std::min(closed_s, open_s));
}

bool closes_in_step(double share, double lag) {
  if (share <= kRounding || share >= 1.0 - kRounding) return share > 0.5;
  return share + std::clamp(lag, -0.5, 0.5) >= 0.5 - kRounding;
}

double closed_share(const Signal& input, double begin_s, double length_s,
                    std::span<const double> set_values) {
  constexpr int kMostPieces = 64, kHalvings = 40;
  constexpr double kInside = 1e-6;  // of a piece: its ends are those of the changes
  const auto is_closed = [&](double time_s) {
    return IdealSwitch::is_closed(input.at(time_s, set_values));
  };
  if (input.is_settable()) return is_closed(begin_s) ? 1.0 : 0.0;
  const double end_s = begin_s + length_s;
  double from = begin_s, closed_s = 0.0;
  for (int piece = 0; piece < kMostPieces && from < end_s; ++piece) {
    double to = std::min({input.next_kink(from), input.next_change(from, end_s), end_s});
    if (piece + 1 == kMostPieces) to = end_s;
    const double inside = kInside * (to - from);
    double first = from + inside, last = to - inside;
    const bool before = is_closed(first);
    double crossing = to;
    if (is_closed(last) != before) {
      for (int k = 0; k < kHalvings; ++k) {
        const double middle = 0.5 * (first + last);
        (is_closed(middle) == before ? first : last) = middle;
      }
      crossing = last;
    }
    closed_s += before ? crossing - from : to - crossing;
    from = to;
  }
  const double share = closed_s / length_s;
  if (share <= kRounding) return 0.0;
  return share >= 1.0 - kRounding ? 1.0 : share;
}

}  // namespace portwave
