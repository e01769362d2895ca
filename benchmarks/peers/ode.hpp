#pragma once

// The systems of the work–precision benchmark as ordinary differential equations x' = f(t, x), for
// solvers that take them whole. Hand-written right-hand sides and Jacobians.

#include <cstddef>
#include <memory>
#include <vector>

#include "chain.hpp"

namespace portwave::bench {

/// Where the variables are. The state is counted in the physical order: first all positions, then
/// all velocities; of the circuit first all currents, then all voltages.
enum class Layout {
  apart,        ///< in that order, which vectorises best
  interleaved,  ///< (q₁, v₁, q₂, v₂, …), which makes the Jacobian a narrow band
};

class Ode {
 public:
  struct Place {
    int row, column;
  };

  virtual ~Ode() = default;
  std::size_t size() const { return start_.size(); }
  /// x(0), in the layout.
  const std::vector<double>& start() const { return start_; }
  /// Typical size of the state, for absolute tolerances.
  double scale() const { return scale_; }
  bool is_linear() const { return linear_; }
  /// Entries of ∂f/∂x that are not always zero, and the diagonal.
  const std::vector<Place>& places() const { return places_; }
  virtual void slope(double t, const double* x, double* x_dot) const = 0;
  /// ∂f/∂x, one value per place.
  virtual void jacobian(const double* x, double* values) const = 0;
  /// x in the physical order.
  std::vector<double> physical(const double* x) const {
    const std::size_t half = size() / 2;
    std::vector<double> state(size());
    for (std::size_t i = 0; i < size(); ++i) {
      state[i] = x[layout_ == Layout::apart ? i : 2 * (i % half) + i / half];
    }
    return state;
  }

 protected:
  Ode(Layout layout, bool linear) : layout_(layout), linear_(linear) {}
  /// `state` in the physical order.
  void start_at(const std::vector<double>& state);

  Layout layout_;
  bool linear_;
  double scale_ = 1.0;
  std::vector<double> start_;
  std::vector<Place> places_;
};

/// Duffing nodes k₁ q + k₃ q³ of a grid, joined by springs and dampers, all ends free.
struct GridParameters {
  std::size_t rows = 100, columns = 100;
  double mass_kg = 8, stiffness_N_per_m = 100, cubic_stiffness_N_per_m3 = 8000;
  double coupling_stiffness_N_per_m = 120, coupling_damping_Ns_per_m = 0.05;
};

/// The Duffing–linear pair of arXiv 2603.16424: a Duffing mass from 0.4 m, a spring and a damper to
/// a mass on a linear spring.
struct PairParameters {
  double duffing_mass_kg = 8, stiffness_N_per_m = 100, cubic_stiffness_N_per_m3 = 8000;
  double coupling_stiffness_N_per_m = 120, coupling_damping_Ns_per_m = 0.05;
  double linear_mass_kg = 4, linear_stiffness_N_per_m = 50;
  double initial_m = 0.4;
};

/// A transmission line of LC cells: L i' = u₋ − u − R i, C u' = i − i₊ − G u, driven by a voltage
/// V sin 2πft at one end and loaded by a resistor at the other.
struct LineParameters {
  std::size_t cells = 1024;
  double inductance_H = 1e-3, capacitance_F = 1e-3;
  double resistance_ohm = 0.01, conductance_S = 1e-3, load_S = 0.5;
  double drive_V = 10, drive_Hz = 60;

  /// At rest far from the source it would measure how fast a processor handles denormal numbers.
  double initial_V(std::size_t cell) const { return 2.0 * evenly(cell, 2) - 1.0; }
};

[[gnu::visibility("default")]] std::unique_ptr<Ode> chain_ode(const Chain& chain, Layout layout);
[[gnu::visibility("default")]] std::unique_ptr<Ode> grid_ode(const GridParameters& parameters,
                                                             Layout layout);
[[gnu::visibility("default")]] std::unique_ptr<Ode> pair_ode(const PairParameters& parameters,
                                                             Layout layout);
[[gnu::visibility("default")]] std::unique_ptr<Ode> line_ode(const LineParameters& parameters,
                                                             Layout layout);

}  // namespace portwave::bench
