#include "portwave/subsystems/matrices/decompositions.hpp"

#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/QR>
#include <Eigen/SVD>
#include <Eigen/SparseLU>
#include <Eigen/SparseQR>

namespace portwave {

using Eigen::MatrixXd;
using Eigen::VectorXd;

SymmetricEigen symmetric_eigen(const MatrixXd& M) {
  const Eigen::SelfAdjointEigenSolver<MatrixXd> solver(M);
  return {solver.eigenvalues(), solver.eigenvectors()};
}

VectorXd symmetric_eigenvalues(const MatrixXd& M) {
  return Eigen::SelfAdjointEigenSolver<MatrixXd>(M, Eigen::EigenvaluesOnly).eigenvalues();
}

SingularValues singular_values(const MatrixXd& M) {
  const Eigen::BDCSVD<MatrixXd> svd(M, Eigen::ComputeFullU | Eigen::ComputeFullV);
  return {svd.matrixU(), svd.singularValues(), svd.matrixV()};
}

double largest_singular_value(const MatrixXd& M) {
  return Eigen::BDCSVD<MatrixXd>(M).singularValues()[0];
}

MatrixXd least_squares(const MatrixXd& M, const MatrixXd& B, double threshold) {
  Eigen::BDCSVD<MatrixXd> svd(M, Eigen::ComputeThinU | Eigen::ComputeThinV);
  svd.setThreshold(threshold);
  return svd.solve(B);
}

MatrixXd lu_solve(const MatrixXd& A, const MatrixXd& B) {
  if (B.size() == 0) return B;  // Eigen would refer to its first entry
  return Eigen::PartialPivLU<MatrixXd>(A).solve(B);
}

MatrixXd lu_inverse(const MatrixXd& A) { return Eigen::PartialPivLU<MatrixXd>(A).inverse(); }

std::optional<MatrixXd> pivoted_inverse(const MatrixXd& A) {
  const Eigen::FullPivLU<MatrixXd> lu(A);
  if (!lu.isInvertible()) return std::nullopt;
  return lu.inverse();
}

MatrixXd pivoted_solve(const MatrixXd& A, const MatrixXd& B) {
  if (B.size() == 0) return B;  // as in lu_solve
  return Eigen::FullPivLU<MatrixXd>(A).solve(B);
}

PivotedQr pivoted_qr(const MatrixXd& M) {
  const Eigen::ColPivHouseholderQR<MatrixXd> qr(M);
  return {qr.householderQ(), qr.matrixQR().diagonal()};
}

Eigen::Index pivoted_rank(const MatrixXd& M, double threshold) {
  Eigen::ColPivHouseholderQR<MatrixXd> qr(M);
  qr.setThreshold(threshold);
  return qr.rank();
}

MatrixXd orthonormal_columns(const MatrixXd& M) {
  const Eigen::HouseholderQR<MatrixXd> qr(M);
  return qr.householderQ() * MatrixXd::Identity(M.rows(), M.cols());
}

std::optional<Eigen::Index> sparse_rank(const SparseMatrix& M, double threshold) {
  Eigen::SparseQR<SparseMatrix, Eigen::COLAMDOrdering<int>> qr;
  qr.setPivotThreshold(threshold);
  qr.compute(M);
  if (qr.info() != Eigen::Success) return std::nullopt;
  return qr.rank();
}

struct DenseLu::Impl {
  Eigen::PartialPivLU<MatrixXd> lu;
};

DenseLu::DenseLu(Eigen::Index n)
    : impl_(std::make_unique<Impl>(Impl{Eigen::PartialPivLU<MatrixXd>(n)})) {}
DenseLu::~DenseLu() = default;
DenseLu::DenseLu(DenseLu&&) noexcept = default;
DenseLu& DenseLu::operator=(DenseLu&&) noexcept = default;

void DenseLu::compute(const MatrixXd& A) { impl_->lu.compute(A); }
void DenseLu::solve(const VectorXd& b, VectorXd& x) const { x.noalias() = impl_->lu.solve(b); }
void DenseLu::solve(const MatrixXd& B, MatrixXd& X) const { X.noalias() = impl_->lu.solve(B); }
MatrixXd DenseLu::inverse() const { return impl_->lu.inverse(); }
const MatrixXd& DenseLu::factors() const { return impl_->lu.matrixLU(); }
const int* DenseLu::order() const { return impl_->lu.permutationP().indices().data(); }

struct SparseLu::Impl {
  Eigen::SparseLU<SparseMatrix, Eigen::COLAMDOrdering<int>> lu;
};

SparseLu::SparseLu() : impl_(std::make_unique<Impl>()) {}
SparseLu::~SparseLu() = default;
SparseLu::SparseLu(SparseLu&&) noexcept = default;
SparseLu& SparseLu::operator=(SparseLu&&) noexcept = default;

void SparseLu::analyse(const SparseMatrix& A) { impl_->lu.analyzePattern(A); }

bool SparseLu::factorise(const SparseMatrix& A) {
  impl_->lu.factorize(A);
  return impl_->lu.info() == Eigen::Success;
}

std::string SparseLu::error() const { return impl_->lu.lastErrorMessage(); }
VectorXd SparseLu::solve(const VectorXd& b) const { return impl_->lu.solve(b); }
MatrixXd SparseLu::solve(const MatrixXd& B) const { return impl_->lu.solve(B); }

}  // namespace portwave
