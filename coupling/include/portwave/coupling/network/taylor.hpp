#pragma once

#include <memory>
#include <span>
#include <string>

#include "portwave/coupling/method/splitting.hpp"
#include "portwave/coupling/network/explicit_method.hpp"
#include "portwave/coupling/network/network_model.hpp"
#include "portwave/coupling/system/system.hpp"

namespace portwave {

class LinearNetwork;

/// Taylor series of linear networks without algebraic equations, ẋ = (J − R)(Qx + c) + B s, island by island, to
/// an even order M: M + 1 products with the matrix of the network in a step and nothing to solve. Inputs are
/// polynomials through M/2 + 2 Gauss points. Any dampers, gyrators and cycles; inputs may act through dampers.
///
/// Energy   the dissipation is the series' own, known by its residual, and the balance is met by a move along
///          the first term left out, see ExplicitMethod.
/// Errors   ConfigError with every reason why the network has no such form (LinearNetwork), and those of
///          ExplicitMethod.
class TaylorMethod final : public ExplicitMethod {
 public:
  /// The system must outlive it.
  TaylorMethod(const System& system, double start_s, double step_s, const Splitting& options);
  /// For a network that others use, too.
  TaylorMethod(std::shared_ptr<const LinearNetwork> network, double start_s, double step_s,
               const Splitting& options);
  ~TaylorMethod() override;

  std::string description() const override;
  /// The last step consisted of steps of h/2^depth, at least in part.
  int depth_of_last_step() const;

  // Steps that are tried. Their error is the first term that is neither in the sum nor moved along, w_{M+2}, what the
  // move has too much or too little of w_{M+1}, and what the polynomials of inputs leave out.
  int order() const override;
  double suited_step_s(double tolerance) const override;
  void state_within(Step step, int first, double share, std::span<double> state) override;
  void ports_within(Step step, double share, std::span<double> effort,
                    std::span<double> flow) override;

 private:
  void forget_states_within() override;

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Errors: ConfigError, as TaylorMethod. The system must outlive it.
std::unique_ptr<NetworkModel> make_taylor_model(const System& system, double start_s);

}  // namespace portwave
