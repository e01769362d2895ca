#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/subsystem.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Storage of a linear part's step maps.
enum class StepMapStorage {
  automatic,  ///< dense up to 64 states, sparse beyond
  dense,      ///< Φ, Ψ as dense matrices: one product per commit, n² doubles per part
  sparse,     ///< a sparse LU of the implicit step: one pair of triangular solves per commit
};

/// Linear generalised port-Hamiltonian part with H(x) = ½xᵀQx:
///   ẋ = (J − R)Qx + (G − P)u,   y = (G + P)ᵀQx + (S + N)u.
/// Step     implicit midpoint; passive for every h > 0. S(a) = b⁰ + D a with D precomputed: an
///          inner iteration costs p², a commit n² (dense) or the fill of the LU (sparse).
/// Errors   ConfigError at construction, listing every defective matrix; stepping cannot fail on
///          finite input.
/// Source   van der Schaft & Jeltsema, Port-Hamiltonian Systems Theory (2014); Mehrmann & Unger,
///          Acta Numerica 32 (2023) for the generalised form.
class LinearPortHamiltonian : public Subsystem {
 public:
  struct Options {
    bool allow_active = false;  ///< accept an indefinite [R P; Pᵀ S]
    StepMapStorage storage = StepMapStorage::automatic;
    std::vector<double> default_state = {};  ///< empty: zero
    double semidefinite_tolerance = 1e-12;   ///< see StructureRules::tolerance
  };

  /// `structure` counts the scalar ports first, then the external inputs of `signature`.
  LinearPortHamiltonian(Signature signature, Structure structure, const SparseMatrix& Q,
                        Options options)
      : LinearPortHamiltonian(std::make_shared<const Signature>(std::move(signature)),
                              std::move(structure), Q, std::move(options)) {}
  /// With a signature that other parts share; not null.
  LinearPortHamiltonian(std::shared_ptr<const Signature> signature, Structure structure,
                        const SparseMatrix& Q, Options options);
  LinearPortHamiltonian(Signature signature, Structure structure, const SparseMatrix& Q)
      : LinearPortHamiltonian(std::move(signature), std::move(structure), Q, {}) {}

  const SparseMatrix& Q() const { return Q_; }
  const Options& options() const { return options_; }
  bool uses_sparse_step_maps() const;

  std::vector<double> default_state() const override;
  double storage(const double* x) const override;
  void gradient(const double* x, double* g) const override;
  void discrete_gradient(const double* x, const double* x_next, double* g) const override;
  void discrete_gradient_jacobian(const double* x, const double* x_next,
                                  std::vector<Eigen::Triplet<double>>& jacobian) const override;
  bool hessian(const double* x, std::vector<Eigen::Triplet<double>>& hessian) const override;
  const Structure& structure() const override { return structure_; }
  bool is_linear() const override { return true; }
  LinearForm linear_form() const override { return {.Q = &Q_}; }
  bool is_active() const override { return options_.allow_active; }
  std::string batch_key() const override;
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> parts) const override;

 private:
  Structure structure_;
  SparseMatrix Q_;
  Options options_;
};

/// A resistor closing one port: e = r f with f into the resistor, r ≥ 0. No state.
std::unique_ptr<Subsystem> make_resistor(double resistance, const Port& port);

}  // namespace portwave
