#pragma once

#include <string>
#include <vector>

namespace portwave {

class System;

/// The inner iteration. With K = 0 iterations it is the explicit wave interface â = P bⁿ.
enum class MethodKind {
  douglas_rachford,  ///< u ← u + λ((2I − P)⁻¹(2S(u) − u) − S(u)), shadow P S(u)
};

/// How the states between inner iterations are reconciled.
struct CouplingMethod {
  MethodKind kind = MethodKind::douglas_rachford;
  /// Budget K ≥ 0: evaluations of S before the commit.
  int iterations = 20;
  /// Relaxation λ ∈ (0, 2).
  double relaxation = 1.0;
  /// Stop an island when |P b̂ − u| ≤ tolerance · max(|u|, |b̂|) on it; 0: always use the budget.
  double tolerance = 0.0;
  /// Stop when ½|P b̂ − u|² ≤ this [J] on every island; 0: never for this reason. With a tolerance
  /// too, whichever is met first.
  double energy_tolerance_J = 0.0;
  /// Apply the tolerance to every part's waves too, so that a weak part does not hide behind a
  /// strong one.
  bool tolerance_per_part = false;
  /// One impedance γ > 0 per scalar port of the system, or a single one for all.
  std::vector<double> impedance = {1.0};
  /// b⁰, one outgoing wave [√J] per scalar port; empty: zero.
  std::vector<double> initial_waves = {};
};

/// How much evidence a run gathers about its own correctness.
enum class Certify {
  none,    ///< no ledger at all: a step is its states and waves only
  energy,  ///< energy ledger and per-part passivity, every step (nearly free)
  full,    ///< also sampled firm nonexpansiveness and the Theorem 1 residual, every step
};

}  // namespace portwave
