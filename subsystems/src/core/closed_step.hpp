#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include <Eigen/Core>

#include "core/port_closure.hpp"
#include "matrices/quadruple.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {

/// The implicit step of a linear part with its scalar ports closed, in δ = x_mid − x and the port
/// inputs u:
///   (2/h) E δ = (J − R) z + B [u; ū],  z = Q(x + δ),  y = C z + D [u; ū],  αu + βy = s a.
/// E = I unless given. With stages δ and u are those of all of them, and z = Q(w ⊗ x + δ).
struct ClosedStep {
  const SparseMatrix* E = nullptr;  ///< n×n; null: I
  SparseMatrix JR;                  ///< J − R
  SparseMatrix Q;
  SparseMatrix B;  ///< n×(p+q)
  SparseMatrix C;  ///< (p+q)×n
  SparseMatrix D;  ///< (p+q)×(p+q)
  const std::vector<PortClosure>& closures;
  double step_s;
  std::span<const double> weights = {};  ///< w, one per stage; none: x stands once

  Eigen::Index n() const { return Q.rows(); }
  /// Entries of x.
  Eigen::Index x() const {
    return weights.empty() ? n() : n() / static_cast<Eigen::Index>(weights.size());
  }
  Eigen::Index p() const { return static_cast<Eigen::Index>(closures.size()); }
  Eigen::Index q() const { return B.cols() - p(); }
};

/// Maps of (x, a, ū).
struct ClosedStepMaps {
  Eigen::MatrixXd delta;     ///< x_mid − x, n×(x+p+q)
  Eigen::MatrixXd outgoing;  ///< b − σa, p×(x+p+q)
  Eigen::VectorXd sigma;     ///< ±1
};

/// Residuals of the equations, and what solves them: `Wide` holds the solution while it is refined.
/// A map is as exact as a double can be where cond·(epsilon of the correction) < 1 and
/// cond·(epsilon of Wide) is below that of a double, however ill-conditioned the step is.
template <class Wide>
class ClosedStepSolution {
 public:
  explicit ClosedStepSolution(const ClosedStep& step)
      : step_(step),
        n_(step.n()),
        x_(step.x()),
        p_(step.p()),
        q_(step.q()),
        Q_(entries(step.Q)),
        JR_(entries(step.JR)),
        B_(entries(step.B)),
        C_(entries(step.C)),
        D_(entries(step.D)),
        two_over_h_(Wide(2) / Wide(step.step_s)),
        delta_(size(n_), Wide(0)),
        u_(size(p_), Wide(0)) {
    if (step.E != nullptr) E_ = entries(*step.E);
  }

  Eigen::Index columns() const { return x_ + p_ + q_; }

  /// Fills r1 (n × columns) and r2 (p × columns): what the equations of δ and of u lack.
  template <class Matrix>
  void residual(Matrix& r1, Matrix& r2) const {
    using Scalar = typename Matrix::Scalar;
    std::vector<Wide> z, y, rest;
    for (Eigen::Index c = 0; c < columns(); ++c) {
      evaluate(c, z, y);
      rest.assign(static_cast<std::size_t>(n_), Wide(0));
      const Wide* delta = delta_.data() + c * n_;
      if (step_.E == nullptr) {
        for (Eigen::Index i = 0; i < n_; ++i)
          rest[static_cast<std::size_t>(i)] = -two_over_h_ * delta[i];
      } else {
        for (const Entry& e : E_) rest[e.row] -= two_over_h_ * (Wide(e.value) * delta[e.column]);
      }
      for (const Entry& e : JR_) rest[e.row] += Wide(e.value) * z[e.column];
      for (const Entry& e : B_) rest[e.row] += Wide(e.value) * input(c, e.column);
      for (Eigen::Index i = 0; i < n_; ++i) {
        r1(i, c) = static_cast<Scalar>(rest[static_cast<std::size_t>(i)]);
      }
      for (Eigen::Index j = 0; j < p_; ++j) {
        const PortClosure& port = step_.closures[static_cast<std::size_t>(j)];
        const Wide source = c == x_ + j ? Wide(port.s) : Wide(0);
        r2(j, c) = static_cast<Scalar>(source - Wide(port.alpha) * u_[index(j, c, p_)] -
                                       Wide(port.beta) * y[static_cast<std::size_t>(j)]);
      }
    }
  }

  /// δ += d, u += v.
  template <class Matrix>
  void correct(const Matrix& d, const Matrix& v) {
    for (Eigen::Index c = 0; c < columns(); ++c) {
      for (Eigen::Index i = 0; i < n_; ++i) delta_[index(i, c, n_)] += Wide(d(i, c));
      for (Eigen::Index j = 0; j < p_; ++j) u_[index(j, c, p_)] += Wide(v(j, c));
    }
  }

