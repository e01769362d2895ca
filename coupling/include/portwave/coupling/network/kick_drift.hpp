#pragma once

#include <memory>

#include "portwave/coupling/method/splitting.hpp"
#include "portwave/coupling/network/network_method.hpp"
#include "portwave/coupling/network/network_model.hpp"
#include "portwave/coupling/system/system.hpp"

namespace portwave {

class SeparableNetwork;

/// Kicks and drifts in turn, of order 4 or 6, for networks
///   q̇ = N∂H/∂p − R_q∂H/∂q + B_q s,   ṗ = −Nᵀ∂H/∂q − R_p∂H/∂p + B_p s,   H = V(q) + ½pᵀWp:
/// a kick is the flow of the forces −Nᵀ∂V/∂q + B_p s with q held, a drift the flow of all the rest, which is
/// linear, dampers included. No iteration; any step size for which hω < 3.
///
/// Energy   at the end of a step the state is moved along h(ẋ(x̃) − ẋ(xⁿ)) so that H + T = H₀ + T₀ + supply
///          − dissipation to rounding, T being the rounding that is left (StepLedger::tank_J). A step that is
///          too long for this is taken as two halves, which are halved in turn, ten times at most.
/// Errors   ConfigError with every reason why the network has no such form (SeparableNetwork). While stepping
///          NetworkFault: too_inaccurate after the last halving, inputs that throw or are not finite.
/// Threads  islands at once; results do not depend on it.
/// Source   Blanes & Moan, J. Comput. Appl. Math. 142 (2002).
class KickDriftMethod final : public NetworkMethod {
 public:
  /// The system must outlive it.
  KickDriftMethod(const System& system, double start_s, double step_s, const Splitting& options);
  /// For a network that others use, too.
  KickDriftMethod(std::shared_ptr<const SeparableNetwork> network, double start_s, double step_s,
                  const Splitting& options);
  ~KickDriftMethod() override;

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
  bool set_step(double step_s) override;
  /// h times the highest frequency and the fastest damping, at the initial state.
  struct Rates {
    double oscillation = 0.0, damping = 0.0;
    bool shares_dampers = false;
  };
  Rates rates() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whether kicks and drifts suit a network in steps of this size: they can step it, hω ≤ 2.5 for its fastest
/// oscillation at the initial state, and its damping is slow enough for the order: h‖𝒟‖ ≤ 1, or 0.3 where dampers
/// are shared.
struct KickDriftFit {
  bool suits = false;
  std::string reason;  ///< for people
};
KickDriftFit suits_kick_drift(const System& system, double start_s, double step_s, int order);

/// Errors: ConfigError, as KickDriftMethod. The system must outlive it.
std::unique_ptr<NetworkModel> make_kick_drift_model(const System& system, double start_s);

}  // namespace portwave
