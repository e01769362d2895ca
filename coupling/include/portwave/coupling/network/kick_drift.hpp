#pragma once

#include <memory>
#include <span>

#include "portwave/coupling/method/splitting.hpp"
#include "portwave/coupling/network/explicit_method.hpp"
#include "portwave/coupling/network/network_model.hpp"
#include "portwave/coupling/system/system.hpp"

namespace portwave {

class SeparableNetwork;

/// Kicks and drifts in turn, of order 4 or 6, for networks
///   q̇ = N∂H/∂p − R_q∂H/∂q + B_q s,   ṗ = −Nᵀ∂H/∂q − R_p∂H/∂p + B_p s,   H = V(q) + ½pᵀWp:
/// a kick is the flow of the forces −Nᵀ∂V/∂q + B_p s with q held, a drift the flow of all the rest, which is
/// linear, dampers included. No iteration; any step size for which hω < 3.
///
/// Energy   the state is moved along h(ẋ(x̃) − ẋ(xⁿ)), see ExplicitMethod.
/// Errors   ConfigError with every reason why the network has no such form (SeparableNetwork), and those of
///          ExplicitMethod.
/// Source   Blanes & Moan, J. Comput. Appl. Math. 142 (2002).
class KickDriftMethod final : public ExplicitMethod {
 public:
  /// The system must outlive it.
  KickDriftMethod(const System& system, double start_s, double step_s, const Splitting& options);
  /// For a network that others use, too.
  KickDriftMethod(std::shared_ptr<const SeparableNetwork> network, double start_s, double step_s,
                  const Splitting& options);
  ~KickDriftMethod() override;

  std::string description() const override;
  /// h times the highest frequency and the fastest damping, at the initial state, h being the first step size.
  struct Rates {
    double oscillation = 0.0, damping = 0.0;
    bool shares_dampers = false;
  };
  Rates rates() const;

  // Steps that are tried. Their error is that of two steps of h/2, by their difference from one of h.
  int order() const override;
  double suited_step_s(double tolerance) const override;
  double error_of(double amplitude, double tolerance) const override;
  void state_within(Step step, int first, double share, std::span<double> state) override;
  void ports_within(Step step, double share, std::span<double> effort,
                    std::span<double> flow) override;
  bool mean_ports(std::span<double> effort, std::span<double> flow) override;

 private:
  void forget_states_within() override;
  double free_step_s(double tolerance) const;

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whether kicks and drifts suit a network: they can step it, hω ≤ 2.5 for its fastest oscillation at the initial
/// state, and its damping is slow enough for the order: h‖𝒟‖ ≤ 1, or 0.3 where dampers are shared. Where steps
/// choose their size they do so by the oscillation, and h is 1/ω.
struct KickDriftFit {
  bool suits = false;
  std::string reason;  ///< for people
};
KickDriftFit suits_kick_drift(const System& system, double start_s, double step_s, int order,
                              bool steps_choose = false);

/// Errors: ConfigError, as KickDriftMethod. The system must outlive it.
std::unique_ptr<NetworkModel> make_kick_drift_model(const System& system, double start_s);

}  // namespace portwave
