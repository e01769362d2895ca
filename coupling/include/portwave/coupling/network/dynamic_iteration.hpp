#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "portwave/coupling/method/dynamic_iteration.hpp"
#include "portwave/coupling/method/method.hpp"
#include "portwave/coupling/network/collocation.hpp"
#include "portwave/coupling/network/network_method.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// The course of an iteration.
struct WaveformChange {
  double change =
      0.0;  ///< weighted norm of zᵏ⁺¹ − zᵏ; of the coupling waveforms for Jacobi and the like
  double size = 0.0;  ///< of zᵏ⁺¹
  bool finite = true;
};

/// The iteration on one window, for studies and for DynamicIterationMethod: waveforms of every
/// block at the stages of every step, solved block by block at once, and coupled stage by stage.
/// `stages` arrays are [step][stage][state of the whole]. Errors of the constructor: ConfigError
/// with every reason ("/method/…"): an active part, Q singular with the identity metric, the energy
/// metric with descriptor parts, parameters out of range, a rank condition that fails (which), a
/// singular block.
class WaveformIteration {
 public:
  WaveformIteration(const CondensedSystem& system, double step_s, const DynamicIteration& options);
  WaveformIteration(const CondensedSystem&&, double, const DynamicIteration&) = delete;
  ~WaveformIteration();
  WaveformIteration(WaveformIteration&&) noexcept;

  const DynamicParameters& parameters() const;
  int window_steps() const;
  int stages_per_step() const;
  std::size_t stages_size() const;  ///< window_steps · stages · n

  /// Starts a window at `time_s` from Ex = E·x; the start iterate is constant in time.
  /// Errors: NetworkFault (threw) when an input signal throws.
  void begin(double time_s, std::span<const double> x);
  /// Jacobi, Gauss–Seidel: replaces the start iterate by these stage values.
  void start_from(std::span<const double> stages);
  /// xᵏ ↦ zᵏ⁺¹. Errors: NetworkFault (not_finite).
  WaveformChange iterate(const ForEach& each);
  /// xᵏ of the present zᵏ at all stages. Jacobi, Gauss–Seidel: the last iterate.
  void solve(const ForEach& each, std::span<double> stages);
  /// zᵏ at all stages, in the energy metric Q⁻¹zᵏ. Lions–Mercier only.
  void z(std::span<double> stages) const;
  /// (I − λK)Qx, the z of a solution with these stage values; in the energy metric Q⁻¹ of it.
  void z_of_solution(std::span<const double> stages, std::span<double> z) const;
  /// √(Σₙ e^{−2ωtₙ} h Σᵢ bᵢ|wₙᵢ|²) of differences of what `z` gives: |w|² is wᵀw, in the energy
  /// metric wᵀQw; tₙ = n h. ω = 0 for Jacobi and the like.
  double weighted_norm(std::span<const double> stages) const;
  /// The same without weights, in the Euclidean norm: L² of the stage values.
  double plain_norm(std::span<const double> stages) const;

  /// Solves once more and writes x after every step, [step][state of the whole], and the energies
  /// of every step (sums over the blocks in order).
  struct StepEnergies {
    double stored_J, supplied_J, dissipated_J;
  };
  void finish(const ForEach& each, std::span<double> states, std::span<StepEnergies> energies);

  std::size_t bytes() const;
  /// Bodies of the parallel phase over blocks.
  int tasks() const;
  double iteration_cost_ns() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Bounds, ranks and the monotonicity condition, without solving anything.
/// `integrator` and `metric` not automatic; lambda ≤ 0: λ*.
LionsMercierBounds lions_mercier_bounds(const CondensedSystem& system, double step_s, double lambda,
                                        double mu, double omega, double alpha,
                                        Integrator integrator, IterationMetric metric);

/// Dynamic iteration window by window; steps are handed out one by one. A window is iterated when
/// its first step is asked for. Errors of the constructor: those of WaveformIteration, and
/// ConfigError ("/method/mu") where the norm of Lions–Mercier need not fall: hμ > tanh(hω) with
/// midpoint, hμ > 1 − e^{−hω} with Radau IIA. Errors of a step: StepFault::not_converged where
/// waveforms change by more than the divergence limit.
class DynamicIterationMethod final : public NetworkMethod {
 public:
  DynamicIterationMethod(const CondensedSystem& system, double step_s,
                         const DynamicIteration& options);
  DynamicIterationMethod(const CondensedSystem&&, double, const DynamicIteration&) = delete;
  ~DynamicIterationMethod() override;

  NetworkStep step(const ForEach& each) override;
  const StepClock& clock() const override;
  std::span<const double> state() const override;
  std::span<const double> previous_state() const override;
  double storage(int block) const override;
  double shared_cost_ns() const override;
  int tasks() const override;
  std::size_t bytes() const override;
  std::string remarks() const override;
  void archive(StateArchive& archive) override;
  std::string description() const override;

  const DynamicParameters& parameters() const;
  /// Weighted norms of zᵏ⁺¹ − zᵏ in the present window, one per iteration made.
  std::span<const double> history() const;
  /// The largest ratio of two successive norms over the run, the former being above round-off: at most 1
  /// where the norm is monotone.
  double largest_rise() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The method of a NetworkMethod kind. Errors: ConfigError.
std::unique_ptr<NetworkMethod> make_network_method(const CondensedSystem& system, double step_s,
                                                   const CouplingMethod& method,
                                                   bool ledger = true);
std::unique_ptr<NetworkMethod> make_network_method(const CondensedSystem&&, double,
                                                   const CouplingMethod&, bool = true) = delete;

}  // namespace portwave
