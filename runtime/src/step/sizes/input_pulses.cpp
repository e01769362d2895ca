#include "step/sizes/input_pulses.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <numeric>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {
namespace {

/// Share of the largest value so far by which a pulse leaves those at the stages; and by more than they span.
constexpr double kPulse = 0.05;

/// Twice the distance at which half of it is left on both sides: found from the inside, as others may be near.
double width_of(const Expression& input, const Expression::Found& found, double base,
                double reach_s) {
  const double sign = found.value > base ? 1.0 : -1.0;
  const double half = 0.5 * sign * (found.value - base);
  const auto is_left = [&](double time_s) { return sign * (input(time_s, {}) - base) > half; };
  const auto is_within = [&](double distance_s) {
    return is_left(found.time - distance_s) || is_left(found.time + distance_s);
  };
  double distance_s = std::ldexp(reach_s, -60);
  while (distance_s < reach_s && is_within(distance_s)) distance_s *= 2.0;
  double within_s = 0.5 * distance_s;
  for (int k = 0; k < 4; ++k) {
    const double middle_s = std::midpoint(within_s, distance_s);
    (is_within(middle_s) ? within_s : distance_s) = middle_s;
  }
  return 2.0 * distance_s;
}

/// One whose peak is an end of the step, and which is over before the next stage.
std::optional<InputPulse> pulse_at_end(const Expression& input, const StageRule& stages,
                                       double begin_s, double step_s, double largest) {
  double low = input(begin_s + stages.c[0] * step_s, {}), high = low;
  for (int i = 1; i < stages.count; ++i) {
    const double u = input(begin_s + stages.c[at(i)] * step_s, {});
    low = std::min(low, u);
    high = std::max(high, u);
  }
  for (const double end_s : {begin_s, begin_s + step_s}) {
    const double u = input(end_s, {});
    const double beyond = std::max(u - high, low - u);
    const double size = std::max({largest, std::abs(u), std::abs(low), std::abs(high)});
    if (!(beyond > std::max(kPulse * size, high - low))) continue;
    const Expression::Found found{end_s, u};
    const double width_s = width_of(input, found, u > high ? high : low, step_s);
    if (!(width_s < stages.c[0] * step_s)) continue;
    // What changes over is known otherwise.
    if (!input.over(end_s - width_s, end_s + width_s).is_smooth) continue;
    return InputPulse{end_s, beyond, width_s};
  }
  return std::nullopt;
}

}  // namespace

std::optional<InputPulse> find_pulse(const Expression& input, const StageRule& stages,
                                     double begin_s, double step_s, double& largest) {
  double low = input(begin_s, {}), high = low;
  const auto see = [&](double time_s) {
    const double u = input(time_s, {});
    low = std::min(low, u);
    high = std::max(high, u);
  };
  for (int i = 0; i < stages.count; ++i) see(begin_s + stages.c[at(i)] * step_s);
  see(begin_s + step_s);
  if (!std::isfinite(high - low)) return std::nullopt;
  if (const auto pulse = pulse_at_end(input, stages, begin_s, step_s, largest)) return pulse;
  largest = std::max({largest, -low, high});
  const double span = high - low;
  const auto found = input.farthest_outside(begin_s, begin_s + step_s, low, high,
                                            std::max(kPulse * largest, span));
  if (!found) return std::nullopt;
  largest = std::max(largest, std::abs(found->value));
  const double beyond = std::max(found->value - high, low - found->value);
  if (!(beyond > std::max(kPulse * largest, span))) return std::nullopt;
  const double base = found->value > high ? high : low;
  return InputPulse{found->time, beyond, width_of(input, *found, base, step_s)};
}

InputPulses::InputPulses(const System& system, const StageRule& stages) : stages_(stages) {
  for (const Part& part : system.parts()) {
    for (std::size_t i = 0; i < part.inputs.size(); ++i) {
      const Expression* const own = part.inputs[i].expression();
      if (own != nullptr && part.input_is_driven[i]) inputs_.push_back({own});
    }
  }
}

bool InputPulses::is_too_long(const Input& input, double begin_s, double step_s) {
  constexpr double kFar = 8.0, kRounding = 1e-9;
  if (!(begin_s < input.pulse_s + kFar * input.width_s)) return false;
  const double longest = std::max(0.5 * std::abs(begin_s - input.pulse_s), 0.25 * input.width_s);
  return step_s > longest * (1.0 + kRounding);
}

bool InputPulses::within(double begin_s, double step_s) {
  bool out = false;
  for (Input& input : inputs_) {
    out = out || is_too_long(input, begin_s, step_s);
    try {
      const auto pulse = find_pulse(*input.of, stages_, begin_s, step_s, input.largest);
      if (!pulse) continue;
      input.pulse_s = pulse->time_s;
      input.width_s = pulse->width_s;
      out = true;
    } catch (const std::exception&) {  // the step itself tells it, if it meets that too
      continue;
    }
  }
  return out;
}

void InputPulses::archive(StateArchive& archive) {
  for (Input& input : inputs_) {
    archive.values(input.largest, input.pulse_s, input.width_s);
    archive.expect(input.largest >= 0.0 && input.width_s >= 0.0 && !std::isnan(input.pulse_s),
                   "the largest value of an input so far, and its last pulse");
  }
}

}  // namespace portwave
