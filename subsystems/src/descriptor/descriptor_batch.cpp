#include "descriptor/descriptor_batch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include <Eigen/Core>

#include "core/affine_batch.hpp"
#include "core/port_closure.hpp"
#include "matrices/quadruple.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/matrices/sparse_rank.hpp"

namespace portwave {

ClosedStepMaps closed_descriptor_step(const ClosedStep& step, const SparseMatrix& C_p,
                                      const ScaledFactors& lhs) {
  using Matrix = Eigen::MatrixXd;
  const Matrix B_p = Matrix(step.B.leftCols(step.p()));
  Eigen::VectorXd scratch(lhs.scratch_size());
  return solve_closed_step<Quadruple, Matrix>(
      step, 16, [&](const Matrix& r1, const Matrix& r2, Matrix& d, Matrix& v) {
        v = r2;
        for (Eigen::Index j = 0; j < step.p(); ++j) {
          v.row(j) /= step.closures[static_cast<std::size_t>(j)].alpha;
        }
        d = r1 + B_p * v;
        for (Eigen::Index c = 0; c < d.cols(); ++c) {
          lhs.solve(d.col(c).data(), d.col(c).data(), scratch.data());
        }
        const Matrix y = C_p * d;
        for (Eigen::Index j = 0; j < step.p(); ++j) {
          const PortClosure& port = step.closures[static_cast<std::size_t>(j)];
          v.row(j) -= port.beta / port.alpha * y.row(j);
        }
        const bool finite = d.allFinite() && v.allFinite();
        const double of_u = v.size() > 0 ? v.cwiseAbs().maxCoeff() : 0.0;
        return finite ? std::max(d.cwiseAbs().maxCoeff(), of_u)
                      : std::numeric_limits<double>::quiet_NaN();
      });
}

namespace {

using Matrix = Eigen::MatrixXd;
using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;

/// One part at a step size and impedances. With the ports closed, u = (s/α)a − κy, κ = β/α,
///   (2E/h − W) δ = W x + B_a a + B_u ū,   W = (J − R)Q − B_p κ B_pᵀQ,   δ = x_mid − x,
///   x⁺ = x + δ + Pδ,   b = σa + C x + (D − σ)a + C_u ū.
/// Increments for the reason given in dense_linear_batch.cpp.
struct DescriptorLane {
  ScaledFactors lhs;
  SparseMatrix W;    // n×n
  Matrix B_a;        // n×p
  SparseMatrix B_u;  // n×q
  RowMatrix map;     // δ of (x, a, ū), n×(n+p+q); empty where the factors are used
};

/// The outgoing waves alone, by one transposed solve per port: δ is solved for in every step.
OutgoingWaves wave_map(DescriptorLane& lane, const SparseMatrix& lhs, const SparseMatrix& inertia,
                       const SparseMatrix& C_p, const std::vector<PortClosure>& closures,
                       const Vector& kappa, const Vector& drive) {
  const Eigen::Index n = lane.W.rows(), p = C_p.rows(), q = lane.B_u.cols();
  RefinedSolves solves(lane.lhs, lhs);
  Matrix y(p, n + p + q);  // of z = (x, a, ū)
  for (Eigen::Index j = 0; j < p; ++j) {
    const Vector row = solves.solve_transposed(Vector(SparseMatrix(C_p.transpose()).col(j)));
    y.row(j).head(n) = (inertia.transpose() * row).transpose();
    y.row(j).segment(n, p) = row.transpose() * lane.B_a;
    y.row(j).tail(q) = (lane.B_u.transpose() * row).transpose();
  }
  Matrix u = -(kappa.asDiagonal() * y);
  u.middleCols(n, p) += Matrix(drive.asDiagonal());
  return outgoing_waves(closures, u, y, n);
}

DescriptorLane make_lane(const DescriptorPortHamiltonian& part,
                         const std::vector<PortClosure>& closures, double h, OutgoingWaves& waves) {
  const DescriptorForm& form = part.form();
  const auto p = static_cast<Eigen::Index>(closures.size());
  const Eigen::Index n = form.E.rows(), q = form.B.cols() - p;
  DescriptorLane lane;
  Vector kappa(p), drive(p);  // u = drive·a − κ y
  for (Eigen::Index j = 0; j < p; ++j) {
    const PortClosure& port = closures[static_cast<std::size_t>(j)];
    kappa[j] = port.beta / port.alpha;
    drive[j] = port.s / port.alpha;
  }
  const SparseMatrix B_p = form.B.leftCols(p);
  const SparseMatrix C_p = SparseMatrix(B_p.transpose()) * form.Q;  // y = C_p x_mid
  lane.W = descriptor_rate(form.J, form.R, form.Q);
  if (p > 0) lane.W -= SparseMatrix(B_p * SparseMatrix(kappa.asDiagonal() * C_p));
  const SparseMatrix inertia = (2.0 / h) * form.E;
  const SparseMatrix lhs = inertia - lane.W;
  if (!lane.lhs.factorise(lhs)) {
    throw ConfigError("", "the implicit step is singular at this step size");
  }
  lane.B_a = Matrix(B_p) * drive.asDiagonal();
  lane.B_u = form.B.rightCols(q);
  if (part.uses_sparse_step_maps()) {
    waves = wave_map(lane, lhs, inertia, C_p, closures, kappa, drive);
  } else {
    const SparseMatrix none(form.B.cols(), form.B.cols());
    ClosedStepMaps maps = closed_descriptor_step({.E = &form.E,
                                                  .JR = form.J - form.R,
                                                  .Q = form.Q,
                                                  .B = form.B,
                                                  .C = SparseMatrix(form.B.transpose()),
                                                  .D = none,
                                                  .closures = closures,
                                                  .step_s = h},
                                                 C_p, lane.lhs);
    lane.map = maps.delta;
    waves = OutgoingWaves(maps.outgoing, std::move(maps.sigma), n);
  }
  if (!waves.C.allFinite() || !waves.D.allFinite() || !waves.C_u.allFinite() ||
      !lane.map.allFinite()) {
    throw ConfigError("", "the implicit step is singular at this step size");
  }
  return lane;
}

/// The energy ledger of a part, from flat entry lists.
class DescriptorEnergy {
 public:
  DescriptorEnergy(const DescriptorPortHamiltonian& part, double step_s)
      : storage_(clean_product(SparseMatrix(part.form().E.transpose()), part.form().Q, 1e-15)) {
    const DescriptorForm& form = part.form();
    append_form(form.Q, 1.0, gradient_);
    append_form(form.R, step_s, dissipation_);
    append_form(SparseMatrix(form.B.rightCols(part.signature().input_size())), step_s, input_);
  }

