#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "portwave/subsystems/core/subsystem.hpp"

namespace portwave {

/// States of a part at times, its first one first, `stride` doubles from row to row.
struct StateRows {
  std::span<const double> times_s;
  std::span<const double> values;
  std::size_t stride;
};

/// By state, the largest energy [J] at which it can have travelled from row to row, beginning with `start` at `start_s`:
/// that of its mean rates. 0 for states that store something, unlike the position of a mass, and where the part does not
/// tell.
std::vector<double> travel_J(const Subsystem& part, std::span<const double> start, double start_s,
                             const StateRows& rows);

}  // namespace portwave
