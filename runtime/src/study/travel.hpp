#pragma once

#include <cstddef>
#include <span>

#include "portwave/subsystems/core/subsystem.hpp"

namespace portwave {

/// States of a part at times, its first one first, `stride` doubles from row to row.
struct StateRows {
  std::span<const double> times_s;
  std::span<const double> values;
  std::size_t stride;
};

/// The largest energy [J] at which states that store nothing, such as the position of a mass, can have travelled from
/// row to row, beginning with `start` at `start_s`: that of the mean rates. 0 where the part does not tell.
double travel_J(const Subsystem& part, std::span<const double> start, double start_s,
                const StateRows& rows);

}  // namespace portwave
