#pragma once

#include <span>

#include "parallel/wave_sums.hpp"
#include "portwave/coupling/energy/energy_ledger.hpp"
#include "portwave/coupling/waves/next_iterate.hpp"
#include "portwave/coupling/waves/residual.hpp"
#include "portwave/subsystems/base/aligned.hpp"

namespace portwave {

/// The arrays of a macro-step, each for the whole system. Tasks write disjoint parts of them.
struct StepArrays {
  double* record = nullptr;        ///< frozen at xⁿ
  double* next = nullptr;          ///< the next record: xⁿ⁺¹
  const double* b = nullptr;       ///< bⁿ, outgoing waves of the last commit
  double* b_next = nullptr;        ///< bⁿ⁺¹
  double* u = nullptr;             ///< inner iterate
  double* b_trial = nullptr;       ///< b̂ ≈ S(u)
  double* a = nullptr;             ///< â: incident waves of the commit
  EnergyLedger* ledger = nullptr;  ///< null: no ledger
  EnergyColumns columns;           ///< of the ledger, for this step
  WaveSums* sums = nullptr;        ///< of a commit; null: nobody asks
  InterfaceResidual* residual = nullptr;
  NextIterate next_iterate;  ///< empty: the plain update
};

/// The state before or after a step: the record, and the waves of the commit that led to it. All are of the
/// whole system, or of the slice that this process has.
struct WaveState {
  std::span<double> record;
  std::span<double> a;  ///< incident
  std::span<double> b;  ///< outgoing
};

}  // namespace portwave
