#include "portwave/coupling/reference/gauss_reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "portwave/coupling/system/step_clock.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/base/typical_state.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/matrices/decompositions.hpp"
#include "reference/scaled_sparse_lu.hpp"

namespace portwave {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using Entry = Eigen::Triplet<double>;

constexpr int kMostSteps = 60;
constexpr double kEnough = 4.0 * std::numeric_limits<double>::epsilon();
/// Below this a step that gains less than half has met round-off.
constexpr double kNoise = 1e-11;

/// Nodes on [0, 1] and weights of the Gauss–Legendre rule, by Newton on the Legendre polynomial.
struct GaussRule {
  VectorXd node, weight;

  explicit GaussRule(int points) : node(points), weight(points) {
    for (int k = 0; k < points; ++k) {
      double z = std::cos(std::numbers::pi * (points - k - 0.25) / (points + 0.5)), slope = 0.0;
      for (int sweep = 0; sweep < 50; ++sweep) {
        double value = z, below = 1.0;
        for (int d = 2; d <= points; ++d) {
          const double above = ((2.0 * d - 1.0) * z * value - (d - 1.0) * below) / d;
          below = value;
          value = above;
        }
        slope = points == 1 ? 1.0 : points * (below - z * value) / (1.0 - z * z);
        z -= value / slope;
      }
      node[k] = 0.5 * (1.0 + z);
      weight[k] = 1.0 / ((1.0 - z * z) * slope * slope);
    }
  }
};

/// What a step needs of its stages. The Lagrange polynomials are found by interpolating the powers of
/// τ at the nodes, not taken from a table.
struct Stages {
  VectorXd c, b;
  MatrixXd to_stage;  ///< ∫₀^cᵢ lⱼ
  MatrixXd reach;     ///< ∫₀^τₖ lⱼ, by points of the quadrature
  MatrixXd average;   ///< wₖ lᵢ(τₖ)/bᵢ, by stages and points

  explicit Stages(int count) {
    const GaussRule own(count), fine(10);
    c = own.node;
    b = own.weight;
    MatrixXd powers(count, count);  // τ^m at the nodes
    for (int i = 0; i < count; ++i) {
      for (int m = 0; m < count; ++m) powers(i, m) = std::pow(c[i], m);
    }
    const MatrixXd coefficients = lu_inverse(powers);  // of lⱼ, column by column
    const auto integrals = [&](const VectorXd& at) {
      MatrixXd of_power(at.size(), count);
      for (Eigen::Index k = 0; k < at.size(); ++k) {
        for (int m = 0; m < count; ++m) of_power(k, m) = std::pow(at[k], m + 1) / (m + 1);
      }
      return MatrixXd(of_power * coefficients);
    };
    to_stage = integrals(c);
    reach = integrals(fine.node);
    average.resize(count, fine.node.size());
    for (Eigen::Index k = 0; k < fine.node.size(); ++k) {
      VectorXd power(count);
      for (int m = 0; m < count; ++m) power[m] = std::pow(fine.node[k], m);
      const VectorXd l = coefficients.transpose() * power;
      for (int i = 0; i < count; ++i) average(i, k) = fine.weight[k] * l[i] / b[i];
    }
  }
};

struct PlacedPart {
  const Part* placed;
  const Subsystem* part;
  int state;  ///< first of its states, of one stage
  int port;   ///< first of its scalar ports
  int n, p, m;
  std::vector<bool> effort_in;
  std::vector<double> typical;
  VectorXd x;
  MatrixXd external;   ///< m × stages; the rows of ports are zero
  MatrixXd constant;   ///< ∇²H of linear parts, else empty
  MatrixXd E;          ///< of descriptor parts, else empty
  MatrixXd algebraic;  ///< the orthogonal projector onto ker E
};

}  // namespace

/// The unknowns are, stage by stage, (Δᵢ, eᵢ, fᵢ).
struct GaussReference::Impl {
  const System& system;
  double h;
  Stages stages;
  std::vector<PlacedPart> blocks;
  int states = 0, ports = 0;
  StepClock clock;
  VectorXd effort, flow;
  VectorXd F, w;
  ScaledSparseLu lu;

