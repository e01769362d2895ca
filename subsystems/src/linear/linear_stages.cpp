#include "linear/linear_stages.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "base/quadruple.hpp"
#include "batches/affine_batch.hpp"
#include "linear/linear_energy.hpp"
#include "linear/plain_lu.hpp"

namespace portwave {
namespace {

using Matrix = Eigen::MatrixXd;

struct StagedForm {
  StageLayout layout;
  Structure structure;  ///< all stages
  SparseMatrix Q_delta, Q_x;
  Eigen::VectorXd weight;  ///< √bᵢ

  StagedForm(const LinearPortHamiltonian& part, const GaussStages& stages)
      : layout{stages.count, part.signature().state_size(), part.signature().wave_size(),
               part.signature().input_size()},
        structure(Structure::zero(layout.states(), layout.ports() + layout.inputs())),
        Q_delta(layout.states(), layout.states()),
        Q_x(layout.states(), layout.n),
        weight(stages.count) {
    std::vector<Eigen::Triplet<double>> of_delta, of_x;
    for (int i = 0; i < stages.count; ++i) {
      const auto row = static_cast<std::size_t>(i);
      add_stage(layout, i, 0, part.structure(), structure);
      weight[i] = std::sqrt(stages.b[row]);
      for (int c = 0; c < part.Q().outerSize(); ++c) {
        for (SparseMatrix::InnerIterator it(part.Q(), c); it; ++it) {
          const int r = i * layout.n + static_cast<int>(it.row());
          of_x.emplace_back(r, c, weight[i] * it.value());
          for (int j = 0; j < stages.count; ++j) {
            const auto column = static_cast<std::size_t>(j);
            const double gain = stages.A[row][column] * std::sqrt(stages.b[row] / stages.b[column]);
            of_delta.emplace_back(r, j * layout.n + c, gain * it.value());
          }
        }
      }
    }
    Q_delta.setFromTriplets(of_delta.begin(), of_delta.end());
    Q_x.setFromTriplets(of_x.begin(), of_x.end());
  }
};

/// δ, z and y as maps of (x, u, ū), ports open.
template <class Wide>
struct OpenStages {
  using Dense = typename PlainLu<Wide>::Dense;
  Dense delta, z, y;
  double inaccuracy = 0.0;  ///< of δ, relative to the largest entry of a column

  OpenStages() = default;
  /// Equations are scaled to roots of energies.
  OpenStages(const StagedForm& form, const SparseMatrix& Q, double step_s) {
    const StageLayout& l = form.layout;
    const Eigen::Index N = l.states(), n = l.n, p = l.ports(), q = l.inputs();
    const Structure& s = form.structure;
    const Eigen::VectorXd d = energy_scaling(Q).replicate(l.stages, 1);  // of each stage
    const SparseMatrix rate = step_s * SparseMatrix(d.asDiagonal() * SparseMatrix(s.J - s.R));
    const SparseMatrix inverse = SparseMatrix(form.Q_delta * d.cwiseInverse().asDiagonal());
    const SparseMatrix B = step_s * SparseMatrix(d.asDiagonal() * SparseMatrix(s.G - s.P));
    Dense lhs = -product(rate, inverse);
    for (Eigen::Index i = 0; i < N; ++i) lhs(i, i) += Wide(1);
    Dense rhs(N, n + p + q);
    rhs.leftCols(n) = product(rate, form.Q_x);
    rhs.rightCols(p + q) = Matrix(B).cast<Wide>();
    PlainLu<Wide> lu(N);
    lu.compute(lhs);
    lu.solve(rhs, delta);
    inaccuracy = refine(lhs, rhs, lu);
    for (Eigen::Index i = 0; i < N; ++i) {
      for (Eigen::Index k = 0; k < delta.cols(); ++k) delta(i, k) /= Wide(d[i]);
    }
    const SparseMatrix C = SparseMatrix((s.G + s.P).transpose()).topRows(p);
    z = product(form.Q_delta, delta);
    for (int j = 0; j < form.Q_x.outerSize(); ++j) {
      for (SparseMatrix::InnerIterator it(form.Q_x, j); it; ++it)
        z(it.row(), j) += Wide(it.value());
    }
    y = product(C, z);
    const Matrix D = Matrix(SparseMatrix(s.S + s.N)).topRows(p);
    for (Eigen::Index i = 0; i < p; ++i) {
      for (Eigen::Index k = 0; k < p + q; ++k) y(i, n + k) += Wide(D(i, k));
    }
  }

 private:
  static Dense product(const SparseMatrix& A, const Dense& x) {
    Dense out = Dense::Zero(A.rows(), x.cols());
    for (int j = 0; j < A.outerSize(); ++j) {
      for (SparseMatrix::InnerIterator it(A, j); it; ++it) {
        for (Eigen::Index k = 0; k < x.cols(); ++k) out(it.row(), k) += Wide(it.value()) * x(j, k);
      }
    }
    return out;
  }
  static Dense product(const SparseMatrix& A, const SparseMatrix& B) {
    return product(A, Dense(Matrix(B).cast<Wide>()));
  }
  static double size(Wide value) { return static_cast<double>(value < Wide(0) ? -value : value); }

