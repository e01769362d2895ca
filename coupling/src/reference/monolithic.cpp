#include "portwave/coupling/reference/monolithic.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "portwave/coupling/system/step_clock.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/base/typical_state.hpp"
#include "reference/scaled_sparse_lu.hpp"

namespace portwave {
namespace {

using Eigen::VectorXd;
using Triplet = Eigen::Triplet<double>;

constexpr double kEps = std::numeric_limits<double>::epsilon();
/// A residual of this size relative to its terms is round-off.
constexpr double kRoundOff = 4.0 * kEps;
/// Below this, a Newton step that does not gain a factor 4 has met the noise of the parts' own
/// functions; the better of the last two iterates is then the answer.
constexpr double kStagnation = 1e-12;
constexpr int kMaxHalvings = 30;

/// max |F_i|/w_i with 0/0 = 0; infinity when something is not finite.
double relative_size(const VectorXd& F, const VectorXd& w) {
  double largest = 0.0;
  for (Eigen::Index i = 0; i < F.size(); ++i) {
    if (F[i] == 0.0) continue;
    const double ratio = std::abs(F[i]) / w[i];
    if (!std::isfinite(ratio)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, ratio);
  }
  return largest;
}

/// ẋ = Ag + Bu, y = Cg + Du.
struct Realisation {
  SparseMatrix A, B, C, D;

  explicit Realisation(const Structure& s)
      : A(s.J - s.R), B(s.G - s.P), C((s.G + s.P).transpose()), D(s.S + s.N) {}
};

/// A part in place. Its increments are unknowns [state, state + n), its scalar ports the system's
/// [port, port + p).
struct Block {
  const Part* placed;
  const Subsystem* part;
  int state;
  int port;
  int n;
  int p;
  int m;
  std::vector<bool> effort_in;
  VectorXd x;
  VectorXd external;  ///< m entries, those of the ports zero
  Structure structure;
  Realisation constant;
  const SparseMatrix* E;        ///< null: the identity
  std::vector<double> typical;  ///< sizes of the states where the structure depends on them

  Block(const Part& placed_part, int first_state, int first_port)
      : placed(&placed_part),
        part(placed_part.port_hamiltonian()),
        state(first_state),
        port(first_port),
        n(part->signature().state_size()),
        p(part->signature().wave_size()),
        m(p + part->signature().input_size()),
        x(Eigen::Map<const VectorXd>(placed_part.initial_state.data(), n)),
        external(VectorXd::Zero(m)),
        structure(part->structure()),
        constant(structure),
        E(part->linear_form().E) {
    for (const Port& each : part->signature().ports) {
      effort_in.insert(effort_in.end(), static_cast<std::size_t>(each.dimension),
                       each.causality == Causality::effort_in);
    }
    if (!part->constant_structure()) typical = part->typical_state();
  }

  Realisation realisation(const VectorXd& dx, double step_s) {
    if (part->constant_structure()) return constant;
    part->structure_over(x.data(), dx.data(), step_s, structure);
    return Realisation(structure);
  }
};

}  // namespace

/// The unknowns z are (Δx, e, f): the increments x⁺ − x rather than x⁺, so that efforts at a short
/// step do not feel the round-off of x. The equations are, in this order, the states' (one per
/// state), y_j − ȳ_j = 0 (one per scalar port) and the junctions' rows (as many again).
struct MonolithicReference::Impl {
  const System& system;
  double h;
  Options options;
  std::vector<Block> blocks;
  int states = 0;
  int ports = 0;
  StepClock clock;
  int newton_steps = 0;
  VectorXd effort, flow;  ///< of the last step

  // Of the last `evaluate` and `linearise`.
  VectorXd F, w;
  VectorXd row_scale;  ///< brings the equations to a common size
  std::vector<std::vector<Triplet>> gradient_jacobians;
  ScaledSparseLu factorisation;

  Impl(const System& coupled, double step_s, Options chosen)
      : system(coupled), h(step_s), options(chosen) {
    Issues issues;
    if (!(step_s > 0.0) || !std::isfinite(step_s)) {
      issues.push_back(
          {"/step_s", fmt::format("must be > 0 and finite, got {}", shown_number(step_s))});
    }
    if (options.max_newton_steps < 1) {
      issues.push_back({"/max_newton_steps", "must be > 0"});
    }
    for (std::size_t i = 0; i < system.parts().size(); ++i) {
      const Part& part = system.parts()[i];
      if (auto defect = wave_only_defect(part, i)) issues.push_back(*std::move(defect));
    }
    throw_if_any(std::move(issues));
    for (const Part& part : system.parts()) {
      blocks.emplace_back(part, states, ports);
      states += blocks.back().n;
      ports += blocks.back().p;
    }
    effort.setZero(ports);
    flow.setZero(ports);
    gradient_jacobians.resize(blocks.size());
  }