  Impl(const System& coupled, double step_s, int count)
      : system(coupled), h(step_s), stages(checked(coupled, step_s, count)) {
    for (const Part& part : system.parts()) {
      const Subsystem& physics = *part.port_hamiltonian();
      PlacedPart b{&part,
                   &physics,
                   states,
                   ports,
                   physics.signature().state_size(),
                   physics.signature().wave_size(),
                   0,
                   {},
                   physics.typical_state(),
                   {},
                   {},
                   {},
                   {},
                   {}};
      b.m = b.p + physics.signature().input_size();
      for (const Port& port : physics.signature().ports) {
        b.effort_in.insert(b.effort_in.end(), static_cast<std::size_t>(port.dimension),
                           port.causality == Causality::effort_in);
      }
      b.x = Eigen::Map<const VectorXd>(part.initial_state.data(), b.n);
      b.external = MatrixXd::Zero(b.m, count);
      if (physics.is_linear()) b.constant = hessian(b, VectorXd::Zero(b.n));
      if (const SparseMatrix* E = physics.linear_form().E) {
        b.E = *E;
        const SingularValues svd = singular_values(b.E);
        const auto rank = (svd.values.array() > 1e-12 * svd.values[0]).count();
        const MatrixXd kernel = svd.right.rightCols(b.n - rank);
        b.algebraic = kernel * kernel.transpose();
      }
      states += b.n;
      ports += b.p;
      blocks.push_back(std::move(b));
    }
    effort.setZero(ports);
    flow.setZero(ports);
  }

  static int checked(const System& system, double step_s, int count) {
    Issues issues;
    if (!(step_s > 0.0) || !std::isfinite(step_s)) {
      issues.push_back(
          {"/step_s", fmt::format("must be > 0 and finite, got {}", shown_number(step_s))});
    }
    if (count < 1 || count > 3) {
      issues.push_back({"/stages", fmt::format("must be 1 to 3, got {}", count)});
    }
    for (std::size_t i = 0; i < system.parts().size(); ++i) {
      const Part& part = system.parts()[i];
      if (auto defect = wave_only_defect(part, i)) issues.push_back(*std::move(defect));
    }
    throw_if_any(std::move(issues));
    return count;
  }

  int count() const { return static_cast<int>(stages.c.size()); }
  int per_stage() const { return states + 2 * ports; }
  int state_at(int stage, int i) const { return stage * per_stage() + i; }
  int effort_at(int stage, int port) const { return stage * per_stage() + states + port; }
  int flow_at(int stage, int port) const { return effort_at(stage, port) + ports; }
  int input_at(const PlacedPart& b, int stage, int j) const {
    return b.effort_in[static_cast<std::size_t>(j)] ? effort_at(stage, b.port + j)
                                                    : flow_at(stage, b.port + j);
  }
  int output_at(const PlacedPart& b, int stage, int j) const {
    return b.effort_in[static_cast<std::size_t>(j)] ? flow_at(stage, b.port + j)
                                                    : effort_at(stage, b.port + j);
  }

  /// x + Σⱼ row(j) Δⱼ
  VectorXd moved(const PlacedPart& b, const VectorXd& z, const Eigen::RowVectorXd& row) const {
    VectorXd x = b.x;
    for (int j = 0; j < count(); ++j) x += row[j] * z.segment(state_at(j, b.state), b.n);
    return x;
  }

  MatrixXd hessian(const PlacedPart& b, const VectorXd& x) const {
    MatrixXd H(b.n, b.n);
    VectorXd at = x, ahead(b.n), back(b.n);
    for (int j = 0; j < b.n; ++j) {
      const double reach = difference_step(b.typical[static_cast<std::size_t>(j)], x[j]);
      at[j] = x[j] + reach;
      b.part->gradient(at.data(), ahead.data());
      at[j] = x[j] - reach;
      b.part->gradient(at.data(), back.data());
      at[j] = x[j];
      H.col(j) = (ahead - back) / (2.0 * reach);
    }
    return H;
  }

  /// F(z), the magnitudes w of its terms and, if asked for, ∂F/∂z; a structure that depends on the
  /// state is held in the derivative.
  double evaluate(const VectorXd& z, std::vector<Entry>* jacobian) {
    F.setZero(count() * per_stage());
    w.setZero(F.size());
    for (const PlacedPart& b : blocks) add_block(b, z, jacobian);
    for (int i = 0; i < count(); ++i) add_junctions(i, z, jacobian);
    double largest = 0.0;
    const double whole = w.maxCoeff();
    for (Eigen::Index k = 0; k < F.size(); ++k) {
      if (F[k] == 0.0) continue;
      // What is noise beside the rest of the system is judged by that.
      largest = std::max(largest, std::abs(F[k]) / (w[k] + 1e-16 * whole));
    }
    return F.allFinite() ? largest : std::numeric_limits<double>::infinity();
  }

