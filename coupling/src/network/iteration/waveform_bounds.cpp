// What is known of a Lions–Mercier iteration beforehand.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include <Eigen/Dense>

#include "network/linear_solver.hpp"
#include "portwave/coupling/network/dynamic_iteration.hpp"
#include "portwave/subsystems/matrices/decompositions.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"

namespace portwave {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr int kLargestDense = 400;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

SparseMatrix transposed(const SparseMatrix& m) { return m.transpose(); }

/// rank[a E, b R] = n of a block, rows and columns scaled to a common size.
bool has_full_rank(const CondensedBlock& block, double a, double b) {
  const int n = block.size;
  if (a > 0.0 && !block.is_descriptor) return true;
  SparseMatrix both(n, 2 * n);
  SparseEntries entries;
  VectorXd row = VectorXd::Zero(n);
  const auto gather = [&](const SparseMatrix& m, double factor, int shift) {
    double largest = 0.0;
    for (int j = 0; j < m.outerSize(); ++j) {
      for (SparseMatrix::InnerIterator it(m, j); it; ++it)
        largest = std::max(largest, std::abs(it.value()));
    }
    if (factor == 0.0 || largest == 0.0) return;
    for (int j = 0; j < m.outerSize(); ++j) {
      for (SparseMatrix::InnerIterator it(m, j); it; ++it) {
        if (it.value() == 0.0) continue;
        entries.emplace_back(static_cast<int>(it.row()), shift + j, it.value() / largest);
        row[it.row()] = std::max(row[it.row()], std::abs(it.value()) / largest);
      }
    }
  };
  gather(block.E, a, 0);
  gather(block.R, b, n);
  if (row.minCoeff() == 0.0) return false;
  for (auto& e : entries) e = {e.row(), e.col(), e.value() / row[e.row()]};
  both.setFromTriplets(entries.begin(), entries.end());
  SparseMatrix tall = transposed(both);
  tall.makeCompressed();
  if (n <= kLargestDense) {
    return pivoted_rank(MatrixXd(tall), 1e-12) == n;
  }
  return sparse_rank(tall, 1e-12) == n;
}

/// Of power iterations: without symmetries that an eigenvector could be orthogonal to.
VectorXd start_vector(Eigen::Index n) {
  VectorXd v(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    v[i] = 1.0 + 0.5 * std::sin(12.9898 * static_cast<double>(i + 1));
  }
  return v;
}

/// K as an operator on vectors of the whole, and its adjoint, in the metric: on v with |v|² = vᵀv,
/// or in the energy metric KQ on x with |x|² = xᵀQx.
class CouplingOperator {
 public:
  CouplingOperator(const CondensedSystem& system, double mu, double alpha, bool energy)
      : mu_(mu),
        energy_(energy),
        E_(system.E()),
        Q_(system.Q()),
        R_((1.0 - alpha) * system.R()),
        J_o_(system.J_coupling()) {
    if (!energy && mu > 0.0) Q_solver_.factorise(Q_);
  }
  /// |Kv| grows to ‖K‖ by power iteration on K*K from a fixed start.
  double norm() {
    const Eigen::Index n = Q_.rows();
    VectorXd v = start_vector(n);
    double value = 0.0;
    for (int k = 0; k < 500; ++k) {
      const double size = length(v);
      if (!(size > 0.0)) return value;
      v /= size;
      const VectorXd w = apply(v, 1.0);
      const double next = length(w);
      v = apply(w, -1.0);
      const bool still = std::abs(next - value) <= 1e-9 * next && k > 20;
      value = std::max(value, next);
      if (still) break;
    }
    return value;
  }

 private:
  double length(const VectorXd& v) const {
    return std::sqrt(std::max(energy_ ? v.dot(Q_ * v) : v.squaredNorm(), 0.0));
  }
  /// (S − sign J_o) v; S, its symmetric part, is (1−α)R + μEQ⁻¹.
  VectorXd apply(const VectorXd& v, double sign) {
    if (energy_) {
      const VectorXd z = Q_ * v;
      return mu_ * v + R_ * z - sign * (J_o_ * z);
    }
    VectorXd out = R_ * v - sign * (J_o_ * v);
    if (mu_ > 0.0) {
      VectorXd x(v.size()), scratch(v.size());
      Q_solver_.solve(v.data(), x.data(), scratch.data());
      out += mu_ * (E_ * x);
    }
    return out;
  }

