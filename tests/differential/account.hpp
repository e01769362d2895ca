#pragma once

#include <vector>

#include "differential/network.hpp"
#include "differential/reference.hpp"

namespace portwave::differential {

/// Energies of one part over one step [J], from states and port variables alone. Up to rounding
///   change = supplied + through_ports − dissipated.
struct PartEnergies {
  long double stored = 0.0L;  ///< H(xⁿ⁺¹) = H(x⁰) + Σ change
  long double change = 0.0L;  ///< H(xⁿ⁺¹) − H(xⁿ) = x̄ᵀEᵀQ(xⁿ⁺¹ − xⁿ), no difference of large terms
  long double supplied = 0.0L;
  long double through_ports = 0.0L;  ///< Σ h e f
  long double dissipated = 0.0L;
  /// What the relative rounding of one operation is multiplied by: sums of |products|, and what
  /// rounding the states to double moves, |∇H|·|x|.
  double terms = 0.0;
  /// The same of the forces in the step, h(|J| + |R|)|Q||x| + h|G||u|, times what xⁿ⁺¹ changes the
  /// balance by: far from the origin forces are small differences of large ones, and no solver in
  /// double precision knows them better.
  double of_forces = 0.0;
  double exchanged = 0.0;  ///< |supplied| + Σ h |e f|
  /// Σ h/4 (e²/γ + γf²), γ being the impedance of the port alone: the energy of the waves that an
  /// exchange needs at least, also where e f vanishes.
  double waves = 0.0;
};

/// The energies of a course: entry [n][i] is part i over the step that ends in row n + 1.
struct Account {
  std::vector<std::vector<PartEnergies>> steps;
  std::vector<long double> initial;         ///< H(x⁰) by part
  std::vector<double> initial_terms;        ///< |x|ᵀ|EᵀQ||x|
  std::vector<long double> end_dissipated;  ///< by step: in resistive ends
};

Account account_of(const Network& network, const Course& course);

/// ½xᵀEᵀQx with twice the precision of double.
long double stored_energy(const PartData& part, const LongVector& x);

}  // namespace portwave::differential