  /// `z` is scratch of n doubles.
  StepEnergy account(const double* x, const double* x_mid, const double* x_next,
                     const double* input, double* z, int n) const {
    StepEnergy energy;
    energy.change_J = storage_.change(x, x_next);
    if (dissipation_.empty() && input_.empty()) return energy;
    std::fill(z, z + n, 0.0);
    for (const FormEntry& e : gradient_) z[e.row] += e.value * x_mid[e.column];
    for (const FormEntry& e : dissipation_) energy.dissipated_J += e.value * z[e.row] * z[e.column];
    for (const FormEntry& e : input_)
      energy.external_supply_J += z[e.row] * e.value * input[e.column];
    return energy;
  }

 private:
  StorageForm storage_;                 // ½xᵀEᵀQx
  std::vector<FormEntry> gradient_;     // Q
  std::vector<FormEntry> dissipation_;  // hR
  std::vector<FormEntry> input_;        // h B of the external inputs
};

class DescriptorBatch final : public AffineBatch, public StepRoundings {
 public:
  explicit DescriptorBatch(std::span<const Component* const> parts)
      : AffineBatch(static_cast<int>(parts.size()), parts[0]->signature().state_size(),
                    parts[0]->signature().wave_size(), parts[0]->signature().input_size(),
                    /*extra: b⁰, δ and work=*/parts[0]->signature().wave_size() +
                        2 * parts[0]->signature().state_size()) {
    for (const Component* part : parts) {
      parts_.push_back(dynamic_cast<const DescriptorPortHamiltonian*>(part));
    }
    n_ = state_size();
    p_ = wave_size();
    q_ = input_size();
  }

