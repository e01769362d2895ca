#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include <Eigen/Dense>

#include "core/affine_batch.hpp"
#include "linear/linear_batches.hpp"
#include "linear/linear_energy.hpp"
#include "matrices/quadruple.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/matrices/decompositions.hpp"
#include "portwave/subsystems/matrices/sparse_factors.hpp"

namespace portwave {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

/// One part with many states. The implicit step is factorised once; the wave map is dense in its
/// few ports, the state is advanced by one pair of triangular solves:
///   (2/h − W)(x̂_mid − x̂) = W x̂ + B_a a + B_u ū,  x⁺ = x + 2(x_mid − x),  b = σa + C x + (D − σ)a + C_u ū,
/// with x̂ᵢ = √Q_ii xᵢ. Increments for the reason given in dense_linear_batch.cpp.
/// Not by ClosedStep, which solves for all n columns of the state: here the ports are closed first,
/// and then one transposed solve per port is enough.
struct SparseLane {
  SparseFactors lhs;
  SparseMatrix W;    // n×n
  Vector d;          // x̂ = d∘x
  Matrix B_a;        // n×p
  SparseMatrix B_u;  // n×q
};

/// A part in the coordinates x̂, its ports closed by u = M⁻¹(s a − β y₀), y₀ = CyQ x̂ + Dx ū.
struct ClosedPart {
  SparseMatrix A, Q, B, CyQ;
  SparseMatrix Dx;  // p×q
  Matrix Dp;        // p×p
  Matrix K;         // M⁻¹ β
  Matrix M_inv_s;
};

ClosedPart close_ports(const LinearPortHamiltonian& part, const std::vector<PortClosure>& closures,
                       const Vector& d) {
  const auto p = static_cast<Eigen::Index>(closures.size());
  const Eigen::Index q = part.signature().input_size();
  const Structure& st = part.structure();
  ClosedPart out;
  const Vector d_inv = d.cwiseInverse();
  out.Q = d_inv.asDiagonal() * part.Q() * d_inv.asDiagonal();
  out.A = d.asDiagonal() * SparseMatrix(st.J - st.R) * d.asDiagonal();
  out.B = d.asDiagonal() * SparseMatrix(st.G - st.P);
  const SparseMatrix Cy = SparseMatrix((st.G + st.P).transpose()) * d.asDiagonal();
  const SparseMatrix Dy = st.S + st.N;
  out.Dp = Matrix(SparseMatrix(Dy.leftCols(p)).topRows(p));

  Matrix M = Matrix::Zero(p, p);
  Matrix beta = Matrix::Zero(p, p), s = beta;
  for (Eigen::Index j = 0; j < p; ++j) {
    const PortClosure& c = closures[static_cast<std::size_t>(j)];
    beta(j, j) = c.beta;
    s(j, j) = c.s;
    M(j, j) = c.alpha;
  }
  M += beta * out.Dp;
  const Matrix M_inv = p > 0 ? lu_inverse(M) : Matrix(0, 0);
  out.K = M_inv * beta;
  out.M_inv_s = M_inv * s;
  out.CyQ = SparseMatrix(Cy.topRows(p)) * out.Q;
  out.Dx = SparseMatrix(Dy.rightCols(q)).topRows(p);
  return out;
}

/// The outgoing waves as maps of (x, a, ū), from what the ports see of x_mid as a map of (x̂, a, ū).
OutgoingWaves wave_map(const SparseLane& lane, const ClosedPart& part,
                       const std::vector<PortClosure>& closures, const Matrix& at_ports) {
  const auto p = static_cast<Eigen::Index>(closures.size());
  const Eigen::Index q = lane.B_u.cols(), n = at_ports.cols() - p - q;
  Matrix u = -part.K * at_ports;
  u.middleCols(n, p) += part.M_inv_s;
  u.rightCols(q) -= part.K * part.Dx;
  Matrix y = at_ports + part.Dp * u;
  y.rightCols(q) += part.Dx;
  OutgoingWaves waves = outgoing_waves(closures, u, y, n);
  waves.C = waves.C * lane.d.asDiagonal();
  return waves;
}

SparseLane make_lane(const LinearPortHamiltonian& part, const std::vector<PortClosure>& closures,
                     double h, OutgoingWaves& waves) {
  const Eigen::Index n = part.signature().state_size();
  const auto p = static_cast<Eigen::Index>(closures.size());
  const Eigen::Index q = part.signature().input_size();
  SparseLane lane;
  const double two_over_h = 2.0 / h;
  lane.d = energy_scaling(part.Q());
  const ClosedPart closed = close_ports(part, closures, lane.d);
  const SparseMatrix B_p = closed.B.leftCols(p);

  SparseMatrix identity(n, n);
  identity.setIdentity();
  lane.W = closed.A * closed.Q;
  const auto sparse_K = [&] { return SparseMatrix(closed.K.sparseView()); };
  if (p > 0) lane.W -= SparseMatrix(B_p * SparseMatrix(sparse_K() * closed.CyQ));
  SparseMatrix lhs = two_over_h * identity - lane.W;
  lhs.makeCompressed();
  if (!lane.lhs.factorise(lhs)) {
    throw ConfigError("", "the implicit step is singular at this step size");
  }
  lane.B_a = B_p * closed.M_inv_s;
  lane.B_u = closed.B.rightCols(q);
  if (p > 0) lane.B_u -= SparseMatrix(B_p * SparseMatrix(sparse_K() * closed.Dx));
  RefinedSolves solves(lane.lhs, lhs);
  Matrix Xa(n, p);
  for (Eigen::Index j = 0; j < p; ++j) Xa.col(j) = solves.solve(lane.B_a.col(j));
  // x_mid at the ports, CyQ x_mid, as a function of z = (x̂, a, ū), by one transposed solve per
  // port however many inputs there are; then u and y.
  Matrix at_ports(p, n + p + q);
  for (Eigen::Index j = 0; j < p; ++j) {
    const Vector row = solves.solve_transposed(Vector(closed.CyQ.transpose().col(j)));
    at_ports.row(j).head(n) = two_over_h * row.transpose();
    at_ports.row(j).tail(q) = (lane.B_u.transpose() * row).transpose();
  }
  at_ports.middleCols(n, p) = closed.CyQ * Xa;
  waves = wave_map(lane, closed, closures, at_ports);
  return lane;
}

class SparseLinearBatch final : public AffineBatch, public StepRoundings {
 public:
  explicit SparseLinearBatch(std::span<const Component* const> parts)
      : AffineBatch(static_cast<int>(parts.size()), parts[0]->signature().state_size(),
                    parts[0]->signature().wave_size(), parts[0]->signature().input_size(),
                    /*extra: b⁰ and work=*/2 * parts[0]->signature().wave_size() +
                        2 * parts[0]->signature().state_size() +
                        parts[0]->signature().input_size()) {
    for (const Component* part : parts) {
      parts_.push_back(dynamic_cast<const LinearPortHamiltonian*>(part));
    }
    n_ = state_size();
    p_ = wave_size();
    q_ = input_size();
  }

