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
  double angle() const;  ///< h times the fastest rate, h being the first step size

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

/// Whether Taylor series suit a system, and to which order: all parts are linear, there are no algebraic equations, and
/// h times the fastest rate is 4 at most. The order is the lowest of 8, 12, 16 and 24 that leaves no more than 1e-9
/// of the fastest motion out. Inputs have no kink that is known, as far as steps do not end there, and none is a rate.
/// Where steps choose their size they do so by the fastest rate: no decay is faster than the oscillations, and the order
/// is that of the default.
struct TaylorFit {
  bool suits = false;
  int order = 0;
  std::string reason;  ///< for people
};
TaylorFit suits_taylor(const System& system, double start_s, double step_s,
                       bool steps_choose = false);

/// Errors: ConfigError, as TaylorMethod. The system must outlive it.
std::unique_ptr<NetworkModel> make_taylor_model(const System& system, double start_s);

}  // namespace portwave
