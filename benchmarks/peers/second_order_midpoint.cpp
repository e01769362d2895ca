#include "second_order_midpoint.hpp"

#include <stdexcept>

#include <Eigen/SparseCholesky>
#include <Eigen/SparseCore>

namespace portwave::bench {
namespace {

using Matrix = Eigen::SparseMatrix<double>;
using Vector = Eigen::VectorXd;

Matrix matrix_of(const ColumnsOf& given) {
  return Eigen::Map<const Matrix>(given.size, given.size,
                                  static_cast<Eigen::Index>(given.value.size()), given.begin.data(),
                                  given.row.data(), given.value.data());
}

class EigenSecondOrder final : public SecondOrderPeer {
 public:
  EigenSecondOrder(const ColumnsOf& M, const ColumnsOf& D, const ColumnsOf& K, double h)
      : M_(matrix_of(M)),
        K_(matrix_of(K)),
        lhs_(M_ + 0.5 * h * matrix_of(D) + 0.25 * h * h * K_),
        h_(h),
        q_(Vector::Zero(M.size)),
        v_(q_),
        w_(q_) {
    factorise();
  }
  void factorise() override {
    llt_.compute(lhs_);
    if (llt_.info() != Eigen::Success) throw std::runtime_error("SimplicialLLT failed");
  }
  void step(std::span<const double> force) override {
    w_.noalias() = M_ * v_;
    w_.noalias() -= (0.5 * h_) * (K_ * q_);
    w_ += (0.5 * h_) * Eigen::Map<const Vector>(force.data(), w_.size());
    w_ = llt_.permutationP() * w_;
    llt_.matrixL().solveInPlace(w_);
    llt_.matrixU().solveInPlace(w_);
    w_ = llt_.permutationPinv() * w_;
    q_ += h_ * w_;
    v_ = 2.0 * w_ - v_;
  }
  std::span<double> positions() override {
    return {q_.data(), static_cast<std::size_t>(q_.size())};
  }
  std::span<double> velocities() override {
    return {v_.data(), static_cast<std::size_t>(v_.size())};
  }
  double factor_entries() const override {
    return static_cast<double>(llt_.matrixL().nestedExpression().nonZeros());
  }

 private:
  Matrix M_, K_, lhs_;
  double h_;
  Vector q_, v_, w_;
  Eigen::SimplicialLLT<Matrix, Eigen::Lower, Eigen::AMDOrdering<int>> llt_;
};

}  // namespace

std::unique_ptr<SecondOrderPeer> eigen_second_order(const ColumnsOf& M, const ColumnsOf& D,
                                                    const ColumnsOf& K, double step_s) {
  return std::make_unique<EigenSecondOrder>(M, D, K, step_s);
}

}  // namespace portwave::bench
