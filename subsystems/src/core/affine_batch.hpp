#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <Eigen/Core>

#include "core/port_closure.hpp"
#include "core/subnormal_flush.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/core/step_batch.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {

/// What rounding may leave in the energy balance of one step of a linear part. Not for hot code.
namespace step_rounding {

/// Of a sum, per unit of its terms: what it is known to, with the coefficients rounded.
constexpr double kPerTerm = 8.0 * std::numeric_limits<double>::epsilon();

/// The terms of Mx, |M||x|.
template <class Matrix>
Eigen::VectorXd terms(const Matrix& M, const Eigen::VectorXd& x) {
  return M.cwiseAbs() * x.cwiseAbs();
}

/// The outgoing waves b = σa + Cx + (D − σ)a + C_u ū of a step: ½|b|² is known to |b| times the
/// rounding of b.
template <class Lane>
double of_waves(const Lane& lane, const Eigen::VectorXd& x, const Eigen::VectorXd& a,
                const Eigen::VectorXd& input) {
  const Eigen::VectorXd b = lane.C * x + lane.D * a + lane.C_u * input;
  const Eigen::VectorXd of_b =
      terms(lane.C, x) + terms(lane.D_minus_sigma, a) + terms(lane.C_u, input);
  double sum = 0.0;
  for (Eigen::Index i = 0; i < b.size(); ++i) {
    sum += kPerTerm * (std::abs(b[i]) + kPerTerm * of_b[i]) * of_b[i];
  }
  return sum;
}

}  // namespace step_rounding

/// Entries of a matrix that forms of vectors are summed over, in its order, zeros apart.
struct FormEntry {
  int row;
  int column;
  double value;
};
inline void append_form(const SparseMatrix& M, double factor, std::vector<FormEntry>& out) {
  for (int j = 0; j < M.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(M, j); it; ++it) {
      if (it.value() != 0.0) out.push_back({static_cast<int>(it.row()), j, factor * it.value()});
    }
  }
}

/// H = ½xᵀMx with a symmetric M.
class StorageForm {
 public:
  explicit StorageForm(const SparseMatrix& M) {
    append_form(M, 1.0, half_);
    std::erase_if(half_, [](const FormEntry& e) { return e.row > e.column; });
    for (FormEntry& e : half_) e.value *= e.row == e.column ? 0.5 : 1.0;
  }

  /// H⁺ − H = ½(x⁺ + x)ᵀM(x⁺ − x).
  double change(const double* x, const double* x_next) const {
    double change = 0.0;
    for (const FormEntry& e : half_) {
      const int i = e.row, j = e.column;
      const double both = (x_next[i] + x[i]) * (x_next[j] - x[j]);
      change += i == j ? e.value * both
                       : 0.5 * e.value * (both + (x_next[i] - x[i]) * (x_next[j] + x[j]));
    }
    return change;
  }

 private:
  std::vector<FormEntry> half_;  // upper triangle of ½M, off-diagonal entries doubled
};

/// The outgoing waves of a linear part, b = σa + C x + (D − σ)a + C_u ū. The reflection σ is kept
/// apart, so that what remains has no digits cancelled.
struct OutgoingWaves {
  using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  OutgoingWaves() = default;
  /// `rest` is b − σa as a map of (x, a, ū), p×(n+p+q).
  OutgoingWaves(const Eigen::MatrixXd& rest, Eigen::VectorXd reflection, Eigen::Index n)
      : C(rest.leftCols(n)),
        D_minus_sigma(rest.middleCols(n, rest.rows())),
        sigma(std::move(reflection)),
        C_u(rest.rightCols(rest.cols() - n - rest.rows())) {
    D = D_minus_sigma + RowMatrix(Eigen::MatrixXd(sigma.asDiagonal()));
  }

  RowMatrix C;  ///< p×n
  RowMatrix D;  ///< p×p
  RowMatrix D_minus_sigma;
  Eigen::VectorXd sigma;  ///< ±1
  RowMatrix C_u;          ///< p×q
};

/// From the port inputs u and outputs y as maps of (x, a, ū), row by row.
inline OutgoingWaves outgoing_waves(std::span<const PortClosure> closures, const Eigen::MatrixXd& u,
                                    const Eigen::MatrixXd& y, Eigen::Index n) {
  const auto p = static_cast<Eigen::Index>(closures.size());
  Eigen::MatrixXd rest(p, y.cols());
  Eigen::VectorXd sigma(p);
  Eigen::RowVectorXd row;
  for (Eigen::Index j = 0; j < p; ++j) {
    sigma[j] = outgoing_row(closures[static_cast<std::size_t>(j)], u.row(j), y.row(j), n + j, row);
    rest.row(j) = row;
  }
  return {rest, std::move(sigma), n};
}

/// Lanes whose outgoing waves are OutgoingWaves and whose states are advanced one by one. A lane's
/// `extra` begins with b⁰, the outgoing waves at a = 0.
class AffineBatch : public LanewiseBatch, public AffineMap {
 public:
  using LanewiseBatch::LanewiseBatch;

  const AffineMap* affine_map() const final { return this; }
  void affine_matrix(int lane, double* matrix) const final {
    const auto& D = outgoing(lane).D;
    std::copy(D.data(), D.data() + D.size(), matrix);
  }
  void affine_offset(int lane, const double* record, double* offset) const final {
    const double* b0 = extra_of(lane, record);
    std::copy(b0, b0 + wave_size(), offset);
  }

 protected:
  /// LanewiseBatch::advance_lane.
  virtual StepFault advance_state(int lane, const Lane& frozen, const double* a, double* x_next,
                                  double* b, StepEnergy& energy) const = 0;

  /// For `prepare`: the waves of the lanes, in their order.
  void set_outgoing(std::vector<OutgoingWaves> waves) { outgoing_ = std::move(waves); }
  const OutgoingWaves& outgoing(int lane) const {
    return outgoing_[static_cast<std::size_t>(lane)];
  }

  StepFault scatter_lane(int lane, const Lane& frozen, const double* a, double* b) const final {
    const OutgoingWaves& map = outgoing(lane);
    const int p = wave_size();
    for (int i = 0; i < p; ++i) {
      double sum = frozen.extra[i];
      for (int j = 0; j < p; ++j) sum += map.D_minus_sigma(i, j) * a[j];
      b[i] = map.sigma[i] * a[i] + sum;
    }
    return StepFault::none;
  }

 private:
  StepFault advance_lane(int lane, const Lane& frozen, const double* a, double* x_next, double* b,
                         StepEnergy& energy) const final {
    const SubnormalFlush flush(is_large());
    return advance_state(lane, frozen, a, x_next, b, energy);
  }
  void freeze_lane(int lane, const Lane& frozen) const final {
    const SubnormalFlush flush(is_large());
    const OutgoingWaves& map = outgoing(lane);
    for (int i = 0; i < wave_size(); ++i) {
      double sum = 0.0;
      for (int j = 0; j < state_size(); ++j) sum += map.C(i, j) * frozen.x[j];
      for (int j = 0; j < input_size(); ++j) sum += map.C_u(i, j) * frozen.input[j];
      frozen.extra[i] = sum;
    }
  }

  bool is_large() const { return state_size() >= kLargeStates; }

  static constexpr int kLargeStates = 64;
  std::vector<OutgoingWaves> outgoing_;
};

}  // namespace portwave
