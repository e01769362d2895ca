#pragma once

#include "portwave/coupling/energy/committed_step.hpp"

namespace portwave {

/// The interface of a ledger to the passivity guard, island by island, once a step is tallied.
class GuardedAccounts {
 public:
  /// Whether the step takes more from the tank than it holds, beyond rounding, or has waves that no energy
  /// can pay for (`is_too_loud`).
  virtual bool overdraws(int island, const CommittedStep& step) const = 0;
  /// Whether the waves of the step are so large that rounding them may create 1e-10 of `energies`.
  virtual bool is_too_loud(int island, const CommittedStep& step) const = 0;
  /// Energy available: stored and in the tank at the start, supplied since, and emitted by the sources of the
  /// island [J].
  virtual double energies(int island) const = 0;
  /// Whether the account accepts a deficit that a met tolerance explains: if H stays within H₀ + T₀ + supply
  /// all the same, or if all such deficits together are at most 1 % of `energies`.
  virtual bool takes(int island, double deficit_J, const CommittedStep& step) const = 0;
  /// Called once a step is tallied, before `overdraws` is called for its islands. Fetches, for all islands
  /// together, the data that only other processes have.
  virtual void prepare(const CommittedStep& /*step*/) const {}
  /// |H| before the step, and the energy supplied or taken in it [J].
  virtual double stored(int island) const = 0;
  virtual double supplied(int island) const = 0;
  /// T before the step [J].
  virtual double tank(int island) const = 0;
  /// ½(|b|² − |a|²) of the step [J].
  virtual double mismatch(int island) const = 0;
  /// Called before the guard reads waves and records of the step. Fetches those that other processes have
  /// written.
  virtual void need_states() const {}

 protected:
  ~GuardedAccounts() = default;
};

}  // namespace portwave
