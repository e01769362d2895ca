#include "adapters/fmi/instance/fmu_clocks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"

namespace portwave::fmi {
namespace {

constexpr double kClose = 1e-6;  // of a step: sums of steps are rounded
constexpr double kTimeRounding = 4.0 * std::numeric_limits<double>::epsilon();

bool is_whole(double number) { return std::abs(number - std::nearbyint(number)) <= kClose; }

}  // namespace

ClockMask ClockTicks::at(double time_s, double step_s, std::string& refusal) const {
  ClockMask out = 0;
  for (const ClockUse& own : clocks_) {
    if (own.is_output) continue;
    const double steps = own.interval_s / step_s;
    if (!is_whole(steps) || steps < 0.5 || !is_whole(own.shift_s / step_s)) {
      refusal = fmt::format(
          "has the clock {}, which ticks every {} s{}: that is no whole number of steps of {} s. "
          "Choose a step that divides it, such as {} s",
          in_quotes(own.name), own.interval_s,
          own.shift_s > 0.0 ? fmt::format(", for the first time after {} s", own.shift_s) : "",
          step_s, own.interval_s / std::max(1.0, std::ceil(steps)));
      return 0;
    }
    const double since = time_s - start_s_ - own.shift_s;
    // Late times have fewer digits after the point.
    const double close_s =
        kClose * step_s + kTimeRounding * (std::abs(time_s) + std::abs(start_s_));
    const double next = own.interval_s * std::ceil((since - close_s) / own.interval_s);
    const double ahead = std::max(next, 0.0) - since;
    if (ahead <= close_s) {
      out |= own.bit;
    } else if (ahead < step_s - close_s) {
      refusal = fmt::format(
          "has the clock {}, which ticks at {} s, within the step from {} s over {} s: choose a "
          "step, and a start of the run, such that ticks are at beginnings of steps",
          in_quotes(own.name), time_s + ahead, time_s, step_s);
      return 0;
    }
  }
  return out;
}

}  // namespace portwave::fmi
