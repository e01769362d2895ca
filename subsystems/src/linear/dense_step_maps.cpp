#include "linear/dense_step_maps.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <utility>

#include <Eigen/Core>

#include "batches/closed_step.hpp"
#include "linear/linear_energy.hpp"
#include "linear/plain_lu.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/matrices/decompositions.hpp"

namespace portwave {
namespace {

using Matrix = Eigen::MatrixXd;

/// Solves for corrections of a closed step, in variables scaled to roots of energies:
///   (2/h − W) δ̂ = r̂₁ + B̂ M⁻¹ r₂,  u = M⁻¹(r₂ − β Ĉ Q̂ δ̂),  M = α + β D,  W = ÂQ̂ − B̂ M⁻¹ β Ĉ Q̂.
template <class Scalar>
class ClosedStepFactors {
 public:
  using Dense = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>;

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
      Lu lu(p_);
      lu.compute(M);
      M_inv_ = lu.inverse();
      note_condition(lu);
    }
    CQ_ = beta_.asDiagonal() * product(wide(step.C).topRows(p_), d_.asDiagonal() * Q);
    Dense lhs = -product(A, Q);
    if (p_ > 0) lhs += product(B_, product(M_inv_, CQ_));
    lhs.diagonal().array() += Scalar(2) / Scalar(step.step_s);
    if (step.n() > 0) {
      lu_.compute(lhs);
      note_condition(lu_);
    }
  }

  /// An estimate of the reciprocal condition of what has to be solved. For double.
  Scalar reciprocal_condition() const { return condition_; }

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
  static constexpr bool kIsDouble = std::is_same_v<Scalar, double>;
  using Lu = std::conditional_t<kIsDouble, DenseLu, PlainLu<Scalar>>;
  using Column = Eigen::Matrix<Scalar, Eigen::Dynamic, 1>;

  /// Eigen's blocked product, or a plain one that is compiled sooner.
  template <class A, class B>
  static auto product(const A& a, const B& b) {
    if constexpr (kIsDouble) {
      return a * b;
    } else {
      return a.lazyProduct(b);
    }
  }
  void note_condition([[maybe_unused]] const Lu& lu) {
    if constexpr (kIsDouble) condition_ = std::min(condition_, lu.reciprocal_condition());
  }
  static Dense wide(const SparseMatrix& m) { return Matrix(m).template cast<Scalar>(); }

  Eigen::Index p_;
  Column d_, beta_;
  Dense B_, M_inv_, CQ_;
  Lu lu_;
  Scalar condition_ = Scalar(1);
};

}  // namespace

StepMaps step_maps(const LinearPortHamiltonian& part, const std::vector<PortClosure>& closures,
                   double step_s) {
  constexpr double kWellConditioned = 1e-3;
  const Structure& st = part.structure();
  const ClosedStep step{.JR = st.J - st.R,
                        .Q = part.Q(),
                        .B = st.G - st.P,
                        .C = SparseMatrix((st.G + st.P).transpose()),
                        .D = st.S + st.N,
                        .closures = closures,
                        .step_s = step_s};
  const ClosedStepFactors<double> factors(step);
  ClosedStepMaps closed;
  if (factors.reciprocal_condition() > kWellConditioned) {
    closed = solve_closed_step<long double, Matrix>(
        step, 2, [&](const auto& r1, const auto& r2, auto& d, auto& v) {
          return factors.solve(r1, r2, d, v);
        });
  } else {
    using Long = ClosedStepFactors<long double>;
    const Long long_factors(step);
    closed = solve_closed_step<Quadruple, Long::Dense>(
        step, 16, [&](const auto& r1, const auto& r2, auto& d, auto& v) {
          return long_factors.solve(r1, r2, d, v);
        });
  }
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
