#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/subsystem.hpp"
#include "portwave/subsystems/descriptor/descriptor.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"

namespace PORTWAVE_EXPORT portwave {

class CondensedForm;
struct ProportionalDamping;
struct SecondOrderForm;

/// Matrices of d/dt(Ex) = (J − R)Qx + Bu, y = BᵀQx: n×n, and B n×m, m inputs being first the scalar
/// ports in port order, then the external inputs.
struct DescriptorForm {
  SparseMatrix E;  ///< may be singular; EᵀQ symmetric and positive semidefinite
  SparseMatrix J;  ///< skew
  SparseMatrix R;  ///< symmetric, positive semidefinite
  SparseMatrix Q;  ///< regular, or E is
  SparseMatrix B;
};

/// Checks shapes, finiteness, J skew, R symmetric and ⪰ 0 (unless rules.allow_active), EᵀQ
/// symmetric and ⪰ 0, Q or E regular, rank[E R J] = n, the pencil sE − (J − R)Q regular and of index ≤
/// 2; every defect is reported, `where` being "/E", "/J", … Checks that need sound matrices are made only
/// for those.
Issues validate(const DescriptorForm& form, int states, int inputs,
                const StructureRules& rules = {});

/// Linear port-Hamiltonian descriptor part with H(x) = ½xᵀQᵀEx and index ≤ 2:
///   d/dt(Ex) = (J − R)Qx + Bu,   y = BᵀQx.
/// Step     implicit midpoint in (Exⁿ, x_mid): 2(Ex_mid − Exⁿ)/h = (J − R)Qx_mid + Bu and
///          Exⁿ⁺¹ = 2Ex_mid − Exⁿ; passive for every h > 0. The committed state is
///          x⁺ = x_mid + P(x_mid − xⁿ), P the orthogonal projector onto (ker E)^⊥: what E sees is that
///          of tₙ₊₁, of second order, and the algebraic components are those of the midpoint, second
///          order at tₙ + h/2. No step depends on the algebraic components of xⁿ.
///          S(a) = b⁰ + D a with D precomputed; costs as for LinearPortHamiltonian.
/// Errors   ConfigError at construction with every defect of the matrices; stepping cannot fail on
///          finite input.
/// Source   Mehrmann & Unger, Acta Numerica 32 (2023); index ≤ 2 by Mehl, Mehrmann & Wojtylak,
///          SIAM J. Matrix Anal. Appl. 39 (2018).
class DescriptorPortHamiltonian : public Subsystem {
 public:
  using Options = LinearPortHamiltonian::Options;

  /// `form` counts the scalar ports first, then the external inputs of `signature`.
  DescriptorPortHamiltonian(Signature signature, DescriptorForm form, Options options = {})
      : DescriptorPortHamiltonian(std::make_shared<const Signature>(std::move(signature)),
                                  std::move(form), std::move(options)) {}
  /// With a signature that other parts share; not null.
  DescriptorPortHamiltonian(std::shared_ptr<const Signature> signature, DescriptorForm form,
                            Options options = {});

  const DescriptorForm& form() const { return form_; }
  /// The matrices of make_second_order_part that it was made of; null for others.
  const std::shared_ptr<const SecondOrderForm>& second_order() const { return second_order_; }
  /// Its step by one Cholesky factorisation, where it takes that; null for others.
  const CondensedForm* factored() const { return factored_.get(); }
  /// The same, where its ports are many and coupled through that; null for others.
  const CondensedForm* condensed() const { return condensed_.get(); }
  const Options& options() const { return options_; }
  const DescriptorAnalysis& analysis() const { return algebraic_.analysis(); }
  /// Its algebraic equations.
  const AlgebraicPart& algebraic() const { return algebraic_; }
  /// 0 (E regular), 1 or 2.
  int index() const { return analysis().index; }
  bool uses_sparse_step_maps() const;

  /// The state with this Ex and the algebraic components that the inputs u (m entries) ask for.
  /// `u_rate` is u′, needed where inputs act on a hidden constraint; empty: zero.
  ConsistentState consistent_state(const std::vector<double>& x, const std::vector<double>& u,
                                   const std::vector<double>& u_rate = {}) const;
  /// x_mid of a step from x to x⁺: x + (I − P/2)(x⁺ − x).
  void midpoint(const double* x, const double* x_next, double* x_mid) const;
  /// An orthonormal basis V of ker E: P = I − VVᵀ.
  const SparseMatrix& kernel() const { return kernel_; }
  /// Whether an external input acts on a hidden constraint (index 2): prescribed motion.
  bool prescribes() const { return prescribes_; }

  std::vector<double> default_state() const override;
  /// Hidden constraints that no port and no input moves.
  Issues check_initial_state(const double* x) const override;
  double storage(const double* x) const override;
  void gradient(const double* x, double* g) const override;
  /// Q x_mid.
  void discrete_gradient(const double* x, const double* x_next, double* g) const override;
  void discrete_gradient_jacobian(const double* x, const double* x_next,
                                  std::vector<Eigen::Triplet<double>>& jacobian) const override;
  bool hessian(const double* x, std::vector<Eigen::Triplet<double>>& hessian) const override;
  const Structure& structure() const override { return structure_; }
  bool is_linear() const override { return true; }
  LinearForm linear_form() const override { return {.Q = &form_.Q, .E = &form_.E}; }
  bool is_active() const override { return options_.allow_active; }
  std::string batch_key() const override;
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> parts) const override;

 private:
  friend std::unique_ptr<DescriptorPortHamiltonian> make_second_order_part(
      Signature signature, SecondOrderForm form, Options options, bool may_condense,
      std::optional<ProportionalDamping> damping);
  /// Of matrices that were examined.
  DescriptorPortHamiltonian(std::shared_ptr<const Signature> signature,
                            std::shared_ptr<const SecondOrderForm> form, Options options,
                            std::shared_ptr<const CondensedForm> factored, bool condenses);

  std::shared_ptr<const SecondOrderForm> second_order_;
  std::shared_ptr<const CondensedForm> factored_;
  std::shared_ptr<const CondensedForm> condensed_;
  DescriptorForm form_;
  Options options_;
  Structure structure_;
  AlgebraicPart algebraic_;
  SparseMatrix undriven_;  ///< the hidden constraints h with hᵀB = 0
  SparseMatrix kernel_;    ///< V
  SparseMatrix half_;      ///< I − P/2; empty where E is regular: I/2
  SparseMatrix slope_;     ///< Q(I − P/2), likewise
  SparseMatrix storage_;   ///< EᵀQ; empty where second_order_ has M and K
  bool prescribes_ = false;
};

}  // namespace portwave
