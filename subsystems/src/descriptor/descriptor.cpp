#include "portwave/subsystems/descriptor/descriptor.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/matrices/sparse_rank.hpp"

namespace portwave {
namespace {

using Vector = Eigen::VectorXd;
using Entries = std::vector<Eigen::Triplet<double>>;

/// Some s at which the rank of sE − A decides whether the pencil is regular: at every s but n at
/// most.
bool is_regular_pencil(const SparseMatrix& E, const SparseMatrix& A) {
  const auto largest = [](const SparseMatrix& M) {
    double size = 0.0;
    for (int j = 0; j < M.outerSize(); ++j) {
      for (SparseMatrix::InnerIterator it(M, j); it; ++it) {
        size = std::max(size, std::abs(it.value()));
      }
    }
    return size > 0.0 ? size : 1.0;
  };
  const double rate = largest(A) / largest(E);
  for (const double s : {1.0, 1.7320508, rate, 1.4142136 * rate}) {
    if (SparseRank(SparseMatrix(s * E - A)).is_regular()) return true;
  }
  return false;
}

void check_shapes(const SparseMatrix& E, const SparseMatrix& A) {
  if (E.rows() == E.cols() && A.rows() == E.rows() && A.cols() == E.rows()) return;
  throw ConfigError("", fmt::format("E and A must be square and of one size, got {}×{} and {}×{}",
                                    E.rows(), E.cols(), A.rows(), A.cols()));
}

/// Rows scaled to a largest entry of 1.
SparseMatrix unit_rows(const SparseMatrix& M, Vector& scale) {
  scale.setZero(M.rows());
  for (int j = 0; j < M.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(M, j); it; ++it) {
      scale[it.row()] = std::max(scale[it.row()], std::abs(it.value()));
    }
  }
  for (double& size : scale) size = size > 0.0 ? 1.0 / size : 1.0;
  return scale.asDiagonal() * M;
}

/// M w = r by a factorisation and one step of refinement.
Vector solve_refined(const SparseMatrix& M, const Vector& r) {
  ScaledFactors lu;
  if (!lu.factorise(M)) throw ConfigError("", "the algebraic equations are singular");
  Vector w(r.size()), step(r.size()), scratch(lu.scratch_size());
  lu.solve(r.data(), w.data(), scratch.data());
  const Vector rest = r - M * w;
  lu.solve(rest.data(), step.data(), scratch.data());
  return w + step;
}

}  // namespace

SparseMatrix descriptor_rate(const SparseMatrix& J, const SparseMatrix& R, const SparseMatrix& Q) {
  return clean_product(SparseMatrix(J - R), Q, 1e-15);
}

AlgebraicPart::AlgebraicPart(const SparseMatrix& E, const SparseMatrix& A) : A_(A) {
  check_shapes(E, A_);
  const SparseRank rank_E(E);
  Z_ = rank_E.left_kernel();
  V_ = rank_E.right_kernel();
  hidden_.resize(E.rows(), 0);
  response_.resize(E.rows(), 0);
  analysis_.algebraic = static_cast<int>(V_.cols());
  if (analysis_.algebraic == 0) return;

  const SparseMatrix Z_A = clean_product(SparseMatrix(Z_.transpose()), A_);
  coupling_ = clean_product(Z_A, V_);
  const SparseRank rank(coupling_);
  left_ = rank.left_kernel();
  analysis_.index = 1;
  if (left_.cols() == 0) return;

  hidden_ = Z_ * left_;
  analysis_.hidden = static_cast<int>(hidden_.cols());
  const SparseMatrix seen = clean_product(SparseMatrix(A_.transpose()), hidden_, 1e-12);
  response_ = solve_in_range(SparseMatrix(E.transpose()), seen);
  const SparseMatrix free = V_ * rank.right_kernel();
  const SparseMatrix determined =
      clean_product(clean_product(SparseMatrix(response_.transpose()), A_, 1e-12), free, 1e-11);
  analysis_.index = 2;
  if (SparseRank(determined).is_regular()) return;
  analysis_.regular = is_regular_pencil(E, A_);
  analysis_.index = 3;
}

AlgebraicPart::AlgebraicPart(int n) : Z_(n, 0), V_(n, 0), hidden_(n, 0), response_(n, 0) {}

