#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/subsystem.hpp"

namespace PORTWAVE_EXPORT portwave {

namespace detail {
struct StorageFunction;
}

/// How a discrete gradient is formed from H and ∇H.
enum class DiscreteGradient {
  gonzalez,    ///< midpoint gradient plus a correction along x⁺ − x; symmetric, second order
  mean_value,  ///< ∫₀¹ ∇H(x + s(x⁺ − x)) ds by Gauss–Legendre; second order
  itoh_abe,    ///< coordinate increments of H; first order unless H is separable
};

std::string_view to_string(DiscreteGradient kind);

/// Storage function given by callbacks. x is n doubles; callbacks must be pure and thread-safe.
/// Without a Hessian, Newton uses central differences of ∇H with steps scaled by
/// Options::typical_state.
struct Hamiltonian {
  std::function<double(const double* x)> value;                   ///< H(x) [J]
  std::function<void(const double* x, double* g)> gradient;       ///< ∇H(x), n doubles
  std::function<void(const double* x, double* hessian)> hessian;  ///< optional, n×n column-major
};

/// Nonlinear port-Hamiltonian part from H, ∇H and an optional Hessian, with constant or
/// state-dependent structure matrices (taken at the midpoint):
///   (x⁺ − x)/h = (J − R)∇̄H + (G − P)ū,   ȳ = (G + P)ᵀ∇̄H + (S + N)ū.
/// Step     discrete gradient, so H(x⁺) − H(x) ≤ h ūᵀȳ for every h; damped Newton on x⁺ to
///          round-off. The mean-value gradient keeps the identity to its quadrature error, which is
///          nil for polynomials of degree ≤ 2·quadrature_points, and for those that say their degree
///          (polynomial_degree). The other two take increments of H
///          over short steps by quadrature of ∇H, which has the same value to round-off and no
///          cancellation. Gonzalez' correction vanishes when it is no more than the rounding of that,
///          so that a part settles to rest under a load.
/// Cost     one dense LU of size n per Newton step; meant for n ≤ 100.
/// Errors   ConfigError at construction: wrong shapes, a defective structure, a gradient or Hessian
///          that does not match finite differences of H or ∇H at the probe states (the default state,
///          and others within half the typical state of it, nearer where H is not finite). While stepping:
///          StepFault::not_converged after `max_newton_steps`, or where no step reduces the
///          residual (seen for H that is not convex and h far beyond the part's time scale).
/// Source   Gonzalez, J. Nonlinear Sci. 6 (1996); McLachlan, Quispel & Robidoux, Phil. Trans. R.
///          Soc. A 357 (1999); Itoh & Abe, J. Comput. Phys. 76 (1988).
class NonlinearPortHamiltonian : public Subsystem {
 public:
  struct Options {
    DiscreteGradient discrete_gradient = DiscreteGradient::gonzalez;
    int quadrature_points = 8;  ///< mean_value: Gauss–Legendre points, 1 to 16
    /// Degree of H, if it is a polynomial: mean gradients are then integrated exactly, in place of
    /// `quadrature_points`. At most kMostPolynomialDegree; 0: not known to be one.
    int polynomial_degree = 0;
    int max_newton_steps = 50;      ///< per port solve, > 0
    bool allow_active = false;      ///< accept an indefinite [R P; Pᵀ S]
    bool check_derivatives = true;  ///< compare ∇H and the Hessian with finite differences
    std::vector<double> default_state = {};  ///< empty: zero. Also the first probe state.
    /// A usual size > 0 of each state, in its own unit, such as 1e-12 for a charge in C on a picofarad:
    /// scales difference steps and probe states. Empty: by `typical_sizes` at the default state, which finds
    /// where H ceases to be a power of a state; give sizes if H has no such place but the structure has, or
    /// if evaluating H far from the default state does harm.
    std::vector<double> typical_state = {};
    /// State-dependent structure; called with x_mid, writes matrices of the shapes and sparsity of
    /// the constant ones. Skewness and definiteness are checked at the probe states.
    std::function<void(const double* x_mid, Structure& out)> structure_at = {};
  };

  NonlinearPortHamiltonian(Signature signature, Structure structure, Hamiltonian hamiltonian,
                           Options options);

  /// With three stages the integrals then need 15 points.
  static constexpr int kMostPolynomialDegree = 10;

  const Options& options() const { return options_; }
  /// For mean gradients of a step with this many stages, whose integrands are of degree sd − 1.
  int quadrature_points(int stages) const;

  std::vector<double> default_state() const override;
  std::vector<double> typical_state() const override { return options_.typical_state; }
  double storage(const double* x) const override;
  /// |H| + Σ|∂H/∂xᵢ xᵢ| at the default state, or as far from it as H has a size: the terms of a callback are unknown.
  double storage_terms() const override { return storage_terms_J_; }
  void gradient(const double* x, double* g) const override;
  void discrete_gradient(const double* x, const double* x_next, double* g) const override;
  void discrete_gradient_jacobian(const double* x, const double* x_next,
                                  std::vector<Eigen::Triplet<double>>& jacobian) const override;
  void add_gradient_terms(const double* x, const double* x_next, const double* g,
                          double* terms) const override;
  bool hessian(const double* x, std::vector<Eigen::Triplet<double>>& hessian) const override;
  bool constant_structure() const override { return !options_.structure_at; }
  const Structure& structure() const override { return structure_; }
  void structure_at(const double* x_mid, Structure& out) const override;
  bool is_active() const override { return options_.allow_active; }
  /// A dense Newton batch with this part's `max_newton_steps`.
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> parts) const override;

 private:
  struct Checked;
  static Checked checked(Signature signature, Structure structure, Hamiltonian hamiltonian,
                         Options options);
  explicit NonlinearPortHamiltonian(Checked own);
  detail::StorageFunction storage_function() const;
  void find_gradient_terms(const std::vector<double>& x);

  Structure structure_;
  Hamiltonian hamiltonian_;
  Options options_;
  double storage_terms_J_ = 0.0;
  std::vector<double>
      gradient_terms_;  ///< Σⱼ|∂²H/∂xᵢ∂xⱼ xⱼ| at the typical state; empty: not known
  double least_reach_;  ///< of the states, in typical ones, for which these are right
};

}  // namespace portwave
