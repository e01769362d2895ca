#pragma once

// Kicks and drifts of order 6 on the Duffing grid, written out by hand: positions, velocities and strokes
// with a ghost node around, dampers to degree 1. It keeps no account of energy and no balance.

#include <cstddef>
#include <memory>

namespace portwave::bench {

class KickLoop {
 public:
  virtual ~KickLoop() = default;
  virtual void step(double step_s) = 0;
  virtual double position(std::size_t node) const = 0;
  virtual double velocity(std::size_t node) const = 0;
};

/// size × size nodes, started as those of grid_position and grid_velocity.
[[gnu::visibility("default")]] std::unique_ptr<KickLoop> kick_loop(std::size_t size);

}  // namespace portwave::bench