  void add_block(const PlacedPart& b, const VectorXd& z, std::vector<Entry>* jacobian) {
    MatrixXd g = MatrixXd::Zero(b.n, count()), g_size = g;
    std::vector<MatrixXd> slope(static_cast<std::size_t>(count() * count()),
                                MatrixXd::Zero(b.n, b.n));
    VectorXd at_point(b.n);
    for (Eigen::Index k = 0; k < stages.average.cols(); ++k) {
      const VectorXd x = moved(b, z, stages.reach.row(k));
      b.part->gradient(x.data(), at_point.data());
      const MatrixXd H = b.part->is_linear() ? b.constant : hessian(b, x);
      const VectorXd size = at_point.cwiseAbs() + H.cwiseAbs() * (b.x.cwiseAbs() + x.cwiseAbs());
      for (int i = 0; i < count(); ++i) {
        g.col(i) += stages.average(i, k) * at_point;
        g_size.col(i) += std::abs(stages.average(i, k)) * size;
        for (int j = 0; j < count(); ++j) {
          slope[static_cast<std::size_t>(i * count() + j)] +=
              stages.average(i, k) * stages.reach(k, j) * H;
        }
      }
    }
    for (int i = 0; i < count(); ++i) {
      Structure s = b.part->structure();
      if (!b.part->constant_structure()) {
        const VectorXd x = moved(b, z, stages.to_stage.row(i));
        b.part->structure_at(x.data(), s);
      }
      const MatrixXd A = s.J - s.R, B = s.G - s.P, C = MatrixXd(s.G + s.P).transpose(),
                     D = s.S + s.N;
      VectorXd u = b.external.col(i);
      for (int j = 0; j < b.p; ++j) u[j] = z[input_at(b, i, j)];
      const VectorXd moves = z.segment(state_at(i, b.state), b.n);
      const VectorXd delta = b.E.size() > 0 ? VectorXd(b.E * moves) : moves;
      F.segment(state_at(i, b.state), b.n) = delta - h * (A * g.col(i) + B * u);
      w.segment(state_at(i, b.state), b.n) =
          (b.E.size() > 0 ? VectorXd(b.E.cwiseAbs() * moves.cwiseAbs()) : delta.cwiseAbs()) +
          h * (A.cwiseAbs() * g_size.col(i) + B.cwiseAbs() * u.cwiseAbs());
      const VectorXd y = C * g.col(i) + D * u;
      const VectorXd y_size = C.cwiseAbs() * g_size.col(i) + D.cwiseAbs() * u.cwiseAbs();
      for (int j = 0; j < b.p; ++j) {
        const int row = effort_at(i, b.port + j);
        const double out = z[output_at(b, i, j)];
        F[row] = out - y[j];
        w[row] = std::abs(out) + y_size[j];
      }
      if (jacobian == nullptr) continue;
      for (int j = 0; j < count(); ++j) {
        const MatrixXd& own = slope[static_cast<std::size_t>(i * count() + j)];
        MatrixXd of_state = -h * A * own;
        if (i == j && b.E.size() > 0) of_state += b.E;
        if (i == j && b.E.size() == 0) of_state.diagonal().array() += 1.0;
        put(state_at(i, b.state), state_at(j, b.state), of_state, *jacobian);
        put(effort_at(i, b.port), state_at(j, b.state), (-C * own).topRows(b.p), *jacobian);
      }
      for (int j = 0; j < b.p; ++j) {
        const int row = effort_at(i, b.port + j);
        jacobian->emplace_back(row, output_at(b, i, j), 1.0);
        put(state_at(i, b.state), input_at(b, i, j), -h * B.col(j), *jacobian);
        put(effort_at(i, b.port), input_at(b, i, j), -D.col(j).head(b.p), *jacobian);
      }
    }
  }

  void add_junctions(int stage, const VectorXd& z, std::vector<Entry>* jacobian) {
    int row = flow_at(stage, 0);
    for (const Junction& junction : system.junctions()) {
      const DiracStructure& d = junction.dirac;
      for (int i = 0; i < d.size(); ++i, ++row) {
        for (int j = 0; j < d.size(); ++j) {
          const int port = junction.waves[static_cast<std::size_t>(j)];
          const int e = effort_at(stage, port), f = flow_at(stage, port);
          F[row] += d.E(i, j) * z[e] + d.F(i, j) * z[f];
          w[row] += std::abs(d.E(i, j) * z[e]) + std::abs(d.F(i, j) * z[f]);
          if (jacobian == nullptr) continue;
          if (d.E(i, j) != 0.0) jacobian->emplace_back(row, e, d.E(i, j));
          if (d.F(i, j) != 0.0) jacobian->emplace_back(row, f, d.F(i, j));
        }
      }
    }
  }