  int unknowns() const { return states + 2 * ports; }
  int effort_at(int port) const { return states + port; }
  int flow_at(int port) const { return states + ports + port; }
  /// Offset in z of the input u_j, or of the output y_j, of port j of a block.
  int input_at(const Block& b, int j) const {
    return b.effort_in[static_cast<std::size_t>(j)] ? effort_at(b.port + j) : flow_at(b.port + j);
  }
  int output_at(const Block& b, int j) const {
    return b.effort_in[static_cast<std::size_t>(j)] ? flow_at(b.port + j) : effort_at(b.port + j);
  }

  VectorXd inputs(const Block& b, const VectorXd& z) const {
    VectorXd u = b.external;
    for (int j = 0; j < b.p; ++j) u[j] = z[input_at(b, j)];
    return u;
  }

  /// ∂∇̄H/∂x⁺ of every part.
  void linearise(const VectorXd& z) {
    for (std::size_t k = 0; k < blocks.size(); ++k) {
      const Block& b = blocks[k];
      const VectorXd x_next = b.x + z.segment(b.state, b.n);
      gradient_jacobians[k].clear();
      b.part->discrete_gradient_jacobian(b.x.data(), x_next.data(), gradient_jacobians[k]);
    }
  }

  /// F(z) and the sum w of the magnitudes of its terms, of which a rounding of x or x⁺ inside ∇̄H
  /// is one; returns max |F_i|/w_i.
  double evaluate(const VectorXd& z) {
    F.setZero(unknowns());
    w.setZero(unknowns());
    for (std::size_t k = 0; k < blocks.size(); ++k) evaluate_part(blocks[k], k, z);
    int row = states + ports;
    for (const Junction& junction : system.junctions()) {
      const DiracStructure& d = junction.dirac;
      for (int i = 0; i < d.size(); ++i, ++row) {
        for (int j = 0; j < d.size(); ++j) {
          const int port = junction.waves[static_cast<std::size_t>(j)];
          const double from_effort = d.E(i, j) * z[effort_at(port)];
          const double from_flow = d.F(i, j) * z[flow_at(port)];
          F[row] += from_effort + from_flow;
          w[row] += std::abs(from_effort) + std::abs(from_flow);
        }
      }
    }
    admit_noise();
    return relative_size(F, w);
  }

  /// An equation whose terms are all round-off of the others (the velocity of a mass that is held)
  /// cannot be met relative to its own size; it is judged by the size of the whole system instead
  /// (Arioli, Demmel & Duff, SIAM J. Matrix Anal. Appl. 10 (1989)).
  void admit_noise() {
    const VectorXd scaled = row_scale.cwiseProduct(w);
    const double whole = scaled.size() > 0 ? scaled.maxCoeff() : 0.0;
    const double noise = 1000.0 * kEps * static_cast<double>(unknowns()) * whole;
    for (Eigen::Index i = 0; i < w.size(); ++i) {
      if (scaled[i] <= noise) w[i] += whole / row_scale[i];
    }
  }

  void evaluate_part(Block& b, std::size_t k, const VectorXd& z) {
    const VectorXd dx = z.segment(b.state, b.n);
    const VectorXd x_next = b.x + dx;
    VectorXd g(b.n);
    b.part->discrete_gradient(b.x.data(), x_next.data(), g.data());
    VectorXd g_size = g.cwiseAbs();
    for (const Triplet& d : gradient_jacobians[k]) {
      const double reach = std::abs(b.x[d.col()]) + std::abs(x_next[d.col()]);
      g_size[d.row()] += std::abs(d.value()) * reach;
    }
    const Realisation r = b.realisation(dx, h);
    const VectorXd u = inputs(b, z);
    const VectorXd u_size = u.cwiseAbs();
    const VectorXd moved = b.E == nullptr ? dx : VectorXd(*b.E * dx);
    const VectorXd moved_size =
        b.E == nullptr ? VectorXd(dx.cwiseAbs()) : VectorXd(b.E->cwiseAbs() * dx.cwiseAbs());
    F.segment(b.state, b.n) = moved - h * (r.A * g + r.B * u);
    w.segment(b.state, b.n) = moved_size + h * (r.A.cwiseAbs() * g_size + r.B.cwiseAbs() * u_size);
    const VectorXd y = r.C * g + r.D * u;
    const VectorXd y_size = r.C.cwiseAbs() * g_size + r.D.cwiseAbs() * u_size;
    for (int j = 0; j < b.p; ++j) {
      const double port_output = z[output_at(b, j)];
      F[states + b.port + j] = port_output - y[j];
      w[states + b.port + j] = std::abs(port_output) + y_size[j];
    }
  }