  double scatter_cost_ns() const override { return 5.0 + p_ * p_; }
  double advance_cost_ns() const override {
    const bool sparse = parts_[0]->uses_sparse_step_maps();
    return 20.0 + (sparse ? 20.0 + 2.0 * p_ : 0.5 * (n_ + p_ + q_)) * n_;
  }

  const StepRoundings* roundings() const override { return this; }

  void prepare(double step_s, const double* impedance) override {
    lane_.clear();
    energy_.clear();
    step_s_ = step_s;
    std::vector<double> gamma(static_cast<std::size_t>(p_));
    std::vector<OutgoingWaves> waves;
    for (int l = 0; l < lanes(); ++l) {
      const DescriptorPortHamiltonian& part = *parts_[static_cast<std::size_t>(l)];
      for (int j = 0; j < p_; ++j) {
        gamma[static_cast<std::size_t>(j)] = impedance[j * stride() + l];
      }
      lane_.push_back(make_lane(part, port_closures(part.signature(), step_s, gamma.data()), step_s,
                                waves.emplace_back()));
      energy_.emplace_back(part, step_s);
    }
    set_outgoing(std::move(waves));
  }

  /// As that of a sparse linear part, with x⁺ − x = δ + Pδ; where δ comes from a dense map, it is
  /// known to ε of the terms of that.
  std::optional<double> step_rounding(int l, const double* record, const double* a,
                                      const double* next) const override {
    const DescriptorLane& lane = lane_[static_cast<std::size_t>(l)];
    const DescriptorPortHamiltonian& part = *parts_[static_cast<std::size_t>(l)];
    const DescriptorForm& form = part.form();
    const Vector x = Eigen::Map<const Vector>(state_of(l, record), n_);
    const Vector input = Eigen::Map<const Vector>(state_of(l, record) + n_, q_);
    const Vector after = Eigen::Map<const Vector>(state_of(l, next), n_);
    Vector wave(p_);
    for (int j = 0; j < p_; ++j) wave[j] = a[j * stride() + l];
    const auto projected = [&part](const Vector& v) -> Vector {
      return v - part.kernel() * (part.kernel().transpose() * v);
    };
    const Vector slope =
        form.E.transpose() * (form.Q * after);  // what an error of x⁺ changes H⁺ by
    const Vector work = form.Q.transpose() * (lane.B_u * input);
    const Vector weight = slope + projected(slope) - step_s_ * work;
    const Vector right = lane.W * x + lane.B_a * wave + lane.B_u * input;
    Vector delta(n_), scratch(lane.lhs.scratch_size());
    using step_rounding::terms;
    double sum = 0.0;
    if (lane.map.size() > 0) {
      Vector z(n_ + p_ + q_);
      z << x, wave, input;
      delta = lane.map * z;
      sum += weight.cwiseAbs().dot(terms(lane.map, z));
    } else {
      lane.lhs.solve(right.data(), delta.data(), scratch.data());
      const Vector lambda = lane.lhs.solve_transposed(weight);
      const Vector residual = terms(lane.W, x) + terms(lane.B_a, wave) + terms(lane.B_u, input) +
                              terms(lane.W, delta) + (2.0 / step_s_) * terms(form.E, delta);
      sum += lambda.cwiseAbs().dot(residual);
    }
    sum += slope.cwiseAbs().dot(after.cwiseAbs() + 2.0 * delta.cwiseAbs());
    // H⁺ − H is a sum over ½Q(x + x⁺).
    sum += 0.5 * (terms(form.Q, x) + terms(form.Q, after)).dot(terms(form.E, Vector(after - x)));
    sum += step_s_ * work.cwiseAbs().dot(x.cwiseAbs() + delta.cwiseAbs());
    // The kernel of E is known up to rounding: what its algebraic components seem to store.
    const SparseMatrix& V = part.kernel();
    const auto of_kernel = [&](const Vector& v) -> Vector {
      const Vector along = (V.transpose() * v).cwiseAbs();
      const Vector rest = SparseMatrix(form.E * V).cwiseAbs() * along;
      return terms(form.Q, rest + step_rounding::kPerTerm * terms(form.E, V.cwiseAbs() * along));
    };
    const Vector moved = after - x, both = x + after, mid = x + delta;
    const double of_kernels =
        mid.cwiseAbs().dot(of_kernel(delta)) +
        0.5 * (both.cwiseAbs().dot(of_kernel(moved)) + moved.cwiseAbs().dot(of_kernel(both)));
    // The work of the inputs: ε of the terms of z = Q(x + δ).
    const Vector of_z = terms(form.Q, x) + terms(form.Q, delta);
    sum += step_s_ * of_z.dot(terms(lane.B_u, input));
    return step_rounding::kPerTerm * sum + of_kernels +
           step_rounding::of_waves(outgoing(l), x, wave, input);
  }