  static void put(int row, int column, const MatrixXd& block, std::vector<Entry>& out) {
    for (Eigen::Index j = 0; j < block.cols(); ++j) {
      for (Eigen::Index i = 0; i < block.rows(); ++i) {
        if (block(i, j) == 0.0) continue;
        out.emplace_back(row + static_cast<int>(i), column + static_cast<int>(j), block(i, j));
      }
    }
  }

  void sample_inputs() {
    for (PlacedPart& b : blocks) {
      for (int j = b.p; j < b.m; ++j) {
        const auto channel = static_cast<std::size_t>(j - b.p);
        if (!b.placed->input_is_driven[channel]) continue;
        for (int i = 0; i < count(); ++i) {
          const double begin_s = clock.time_s();
          b.external(j, i) = b.placed->inputs[channel].in_step(
              {begin_s + stages.c[i] * h, begin_s, h, stages.c[i], std::min(count(), kMostStages)});
        }
      }
    }
  }

  VectorXd solve() {
    VectorXd z = VectorXd::Zero(count() * per_stage());
    for (int i = 0; i < count(); ++i) {
      z.segment(effort_at(i, 0), ports) = effort;
      z.segment(flow_at(i, 0), ports) = flow;
    }
    for (int k = 0;; ++k) {
      std::vector<Entry> entries;
      const double before = evaluate(z, &entries);
      if (before <= kEnough) return z;
      if (k == kMostSteps) fail(fmt::format("Newton has not converged, residual {:.2e}", before));
      SparseMatrix jacobian(F.size(), F.size());
      jacobian.setFromTriplets(entries.begin(), entries.end());
      std::string reason;
      const VectorXd step = lu.solve(jacobian, F, reason);
      if (!reason.empty()) fail(reason);
      double length = 1.0, after = evaluate(z - step, nullptr);
      if (before <= kNoise) {
        if (!(after < before)) return z;
        z -= step;
        if (after > 0.5 * before) return z;
        continue;
      }
      while (!(after < before) && length > 1e-9) {
        length *= 0.5;
        after = evaluate(z - length * step, nullptr);
      }
      z -= length * step;
    }
  }

  [[noreturn]] void fail(const std::string& reason) const {
    throw std::runtime_error(
        fmt::format("reference step from t = {:.9g} s with h = {:.9g} s failed: {}", clock.time_s(),
                    h, reason));
  }

  /// The polynomial through X(c₁) … X(c_s) at the end of the step: Neville's scheme.
  VectorXd last_of_stages(const PlacedPart& b, const VectorXd& z) const {
    std::vector<VectorXd> through;
    through.reserve(static_cast<std::size_t>(count()));
    for (int i = 0; i < count(); ++i) through.push_back(moved(b, z, stages.to_stage.row(i)));
    for (int d = 1; d < count(); ++d) {
      for (int i = 0; i + d < count(); ++i) {
        const double left = stages.c[i], right = stages.c[i + d];
        const auto k = static_cast<std::size_t>(i);
        through[k] = ((1.0 - left) * through[k + 1] - (1.0 - right) * through[k]) / (right - left);
      }
    }
    return through[0];
  }

  void commit(const VectorXd& z) {
    for (PlacedPart& b : blocks) {
      VectorXd next = moved(b, z, stages.b.transpose());
      if (b.E.size() > 0) next += b.algebraic * (last_of_stages(b, z) - next);
      b.part->stop_at_bounds(next.data());
      b.x = next;
    }
    effort.setZero();
    flow.setZero();
    for (int i = 0; i < count(); ++i) {
      effort += stages.b[i] * z.segment(effort_at(i, 0), ports);
      flow += stages.b[i] * z.segment(flow_at(i, 0), ports);
    }
    clock.advance(h);
  }
};

GaussReference::GaussReference(const System& system, double step_s, int stages)
    : impl_(std::make_unique<Impl>(system, step_s, stages)) {}

GaussReference::~GaussReference() = default;

void GaussReference::step() {
  impl_->sample_inputs();
  impl_->commit(impl_->solve());
}

double GaussReference::time_s() const { return impl_->clock.time_s(); }

std::span<const double> GaussReference::state(int part) const {
  const PlacedPart& b = impl_->blocks[static_cast<std::size_t>(part)];
  return {b.x.data(), static_cast<std::size_t>(b.n)};
}

std::span<const double> GaussReference::effort() const {
  return {impl_->effort.data(), static_cast<std::size_t>(impl_->ports)};
}

std::span<const double> GaussReference::flow() const {
  return {impl_->flow.data(), static_cast<std::size_t>(impl_->ports)};
}

double GaussReference::storage() const {
  double sum = 0.0;
  for (const PlacedPart& b : impl_->blocks) sum += b.part->storage(b.x.data());
  return sum;
}

}  // namespace portwave
