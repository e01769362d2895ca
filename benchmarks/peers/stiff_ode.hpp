#pragma once

// Stiff systems as ordinary differential equations, for solvers that take them whole: a heat rod, and a network of
// resistors, coils and capacitors with widely spread time constants. Their state has one order.

#include <cmath>
#include <cstddef>
#include <memory>
#include <vector>

#include "ode.hpp"

namespace portwave::bench {

/// A rod of cells with insulated ends, heated at its left end by q (1 + sin 2πft):
///   C T₁' = q(t) − (T₁ − T₂)/R,  C Tᵢ' = (Tᵢ₋₁ − Tᵢ)/R − (Tᵢ − Tᵢ₊₁)/R,  with C and R of a cell
/// Its decays reach 4/(RC), the slowest is π² times the reciprocal of the product of all C and all R.
struct RodParameters {
  std::size_t cells = 10'000;
  double capacity_J_per_K = 1e-4, resistance_K_per_W = 1e-4;
  double heat_W = 2.0, heat_Hz = 10.0;

  /// A start that all modes share in.
  double initial_K(std::size_t cell) const { return 2.0 * evenly(cell, 2); }
};

/// Nodes of a grid, each with a capacitor and a leak to ground; resistors to the south, coils with their resistance to
/// the east, and a source V sin 2πft behind a resistor at the first node:
///   C u' = i_west − i_east + (u_north − u)/r_north − (u − u_south)/r − G u,  L i' = u − u_east − R i
struct MeshParameters {
  std::size_t rows = 71, columns = 71;
  double leak_S = 1e-3, source_ohm = 1.0;
  double drive_V = 10.0, drive_Hz = 200.0;
  double spread = 1e6;  ///< largest capacitance and inductance over the smallest

  std::size_t nodes() const { return rows * columns; }
  std::size_t coils() const { return rows * (columns - 1); }
  double between(double largest, std::size_t i, double prime) const {
    return largest * std::pow(spread, -evenly(i, prime));
  }
  double capacitance_F(std::size_t node) const { return between(1e-3, node, 2); }
  double inductance_H(std::size_t coil) const { return between(1e-3, coil, 3); }
  double coil_ohm(std::size_t coil) const { return 0.5 + evenly(coil, 5); }
  double south_ohm(std::size_t node) const { return 0.5 + evenly(node, 7); }
  double initial_V(std::size_t node) const { return 2.0 * evenly(node, 11) - 1.0; }
};

[[gnu::visibility("default")]] std::unique_ptr<Ode> rod_ode(const RodParameters& parameters);
[[gnu::visibility("default")]] std::unique_ptr<Ode> mesh_ode(const MeshParameters& parameters);

}  // namespace portwave::bench
