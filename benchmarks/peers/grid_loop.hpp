#pragma once

// A macro-step of the Duffing grid (`portwave generate grid`) written out by hand, K
// Douglas–Rachford iterations, row by row, so that outgoing waves never leave the nearest cache.

#include <cstddef>
#include <memory>

namespace portwave::bench {

struct GridSetting {
  std::size_t rows = 100, columns = 100;  ///< columns: a multiple of 4
  double step_s = 1e-3;
  double impedance_Ns_per_m = 0.088;
};

/// Positions and velocities that differ from node to node.
inline double grid_position(std::size_t node) {
  const double x = static_cast<double>(node + 1) * 1.4142135623730951;
  return 0.4 * (x - static_cast<double>(static_cast<long>(x))) - 0.2;
}
inline double grid_velocity(std::size_t node) {
  const double x = static_cast<double>(node + 1) * 1.7320508075688772;
  return 2.0 * (x - static_cast<double>(static_cast<long>(x))) - 1.0;
}

class GridLoop {
 public:
  virtual ~GridLoop() = default;
  virtual void step(int iterations) = 0;
  virtual double position(std::size_t node) const = 0;
  virtual double velocity(std::size_t node) const = 0;
};

using GridFactory = std::unique_ptr<GridLoop>(const GridSetting& setting);

/// Port solves from the last root, as the engine's. Four nodes side by side; one by one.
[[gnu::visibility("default")]] GridFactory vector_grid, scalar_grid;
/// The root as a polynomial around the frozen velocity, with a test whether that is exact enough.
[[gnu::visibility("default")]] GridFactory vector_series_grid;

}  // namespace portwave::bench
