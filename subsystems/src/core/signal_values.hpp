#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <span>
#include <vector>

#include "portwave/subsystems/core/signal.hpp"

/// The values of the kinds of signals, for signal.cpp and signal_in_step.cpp.
namespace portwave::signal_values {

/// The value of a table. At an instant that two knots share it is that of the second one.
inline double interpolate(const std::vector<Signal::Knot>& knots, double time_s) {
  const auto after = std::upper_bound(knots.begin(), knots.end(), time_s,
                                      [](double t, const Signal::Knot& k) { return t < k.time_s; });
  if (after == knots.begin()) return knots.front().value;
  if (after == knots.end()) return knots.back().value;
  const Signal::Knot& left = *(after - 1);
  const Signal::Knot& right = *after;
  return std::lerp(left.value, right.value, (time_s - left.time_s) / (right.time_s - left.time_s));
}

/// What rounding does to times that are counted in steps of `length_s`.
inline double rounding_of(double begin_s, double end_s, double length_s) {
  constexpr double kSame = 1e-9;
  return std::max(kSame * length_s, 4.0 * std::numeric_limits<double>::epsilon() *
                                        std::max(std::abs(begin_s), std::abs(end_s)));
}

/// The knots within a step, but for those that rounding alone puts there.
inline std::span<const Signal::Knot> knots_within(const std::vector<Signal::Knot>& knots,
                                                  double begin_s, double end_s) {
  const double margin_s = rounding_of(begin_s, end_s, end_s - begin_s);
  const auto first = std::ranges::upper_bound(knots, begin_s + margin_s, {}, &Signal::Knot::time_s);
  const auto last = std::ranges::lower_bound(knots, end_s - margin_s, {}, &Signal::Knot::time_s);
  if (!(first < last)) return {};
  return {first, last};
}

/// What remains of x beyond whole turns, so that large phases keep their accuracy as far as x has it.
inline double in_turns(double turns) {
  return 2.0 * std::numbers::pi * (turns - std::floor(turns));
}

inline double chirp_at(const Signal::Chirp& c, double time_s) {
  const double rising_s = std::clamp(time_s, 0.0, c.duration_s);
  const double slope = (c.to_Hz - c.from_Hz) / c.duration_s;
  double turns = (c.from_Hz + 0.5 * slope * rising_s) * rising_s;
  if (time_s < 0.0) turns = c.from_Hz * time_s;
  if (time_s > c.duration_s) turns += c.to_Hz * (time_s - c.duration_s);
  return c.offset + c.amplitude * std::sin(in_turns(turns) + c.phase_rad);
}

inline double chirp_slope(const Signal::Chirp& c, double time_s) {
  const double rising_s = std::clamp(time_s, 0.0, c.duration_s);
  const double slope = (c.to_Hz - c.from_Hz) / c.duration_s;
  double turns = (c.from_Hz + 0.5 * slope * rising_s) * rising_s;
  if (time_s < 0.0) turns = c.from_Hz * time_s;
  if (time_s > c.duration_s) turns += c.to_Hz * (time_s - c.duration_s);
  const double frequency_Hz = c.from_Hz + slope * rising_s;
  return c.amplitude * 2.0 * std::numbers::pi * frequency_Hz *
         std::cos(in_turns(turns) + c.phase_rad);
}

/// A mixing function of 64 bits with full avalanche (the finaliser of SplitMix64; Steele, Lea &
/// Flood, OOPSLA 2014).
inline std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

/// In (0, 1).
inline double uniform(std::uint64_t bits) {
  return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
}

/// The value of a seed at a point of its grid: a normal deviate of Box and Muller.
inline double normal_at(std::uint64_t seed, double index) {
  const auto key = static_cast<std::uint64_t>(static_cast<std::int64_t>(index));
  const std::uint64_t first = mixed(mixed(seed) ^ key);
  const double radius = std::sqrt(-2.0 * std::log(uniform(first)));
  return radius * std::cos(2.0 * std::numbers::pi * uniform(mixed(first)));
}

inline double noise_at(const Signal::Noise& n, double time_s) {
  constexpr double kMostPoints = 9e15;
  const double place = std::clamp(time_s / n.interval_s, -kMostPoints, kMostPoints);
  const double before = std::floor(place);
  const double value =
      std::lerp(normal_at(n.seed, before), normal_at(n.seed, before + 1.0), place - before);
  return n.mean + n.standard_deviation * value;
}

inline double noise_slope(const Signal::Noise& n, double time_s) {
  const double before = std::floor(time_s / n.interval_s);
  return n.standard_deviation * (normal_at(n.seed, before + 1.0) - normal_at(n.seed, before)) /
         n.interval_s;
}

}  // namespace portwave::signal_values