  ClosedStepMaps maps() const {
    ClosedStepMaps out;
    out.delta.resize(n_, columns());
    out.outgoing.resize(p_, columns());
    out.sigma.resize(p_);
    std::vector<Wide> z, y;
    Eigen::MatrixXd of_flow(p_, columns()), of_effort(p_, columns());  // −(2γ/s) f and (2/s) e
    for (Eigen::Index c = 0; c < columns(); ++c) {
      evaluate(c, z, y);
      for (Eigen::Index i = 0; i < n_; ++i) {
        out.delta(i, c) = static_cast<double>(delta_[index(i, c, n_)]);
      }
      for (Eigen::Index j = 0; j < p_; ++j) {
        const PortClosure& port = step_.closures[static_cast<std::size_t>(j)];
        const Wide in = u_[index(j, c, p_)], back = y[static_cast<std::size_t>(j)];
        const Wide effort = port.effort_in ? in : back, flow = port.effort_in ? back : in;
        of_flow(j, c) = static_cast<double>(Wide(-2) * Wide(port.impedance) / Wide(port.s) * flow);
        of_effort(j, c) = static_cast<double>(Wide(2) / Wide(port.s) * effort);
      }
    }
    // b = a − (2γ/s) f or b = −a + (2/s) e, the one whose own reflection is the smaller: see
    // outgoing_row.
    for (Eigen::Index j = 0; j < p_; ++j) {
      const bool use_flow = std::abs(of_flow(j, x_ + j)) <= std::abs(of_effort(j, x_ + j));
      out.sigma[j] = use_flow ? 1.0 : -1.0;
      out.outgoing.row(j) = use_flow ? of_flow.row(j) : of_effort.row(j);
    }
    return out;
  }

 private:
  struct Entry {
    std::size_t row, column;
    double value;
  };
  static std::vector<Entry> entries(const SparseMatrix& M) {
    std::vector<Entry> list;
    for (int j = 0; j < M.outerSize(); ++j) {
      for (SparseMatrix::InnerIterator it(M, j); it; ++it) {
        if (it.value() != 0.0) {
          list.push_back(
              {static_cast<std::size_t>(it.row()), static_cast<std::size_t>(j), it.value()});
        }
      }
    }
    return list;
  }
  static std::size_t index(Eigen::Index i, Eigen::Index column, Eigen::Index rows) {
    return static_cast<std::size_t>(column * rows + i);
  }
  std::size_t size(Eigen::Index rows) const { return static_cast<std::size_t>(rows * columns()); }
  /// [u; ū] of a column.
  Wide input(Eigen::Index column, std::size_t k) const {
    const auto i = static_cast<Eigen::Index>(k);
    if (i < p_) return u_[index(i, column, p_)];
    return column == x_ + i ? Wide(1) : Wide(0);
  }
  /// w ⊗ x of a column.
  Wide start(Eigen::Index i, Eigen::Index column) const {
    if (step_.weights.empty()) return i == column ? Wide(1) : Wide(0);
    if (i % x_ != column) return Wide(0);
    return Wide(step_.weights[static_cast<std::size_t>(i / x_)]);
  }
  /// z and y of a column.
  void evaluate(Eigen::Index column, std::vector<Wide>& z, std::vector<Wide>& y) const {
    z.assign(static_cast<std::size_t>(n_), Wide(0));
    y.assign(static_cast<std::size_t>(p_ + q_), Wide(0));
    const Wide* delta = delta_.data() + column * n_;
    for (const Entry& e : Q_) {
      Wide mid = delta[e.column];
      mid += start(static_cast<Eigen::Index>(e.column), column);
      z[e.row] += Wide(e.value) * mid;
    }
    for (const Entry& e : C_) y[e.row] += Wide(e.value) * z[e.column];
    for (const Entry& e : D_) y[e.row] += Wide(e.value) * input(column, e.column);
  }

  const ClosedStep& step_;
  Eigen::Index n_, x_, p_, q_;
  std::vector<Entry> E_, Q_, JR_, B_, C_, D_;
  Wide two_over_h_;
  std::vector<Wide> delta_, u_;  // column by column
};

/// Solves by corrections `solve(r1, r2, d, v)`, at most `sweeps` of them: until they are so small
/// that they matter nowhere, also in columns that are far smaller than others, or do not become
/// smaller any more.
template <class Wide, class Matrix, class Solve>
ClosedStepMaps solve_closed_step(const ClosedStep& step, int sweeps, const Solve& solve) {
  using Scalar = typename Matrix::Scalar;
  constexpr Scalar kEnough = Scalar(1e-28);
  ClosedStepSolution<Wide> solution(step);
  Matrix r1(step.n(), solution.columns()), r2(step.p(), solution.columns());
  Matrix d(r1.rows(), r1.cols()), v(r2.rows(), r2.cols());
  Scalar first = Scalar(0), last = std::numeric_limits<Scalar>::max();
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    solution.residual(r1, r2);
    const Scalar moved = solve(r1, r2, d, v);
    if (!(moved <= last)) break;
    solution.correct(d, v);
    if (sweep == 0) first = moved;
    if (moved <= kEnough * first) break;
    last = moved;
  }
  return solution.maps();
}

}  // namespace portwave
