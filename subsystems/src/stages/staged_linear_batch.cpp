#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include <Eigen/Core>

#include "base/quadruple.hpp"
#include "batches/affine_batch.hpp"
#include "batches/step_rounding.hpp"
#include "linear/linear_energy.hpp"
#include "linear/plain_lu.hpp"
#include "stages/staged_batches.hpp"
#include "stages/staged_structure.hpp"

namespace portwave {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

/// The step of a linear part in scaled stages, δᵢ = √bᵢ h ẋᵢ and zᵢ = √bᵢ QX(cᵢ):
///   δ = h[(J − R)z + (G − P)u],  z = Q_δ δ + Q_x x,  y = (G + P)ᵀz + (S + N)u,
/// Q_δ = (√bᵢ aᵢⱼ/√bⱼ) ⊗ Q, Q_x = √bᵢ ⊗ Q, x⁺ = x + Σᵢ √bᵢ δᵢ. Matrices are those of all stages.
struct StagedForm {
  StageLayout layout;
  Structure structure;  ///< all stages
  SparseMatrix Q_delta, Q_x;
  Vector weight;  ///< √bᵢ

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

/// δ, u and y as maps of (x, a, ū).
struct StageMaps {
  Matrix delta, u, y;
};

/// By LU in more digits than double, equations scaled to roots of energies, so that what rounds off
/// is the rounding of the maps to doubles.
template <class Wide>
StageMaps solve_stages(const StagedForm& form, const LinearPortHamiltonian& part,
                       const std::vector<PortClosure>& closures, double step_s) {
  using Dense = typename PlainLu<Wide>::Dense;
  const StageLayout& l = form.layout;
  const Eigen::Index N = l.states(), n = l.n, p = l.ports(), q = l.inputs();
  const Structure& s = form.structure;
  const auto wide = [](const Matrix& M) -> Dense { return M.cast<Wide>(); };
  const Dense rate = Wide(step_s) * wide(Matrix(s.J) - Matrix(s.R));
  const Dense B = Wide(step_s) * wide(Matrix(s.G) - Matrix(s.P));
  const Dense C = wide(Matrix(s.G) + Matrix(s.P)).transpose();
  const Dense D = wide(Matrix(s.S) + Matrix(s.N));
  const Dense Q_delta = wide(Matrix(form.Q_delta)), Q_x = wide(Matrix(form.Q_x));
  const Dense CQ = C.lazyProduct(Q_delta), Cx = C.lazyProduct(Q_x);

  const Vector d = energy_scaling(part.Q());  // of each stage
  Vector scale(N + p);
  for (Eigen::Index i = 0; i < N; ++i) scale[i] = d[i % n];
  Dense lhs = Dense::Zero(N + p, N + p), rhs = Dense::Zero(N + p, n + p + q);
  lhs.topLeftCorner(N, N) = -rate.lazyProduct(Q_delta);
  for (Eigen::Index i = 0; i < N; ++i) lhs(i, i) += Wide(1);
  lhs.topRightCorner(N, p) = -B.leftCols(p);
  rhs.topLeftCorner(N, n) = rate.lazyProduct(Q_x);
  rhs.topRightCorner(N, q) = B.rightCols(q);
  for (Eigen::Index j = 0; j < p; ++j) {
    const PortClosure& port = closures[static_cast<std::size_t>(j)];
    const Wide beta = Wide(port.beta);
    for (Eigen::Index k = 0; k < N; ++k) lhs(N + j, k) = beta * CQ(j, k);
    for (Eigen::Index k = 0; k < p; ++k) lhs(N + j, N + k) = beta * D(j, k);
    lhs(N + j, N + j) += Wide(port.alpha);
    for (Eigen::Index k = 0; k < n; ++k) rhs(N + j, k) = -beta * Cx(j, k);
    rhs(N + j, n + j) = Wide(port.s);
    for (Eigen::Index k = 0; k < q; ++k) rhs(N + j, n + p + k) = -beta * D(j, p + k);
    scale[N + j] = 1.0 / (port.alpha != 0.0 ? port.alpha : 1.0);  // of its equation only
  }
  for (Eigen::Index i = 0; i < N + p; ++i) {
    for (Eigen::Index k = 0; k < N + p; ++k) {
      lhs(i, k) *= Wide(scale[i]);
      if (k < N) lhs(i, k) /= Wide(scale[k]);
    }
    for (Eigen::Index k = 0; k < n + p + q; ++k) rhs(i, k) *= Wide(scale[i]);
  }
  PlainLu<Wide> lu(N + p);
  lu.compute(lhs);
  Dense solved;
  lu.solve(rhs, solved);
  for (Eigen::Index i = 0; i < N; ++i) {
    for (Eigen::Index k = 0; k < solved.cols(); ++k) solved(i, k) /= Wide(scale[i]);
  }
  const auto narrow = [](const Dense& M) -> Matrix { return M.template cast<double>(); };
  Dense y = CQ.topRows(p).lazyProduct(solved.topRows(N));
  y += D.topLeftCorner(p, p).lazyProduct(solved.bottomRows(p));
  y.leftCols(n) += Cx.topRows(p);
  y.rightCols(q) += D.topRightCorner(p, q);
  return {narrow(solved.topRows(N)), narrow(solved.bottomRows(p)), narrow(y)};
}

struct StagedLane {
  using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  struct Entry {
    int row;
    int column;
    double value;
  };

