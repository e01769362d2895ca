#pragma once

#include <complex>
#include <cstddef>
#include <vector>

#include <Eigen/Core>

#include "kernels/small_lu_kernels.hpp"
#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/matrices/decompositions.hpp"

namespace portwave {

/// LU with partial pivoting of a small matrix, real or complex, without the workspace that libraries for large ones
/// prepare.
class SmallLu {
 public:
  SmallLu(Eigen::Index n, bool is_complex);

  /// Of 1 − gain M. A singular matrix shows in solutions that are not finite.
  void factorise(std::complex<double> gain, const Eigen::MatrixXd& M);
  /// x = (1 − gain M)⁻¹b. Of a real matrix b and x are real.
  void solve(const double* b, const double* b_imaginary, double* x, double* x_imaginary);

 private:
  double* array(int number) { return room_.data() + number * size_; }
  small_lu::Real real();
  small_lu::Complex complex();

  int n_, stride_;
  bool is_complex_;
  std::ptrdiff_t size_;  ///< of a matrix
  AlignedVector
      room_;  ///< A, L and U, then the diagonal and a right side, each with its imaginary part
  std::vector<int> order_;
};

/// The parts of ∂F/∂δ of s stages at their common start, δᵢ = √bᵢ h ẋᵢ:
///   ∂F/∂δ = 1 − h Ã ⊗ E + h B N (VᵀK)(Ã ⊗ 1),   E = (J − R)K + D,
/// with K = ∇²H, D the derivative of (J − R)z by x at z = ∇H(x), B = G − P and V = G + P of the ports, and the
/// ports of stage i closed by u = −Nᵢ Vᵀz.
struct StageDerivative {
  Eigen::MatrixXd E;        ///< n×n
  Eigen::MatrixXd in;       ///< n×p: B = G − P of a stage
  Eigen::MatrixXd seen;     ///< p×n: (G + P)ᵀK
  Eigen::MatrixXd closing;  ///< s·p×p: Nᵢ, one below the other
};

/// Factors of that. Ã has one real eigenvalue, if s is odd, and pairs of complex ones: in its eigenvectors the
/// first two terms fall apart into systems of n equations, one of them complex, as in codes for Radau IIA. Ports, whose
/// impedances differ from stage to stage, are a correction of rank s·p.
/// Cost     (1 + 4)⅔n³ for factors, and 2(1 + 4)n² for a solution, of s = 3; s·p solutions more where there are ports.
/// Source   Hairer & Wanner, Solving Ordinary Differential Equations II (1996), IV.8.
class StageFactors {
 public:
  /// Of `coupling` = Ã with 2 or 3 rows; n states and p scalar ports.
  StageFactors(const Eigen::MatrixXd& coupling, Eigen::Index n, Eigen::Index p);

  const Eigen::MatrixXd& coupling() const { return coupling_; }
  StageDerivative& derivative() { return given_; }
  /// Of what derivative() has; false where it is not finite.
  bool factorise(double h);
  /// x = (∂F/∂δ)⁻¹F, s·n numbers each.
  void solve(const Eigen::VectorXd& F, Eigen::VectorXd& x);
  /// out = |∂F/∂δ| w, magnitudes of its terms, for w ≥ 0.
  void spread(const Eigen::VectorXd& w, Eigen::VectorXd& out);

 private:
  void solve_open(const double* F, double* x);
  void mix(const double* in, const Eigen::MatrixXd& T, double* out) const;
  void see(const double* x, double* out) const;

  Eigen::MatrixXd coupling_, to_, back_;  ///< Ã; into its eigenvectors, and back
  Eigen::MatrixXd coupling_sizes_;        ///< |Ã|ᵀ
  std::complex<double> pair_;
  double single_ = 0.0;  ///< the real eigenvalue of three stages
  Eigen::Index s_, n_, p_;
  double h_ = 0.0;
  StageDerivative given_;
  SmallLu real_, complex_;
  Eigen::MatrixXd port_columns_;  ///< (1 − h Ã ⊗ E)⁻¹ h B N
  Eigen::MatrixXd port_matrix_;
  DenseLu port_lu_;

  // Scratch.
  Eigen::MatrixXd parts_, mixed_;
  Eigen::VectorXd port_column_, seen_, port_solution_;
};

}  // namespace portwave