  /// One correction; how large it was.
  double refine(const Dense& lhs, const Dense& rhs, const PlainLu<Wide>& lu) {
    Dense rest = rhs, correction;
    for (Eigen::Index k = 0; k < delta.cols(); ++k) {
      for (Eigen::Index j = 0; j < lhs.cols(); ++j) {
        const Wide own = delta(j, k);
        if (own == Wide(0)) continue;
        for (Eigen::Index i = 0; i < lhs.rows(); ++i) rest(i, k) -= lhs(i, j) * own;
      }
    }
    lu.solve(rest, correction);
    double most = 0.0;
    for (Eigen::Index k = 0; k < delta.cols(); ++k) {
      double moved = 0.0, all = 0.0;
      for (Eigen::Index i = 0; i < delta.rows(); ++i) {
        all = std::max(all, size(delta(i, k)));
        moved = std::max(moved, size(correction(i, k)));
        delta(i, k) += correction(i, k);
      }
      if (all > 0.0) most = std::max(most, moved / all);
    }
    return most;
  }
};

/// Ports closed by αu + βy = s a, which makes maps of (x, a, ū).
template <class Wide>
LinearStages::Maps close_ports(const OpenStages<Wide>& open, const StagedForm& form,
                               const std::vector<PortClosure>& closures) {
  using Dense = typename OpenStages<Wide>::Dense;
  const StageLayout& l = form.layout;
  const Eigen::Index n = l.n, p = l.ports(), q = l.inputs(), columns = n + p + q;
  Dense lhs(p, p), rhs = Dense::Zero(p, columns), u(p, columns);
  for (Eigen::Index j = 0; j < p; ++j) {
    const PortClosure& port = closures[static_cast<std::size_t>(j)];
    const Wide beta = Wide(port.beta);
    for (Eigen::Index k = 0; k < p; ++k) lhs(j, k) = beta * open.y(j, n + k);
    lhs(j, j) += Wide(port.alpha);
    for (Eigen::Index k = 0; k < n; ++k) rhs(j, k) = -beta * open.y(j, k);
    rhs(j, n + j) = Wide(port.s);
    for (Eigen::Index k = n + p; k < columns; ++k) rhs(j, k) = -beta * open.y(j, k);
  }
  if (p > 0) {
    PlainLu<Wide> lu(p);
    lu.compute(lhs);
    lu.solve(rhs, u);
  }
  const auto closed = [&](const Dense& of) {
    Dense out = of.middleCols(n, p).lazyProduct(u);
    for (Eigen::Index i = 0; i < of.rows(); ++i) {
      for (Eigen::Index k = 0; k < n; ++k) out(i, k) += of(i, k);
      for (Eigen::Index k = n + p; k < columns; ++k) out(i, k) += of(i, k);
    }
    return out;
  };
  const Dense delta = closed(open.delta);
  Dense moved = Dense::Zero(n, columns);
  for (int i = 0; i < l.stages; ++i) {
    for (Eigen::Index r = 0; r < n; ++r) {
      for (Eigen::Index k = 0; k < columns; ++k) {
        moved(r, k) += Wide(form.weight[i]) * delta(i * n + r, k);
      }
    }
  }
  const auto narrow = [](const Dense& of) -> Matrix { return of.template cast<double>(); };
  const Matrix of_x = narrow(moved);
  const OutgoingWaves waves = outgoing_waves(closures, narrow(u), narrow(closed(open.y)), n);
  return {.step = {.Phi_minus_I = of_x.leftCols(n),
                   .Psi = of_x.middleCols(n, p),
                   .Psi_u = of_x.rightCols(q),
                   .C = waves.C,
                   .D_minus_sigma = waves.D_minus_sigma,
                   .C_u = waves.C_u,
                   .sigma = waves.sigma},
          .z = narrow(closed(open.z))};
}

}  // namespace

struct LinearStages::Impl {
  StagedForm form;
  OpenStages<long double> open;
  std::optional<OpenStages<Quadruple>> precise;  // where the step is ill-conditioned

  Impl(const LinearPortHamiltonian& part, const GaussStages& stages, double step_s)
      : form(part, stages), open(form, part.Q(), step_s) {
    constexpr double kEnough = 1e-17;  // what doubles resolve
    if (!(open.inaccuracy <= kEnough)) precise.emplace(form, part.Q(), step_s);
  }
};

LinearStages::LinearStages(const LinearPortHamiltonian& part, const GaussStages& stages,
                           double step_s)
    : impl_(std::make_unique<Impl>(part, stages, step_s)) {}
LinearStages::~LinearStages() = default;
LinearStages::LinearStages(LinearStages&&) noexcept = default;
LinearStages& LinearStages::operator=(LinearStages&&) noexcept = default;

const StageLayout& LinearStages::layout() const { return impl_->form.layout; }
const Structure& LinearStages::structure() const { return impl_->form.structure; }

LinearStages::Maps LinearStages::closed(const std::vector<PortClosure>& closures) const {
  return impl_->precise ? close_ports(*impl_->precise, impl_->form, closures)
                        : close_ports(impl_->open, impl_->form, closures);
}

}  // namespace portwave