  RowMatrix delta;  ///< N×(n+p+q), of (x, a, ū)
  std::vector<PortClosure> closures;
  std::vector<Entry> storage;      ///< upper triangle of ½Q, off-diagonal entries doubled
  std::vector<Entry> of_delta;     ///< Q_δ
  std::vector<Entry> of_x;         ///< Q_x
  std::vector<Entry> dissipation;  ///< h[R P; Pᵀ S] of all stages
  std::vector<Entry> supply;       ///< h[(G + P)ᵀ, S + N] of the external inputs
};

std::vector<StagedLane::Entry> entries_of(const SparseMatrix& M, double factor) {
  std::vector<StagedLane::Entry> out;
  for (int j = 0; j < M.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(M, j); it; ++it) {
      if (it.value() != 0.0) out.push_back({static_cast<int>(it.row()), j, factor * it.value()});
    }
  }
  return out;
}

StagedLane make_staged_lane(const LinearPortHamiltonian& part, const StagedForm& form,
                            std::vector<PortClosure> closures, double step_s,
                            OutgoingWaves& waves) {
  const StageLayout& l = form.layout;
  StageMaps maps = solve_stages<long double>(form, part, closures, step_s);
  if (!maps.delta.allFinite() || !maps.u.allFinite()) {
    maps = solve_stages<Quadruple>(form, part, closures, step_s);
  }
  waves = outgoing_waves(closures, maps.u, maps.y, l.n);
  if (!maps.delta.allFinite() || !waves.C.allFinite() || !waves.D.allFinite()) {
    throw ConfigError("", "the implicit step is singular at this step size");
  }
  StagedLane lane;
  lane.delta = maps.delta;
  lane.closures = std::move(closures);
  for (const StagedLane::Entry& e : entries_of(part.Q(), 1.0)) {
    if (e.row > e.column) continue;
    lane.storage.push_back({e.row, e.column, e.row == e.column ? 0.5 * e.value : e.value});
  }
  lane.of_delta = entries_of(form.Q_delta, 1.0);
  lane.of_x = entries_of(form.Q_x, 1.0);
  const Structure& s = form.structure;
  lane.dissipation = entries_of(dissipation_matrix(s), step_s);
  const auto take = [&](const SparseMatrix& M, int shift) {
    for (const StagedLane::Entry& e : entries_of(M, step_s)) {
      if (e.row < l.ports()) continue;
      lane.supply.push_back({e.row - l.ports(), e.column + shift, e.value});
    }
  };
  take(SparseMatrix((s.G + s.P).transpose()), 0);
  take(s.S + s.N, l.states());
  return lane;
}

/// Linear parts with stages, lane by lane: dense maps.
class StagedLinearBatch final : public AffineBatch {
 public:
  StagedLinearBatch(std::span<const LinearPortHamiltonian* const> parts, const GaussStages& stages)
      : StagedLinearBatch(parts, stages, StagedForm(*parts[0], stages).layout) {}

  double scatter_cost_ns() const override { return 5.0 + wave_size() * wave_size(); }
  double advance_cost_ns() const override {
    return 30.0 + layout_.states() * (4.0 + 0.5 * (layout_.n + layout_.ports() + layout_.inputs()));
  }

  void prepare(double step_s, const double* impedance) override {
    step_s_ = step_s;
    lane_.clear();
    std::vector<OutgoingWaves> waves;
    std::vector<double> gamma(static_cast<std::size_t>(wave_size()));
    for (int l = 0; l < lanes(); ++l) {
      for (int j = 0; j < wave_size(); ++j) {
        gamma[static_cast<std::size_t>(j)] = impedance[j * stride() + l];
      }
      const LinearPortHamiltonian& part = *parts_[static_cast<std::size_t>(l)];
      lane_.push_back(make_staged_lane(part, StagedForm(part, stages_),
                                       port_closures(signature_, step_s, gamma.data()), step_s,
                                       waves.emplace_back()));
    }
    set_outgoing(std::move(waves));
  }