 private:
  StepFault advance_state(int l, const Lane& frozen, const double* a, double* next, double* b,
                          StepEnergy& energy) const override {
    (void)scatter_lane(l, frozen, a, b);
    const auto index = static_cast<std::size_t>(l);
    double* delta = frozen.extra + p_;
    double* work = delta + n_;
    find_delta(lane_[index], frozen, a, delta, work);
    for (int i = 0; i < n_; ++i) next[i] = frozen.x[i] + 2.0 * delta[i];
    const SparseMatrix& V = parts_[index]->kernel();
    for (int k = 0; k < V.outerSize(); ++k) {  // P = I − VVᵀ
      double along = 0.0;
      for (SparseMatrix::InnerIterator it(V, k); it; ++it) along += it.value() * delta[it.row()];
      for (SparseMatrix::InnerIterator it(V, k); it; ++it) next[it.row()] -= along * it.value();
    }
    bool finite = true;
    for (int i = 0; i < n_; ++i) {
      delta[i] += frozen.x[i];
      finite = finite && std::isfinite(next[i]);
    }
    energy = energy_[index].account(frozen.x, delta, next, frozen.input, work, n_);
    return finite ? StepFault::none : StepFault::not_finite;
  }

  void find_delta(const DescriptorLane& lane, const Lane& frozen, const double* a, double* delta,
                  double* work) const {
    if (lane.map.size() > 0) {
      for (int i = 0; i < n_; ++i) {
        const double* row = lane.map.data() + static_cast<std::ptrdiff_t>(i) * (n_ + p_ + q_);
        double sum = 0.0;
        for (int j = 0; j < n_; ++j) sum += row[j] * frozen.x[j];
        for (int j = 0; j < p_; ++j) sum += row[n_ + j] * a[j];
        for (int j = 0; j < q_; ++j) sum += row[n_ + p_ + j] * frozen.input[j];
        delta[i] = sum;
      }
      return;
    }
    for (int i = 0; i < n_; ++i) {
      double sum = 0.0;
      for (int j = 0; j < p_; ++j) sum += lane.B_a(i, j) * a[j];
      delta[i] = sum;
    }
    const auto add = [delta](const SparseMatrix& M, const double* x) {
      for (int j = 0; j < M.outerSize(); ++j) {
        if (x[j] == 0.0) continue;
        for (SparseMatrix::InnerIterator it(M, j); it; ++it) delta[it.row()] += it.value() * x[j];
      }
    };
    add(lane.W, frozen.x);
    add(lane.B_u, frozen.input);
    lane.lhs.solve(delta, delta, work);
  }

  std::vector<const DescriptorPortHamiltonian*> parts_;
  std::vector<DescriptorLane> lane_;
  std::vector<DescriptorEnergy> energy_;
  double step_s_ = 0.0;
  int n_ = 0, p_ = 0, q_ = 0;
};

}  // namespace

std::unique_ptr<StepBatch> make_descriptor_batch(std::span<const Component* const> parts) {
  return std::make_unique<DescriptorBatch>(parts);
}

}  // namespace portwave
