#pragma once

#include <cstdint>
#include <memory>

#include "portwave/coupling/method/splitting.hpp"
#include "portwave/coupling/network/network_method.hpp"

namespace portwave {

/// Multiplications and additions of one step, counted as pairs.
struct OperationCounts {
  double dense = 0.0;   ///< with dense step maps, as the source counts: n² for a flow of n states
  double sparse = 0.0;  ///< in the solves as implemented
};

/// Operator splitting for coupled linear port-Hamiltonian systems. Each flow by implicit midpoint,
/// so that every step dissipates at every h; second order (FourthOrderSplitting: fourth). The external inputs belong to the
/// coupling (slow) flow, at t + h/4 and t + 3h/4.
///   strang    coupling h/2, all local flows h at once, coupling h/2. A scalar coupling has the exact
///             map [[1+s, 2j₂], [2j₁, 1+s]]/(1−s), s = j₁j₂, of its two states.
///   impulse   (coupling + slow parts) h/2, m times (fast parts) h/m, (coupling + slow parts) h/2.
/// Errors   ConfigError with every reason against it ("/method/…", "/subsystems/…"): overlapping or
///          non-scalar couplings where the scalar flow is asked for, E singular, unknown fast parts.
/// Source   Lorenz, Zwerschke, Günther & Schäfers, Operator splitting for coupled linear
///          port-Hamiltonian systems.
class SplittingMethod final : public NetworkMethod {
 public:
  /// The system must outlive it. `ledger`: form the ledger of every step.
  SplittingMethod(const CondensedSystem& system, double step_s, const Splitting& options,
                  bool ledger = true);
  SplittingMethod(const CondensedSystem&&, double, const Splitting&, bool = true) = delete;
  ~SplittingMethod() override;

  NetworkStep step(const ForEach& each) override;
  const StepClock& clock() const override;
  std::span<const double> state() const override;
  std::span<const double> previous_state() const override;
  double storage(int block) const override;
  double shared_cost_ns() const override;
  int tasks() const override;
  std::size_t bytes() const override;
  void archive(StateArchive& archive) override;
  std::string description() const override;
  OperationCounts operations() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The same flows composed to fourth order with positive weights, for "order": 4:
///   Ψ = e^{h/6 A₁} e^{h/2 A₂} e^{2h/3 Ã₁} e^{h/2 A₂} e^{h/6 A₁},   Ã₁ = A₁ + h²/48 [A₁,[A₂,A₁]],
/// A₁ being the couplings (with `impulse` also the slow parts) and A₂ the rest, each flow by Gauss's method of two
/// stages. Couplings may be of any kind. External inputs belong to A₂.
///
/// Energy   of a network without dampers it is kept at every h. Beside couplings that are damped on both sides a
///          step dissipates up to some h; on one side, it can gain O(h⁵). Of at most 256 states that is checked at
///          construction. The work of Ã₁ counts as dissipated.
/// Errors   ConfigError as SplittingMethod, "/time/step_s" where a step could create energy.
class FourthOrderSplitting final : public NetworkMethod {
 public:
  /// The system must outlive it. `ledger`: form the ledger of every step.
  FourthOrderSplitting(const CondensedSystem& system, double step_s, const Splitting& options,
                       bool ledger = true);
  FourthOrderSplitting(const CondensedSystem&&, double, const Splitting&, bool = true) = delete;
  ~FourthOrderSplitting() override;

  NetworkStep step(const ForEach& each) override;
  const StepClock& clock() const override;
  std::span<const double> state() const override;
  std::span<const double> previous_state() const override;
  double storage(int block) const override;
  double shared_cost_ns() const override;
  int tasks() const override;
  std::size_t bytes() const override;
  void archive(StateArchive& archive) override;
  std::string description() const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace portwave