  /// Every δ is known to ε of its terms, x⁺ besides to ε of itself, weighed by the slope of H there;
  /// the work of inputs to ε of the terms of z.
  std::optional<double> step_rounding(int l, const double* record, const double* a,
                                      const double* next) const override {
    const StagedLane& lane = lane_[static_cast<std::size_t>(l)];
    const SparseMatrix& Q = parts_[static_cast<std::size_t>(l)]->Q();
    const int n = layout_.n, p = layout_.ports(), q = layout_.inputs();
    Vector x = Eigen::Map<const Vector>(state_of(l, record), n);
    const Vector input = Eigen::Map<const Vector>(state_of(l, record) + n, q);
    const Vector after = Eigen::Map<const Vector>(state_of(l, next), n);
    Vector wave(p);
    for (int j = 0; j < p; ++j) wave[j] = a[j * stride() + l];
    Vector z(n + p + q);
    z << x, wave, input;
    const Vector of_delta = step_rounding::terms(lane.delta, z);
    const Vector slope = (Q * after).cwiseAbs();
    double sum = slope.dot(after.cwiseAbs());
    for (int i = 0; i < layout_.states(); ++i) {
      sum += slope[i % n] * weight_[i / n] * of_delta[i];
    }
    Vector of_z = Vector::Zero(layout_.states() + p + q);
    for (const StagedLane::Entry& e : lane.of_delta) {
      of_z[e.row] += std::abs(e.value) * of_delta[e.column];
    }
    for (const StagedLane::Entry& e : lane.of_x) {
      of_z[e.row] += std::abs(e.value) * std::abs(x[e.column]);
    }
    for (const StagedLane::Entry& e : lane.supply) {
      sum += std::abs(e.value * input[e.row]) * of_z[e.column];
    }
    return step_rounding::kPerTerm * sum + step_rounding::of_waves(outgoing(l), x, wave, input);
  }

 private:
  StagedLinearBatch(std::span<const LinearPortHamiltonian* const> parts, const GaussStages& stages,
                    const StageLayout& layout)
      : AffineBatch(
            static_cast<int>(parts.size()), layout.n, layout.ports(), layout.inputs(),
            /*extra: b⁰, δ, [z; u]=*/2 * (layout.ports() + layout.states()) + layout.inputs()),
        parts_(parts.begin(), parts.end()),
        stages_(stages),
        layout_(layout),
        signature_(staged_signature(parts[0]->signature(), stages.count)),
        weight_(StagedForm(*parts[0], stages).weight) {}

  StepFault advance_lane(int l, const Lane& frozen, const double* a, double* next, double* b,
                         StepEnergy& energy) const override {
    (void)scatter_lane(l, frozen, a, b);
    const StagedLane& lane = lane_[static_cast<std::size_t>(l)];
    const int n = layout_.n, p = layout_.ports(), q = layout_.inputs(), N = layout_.states();
    double* const delta = frozen.extra + p;
    for (int i = 0; i < N; ++i) {
      const double* row = lane.delta.data() + static_cast<std::ptrdiff_t>(i) * (n + p + q);
      double sum = 0.0;
      for (int j = 0; j < n; ++j) sum += row[j] * frozen.x[j];
      for (int j = 0; j < p; ++j) sum += row[n + j] * a[j];
      for (int j = 0; j < q; ++j) sum += row[n + p + j] * frozen.input[j];
      delta[i] = sum;
    }
    bool finite = true;
    for (int i = 0; i < n; ++i) {
      double moved = 0.0;
      for (int k = 0; k < stages_.count; ++k) moved += weight_[k] * delta[k * n + i];
      next[i] = frozen.x[i] + moved;
      finite = finite && std::isfinite(next[i]);
    }
    energy = account(lane, frozen, a, b, next, delta);
    return finite ? StepFault::none : StepFault::not_finite;
  }

  StepEnergy account(const StagedLane& lane, const Lane& frozen, const double* a, const double* b,
                     const double* next, double* delta) const {
    const int p = layout_.ports(), q = layout_.inputs(), N = layout_.states();
    const double* const x = frozen.x;
    StepEnergy energy;
    for (const StagedLane::Entry& e : lane.storage) {  // H⁺ − H = ½(x⁺ + x)ᵀQ(x⁺ − x)
      const int i = e.row, j = e.column;
      const double both = (next[i] + x[i]) * (next[j] - x[j]);
      energy.change_J +=
          i == j ? e.value * both : 0.5 * e.value * (both + (next[i] - x[i]) * (next[j] + x[j]));
    }
    if (lane.dissipation.empty() && q == 0) return energy;
    double* const z = delta + N;
    std::fill(z, z + N, 0.0);
    for (const StagedLane::Entry& e : lane.of_delta) z[e.row] += e.value * delta[e.column];
    for (const StagedLane::Entry& e : lane.of_x) z[e.row] += e.value * x[e.column];
    for (int j = 0; j < p; ++j) {
      z[N + j] = lane.closures[static_cast<std::size_t>(j)].input(a[j], b[j]);
    }
    std::copy(frozen.input, frozen.input + q, z + N + p);
    for (const StagedLane::Entry& e : lane.dissipation) {
      energy.dissipated_J += e.value * z[e.row] * z[e.column];
    }
    for (const StagedLane::Entry& e : lane.supply) {
      energy.external_supply_J += frozen.input[e.row] * e.value * z[e.column];
    }
    return energy;
  }

  std::vector<const LinearPortHamiltonian*> parts_;
  const GaussStages& stages_;
  StageLayout layout_;
  Signature signature_;
  Vector weight_;
  std::vector<StagedLane> lane_;
  double step_s_ = 0.0;
};

}  // namespace

std::unique_ptr<StepBatch> make_staged_linear_batch(
    std::span<const LinearPortHamiltonian* const> parts, const GaussStages& stages) {
  return std::make_unique<StagedLinearBatch>(parts, stages);
}

}  // namespace portwave