  SparseMatrix jacobian(const VectorXd& z) {
    std::vector<Triplet> entries;
    for (std::size_t k = 0; k < blocks.size(); ++k) {
      add_part(blocks[k], k, z, entries);
      if (!blocks[k].part->constant_structure()) add_structure_slope(blocks[k], z, entries);
    }
    int row = states + ports;
    for (const Junction& junction : system.junctions()) {
      const DiracStructure& d = junction.dirac;
      for (int i = 0; i < d.size(); ++i, ++row) {
        for (int j = 0; j < d.size(); ++j) {
          const int port = junction.waves[static_cast<std::size_t>(j)];
          if (d.E(i, j) != 0.0) entries.emplace_back(row, effort_at(port), d.E(i, j));
          if (d.F(i, j) != 0.0) entries.emplace_back(row, flow_at(port), d.F(i, j));
        }
      }
    }
    SparseMatrix matrix(unknowns(), unknowns());
    matrix.setFromTriplets(entries.begin(), entries.end());
    return matrix;
  }

  void add_part(Block& b, std::size_t k, const VectorXd& z, std::vector<Triplet>& entries) {
    const Realisation r = b.realisation(z.segment(b.state, b.n), h);
    const int output_row = states + b.port;
    for (int i = 0; i < b.n && b.E == nullptr; ++i) {
      entries.emplace_back(b.state + i, b.state + i, 1.0);
    }
    for (int j = 0; j < b.n && b.E != nullptr; ++j) {
      for (SparseMatrix::InnerIterator it(*b.E, j); it; ++it) {
        entries.emplace_back(b.state + static_cast<int>(it.row()), b.state + j, it.value());
      }
    }
    for (const Triplet& d : gradient_jacobians[k]) {
      const int column = b.state + d.col();
      for (SparseMatrix::InnerIterator it(r.A, d.row()); it; ++it) {
        entries.emplace_back(b.state + static_cast<int>(it.row()), column,
                             -h * it.value() * d.value());
      }
      for (SparseMatrix::InnerIterator it(r.C, d.row()); it; ++it) {
        if (it.row() >= b.p) continue;
        entries.emplace_back(output_row + static_cast<int>(it.row()), column,
                             -it.value() * d.value());
      }
    }
    for (int j = 0; j < b.p; ++j) {
      entries.emplace_back(output_row + j, output_at(b, j), 1.0);
      for (SparseMatrix::InnerIterator it(r.B, j); it; ++it) {
        entries.emplace_back(b.state + static_cast<int>(it.row()), input_at(b, j), -h * it.value());
      }
      for (SparseMatrix::InnerIterator it(r.D, j); it; ++it) {
        if (it.row() >= b.p) continue;
        entries.emplace_back(output_row + static_cast<int>(it.row()), input_at(b, j), -it.value());
      }
    }
  }

  /// The part of ∂F/∂Δx that comes through a state-dependent structure, by central differences.
  void add_structure_slope(Block& b, const VectorXd& z, std::vector<Triplet>& entries) {
    const VectorXd dx = z.segment(b.state, b.n);
    const VectorXd x_next = b.x + dx;
    VectorXd g(b.n);
    b.part->discrete_gradient(b.x.data(), x_next.data(), g.data());
    const VectorXd u = inputs(b, z);
    for (int c = 0; c < b.n; ++c) {
      const double reach =
          difference_step(b.typical[static_cast<std::size_t>(c)], b.x[c] + 0.5 * dx[c]);
      VectorXd moved = dx;
      moved[c] = dx[c] + 2.0 * reach;
      const Realisation ahead = b.realisation(moved, h);
      moved[c] = dx[c] - 2.0 * reach;
      const Realisation back = b.realisation(moved, h);
      const VectorXd rate = (ahead.A * g + ahead.B * u - back.A * g - back.B * u) / (4.0 * reach);
      const VectorXd output = (ahead.C * g + ahead.D * u - back.C * g - back.D * u) / (4.0 * reach);
      for (int i = 0; i < b.n; ++i) entries.emplace_back(b.state + i, b.state + c, -h * rate[i]);
      for (int j = 0; j < b.p; ++j) {
        entries.emplace_back(states + b.port + j, b.state + c, -output[j]);
      }
    }
  }

