#include "linear/step_maps.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include <Eigen/Core>

#include "core/closed_step.hpp"
#include "linear/linear_energy.hpp"
#include "linear/plain_lu.hpp"
#include "portwave/subsystems/base/error.hpp"

namespace portwave {
namespace {

using Matrix = Eigen::MatrixXd;

/// Solves for corrections of a closed step, in variables scaled to roots of energies:
///   (2/h − W) δ̂ = r̂₁ + B̂ M⁻¹ r₂,  u = M⁻¹(r₂ − β Ĉ Q̂ δ̂),  M = α + β D,  W = ÂQ̂ − B̂ M⁻¹ β Ĉ Q̂.
class ClosedStepFactors {
 public:
  using Scalar = long double;
  using Dense = PlainLu<Scalar>::Dense;

  explicit ClosedStepFactors(const ClosedStep& step) : p_(step.p()), lu_(step.n()) {
    d_ = energy_scaling(step.Q).cast<Scalar>();
    const Column d_inv = d_.cwiseInverse();
    const Dense Q = d_inv.asDiagonal() * wide(step.Q) * d_inv.asDiagonal();
    const Dense A = d_.asDiagonal() * wide(step.JR) * d_.asDiagonal();
    B_ = d_.asDiagonal() * wide(step.B).leftCols(p_);
    const Dense D = wide(step.D).topLeftCorner(p_, p_);
    beta_.resize(p_);
    Dense M = Dense::Zero(p_, p_);
    for (Eigen::Index j = 0; j < p_; ++j) {
      const PortClosure& port = step.closures[static_cast<std::size_t>(j)];
      M(j, j) = port.alpha;
      beta_[j] = port.beta;
    }
    M += beta_.asDiagonal() * D;
    if (p_ > 0) {
      PlainLu<Scalar> lu(p_);
      lu.compute(M);
      M_inv_ = lu.inverse();
    }
    CQ_ = beta_.asDiagonal() * product(wide(step.C).topRows(p_), d_.asDiagonal() * Q);
    Dense lhs = -product(A, Q);
    if (p_ > 0) lhs += product(B_, product(M_inv_, CQ_));
    lhs.diagonal().array() += Scalar(2) / Scalar(step.step_s);
    if (step.n() > 0) lu_.compute(lhs);
  }

  /// Returns the largest component of δ̂ and u.
  Scalar solve(const Dense& r1, const Dense& r2, Dense& d, Dense& v) const {
    Dense scaled = d_.asDiagonal() * r1;
    v = r2;
    if (p_ > 0) {
      v = product(M_inv_, r2);
      scaled += product(B_, v);
    }
    if (scaled.rows() > 0) {
      Dense solved(scaled.rows(), scaled.cols());
      lu_.solve(scaled, solved);
      scaled = std::move(solved);
    }
    if (p_ > 0) v -= product(M_inv_, product(CQ_, scaled));
    d = d_.cwiseInverse().asDiagonal() * scaled;
    Scalar largest = Scalar(0);
    for (const Dense* part : {&scaled, &v}) {
      if (part->size() == 0) continue;
      if (!part->allFinite()) return std::numeric_limits<Scalar>::quiet_NaN();
      largest = std::max(largest, part->cwiseAbs().maxCoeff());
    }
    return largest;
  }

 private:
  using Column = Eigen::Matrix<Scalar, Eigen::Dynamic, 1>;

  /// Compiled sooner than Eigen's blocked one.
  static Dense product(const Dense& a, const Dense& b) { return a.lazyProduct(b); }
  static Dense wide(const SparseMatrix& m) { return Matrix(m).template cast<Scalar>(); }

