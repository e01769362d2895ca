#pragma once

#include <functional>
#include <vector>

#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"

/// ∇̄H(x, x⁺), n numbers.
using StepGradient = std::function<void(const double* x, const double* x_next, double* g)>;

/// A nonlinear part whose discrete gradient is a function of its own.
/// Errors   ConfigError at construction, also where ∇̄Hᵀ(x⁺ − x) ≠ H(x⁺) − H(x), or ∇̄H(x, x) ≠ ∇H(x), for
///          states near the default one. The ledger of energy does not trust it either: it takes H.
/// Cost     2n calls for each derivative ∂∇̄H/∂x⁺, by central differences.
class OwnGradientPart final : public portwave::NonlinearPortHamiltonian {
 public:
  OwnGradientPart(portwave::Signature signature, portwave::Structure structure,
                  portwave::Hamiltonian hamiltonian, Options options, StepGradient own);

  void discrete_gradient(const double* x, const double* x_next, double* g) const override;
  void discrete_gradient_jacobian(const double* x, const double* x_next,
                                  std::vector<Eigen::Triplet<double>>& jacobian) const override;

 private:
  void check() const;
  void check_pair(const std::vector<double>& x, const std::vector<double>& x_next) const;

  StepGradient own_;
};
