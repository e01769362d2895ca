#pragma once

#include <memory>

#include "portwave/coupling/method/splitting.hpp"
#include "portwave/coupling/network/explicit_method.hpp"
#include "portwave/coupling/network/network_model.hpp"
#include "portwave/coupling/system/system.hpp"

namespace portwave {

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
  ~KickDriftMethod() override;

  std::string description() const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Errors: ConfigError, as KickDriftMethod. The system must outlive it.
std::unique_ptr<NetworkModel> make_kick_drift_model(const System& system, double start_s);

}  // namespace portwave
