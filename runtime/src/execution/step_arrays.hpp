#pragma once

#include "portwave/coupling/energy/energy_ledger.hpp"
#include "portwave/coupling/method/method.hpp"
#include "portwave/coupling/waves/anderson.hpp"
#include "portwave/coupling/waves/interface_solver.hpp"
#include "portwave/coupling/waves/residual.hpp"
#include "portwave/subsystems/base/aligned.hpp"

namespace portwave {

/// What a macro-step works on; every array is the whole system's. Tasks write disjoint places.
struct StepArrays {
  double* record = nullptr;        ///< frozen at xⁿ
  double* next = nullptr;          ///< record to be: xⁿ⁺¹
  const double* b = nullptr;       ///< bⁿ, outgoing waves of the last commit
  double* b_next = nullptr;        ///< bⁿ⁺¹
  double* u = nullptr;             ///< inner iterate
  double* b_trial = nullptr;       ///< b̂ ≈ S(u)
  double* a = nullptr;             ///< â: incident waves of the commit
  EnergyLedger* ledger = nullptr;  ///< null: no ledger
  EnergyColumns columns;           ///< of the ledger, for this step
  InterfaceResidual* residual = nullptr;
  Acceleration* acceleration = nullptr;  ///< null: none
  InterfaceSolver* interface = nullptr;  ///< null: no island takes the interface update
};

/// When an inner iteration ends by itself.
struct IterationRule {
  int budget = 0;  ///< K ≥ 0: evaluations of S at the most
  InnerUpdate update;
  double tolerance = 0.0;           ///< 0: none
  double energy_tolerance_J = 0.0;  ///< 0: none
  bool tolerance_per_part = false;
  bool accelerated = false;
  bool interface = false;  ///< some islands take the interface update from the start
  int rescue_after = 0;    ///< evaluations after which others take it, too; 0: never

  /// The gap is looked at after every iteration.
  bool checked() const {
    return tolerance > 0.0 || energy_tolerance_J > 0.0 || accelerated || interface;
  }
  /// Whether an island with this gap may stop, and whether for its energy alone.
  void judge(const InterfaceGap& gap, bool& converged, bool& by_energy) const {
    const bool residual_met = tolerance > 0.0 && gap.residual <= tolerance;
    by_energy = !residual_met && energy_tolerance_J > 0.0 && gap.energy_J <= energy_tolerance_J;
    converged = residual_met || by_energy;
  }
};

}  // namespace portwave
