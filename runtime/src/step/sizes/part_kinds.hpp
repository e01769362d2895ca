#pragma once

#include <set>
#include <string>

#include "portwave/coupling/system/system.hpp"

namespace portwave {

/// Smallest scale of comparison for the error of a part, as a share of the largest energy of motion in its island:
/// motion that has only just begun need not be known to all its digits.
constexpr double kLeastShareOfMotion = 1e-6;
/// Likewise where every part is to meet the tolerance by itself: 1e-9 as an amplitude. What begins as a power of time
/// would be followed from the smallest number on; in a first step that is short enough it has less than that.
constexpr double kLeastShareOfPart = 1e-18;
/// Motion of less energy [J] is none: what begins as exp(−t²) would be followed from the smallest number on.
constexpr double kLeastMotion_J = 1e-60;
/// Share of an island's energy of motion by which two attempts may differ and still predict the size of its
/// motion. If a motion begins as a high power of time the coarse attempt sees almost nothing of it.
constexpr double kRoughlyEqual = 1.0;

/// The key of a kind of parts in an island, whose errors are measured alike: the type and the units of its states.
inline std::string kind_name(const Component& component) {
  std::set<std::string> units;
  for (const StateVariable& state : component.signature().states) units.insert(state.unit);
  std::string out = component.signature().type;
  for (const std::string& unit : units) out += '\n' + unit;
  return out;
}

}  // namespace portwave