  Eigen::Index p_;
  Column d_, beta_;
  Dense B_, M_inv_, CQ_;
  PlainLu<Scalar> lu_;
};

}  // namespace

StepMaps step_maps(const LinearPortHamiltonian& part, const std::vector<PortClosure>& closures,
                   double step_s) {
  const Structure& st = part.structure();
  const ClosedStep step{.JR = st.J - st.R,
                        .Q = part.Q(),
                        .B = st.G - st.P,
                        .C = SparseMatrix((st.G + st.P).transpose()),
                        .D = st.S + st.N,
                        .closures = closures,
                        .step_s = step_s};
  const ClosedStepFactors factors(step);
  const ClosedStepMaps closed = solve_closed_step<Quadruple, ClosedStepFactors::Dense>(
      step, 16, [&](const auto& r1, const auto& r2, auto& d, auto& v) {
        return factors.solve(r1, r2, d, v);
      });
  if (!closed.delta.allFinite() || !closed.outgoing.allFinite()) {
    throw ConfigError("", "the implicit step is singular at this step size");
  }
  const Eigen::Index n = step.n(), p = step.p(), q = step.q();
  StepMaps maps;
  maps.Phi_minus_I = 2.0 * closed.delta.leftCols(n);
  maps.Psi = 2.0 * closed.delta.middleCols(n, p);
  maps.Psi_u = 2.0 * closed.delta.rightCols(q);
  maps.C = closed.outgoing.leftCols(n);
  maps.D_minus_sigma = closed.outgoing.middleCols(n, p);
  maps.C_u = closed.outgoing.rightCols(q);
  maps.sigma = closed.sigma;
  return maps;
}

namespace {

std::size_t number(int count) { return static_cast<std::size_t>(count); }

}  // namespace

LaneStepMaps::LaneStepMaps(const LinearSparsity& sparsity, int ports, double step_s)
    : sparsity_(sparsity), step_s_(step_s) {
  task_.n = sparsity.states();
  task_.p = ports;
  task_.q = sparsity.inputs() - ports;
  task_.step_s = step_s;
  rows_of_Q_.assign(number(task_.n + 1), 0);
  for (const LinearEntry& e : sparsity.Q.at()) ++rows_of_Q_[number(e.row + 1)];
  for (int i = 0; i < task_.n; ++i) rows_of_Q_[number(i + 1)] += rows_of_Q_[number(i)];
  task_.Q_rows = rows_of_Q_.data();
  at_ports_.assign(number(task_.n), 0);
  for (const LinearEntry& e : sparsity.C.at()) at_ports_[number(e.column)] = 1;
  task_.at_ports = at_ports_.data();
  effort_in_.resize(number(ports));
  task_.effort_in = effort_in_.data();
}

/// The values of a list of all parts, side by side, behind those that are there.
StepMapTask::Entries LaneStepMaps::read(const EntryList& list) {
  const std::size_t width = number(task_.width), begin = values_.size();
  values_.resize(begin + list.size() * width);
  for (std::size_t l = 0; l < width; ++l) {
    const LinearPortHamiltonian& part = *parts_[std::min(l, parts_.size() - 1)].physics;
    LinearSparsity::read(list, part.Q(), part.structure(), 1.0, values_.data() + begin + l, width);
  }
  return {list.at().data(), static_cast<int>(list.size()), values_.data() + begin};
}

void LaneStepMaps::solve(std::span<const Part> parts) {
  parts_ = parts;
  task_.width = parts.size() == 1 ? 1 : kLaneGroup;
  const std::size_t width = number(task_.width), n = number(task_.n), p = number(task_.p);
  const std::size_t columns = n + p + number(task_.q);
  const StepMapKernels& kernels = step_map_kernels();

  const EntryList* const lists[] = {&sparsity_.Q, &sparsity_.JR, &sparsity_.B, &sparsity_.C,
                                    &sparsity_.D};
  std::size_t entries = n + p + StepMapTask::kClosureCount * p;
  for (const EntryList* list : lists) entries += list->size();
  values_.clear();
  values_.reserve(entries * width);  // what follows refers to it
  task_.Q = read(sparsity_.Q);
  task_.JR = read(sparsity_.JR);
  task_.B = read(sparsity_.B);
  task_.C = read(sparsity_.C);
  task_.D = read(sparsity_.D);
  double* const scale = values_.data() + values_.size();
  double* const closures = scale + (n + p) * width;
  values_.resize(entries * width);
  std::fill(scale, scale + n * width, 1.0);
  for (int k = 0; k < task_.Q.count; ++k) {
    const LinearEntry& e = task_.Q.at[k];
    if (e.row != e.column) continue;
    for (std::size_t l = 0; l < width; ++l) {
      const double own = task_.Q.values[number(k) * width + l];
      if (own > 0.0) scale[number(e.row) * width + l] = std::sqrt(own);
    }
  }
  for (std::size_t l = 0; l < width; ++l) {
    const std::vector<PortClosure>& of = parts[std::min(l, parts.size() - 1)].closures;
    for (std::size_t j = 0; j < p; ++j) {
      const PortClosure& port = of[j];
      effort_in_[j] = port.effort_in ? 1 : 0;
      scale[(n + j) * width + l] = port.effort_in ? port.s : port.s / port.impedance;
      const double own[] = {port.alpha, port.beta, port.s, port.impedance};
      for (std::size_t k = 0; k < StepMapTask::kClosureCount; ++k) {
        closures[(k * p + j) * width + l] = own[k];
      }
    }
  }
  task_.scale = scale;
  task_.closures = closures;

  const auto scratch =
      number(static_cast<int>(kernels.work(task_.width, task_.n, task_.p, task_.q)));
  work_.resize(scratch + (n * columns + p * columns + p + 1) * width);
  task_.work = work_.data();
  task_.delta = task_.work + scratch;
  task_.outgoing = task_.delta + n * columns * width;
  task_.sigma = task_.outgoing + p * columns * width;
  task_.inexact = task_.sigma + p * width;
  kernels.solve(task_);
}

bool LaneStepMaps::is_exact(int part) const {
  if (task_.inexact[part] != 0.0) return false;
  const auto width = static_cast<std::ptrdiff_t>(task_.width);
  for (const double* at = task_.delta + part; at < task_.sigma; at += width) {
    if (!std::isfinite(*at)) return false;
  }
  return true;
}

void LaneStepMaps::take(int part, StepMaps& maps) const {
  if (!is_exact(part)) {
    const Part& own = parts_[number(part)];
    maps = step_maps(*own.physics, own.closures, step_s_);
    return;
  }
  const Eigen::Index n = task_.n, p = task_.p, q = task_.q, width = task_.width;
  const auto fill = [&](Eigen::MatrixXd& to, const double* from, Eigen::Index rows,
                        Eigen::Index first, Eigen::Index columns, double factor) {
    to.resize(rows, columns);
    from += first * rows * width + part;
    for (Eigen::Index k = 0; k < rows * columns; ++k) to.data()[k] = factor * from[k * width];
  };
  fill(maps.Phi_minus_I, task_.delta, n, 0, n, 2.0);
  fill(maps.Psi, task_.delta, n, n, p, 2.0);
  fill(maps.Psi_u, task_.delta, n, n + p, q, 2.0);
  fill(maps.C, task_.outgoing, p, 0, n, 1.0);
  fill(maps.D_minus_sigma, task_.outgoing, p, n, p, 1.0);
  fill(maps.C_u, task_.outgoing, p, n + p, q, 1.0);
  maps.sigma.resize(p);
  for (Eigen::Index j = 0; j < p; ++j) maps.sigma[j] = task_.sigma[j * width + part];
}

}  // namespace portwave