  void sample_inputs() {
    const double mid_time = clock.time_s() + 0.5 * h;
    for (Block& b : blocks) {
      for (int j = b.p; j < b.m; ++j) {
        const auto channel = static_cast<std::size_t>(j - b.p);
        b.external[j] =
            b.placed->input_is_driven[channel] ? b.placed->input_at(channel, mid_time, h) : 0.0;
      }
    }
  }

  /// Damped Newton from Δx = 0 and the last e, f. Errors: std::runtime_error.
  VectorXd solve() {
    VectorXd z = VectorXd::Zero(unknowns());
    z.segment(states, ports) = effort;
    z.tail(ports) = flow;
    linearise(z);
    row_scale = Equilibration(jacobian(z)).rows;
    double size = evaluate(z);
    for (newton_steps = 0; size > kRoundOff; ++newton_steps) {
      if (newton_steps == options.max_newton_steps) {
        if (size <= kStagnation) return z;
        fail(fmt::format("Newton has not converged after {} steps (relative residual {:.2e})",
                         newton_steps, size));
      }
      if (newton_steps > 0) linearise(z);
      std::string reason;
      const VectorXd step = factorisation.solve(jacobian(z), F, reason);
      if (!reason.empty()) fail(reason);
      const double before = size;
      if (before > kStagnation) {
        size = descend(step, z);
        continue;
      }
      const VectorXd trial = z - step;
      size = evaluate(trial);
      if (size < before) z = trial;
      if (!(size <= 0.25 * before)) return z;
    }
    return z;
  }

  /// Takes as much of the step as makes max |F_i|/w_i decrease, by halving; w is held during the
  /// search, and is the larger of that at the start and at the full step.
  double descend(const VectorXd& step, VectorXd& z) {
    const VectorXd F_start = F;
    VectorXd weight = w;
    double length = 1.0;
    for (int halvings = 0; halvings <= kMaxHalvings; ++halvings, length *= 0.5) {
      const VectorXd trial = z - length * step;
      const double size = evaluate(trial);
      if (halvings == 0 && w.allFinite()) weight = weight.cwiseMax(w);
      const double wanted = (1.0 - 1e-4 * length) * relative_size(F_start, weight);
      if (std::isfinite(size) && relative_size(F, weight) <= wanted) {
        z = trial;
        return size;
      }
    }
    fail(F.allFinite() ? "Newton stalled: no step decreases the residual"
                       : "a storage function or structure matrix is not finite");
  }

  [[noreturn]] void fail(const std::string& reason) const {
    throw std::runtime_error(
        fmt::format("monolithic step from t = {:.9g} s with h = {:.9g} s failed: {}",
                    clock.time_s(), h, reason));
  }

  void commit(const VectorXd& z) {
    for (Block& b : blocks) {
      b.x += z.segment(b.state, b.n);
      b.part->stop_at_bounds(b.x.data());
    }
    effort = z.segment(states, ports);
    flow = z.tail(ports);
    clock.advance(h);
  }
};

MonolithicReference::MonolithicReference(const System& system, double step_s, Options options)
    : impl_(std::make_unique<Impl>(system, step_s, options)) {}

MonolithicReference::~MonolithicReference() = default;

void MonolithicReference::step() {
  impl_->sample_inputs();
  impl_->commit(impl_->solve());
}

double MonolithicReference::time_s() const { return impl_->clock.time_s(); }

std::span<const double> MonolithicReference::state(int part) const {
  const Block& b = impl_->blocks[static_cast<std::size_t>(part)];
  return {b.x.data(), static_cast<std::size_t>(b.n)};
}

void MonolithicReference::set_state(int part, std::span<const double> x) {
  Block& b = impl_->blocks[static_cast<std::size_t>(part)];
  if (x.size() != static_cast<std::size_t>(b.n)) {
    throw ConfigError(
        "", fmt::format("part \"{}\" has {} states, got {}", b.placed->name, b.n, x.size()));
  }
  std::copy(x.begin(), x.end(), b.x.data());
}

std::span<const double> MonolithicReference::effort() const {
  return {impl_->effort.data(), static_cast<std::size_t>(impl_->ports)};
}

std::span<const double> MonolithicReference::flow() const {
  return {impl_->flow.data(), static_cast<std::size_t>(impl_->ports)};
}

double MonolithicReference::storage() const {
  double sum = 0.0;
  for (const Block& b : impl_->blocks) sum += b.part->storage(b.x.data());
  return sum;
}

int MonolithicReference::last_newton_steps() const { return impl_->newton_steps; }

}  // namespace portwave
