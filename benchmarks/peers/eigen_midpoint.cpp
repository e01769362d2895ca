#include <stdexcept>

#include <Eigen/SparseCholesky>
#include <Eigen/SparseCore>
#include <Eigen/SparseLU>

#include "velocity_form.hpp"
#include "whole_state.hpp"

namespace portwave::bench {
namespace {

using Matrix = Eigen::SparseMatrix<double>;
using Vector = Eigen::VectorXd;
// Measured: the natural order is 1.8 times slower here, AMD as fast.
using Ordering = Eigen::COLAMDOrdering<int>;

class EigenSparseLu final : public MidpointPeer {
 public:
  EigenSparseLu(const Chain& chain, double h) {
    const std::vector<double> start = whole_state(chain);
    x_ = Vector::Map(start.data(), static_cast<Eigen::Index>(start.size()));
    middle_ = x_;
    std::vector<Eigen::Triplet<double>> triplets;
    for (const Entry& e : whole_state_matrix(chain, h)) {
      triplets.emplace_back(e.row, e.column, e.value);
    }
    Matrix matrix(x_.size(), x_.size());
    matrix.setFromTriplets(triplets.begin(), triplets.end());
    lu_.compute(matrix);
    if (lu_.info() != Eigen::Success) throw std::runtime_error("SparseLU failed");
  }
  void step() override {
    middle_ = lu_.solve(x_);
    x_ = 2.0 * middle_ - x_;
  }
  void read(std::span<double> q, std::span<double> v) const override {
    read_whole_state(x_.data(), q, v);
  }

 private:
  Eigen::SparseLU<Matrix, Ordering> lu_;
  Vector x_, middle_;
};

class EigenLdlt final : public MidpointPeer {
 public:
  EigenLdlt(const Chain& chain, double h)
      : form_(chain, h), w_(static_cast<Eigen::Index>(chain.masses())) {
    const Tridiagonal entries = velocity_matrix(chain, h);
    const auto n = static_cast<int>(chain.masses());
    std::vector<Eigen::Triplet<double>> triplets;
    for (int i = 0; i < n; ++i) {
      triplets.emplace_back(i, i, entries.diagonal[static_cast<std::size_t>(i)]);
      if (i == 0) continue;
      triplets.emplace_back(i, i - 1, entries.off_diagonal[static_cast<std::size_t>(i - 1)]);
    }
    Matrix matrix(n, n);
    matrix.setFromTriplets(triplets.begin(), triplets.end());
    ldlt_.compute(matrix);
    if (ldlt_.info() != Eigen::Success) throw std::runtime_error("SimplicialLDLT failed");
    inverse_diagonal_ = ldlt_.vectorD().cwiseInverse();
  }
  // The natural order has no fill here, so that L, D and Lᵀ can be applied in place.
  void step() override {
    form_.right_hand_side(w_.data());
    ldlt_.matrixL().solveInPlace(w_);
    w_.array() *= inverse_diagonal_.array();
    ldlt_.matrixU().solveInPlace(w_);
    form_.update(w_.data());
  }
  void read(std::span<double> q, std::span<double> v) const override { form_.read(q, v); }

 private:
  VelocityForm form_;
  Eigen::SimplicialLDLT<Matrix, Eigen::Lower, Eigen::NaturalOrdering<int>> ldlt_;
  Vector inverse_diagonal_, w_;
};

}  // namespace

std::unique_ptr<MidpointPeer> eigen_sparse_lu(const Chain& chain, double step_s) {
  return std::make_unique<EigenSparseLu>(chain, step_s);
}
std::unique_ptr<MidpointPeer> eigen_ldlt(const Chain& chain, double step_s) {
  return std::make_unique<EigenLdlt>(chain, step_s);
}

}  // namespace portwave::bench