  double mu_;
  bool energy_;
  SparseMatrix E_, Q_, R_, J_o_;
  LinearSolver Q_solver_;
};

/// Q^½ of a block.
MatrixXd root(const SparseMatrix& Q) {
  const SymmetricEigen eigen = symmetric_eigen(MatrixXd(Q));
  return eigen.vectors * eigen.values.cwiseMax(0.0).cwiseSqrt().asDiagonal() *
         eigen.vectors.transpose();
}

/// (1−α)R + μEQ⁻¹ of a block in the metric, dense.
MatrixXd symmetric_part(const CondensedBlock& block, double mu, double alpha, bool energy) {
  MatrixXd R = (1.0 - alpha) * MatrixXd(block.R);
  if (energy) {
    const MatrixXd V = root(block.Q);
    return V * R * V + mu * MatrixXd::Identity(block.size, block.size);
  }
  if (mu == 0.0) return R;
  // EQ⁻¹ = (Q⁻ᵀEᵀ)ᵀ, symmetric.
  const MatrixXd EQ =
      lu_solve(MatrixXd(block.Q).transpose(), MatrixXd(block.E).transpose()).transpose();
  return R + 0.5 * mu * (EQ + EQ.transpose());
}

double smallest_eigenvalue(const CondensedBlock& block, double mu, double alpha, bool energy) {
  if (block.size <= kLargestDense) {
    return symmetric_eigenvalues(symmetric_part(block, mu, alpha, energy))[0];
  }
  if (energy) return mu;  // a lower bound
  // Power iteration on the inverse, Q((1−α)RQ + μE)⁻¹.
  LinearSolver solver;
  if (!solver.factorise(SparseMatrix((1.0 - alpha) * block.R * block.Q + mu * block.E))) return 0.0;
  VectorXd v = start_vector(block.size), x(block.size), scratch(block.size);
  double largest = 0.0;
  for (int k = 0; k < 1000; ++k) {
    v.normalize();
    solver.solve(v.data(), x.data(), scratch.data());
    v = block.Q * x;
    largest = v.norm();
  }
  return largest > 0.0 ? 1.0 / largest : 0.0;
}

double norm_of_K(const CondensedSystem& system, double mu, double alpha, bool energy) {
  if (system.size() > kLargestDense) return CouplingOperator(system, mu, alpha, energy).norm();
  MatrixXd K = MatrixXd::Zero(system.size(), system.size());
  MatrixXd V = MatrixXd::Identity(system.size(), system.size());
  for (const CondensedBlock& block : system.blocks()) {
    K.block(block.first, block.first, block.size, block.size) =
        symmetric_part(block, mu, alpha, energy);
    if (energy) V.block(block.first, block.first, block.size, block.size) = root(block.Q);
  }
  const MatrixXd J_o(system.J_coupling());
  K -= energy ? MatrixXd(V * J_o * V) : J_o;
  return largest_singular_value(K);
}

}  // namespace

LionsMercierBounds lions_mercier_bounds(const CondensedSystem& system, double step_s, double lambda,
                                        double mu, double omega, double alpha,
                                        Integrator integrator, IterationMetric metric) {
  const bool energy = metric == IterationMetric::energy;
  LionsMercierBounds b;
  b.rank_mu = b.rank_alpha = true;
  b.rank_plain = alpha > 0.0 && alpha < 1.0;
  for (std::size_t i = 0; i < system.blocks().size(); ++i) {
    const CondensedBlock& block = system.blocks()[i];
    const bool by_mu = has_full_rank(block, mu, 1.0 - alpha);
    const bool by_alpha = has_full_rank(block, 1.0, alpha);
    b.rank_mu = b.rank_mu && by_mu;
    b.rank_alpha = b.rank_alpha && by_alpha;
    b.rank_plain = b.rank_plain && has_full_rank(block, 1.0, 1.0);
    if (!by_mu && !by_alpha && b.failing_block < 0) b.failing_block = static_cast<int>(i);
  }
  // Both conditions may fail in different blocks.
  if (!b.x_converges()) {
    b.failing_block = std::max(b.failing_block, 0);
    return b;
  }
  double smallest = kInfinite;
  for (const CondensedBlock& block : system.blocks()) {
    smallest = std::min(smallest, smallest_eigenvalue(block, mu, alpha, energy));
    b.estimated = b.estimated || block.size > kLargestDense;
  }
  b.estimated = b.estimated || system.size() > kLargestDense;
  b.norm_K = norm_of_K(system, mu, alpha, energy);
  b.norm_inverse = b.rank_mu && smallest > 0.0 ? 1.0 / smallest : kInfinite;
  b.optimal_lambda = b.norm_K > 0.0 ? 1.0 / b.norm_K : 1.0;
  const double used = lambda > 0.0 ? lambda : b.optimal_lambda;
  const double t = 1.0 + used * b.norm_K;
  if (std::isfinite(b.norm_inverse)) {
    b.rate = std::sqrt(std::max(0.0, 1.0 - 4.0 * used / (t * t * b.norm_inverse)));
    b.optimal_rate = std::sqrt(std::max(0.0, 1.0 - 1.0 / (b.norm_K * b.norm_inverse)));
  }
  const double decay = step_s * omega;
  const double allowed =
      integrator == Integrator::midpoint ? std::tanh(decay) : -std::expm1(-decay);
  // Chosen values sit on the boundary.
  b.monotone = step_s * mu <= allowed * (1.0 + 1e-12) && omega >= mu * (1.0 - 1e-12);
  return b;
}

}  // namespace portwave
