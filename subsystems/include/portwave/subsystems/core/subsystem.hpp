#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <Eigen/SparseCore>

#include "portwave/subsystems/core/port.hpp"
#include "portwave/subsystems/core/step_batch.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {

/// Names, units and shapes of a part: all that a coupling, a recorder or a listing needs to know.
struct Signature {
  std::string type;                   ///< catalogue name, e.g. "duffing_oscillator"
  std::vector<StateVariable> states;  ///< n entries
  std::vector<Port> ports;
  std::vector<InputChannel> inputs;  ///< external input channels

  int state_size() const { return static_cast<int>(states.size()); }
  /// Scalar ports: the sum of the ports' dimensions.
  int wave_size() const;
  int input_size() const { return static_cast<int>(inputs.size()); }
};

/// The matrices of a linear part besides its structure: H = ½xᵀQᵀEx, co-energy variables z = Qx,
///   d/dt(Ex) = (J − R)Qx + (G − P)u.
struct LinearForm {
  const SparseMatrix* Q = nullptr;  ///< n×n; null: the part is not linear
  const SparseMatrix* E = nullptr;  ///< n×n, may be singular; null: the identity
};

/// True for names that paths ("part.port") and columns of results can hold: not empty, and without
/// dots, brackets, blanks, commas, quotes and control characters.
bool is_plain_name(std::string_view name);

/// Names of the states, the scalar ports ("port" or "port[component]") and the external inputs, in
/// the order of the structure matrices (see StructureRules::names).
std::vector<std::string> variable_names(const Signature& signature);

/// One port-Hamiltonian part, immutable once built: the physics, apart from any step size.
///
/// A part gives its storage, its structure matrices and a discrete gradient; that alone makes it
/// work everywhere (`make_batch` falls back to a dense Newton solver). A part with a faster way to
/// solve its own step overrides `batch_key` and `make_batch`. Vectors are n doubles in signature
/// order. Const functions may be called from several threads.
class Subsystem {
 public:
  explicit Subsystem(Signature signature)
      : Subsystem(std::make_shared<const Signature>(std::move(signature))) {}
  /// With a signature that other parts of the type share; not null.
  explicit Subsystem(std::shared_ptr<const Signature> signature)
      : signature_(std::move(signature)) {}
  virtual ~Subsystem() = default;
  Subsystem(const Subsystem&) = delete;
  Subsystem& operator=(const Subsystem&) = delete;

  const Signature& signature() const { return *signature_; }

  /// The state that a scenario starts from when it names none. Zero unless overridden.
  virtual std::vector<double> default_state() const;
  /// Sizes > 0 that the states usually have, in their own units, one per state: what difference steps
  /// and probe states are scaled by. Unless overridden: of linear parts the default state's, 1 where
  /// that is zero; of others what `typical_sizes` finds. May be costly; called at set-up.
  virtual std::vector<double> typical_state() const;
  /// What speaks against starting from x (n finite doubles) however the ports are joined, `where`
  /// being "/initial_state": constraints between the states that x violates. None unless overridden.
  virtual Issues check_initial_state(const double* x) const;

  /// H(x) [J].
  virtual double storage(const double* x) const = 0;
  /// The co-energy variables z: ∇H(x), or Qx with ∇H(x) = Eᵀz where linear_form() has an E.
  virtual void gradient(const double* x, double* g) const = 0;
  /// ∇̄H(x, x⁺), with ∇̄Hᵀ(x⁺ − x) = H(x⁺) − H(x) and ∇̄H(x, x) = ∇H(x). Where there is an E:
  /// ∇̄HᵀE(x⁺ − x) = H(x⁺) − H(x) and ∇̄H(x, x) = Qx.
  virtual void discrete_gradient(const double* x, const double* x_next, double* g) const = 0;
  /// ∂∇̄H/∂x⁺ as (row, column, value) triplets, appended; equal places add up.
  virtual void discrete_gradient_jacobian(const double* x, const double* x_next,
                                          std::vector<Eigen::Triplet<double>>& jacobian) const = 0;

  /// True when J, R, G, P, S, N do not depend on the state.
  virtual bool constant_structure() const { return true; }
  /// The structure matrices; those at the default state when they depend on the state.
  virtual const Structure& structure() const = 0;
  /// The structure matrices at the midpoint state (x + x⁺)/2, written to `out`.
  virtual void structure_at(const double* x_mid, Structure& out) const;

  /// True when H is quadratic and the structure constant: then S is affine and the step a midpoint.
  virtual bool is_linear() const { return false; }
  /// Its matrices, for those that are linear.
  virtual LinearForm linear_form() const { return {}; }
  /// True when the part may create energy by its owner's explicit wish (`allow_active`).
  virtual bool is_active() const { return false; }

  /// Parts of the same class with equal keys may share a batch. Empty: never shared.
  virtual std::string batch_key() const { return {}; }
  /// A batch of `parts`, all with this part's key; parts[0] is this part. The parts must outlive it.
  virtual std::unique_ptr<StepBatch> make_batch(std::span<const Subsystem* const> parts) const;

 private:
  std::shared_ptr<const Signature> signature_;
};

}  // namespace portwave
