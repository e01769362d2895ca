#pragma once

#include <string>
#include <vector>

#include <Eigen/Core>
#include <Eigen/SparseCore>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

using SparseMatrix = Eigen::SparseMatrix<double, Eigen::ColMajor>;

/// Structure matrices of the generalised port-Hamiltonian form
///   ẋ = (J − R)∇H + (G − P)u,   y = (G + P)ᵀ∇H + (S + N)u,
/// n states, m inputs: first the scalar ports in port order, then the external inputs.
/// Supplied power is uᵀy; dissipated power [∇H; u]ᵀ [R P; Pᵀ S] [∇H; u] ≥ 0.
struct Structure {
  SparseMatrix J;  ///< n×n, skew
  SparseMatrix R;  ///< n×n, symmetric
  SparseMatrix G;  ///< n×m
  SparseMatrix P;  ///< n×m
  SparseMatrix S;  ///< m×m, symmetric
  SparseMatrix N;  ///< m×m, skew

  /// All zero, of the right shapes.
  static Structure zero(int states, int inputs);
  int states() const { return static_cast<int>(J.rows()); }
  int inputs() const { return static_cast<int>(G.cols()); }
};

/// The rules of `validate`.
struct StructureRules {
  bool allow_active = false;  ///< let [R P; Pᵀ S] be indefinite: the part may create energy
  /// Names of the n states and m inputs, for messages; empty: "state 0", "input 0", …
  std::vector<std::string> names = {};
  double tolerance = 1e-12;  ///< of definiteness, beside the diagonal
};

/// Checks shapes, finiteness, J and N skew, R and S symmetric, [R P; Pᵀ S] ⪰ 0, each up to a
/// round-off of 1e-12: pairs of entries beside their own size and the round-off of their row and
/// column, definiteness beside the diagonal, so that units do not matter and no soft part hides
/// beside a stiff one. Every defect is reported, `where` being "/J", "/R", …
Issues validate(const Structure& structure, int states, int inputs,
                const StructureRules& rules = {});

/// Checks that a quadratic storage matrix is n×n, finite, symmetric and positive semidefinite.
/// `names` and `tolerance` as in StructureRules.
Issues validate_storage(const SparseMatrix& Q, int states,
                        const std::vector<std::string>& names = {}, double tolerance = 1e-12);

/// [R P; Pᵀ S], (n+m)×(n+m).
SparseMatrix dissipation_matrix(const Structure& structure);

/// True unless a symmetric matrix is negative somewhere beyond −tolerance after scaling to a unit
/// diagonal (so that the units of the variables do not matter). Works block by block (the connected
/// components of the sparsity pattern), so that large sparse matrices stay cheap. In blocks of up
/// to 400 rows soft variables are judged by their own size also where stiff ones that float are
/// tied to them.
bool is_positive_semidefinite(const SparseMatrix& M, double relative_tolerance = 1e-12);

}  // namespace portwave
