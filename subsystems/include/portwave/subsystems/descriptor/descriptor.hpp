#pragma once

#include <vector>

#include <Eigen/Core>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace PORTWAVE_EXPORT portwave {

/// The kind of the differential-algebraic system d/dt(Ex) = Ax + f.
struct DescriptorAnalysis {
  bool regular = true;  ///< det(sE − A) is not zero for every s
  /// Differentiation index: 0 (E regular), 1, 2; 3 stands for every higher one. Meaningless if the pencil is
  /// singular.
  int index = 0;
  int algebraic = 0;  ///< n − rank E: equations without derivatives
  int hidden = 0;     ///< those of them that constrain Ex; 0 up to index 1
};

/// A constraint on Ex that a state violates: hᵀ(Ax + f) ≠ 0, where hᵀE = 0 and hᵀA sees only Ex.
struct ViolatedConstraint {
  std::vector<int> equations;  ///< rows with h ≠ 0, the largest coefficient first
  std::vector<int> states;     ///< columns with hᵀA ≠ 0, ascending
  double residual = 0.0;       ///< hᵀ(Ax + f), the largest coefficient of h being 1
  double size = 0.0;           ///< Σ of the magnitudes of its terms
};

struct ConsistentState {
  Eigen::VectorXd x;  ///< with the Ex that was given; the given state where that violates something
  std::vector<ViolatedConstraint> violated;

  bool consistent() const { return violated.empty(); }
};

/// (J − R)Q without the entries that only rounding has made: they would count as coefficients.
SparseMatrix descriptor_rate(const SparseMatrix& J, const SparseMatrix& R, const SparseMatrix& Q);

/// The algebraic equations of d/dt(Ex) = Ax + f: with Z and V spanning the left and the right
/// kernel of E, they are Zᵀ(Ax + f) = 0 for the components V w of x that E does not see.
///   index 1   ZᵀAV is regular and determines w;
///   index 2   the left kernel L of ZᵀAV gives constraints hᵀ(Ax + f) = 0, h = ZL, which only Ex
///             enters: hᵀA = gᵀE. Their derivatives gᵀ(Ax + f) + hᵀf′ = 0 determine the rest of w.
/// Ranks are those of matrices with rows and columns scaled to a common size, to 1e-12.
/// Cost     one connected component of E, and of ZᵀAV, at a time: nothing for single entries, a
///          sparse LU for regular ones, a dense SVD for singular ones up to 400 equations and a
///          sparse QR beyond. Set-up only.
/// Errors   ConfigError: E and A not square of one size.
class AlgebraicPart {
 public:
  AlgebraicPart(const SparseMatrix& E, const SparseMatrix& A);
  /// Of n equations whose E is known to be regular: there are no algebraic ones.
  explicit AlgebraicPart(int n);

  const DescriptorAnalysis& analysis() const { return analysis_; }
  /// Z, V: n × algebraic.
  const SparseMatrix& equations() const { return Z_; }
  const SparseMatrix& kernel() const { return V_; }
  /// The h of the constraints on Ex, n × hidden.
  const SparseMatrix& hidden() const { return hidden_; }

  /// x with the algebraic components that f asks for. `f_rate` is f′, needed where inputs act on a
  /// constraint (hᵀf ≢ 0); empty: zero.
  /// Errors: ConfigError where no x is determined, the pencil being singular or of index > 2.
  ConsistentState consistent_state(const Eigen::VectorXd& f, const Eigen::VectorXd& f_rate,
                                   const Eigen::VectorXd& x) const;

  /// Those of the constraints hᵀ(Ax + f) = 0, one per column of h, that x violates beyond round-off
  /// (1e-9 of their terms).
  std::vector<ViolatedConstraint> violated(const SparseMatrix& h, const Eigen::VectorXd& f,
                                           const Eigen::VectorXd& x) const;

 private:
  SparseMatrix A_;
  SparseMatrix Z_, V_;
  SparseMatrix hidden_;    // h
  SparseMatrix response_;  // g, with hᵀA = gᵀE
  SparseMatrix coupling_;  // ZᵀAV
  SparseMatrix left_;      // L, the left kernel of it
  DescriptorAnalysis analysis_;
};

/// The algebraic equations of d/dt(Ex) = (J − R)Qx.
DescriptorAnalysis analyse_descriptor(const SparseMatrix& E, const SparseMatrix& J,
                                      const SparseMatrix& R, const SparseMatrix& Q);

/// See AlgebraicPart::consistent_state.
ConsistentState consistent_state(const SparseMatrix& E, const SparseMatrix& A,
                                 const Eigen::VectorXd& f, const Eigen::VectorXd& f_rate,
                                 const Eigen::VectorXd& x);

}  // namespace portwave
