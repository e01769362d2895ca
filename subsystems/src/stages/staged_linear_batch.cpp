#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <Eigen/Core>

#include "base/quadruple.hpp"
#include "batches/affine_batch.hpp"
#include "batches/step_rounding.hpp"
#include "linear/linear_energy.hpp"
#include "linear/plain_lu.hpp"
#include "portwave/subsystems/base/equal_classes.hpp"
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

/// δ and y as maps of (x, u, ū), ports open.
template <class Wide>
struct OpenStages {
  using Dense = typename PlainLu<Wide>::Dense;
  Dense delta, y;
  double inaccuracy = 0.0;  ///< of δ, relative to the largest entry of a column

  OpenStages() = default;
  /// Equations are scaled to roots of energies.
  OpenStages(const StagedForm& form, const SparseMatrix& Q, double step_s) {
    const StageLayout& l = form.layout;
    const Eigen::Index N = l.states(), n = l.n, p = l.ports(), q = l.inputs();
    const Structure& s = form.structure;
    const Vector d = energy_scaling(Q).replicate(l.stages, 1);  // of each stage
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
    Dense z = product(form.Q_delta, delta);
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

/// δ, u and y as maps of (x, a, ū).
struct StageMaps {
  Matrix delta, u, y;
};

/// Ports closed by αu + βy = s a.
template <class Wide>
StageMaps close_ports(const OpenStages<Wide>& open, const StageLayout& l,
                      const std::vector<PortClosure>& closures) {
  using Dense = typename OpenStages<Wide>::Dense;
  const Eigen::Index n = l.n, p = l.ports(), q = l.inputs();
  Dense lhs(p, p), rhs = Dense::Zero(p, n + p + q), u(p, n + p + q);
  for (Eigen::Index j = 0; j < p; ++j) {
    const PortClosure& port = closures[static_cast<std::size_t>(j)];
    const Wide beta = Wide(port.beta);
    for (Eigen::Index k = 0; k < p; ++k) lhs(j, k) = beta * open.y(j, n + k);
    lhs(j, j) += Wide(port.alpha);
    for (Eigen::Index k = 0; k < n; ++k) rhs(j, k) = -beta * open.y(j, k);
    rhs(j, n + j) = Wide(port.s);
    for (Eigen::Index k = n + p; k < n + p + q; ++k) rhs(j, k) = -beta * open.y(j, k);
  }
  if (p > 0) {
    PlainLu<Wide> lu(p);
    lu.compute(lhs);
    lu.solve(rhs, u);
  }
  const auto closed = [&](const Dense& of) -> Matrix {
    Dense out = of.middleCols(n, p).lazyProduct(u);
    for (Eigen::Index i = 0; i < of.rows(); ++i) {
      for (Eigen::Index k = 0; k < n; ++k) out(i, k) += of(i, k);
      for (Eigen::Index k = n + p; k < n + p + q; ++k) out(i, k) += of(i, k);
    }
    return out.template cast<double>();
  };
  return {closed(open.delta), u.template cast<double>(), closed(open.y)};
}

/// The stages of one part at one step size. The costly solve is made once: other impedances only
/// close the ports anew.
class StageSolution {
 public:
  StageSolution(const LinearPortHamiltonian& part, const GaussStages& stages, double step_s)
      : form_(part, stages), open_(form_, part.Q(), step_s) {
    constexpr double kEnough = 1e-17;  // what doubles resolve
    if (!(open_.inaccuracy <= kEnough)) precise_.emplace(form_, part.Q(), step_s);
  }

  const StagedForm& form() const { return form_; }
  StageMaps closed(const std::vector<PortClosure>& closures) const {
    return precise_ ? close_ports(*precise_, form_.layout, closures)
                    : close_ports(open_, form_.layout, closures);
  }

 private:
  StagedForm form_;
  OpenStages<long double> open_;
  std::optional<OpenStages<Quadruple>> precise_;  // where the step is ill-conditioned
};

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

StagedLane make_staged_lane(const LinearPortHamiltonian& part, const StageSolution& solution,
                            std::vector<PortClosure> closures, double step_s,
                            OutgoingWaves& waves) {
  const StagedForm& form = solution.form();
  const StageLayout& l = form.layout;
  const StageMaps maps = solution.closed(closures);
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

/// Linear parts with stages, lane by lane: dense maps, one set for all lanes with the same part and
/// impedances.
class StagedLinearBatch final : public AffineBatch {
 public:
  StagedLinearBatch(std::span<const LinearPortHamiltonian* const> parts, const GaussStages& stages)
      : StagedLinearBatch(parts, stages, StagedForm(*parts[0], stages).layout) {}

  double scatter_cost_ns() const override { return 5.0 + wave_size() * wave_size(); }
  double advance_cost_ns() const override {
    return 30.0 + layout_.states() * (4.0 + 0.5 * (layout_.n + layout_.ports() + layout_.inputs()));
  }

  void prepare(double step_s, const double* impedance) override {
    if (step_s != step_s_) solutions_.clear();
    step_s_ = step_s;
    distinct_.clear();
    class_of_.clear();
    EqualClasses classes;
    std::vector<std::vector<double>> gammas;
    std::vector<const LinearPortHamiltonian*> of_class;
    std::vector<OutgoingWaves> distinct_waves, waves;
    for (int l = 0; l < lanes(); ++l) {
      const LinearPortHamiltonian* const part = parts_[static_cast<std::size_t>(l)];
      std::vector<double> gamma;
      for (int j = 0; j < wave_size(); ++j) gamma.push_back(impedance[j * stride() + l]);
      const auto is_equal = [&](int index) {
        const auto i = static_cast<std::size_t>(index);
        return of_class[i] == part && gammas[i] == gamma;
      };
      const int own = classes.find_or_add(std::hash<const void*>()(part), is_equal);
      if (own == static_cast<int>(distinct_.size())) {
        const StageSolution& solution =
            solutions_.try_emplace(part, *part, stages_, step_s).first->second;
        distinct_.push_back(make_staged_lane(*part, solution,
                                             port_closures(signature_, step_s, gamma.data()),
                                             step_s, distinct_waves.emplace_back()));
        gammas.push_back(std::move(gamma));
        of_class.push_back(part);
      }
      class_of_.push_back(own);
      waves.push_back(distinct_waves[static_cast<std::size_t>(own)]);
    }
    set_outgoing(std::move(waves));
  }

  /// Every δ is known to ε of its terms, x⁺ besides to ε of itself, weighed by the slope of H there;
  /// the work of inputs to ε of the terms of z.
  std::optional<double> step_rounding(int l, const double* record, const double* a,
                                      const double* next) const override {
    const StagedLane& lane = lane_of_class(l);
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

  const StagedLane& lane_of_class(int l) const {
    return distinct_[static_cast<std::size_t>(class_of_[static_cast<std::size_t>(l)])];
  }

  StepFault advance_lane(int l, const Lane& frozen, const double* a, double* next, double* b,
                         StepEnergy& energy) const override {
    (void)scatter_lane(l, frozen, a, b);
    const StagedLane& lane = lane_of_class(l);
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
  std::map<const LinearPortHamiltonian*, StageSolution> solutions_;
  std::vector<StagedLane> distinct_;
  std::vector<int> class_of_;  // by lane
  double step_s_ = 0.0;
};

}  // namespace

std::unique_ptr<StepBatch> make_staged_linear_batch(
    std::span<const LinearPortHamiltonian* const> parts, const GaussStages& stages) {
  return std::make_unique<StagedLinearBatch>(parts, stages);
}

}  // namespace portwave
