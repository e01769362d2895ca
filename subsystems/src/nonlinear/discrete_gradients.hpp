#pragma once

#include <cstddef>
#include <vector>

#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"

namespace portwave::detail {

/// H, ∇H and ∇²H of a part with n states. Without a Hessian callback ∇²H comes from central
/// differences of ∇H, with steps scaled by the typical state.
struct StorageFunction {
  const Hamiltonian& callbacks;
  const std::vector<double>& typical_state;  ///< n entries > 0
  int n;
  /// Σⱼ|∂²H/∂xᵢ∂xⱼ xⱼ| at the typical state: what ∂H/∂xᵢ may have added up. Null: not known.
  const std::vector<double>* gradient_terms = nullptr;
  /// Of the states, in typical ones, for which these are right: 0 where the typical state is any.
  double least_reach = 1.0;

  double value(const double* x) const { return callbacks.value(x); }
  void gradient(const double* x, double* g) const { callbacks.gradient(x, g); }
  /// n×n, column-major.
  void hessian(const double* x, double* H) const;

  /// The step of a central difference in entry i at x.
  double step_at(int i, double x_i) const;
};

/// Nodes s in (0, 1) and weights of a Gauss–Legendre rule, Σ w = 1.
struct QuadratureRule {
  std::vector<double> nodes;
  std::vector<double> weights;
};

constexpr int kMaxQuadraturePoints = 16;

/// 1 ≤ points ≤ 16; computed once per process.
const QuadratureRule& gauss_legendre(int points);

/// ∇̄H(x, x⁺) written to g (n doubles), and ∂∇̄H/∂x⁺ written to `jacobian` (n×n, column-major).
void gonzalez(const StorageFunction& H, const double* x, const double* x_next, double* g);
void gonzalez_jacobian(const StorageFunction& H, const double* x, const double* x_next,
                       double* jacobian);
/// Adds to `terms`, which holds the magnitudes of the terms of ∇̄H, those that the correction in `g` = ∇̄H
/// brings to each entry from all others: nothing where there is none.
void add_gonzalez_terms(const StorageFunction& H, const double* x, const double* x_next,
                        const double* g, double* terms);
void mean_value(const StorageFunction& H, int points, const double* x, const double* x_next,
                double* g);
void mean_value_jacobian(const StorageFunction& H, int points, const double* x,
                         const double* x_next, double* jacobian);
void itoh_abe(const StorageFunction& H, const double* x, const double* x_next, double* g);
/// Lower triangular.
void itoh_abe_jacobian(const StorageFunction& H, const double* x, const double* x_next,
                       double* jacobian);

}  // namespace portwave::detail
