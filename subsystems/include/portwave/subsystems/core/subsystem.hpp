#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <Eigen/SparseCore>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/component.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace PORTWAVE_EXPORT portwave {

/// The matrices of a linear part besides its structure: H = ½xᵀQᵀEx, co-energy variables z = Qx,
///   d/dt(Ex) = (J − R)Qx + (G − P)u.
struct LinearForm {
  const SparseMatrix* Q = nullptr;  ///< n×n; null: the part is not linear
  const SparseMatrix* E = nullptr;  ///< n×n, may be singular; null: the identity
};

/// A nonlinear resistance at a scalar port, φ(u), and its slope φ′(u).
struct PortLawValue {
  double value = 0.0;
  double slope = 0.0;
};

/// A point of the characteristic of a scalar port, and its slope dy/du there, infinite where it is vertical.
struct PortLawPoint {
  double u = 0.0;
  double y = 0.0;
  double slope = 0.0;
};

/// What external inputs make of a scalar port, whatever its waves are.
enum class PortBranch {
  by_law,   ///< nothing: its characteristic decides
  open,     ///< y = 0
  shorted,  ///< u = 0
};

/// A level of a state, and the name of its passage in either direction.
struct StateLevel {
  int state = 0;
  double level = 0.0;
  std::string rising, falling;
};

/// One port-Hamiltonian part, immutable once built: a component that shows its physics, apart from
/// any step size.
///
/// A part gives its storage, its structure matrices and a discrete gradient; that alone makes it
/// work everywhere (`make_batch` falls back to a dense Newton solver). A part with a faster way to
/// solve its own step overrides `batch_key` and `make_batch`. Vectors are n doubles in signature
/// order. Const functions may be called from several threads.
class Subsystem : public Component {
 public:
  using Component::Component;

  /// All capabilities; `linear` as is_linear says. Overridden by a part that keeps less.
  Capabilities capabilities() const override;
  const Subsystem* port_hamiltonian() const final { return this; }

  /// Unless overridden: for linear parts the default state's sizes, 1 where that is zero; for others the
  /// result of `typical_sizes`.
  std::vector<double> typical_state() const override;

  /// H(x) [J].
  virtual double storage(const double* x) const = 0;
  /// For a part that is not linear, the energies whose difference is H(x) at usual states [J]: H(x) is known
  /// to ε of them, even where H itself is far less, as mgl(1 − cos φ) is near φ = 0. The default 0: H and ∇̄H
  /// are formed so that nothing cancels.
  virtual double storage_terms() const { return 0.0; }
  /// The co-energy variables z: ∇H(x), or Qx with ∇H(x) = Eᵀz where linear_form() has an E.
  virtual void gradient(const double* x, double* g) const = 0;
  /// ∇̄H(x, x⁺), with ∇̄Hᵀ(x⁺ − x) = H(x⁺) − H(x) and ∇̄H(x, x) = ∇H(x). With an E:
  /// ∇̄HᵀE(x⁺ − x) = H(x⁺) − H(x) and ∇̄H(x, x) = Qx.
  virtual void discrete_gradient(const double* x, const double* x_next, double* g) const = 0;
  /// ∂∇̄H/∂x⁺ as (row, column, value) triplets, appended; equal places add up.
  virtual void discrete_gradient_jacobian(const double* x, const double* x_next,
                                          std::vector<Eigen::Triplet<double>>& jacobian) const = 0;

  /// Adds to `terms`, which holds |∇̄H| and the effect of roundings of x and x⁺ on it, the larger terms that
  /// cancel in the entries of `g` = ∇̄H(x, x⁺): each entry is known to ε of its terms, and a step that
  /// meets its equations up to that is found. Adds nothing unless overridden: right for entries with terms
  /// of their own alone.
  virtual void add_gradient_terms([[maybe_unused]] const double* x,
                                  [[maybe_unused]] const double* x_next,
                                  [[maybe_unused]] const double* g,
                                  [[maybe_unused]] double* terms) const {}