  double scatter_cost_ns() const override { return 5.0 + p_ * p_; }
  double advance_cost_ns() const override { return 20.0 + (20.0 + 2.0 * p_) * n_; }

  const StepRoundings* roundings() const override { return this; }

  void prepare(double step_s, const double* impedance) override {
    step_s_ = step_s;
    lane_.clear();
    energy_.clear();
    std::vector<double> gamma(static_cast<std::size_t>(p_));
    std::vector<OutgoingWaves> waves;
    for (int l = 0; l < lanes(); ++l) {
      const LinearPortHamiltonian& part = *parts_[static_cast<std::size_t>(l)];
      for (int j = 0; j < p_; ++j) {
        gamma[static_cast<std::size_t>(j)] = impedance[j * stride() + l];
      }
      auto closures = port_closures(part.signature(), step_s, gamma.data());
      lane_.push_back(make_lane(part, closures, step_s, waves.emplace_back()));
      energy_.emplace_back(part, std::move(closures), step_s);
    }
    set_outgoing(std::move(waves));
  }

  /// A solve leaves the residual ε(|W||x̂| + … + |2/h − W||δ|); λ = (2/h − W)⁻ᵀ∂H/∂x̂ at x⁺ tells
  /// what energy that is. States are known to ε of themselves, and the work of an input to ε of the
  /// terms of what it acts on.
  std::optional<double> step_rounding(int l, const double* record, const double* a,
                                      const double* next) const override {
    const SparseLane& lane = lane_[static_cast<std::size_t>(l)];
    const OutgoingWaves& map = outgoing(l);
    const SparseMatrix& Q = parts_[static_cast<std::size_t>(l)]->Q();
    const Vector x = Eigen::Map<const Vector>(state_of(l, record), n_);
    const Vector input = Eigen::Map<const Vector>(state_of(l, record) + n_, q_);
    const Vector after = Eigen::Map<const Vector>(state_of(l, next), n_);
    Vector wave(p_);
    for (int j = 0; j < p_; ++j) wave[j] = a[j * stride() + l];
    const LinearEnergy& energy = energy_[static_cast<std::size_t>(l)];
    Vector shifted = after;  // less what the inputs work on
    for (const FormEntry& e : energy.output()) {
      if (e.column < n_) shifted[e.column] -= 0.5 * e.value * input[e.row];
    }
    const Vector slope = Q * shifted;  // what an error of x⁺ changes the balance by
    const Vector scaled = lane.d.cwiseProduct(x), moved = 0.5 * lane.d.cwiseProduct(after - x);
    const Vector lambda = lane.lhs.solve_transposed(2.0 * slope.cwiseQuotient(lane.d));
    using step_rounding::terms;
    Vector residual = terms(lane.W, scaled) + terms(lane.B_a, wave) + terms(lane.B_u, input) +
                      terms(lane.W, moved) + (2.0 / step_s_) * moved.cwiseAbs();
    // W itself is a rounded product, W = ÂQ̂ − B̂Kβ⁻¹βĈQ̂ with B̂K = B_a β/s.
    const LinearPortHamiltonian& part = *parts_[static_cast<std::size_t>(l)];
    const Structure& st = part.structure();
    const Vector effort_terms = terms(Q, Vector(0.5 * (x + after)));
    residual += lane.d.cwiseProduct(terms(st.J, effort_terms) + terms(st.R, effort_terms));
    const Vector of_y = terms(SparseMatrix((st.G + st.P).transpose()), effort_terms);
    for (int j = 0; j < p_; ++j) {
      residual += std::abs(energy_[static_cast<std::size_t>(l)].output_per_source(j)) * of_y[j] *
                  lane.B_a.col(j).cwiseAbs();
    }
    double sum = lambda.cwiseAbs().dot(residual) + slope.cwiseAbs().dot(after.cwiseAbs());
    const Vector slope_terms = 0.5 * (terms(Q, x) + terms(Q, after));
    sum += slope_terms.dot((after - x).cwiseAbs());  // H⁺ − H is a sum over ½Q(x + x⁺)
    const Vector wave_terms =
        wave.cwiseAbs() + terms(map.C, x) + terms(map.D, wave) + terms(map.C_u, input);
    for (const FormEntry& e : energy.output()) {
      if (e.column >= n_ + p_) continue;
      const double of_z =
          e.column < n_ ? slope_terms[e.column]
                        : wave_terms[e.column - n_] * std::abs(energy.per_wave(e.column - n_));
      sum += std::abs(e.value * input[e.row]) * of_z;
    }
    return step_rounding::kPerTerm * sum + step_rounding::of_waves(map, x, wave, input);
  }

