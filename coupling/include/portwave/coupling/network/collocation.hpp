#pragma once

#include <memory>
#include <span>
#include <vector>

#include "portwave/coupling/method/method.hpp"
#include "portwave/coupling/network/condensed.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// A Runge–Kutta method by its coefficients, A regular:
///   E Xᵢ = E xⁿ + h Σⱼ aᵢⱼ f(Xⱼ),   E xⁿ⁺¹ = E xⁿ + h Σⱼ bⱼ f(Xⱼ).
struct Tableau {
  int stages = 1;
  std::vector<double> A_inverse;  ///< A⁻¹, row by row
  std::vector<double> b;
  std::vector<double> c;
  bool stiffly_accurate = false;  ///< xⁿ⁺¹ is the last stage

  /// Σⱼ (A⁻¹)ᵢⱼ
};

/// The method of an integrator; `automatic` counts as midpoint.
Tableau tableau(Integrator integrator);

/// The whole condensed system by one Runge–Kutta method, monolithically: one sparse LU of all
/// stages. The reference for the limit of dynamic iteration.
/// Errors: ConfigError: step ≤ 0, a singular implicit step, a singular E with a method that is not
/// stiffly accurate, a tableau that lacks coefficients.
class CollocationReference {
 public:
  CollocationReference(const CondensedSystem& system, double step_s, Integrator integrator);
  CollocationReference(const CondensedSystem& system, double step_s, Tableau tableau);
  CollocationReference(const CondensedSystem&&, double, Integrator) = delete;
  CollocationReference(const CondensedSystem&&, double, Tableau) = delete;
  ~CollocationReference();

  void step();
  double time_s() const;
  std::span<const double> state() const;  ///< x of the whole
  /// Stage values of the last step, stage by stage, each n doubles.
  std::span<const double> stages() const;
  /// Starts over from this state, at time 0.
  void reset(std::span<const double> x);
  double storage() const;  ///< H [J]
  /// Energies of the last step [J]: h Σ bᵢ uᵢᵀBᵀzᵢ and h Σ bᵢ zᵢᵀRzᵢ.
  double supplied() const;
  double dissipated() const;
  /// Multiplications and additions of one step, as pairs, of the sparse solve.
  double operations() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace portwave