  /// ∂z/∂x at x, ∇²H if there is no E, as (row, column, value) triplets, appended; equal places
  /// add up. False if the part does not give it, so that differences of `gradient` replace it. Steps of more
  /// than one stage ask for it.
  virtual bool hessian([[maybe_unused]] const double* x,
                       [[maybe_unused]] std::vector<Eigen::Triplet<double>>& hessian) const {
    return false;
  }

  /// False where ∇²H jumps, as at the edge of a contact. Quadrature is not exact there, a discrete gradient may be:
  /// several stages then take the one of the whole step.
  virtual bool is_smooth() const { return true; }

  /// Levels of states where the equations change, as where a contact closes. Steps that choose their
  /// size end there, and each passage is an event.
  virtual std::vector<StateLevel> state_levels() const { return {}; }

  /// True when J, R, G, P, S, N do not depend on the state.
  virtual bool constant_structure() const { return true; }
  /// Whether they depend on this state, where they depend on any: steps differentiate by such states alone.
  virtual bool structure_depends_on([[maybe_unused]] int state) const { return true; }
  /// The structure matrices; those at the default state when they depend on the state.
  virtual const Structure& structure() const = 0;
  /// The structure matrices at the midpoint state (x + x⁺)/2, written to `out`.
  virtual void structure_at(const double* x_mid, Structure& out) const;
  /// The structure matrices of a step of one stage from x to x + Δx, written to `out`: those at its
  /// midpoint, unless overridden by a part whose dissipation ends where its rate Δx/h would exceed the
  /// available force, as a contact does not hold back a body that leaves it. Passive like the others at every
  /// Δx, and continuous in it; those at the midpoint as Δx tends to 0.
  virtual void structure_over(const double* x, const double* dx, double step_s,
                              Structure& out) const;
  /// Brings x⁺ back to the bounds of its states at the end of a step, as the contacts of a switch stop
  /// where they meet. Only for states that H and ∇H do not depend on, so that no energy is moved.
  virtual void stop_at_bounds([[maybe_unused]] double* x_next) const {}

  /// True when port_law is not zero: then the outputs at the ports are
  ///   y = (G + P)ᵀ∇̄H + (S + N)u + φ(u),
  /// with φ acting on each scalar port alone, and dissipation gains Σ φ(u)u ≥ 0. Between ports that
  /// have a law there must be no feedthrough: S + N is diagonal there.
  virtual bool has_port_laws() const { return false; }
  /// φ of a scalar port: continuous, not decreasing, φ(0) = 0, finite for every finite u.
  virtual PortLawValue port_law([[maybe_unused]] int scalar_port, [[maybe_unused]] double u) const {
    return {};
  }

  /// True when some characteristics (u, y) have vertical branches, so that no function φ gives them, as that of
  /// an ideal diode: a graph that does not fall, goes through (0, 0) and ends nowhere. Whoever solves for
  /// waves asks `port_law_point` then instead of `port_law`, which says nothing. Such a part has no states,
  /// and outputs of its laws alone.
  virtual bool has_vertical_laws() const { return false; }
  /// The one point of a port's characteristic with k u + βy = r, for k, β > 0. `external`: the external inputs;
  /// null: all 0. Asked only of parts with vertical laws.
  virtual PortLawPoint port_law_point([[maybe_unused]] int scalar_port, [[maybe_unused]] double k,
                                      [[maybe_unused]] double beta, [[maybe_unused]] double r,
                                      [[maybe_unused]] const double* external) const {
    return {};
  }
  /// Of a port with a vertical law: a switch is open or shorted as its external input says.
  virtual PortBranch port_branch([[maybe_unused]] int scalar_port,
                                 [[maybe_unused]] const double* external) const {
    return PortBranch::by_law;
  }

  /// True when H is quadratic and the structure constant: then S is affine and the step a midpoint.
  virtual bool is_linear() const { return false; }
  /// Its matrices, for linear parts.
  virtual LinearForm linear_form() const { return {}; }
  /// The general Newton solver (make_newton_batch), unless overridden.
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> parts) const override;
};

/// The physics of components that all show it.
std::vector<const Subsystem*> port_hamiltonian_parts(std::span<const Component* const> parts);

}  // namespace portwave