 private:
  StepFault advance_state(int l, const Lane& frozen, const double* a, double* next, double* b,
                          StepEnergy& energy) const override {
    (void)scatter_lane(l, frozen, a, b);
    const auto index = static_cast<std::size_t>(l);
    const SparseLane& lane = lane_[index];
    double* scratch = frozen.extra + p_;
    std::fill(next, next + n_, 0.0);
    for (int j = 0; j < n_; ++j) {
      const double scaled = lane.d[j] * frozen.x[j];
      for (SparseMatrix::InnerIterator it(lane.W, j); it; ++it) {
        next[it.row()] += it.value() * scaled;
      }
    }
    for (int i = 0; i < n_; ++i) {
      double sum = next[i];
      for (int j = 0; j < p_; ++j) sum += lane.B_a(i, j) * a[j];
      next[i] = sum;
    }
    bool driven = false;
    for (int j = 0; j < q_; ++j) {
      if (frozen.input[j] == 0.0) continue;
      driven = true;
      for (SparseMatrix::InnerIterator it(lane.B_u, j); it; ++it) {
        next[it.row()] += it.value() * frozen.input[j];
      }
    }
    lane.lhs.solve(next, next, scratch);
    bool finite = true;
    for (int i = 0; i < n_; ++i) {
      next[i] = frozen.x[i] + 2.0 * (next[i] / lane.d[i]);
      finite = finite && std::isfinite(next[i]);
    }
    energy = energy_[index].account(frozen.x, next, a, b, driven ? frozen.input : nullptr, scratch);
    return finite ? StepFault::none : StepFault::not_finite;
  }

  std::vector<const LinearPortHamiltonian*> parts_;
  std::vector<SparseLane> lane_;
  std::vector<LinearEnergy> energy_;
  double step_s_ = 0.0;
  int n_ = 0, p_ = 0, q_ = 0;
};

}  // namespace

std::unique_ptr<StepBatch> make_sparse_linear_batch(std::span<const Component* const> parts) {
  return std::make_unique<SparseLinearBatch>(parts);
}

}  // namespace portwave
