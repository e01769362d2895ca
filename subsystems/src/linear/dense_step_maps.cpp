#include "linear/dense_step_maps.hpp"

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

}  // namespace portwave