std::vector<ViolatedConstraint> AlgebraicPart::violated(const SparseMatrix& h, const Vector& f,
                                                        const Vector& x) const {
  std::vector<ViolatedConstraint> found;
  if (h.cols() == 0) return found;
  const SparseMatrix h_transposed = h.transpose();
  const SparseMatrix seen = clean_product(h_transposed, A_, 1e-12);
  const SparseMatrix h_size = h_transposed.cwiseAbs();
  const Vector residual = seen * x + h_transposed * f;
  const Vector size = seen.cwiseAbs() * x.cwiseAbs() + h_size * f.cwiseAbs();
  // Terms that cancel, and inputs that are zero but for rounding, leave round-off.
  const Vector cancelled = h_size * Vector(A_.cwiseAbs() * x.cwiseAbs());
  const double input = f.size() > 0 ? f.cwiseAbs().maxCoeff() : 0.0;
  const SparseMatrix by_constraint = seen.transpose();
  for (Eigen::Index k = 0; k < h.cols(); ++k) {
    const double allowed = 1e-9 * size[k] + 1e-13 * (cancelled[k] + input);
    if (std::abs(residual[k]) <= allowed) continue;
    ViolatedConstraint constraint;
    std::vector<std::pair<double, int>> rows;
    for (SparseMatrix::InnerIterator it(h, k); it; ++it) {
      if (it.value() != 0.0) rows.emplace_back(-std::abs(it.value()), static_cast<int>(it.row()));
    }
    std::sort(rows.begin(), rows.end());
    for (const auto& row : rows) constraint.equations.push_back(row.second);
    for (SparseMatrix::InnerIterator it(by_constraint, k); it; ++it) {
      constraint.states.push_back(static_cast<int>(it.row()));
    }
    const double scale = rows.empty() ? 1.0 : -rows.front().first;
    constraint.residual = residual[k] / scale;
    constraint.size = size[k] / scale;
    found.push_back(std::move(constraint));
  }
  return found;
}

ConsistentState AlgebraicPart::consistent_state(const Vector& f, const Vector& f_rate,
                                                const Vector& x) const {
  if (!analysis_.regular) {
    throw ConfigError("", "the pencil sE - A is singular: no state is determined");
  }
  if (analysis_.index > 2) throw ConfigError("", "the index is above 2");
  ConsistentState result{x, violated(hidden_, f, x)};
  if (analysis_.algebraic == 0 || !result.consistent()) return result;
  const Vector rate = A_ * x + f;
  const Vector r = -(Z_.transpose() * rate);
  if (analysis_.hidden == 0) {
    result.x += V_ * solve_refined(coupling_, r);
    return result;
  }
  // ZᵀAV w = r leaves a part of w free, and Lᵀ of it says nothing new. The derivatives of the
  // constraints, added in the directions L, make it regular.
  const EvenScaling even(coupling_);
  const SparseMatrix g_A = clean_product(SparseMatrix(response_.transpose()), A_, 1e-12);
  Vector scale, unused;
  const SparseMatrix slopes = unit_rows(clean_product(g_A, V_) * even.columns.asDiagonal(), scale);
  Vector s = -(response_.transpose() * rate);
  if (f_rate.size() > 0) s -= hidden_.transpose() * f_rate;
  const SparseMatrix left_rows =
      SparseMatrix(left_.transpose()) * even.rows.cwiseInverse().asDiagonal();
  const SparseMatrix left = unit_rows(left_rows, unused).transpose();
  const SparseMatrix M = even.apply(coupling_) + SparseMatrix(left * slopes);
  const Vector b = even.rows.cwiseProduct(r) + left * scale.cwiseProduct(s);
  result.x += V_ * even.columns.cwiseProduct(solve_refined(M, b));
  return result;
}

DescriptorAnalysis analyse_descriptor(const SparseMatrix& E, const SparseMatrix& J,
                                      const SparseMatrix& R, const SparseMatrix& Q) {
  return AlgebraicPart(E, descriptor_rate(J, R, Q)).analysis();
}

ConsistentState consistent_state(const SparseMatrix& E, const SparseMatrix& A, const Vector& f,
                                 const Vector& f_rate, const Vector& x) {
  return AlgebraicPart(E, A).consistent_state(f, f_rate, x);
}

}  // namespace portwave
