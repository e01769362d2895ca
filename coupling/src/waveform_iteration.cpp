#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "portwave/coupling/dynamic_iteration.hpp"
#include "stage_solver.hpp"

namespace portwave {
namespace {

constexpr double kTaskOperations = 4000.0;
constexpr double kNanosecondsPerOperation = 1.2;

/// The settings of an iteration with everything chosen that was left open; defects are collected.
class Resolver {
 public:
  Resolver(const CondensedSystem& system, double step_s, const CouplingMethod& method)
      : system_(system), h_(step_s), method_(method), given_(method.dynamic) {}

  DynamicParameters run() {
    out_.kind = method_.kind;
    check_numbers();
    choose_integrator();
    if (method_.kind == MethodKind::lions_mercier) {
      choose_metric();
      check_parts();
      throw_if_any(std::move(issues_));
      choose_weights();
      throw_if_any(std::move(issues_));
      bound();
    }
    throw_if_any(std::move(issues_));
    return out_;
  }

 private:
  void fail(std::string where, std::string what) {
    issues_.push_back({std::move(where), std::move(what)});
  }
  void expect(bool good, const char* where, const char* range, double value) {
    if (!good) fail(where, fmt::format("must be {}, got {}", range, value));
  }

  void check_numbers() {
    expect(h_ > 0.0 && std::isfinite(h_), "/time/step_s", "> 0 and finite", h_);
    expect(method_.iterations >= 0, "/method/iterations", ">= 0", method_.iterations);
    expect(method_.tolerance >= 0.0 && std::isfinite(method_.tolerance), "/method/tolerance",
           ">= 0 and finite", method_.tolerance);
    expect(given_.window_steps >= 1, "/method/window_steps", ">= 1", given_.window_steps);
    if (method_.kind != MethodKind::lions_mercier) {
      expect(given_.divergence_limit > 1.0, "/method/divergence_limit", "> 1",
             given_.divergence_limit);
      return;
    }
    const auto positive = [](double v) { return v > 0.0 && std::isfinite(v); };
    if (given_.lambda)
      expect(positive(*given_.lambda), "/method/lambda", "> 0 and finite", *given_.lambda);
    if (given_.mu)
      expect(*given_.mu >= 0.0 && std::isfinite(*given_.mu), "/method/mu", ">= 0 and finite",
             *given_.mu);
    if (given_.omega)
      expect(*given_.omega >= 0.0 && std::isfinite(*given_.omega), "/method/omega",
             ">= 0 and finite", *given_.omega);
    if (given_.omega && given_.mu && *given_.omega < *given_.mu) {
      fail("/method/omega",
           fmt::format("must not be below mu ({} < {}): the iteration then need not converge",
                       *given_.omega, *given_.mu));
    }
    expect(given_.alpha >= 0.0 && given_.alpha <= 1.0, "/method/alpha", "between 0 and 1",
           given_.alpha);
  }

  void choose_integrator() {
    bool singular = false;
    for (const CondensedBlock& block : system_.blocks()) {
      LinearSolver E;
      singular = singular || (block.is_descriptor && !E.factorise(block.E));
    }
    out_.integrator = given_.integrator;
    if (given_.integrator == Integrator::automatic) {
      out_.integrator = singular ? Integrator::radau_iia : Integrator::midpoint;
    } else if (singular && given_.integrator == Integrator::midpoint) {
      fail("/method/integrator",
           "the system has algebraic equations (E is singular): take \"radau-iia\"");
    }
  }

  void choose_metric() {
    out_.metric = given_.metric;
    if (given_.metric == IterationMetric::automatic) {
      out_.metric = system_.has_descriptor() ? IterationMetric::identity : IterationMetric::energy;
    } else if (given_.metric == IterationMetric::energy && system_.has_descriptor()) {
      fail("/method/metric",
           "\"energy\" needs E = I, and there are descriptor parts: take \"identity\"");
    }
  }

  void check_parts() {
    for (const CondensedBlock& block : system_.blocks()) {
      const std::string& name = system_.system().parts()[static_cast<std::size_t>(block.part)].name;
      const std::string where = fmt::format("/subsystems/{}", block.part);
      if (!is_positive_semidefinite(block.R)) {
        fail(where, fmt::format("\"{}\" creates energy (R is not positive semidefinite): "
                                "Lions-Mercier iteration needs monotone parts",
                                name));
      }
      LinearSolver Q;
      if (out_.metric == IterationMetric::identity && !Q.factorise(block.Q)) {
        fail(where,
             fmt::format("\"{}\" has a singular Q, with which z = Qx is no substitute for x{}",
                         name, block.is_descriptor ? "" : ": take the metric \"energy\""));
      }
    }
  }

  void choose_weights() {
    const double length = h_ * given_.window_steps;
    const bool midpoint = out_.integrator == Integrator::midpoint;
    out_.alpha = given_.alpha;
    out_.mu =
        given_.mu.value_or(given_.omega ? std::min(0.9 / length, *given_.omega) : 0.9 / length);
    if (given_.omega) {
      out_.omega = *given_.omega;
      return;
    }
    const double decay = h_ * out_.mu;
    if (decay >= 1.0) {
      fail("/method/mu",
           fmt::format("no omega makes the norm fall when step_s * mu >= 1; got {}", out_.mu));
      return;
    }
    out_.omega = (midpoint ? std::atanh(decay) : -std::log1p(-decay)) / h_;
  }

  void bound() {
    out_.bounds = lions_mercier_bounds(system_, h_, given_.lambda.value_or(0.0), out_.mu,
                                       out_.omega, out_.alpha, out_.integrator, out_.metric);
    out_.lambda = given_.lambda.value_or(out_.bounds.optimal_lambda);
    if (out_.bounds.x_converges()) return;
    fail("/method",
         fmt::format(
             "the iteration need not converge: neither rank[mu E, (1-alpha) R] nor rank[E, alpha "
             "R] is full "
             "(mu = {}, alpha = {}); states that neither store nor dissipate energy are coupled",
             out_.mu, out_.alpha));
  }

  const CondensedSystem& system_;
  double h_;
  const CouplingMethod& method_;
  const DynamicIterationOptions& given_;
  DynamicParameters out_;
  Issues issues_;
};

}  // namespace

/// Waveforms lie block by block, [step][stage][state of the block]; channels [step][stage][channel].
struct WaveformIteration::Impl {
  struct Block {
    const CondensedBlock* of = nullptr;
    SparseMatrix T;       ///< Q, in the energy metric I; Lions–Mercier
    SparseMatrix energy;  ///< ½QᵀE
    StageSolver solver;
    LinearSolver shift;   ///< T + λ((1−α)RQ + μE)
    ColumnList seen;      ///< QᵀOut
    ColumnList into;      ///< Lions–Mercier: 2λ T shift⁻¹ Into; others: Into
    SparseMatrix supply;  ///< QᵀB
    bool driven = false;
    std::size_t waveform = 0;                        ///< its place in zeta_ and delta_
    std::size_t work = 0;                            ///< its place in work_
    std::vector<std::pair<int, double>> coupled_by;  ///< rows of C, channel by channel
    std::vector<int> coupled_begin;
  };

  Impl(const CondensedSystem& s, double step_s, const CouplingMethod& method)
      : system(s),
        h(step_s),
        parameters(Resolver(s, step_s, method).run()),
        table(tableau(parameters.integrator)),
        window(method.dynamic.window_steps),
        stages(table.stages),
        n(s.size()),
        channels(s.channels()) {
    is_lm = parameters.kind == MethodKind::lions_mercier;
    const double points = static_cast<double>(window) * stages;
    if (points * n > 4e9 || points * std::max(channels, 1) > 4e9) {
      throw ConfigError(
          "/method/window_steps",
          "the waveforms of a window would not fit into memory; take shorter windows");
    }
    count = static_cast<std::size_t>(window) * static_cast<std::size_t>(stages);
    for (const CondensedBlock& block : s.blocks()) add(block);
    if (is_lm) zeta.assign(count * static_cast<std::size_t>(n), 0.0);
    if (is_lm) delta.assign(zeta.size(), 0.0);
    seen.assign(count * static_cast<std::size_t>(channels), 0.0);
    driving.assign(seen.size(), 0.0);
    inputs.assign(count * s.inputs().size(), 0.0);
    start.assign(static_cast<std::size_t>(n), 0.0);
    change.assign(blocks.size(), 0.0);
    size.assign(blocks.size(), 0.0);
    finite.assign(blocks.size(), 1);
    if (is_lm && channels > 0) factorise_channels();
    C_rows = ColumnList(SparseMatrix(s.C().transpose()));
    weight.resize(static_cast<std::size_t>(window));
    const double omega = is_lm ? parameters.omega : 0.0;
    for (int k = 0; k < window; ++k)
      weight[static_cast<std::size_t>(k)] = std::exp(-2.0 * omega * h * k);
    cut_tasks();
    if (parameters.kind == MethodKind::gauss_seidel) order_levels();
  }

  void add(const CondensedBlock& block) {
    Block out;
    out.of = &block;
    out.driven = block.B.nonZeros() > 0;
    SparseMatrix identity(block.size, block.size);
    identity.setIdentity();
    const SparseMatrix RQ = block.R * block.Q;
    SparseMatrix generator = SparseMatrix(block.J * block.Q);
    out.energy = 0.5 * SparseMatrix(SparseMatrix(block.Q.transpose()) * block.E);
    out.seen = ColumnList(SparseMatrix(SparseMatrix(block.Q.transpose()) * block.out));
    out.supply = SparseMatrix(block.Q.transpose()) * block.B;
    const auto refuse = [&] {
      throw ConfigError(fmt::format("/subsystems/{}", block.part),
                        "the implicit step is singular at this step size");
    };
    if (is_lm) {
      const DynamicParameters& p = parameters;
      out.T = p.metric == IterationMetric::energy ? identity : block.Q;
      generator += SparseMatrix(p.mu * block.E - p.alpha * RQ - (1.0 / p.lambda) * out.T);
      if (!out.shift.factorise(
              SparseMatrix(out.T + p.lambda * ((1.0 - p.alpha) * RQ + p.mu * block.E))))
        refuse();
      const Eigen::MatrixXd response = out.shift.solve(block.into);
      responses.push_back(response);
      out.into = ColumnList(
          SparseMatrix(Eigen::MatrixXd(2.0 * p.lambda * (out.T * response)).sparseView()));
    } else {
      generator -= RQ;
      out.into = ColumnList(block.into);
    }
    generator.makeCompressed();
    if (!out.solver.prepare(table, h, block.E, generator)) refuse();
    out.waveform = blocks.empty() ? 0
                                  : blocks.back().waveform +
                                        count * static_cast<std::size_t>(blocks.back().of->size);
    out.work = work.size();
    // x, X, scratch and two vectors for the shift; whole cache lines between tasks.
    const auto need =
        static_cast<std::size_t>(block.size * (1 + stages + 3) + out.solver.scratch_size());
    work.resize(work.size() + (need + 15) / 8 * 8, 0.0);
    blocks.push_back(std::move(out));
  }

  void factorise_channels() {
    std::vector<Eigen::Triplet<double>> entries;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const CondensedBlock& block = *blocks[i].of;
      if (block.channels == 0) continue;
      const Eigen::MatrixXd S =
          parameters.lambda *
          Eigen::MatrixXd(SparseMatrix(SparseMatrix(block.Q.transpose()) * block.out)).transpose() *
          responses[i];
      for (int b = 0; b < S.cols(); ++b) {
        for (int a = 0; a < S.rows(); ++a) {
          if (S(a, b) != 0.0)
            entries.emplace_back(block.first_channel + a, block.first_channel + b, S(a, b));
        }
      }
    }
    SparseMatrix S(channels, channels), one(channels, channels);
    S.setFromTriplets(entries.begin(), entries.end());
    one.setIdentity();
    responses.clear();
    if (!coupling.factorise(SparseMatrix(one - SparseMatrix(S * system.C())))) {
      throw ConfigError("/couplings", "the coupling of the stages is singular");
    }
  }

  double block_operations(const Block& b) const {
    double ops = b.solver.operations() + 2.0 * stages * b.of->size;
    if (is_lm) ops += stages * (b.shift.operations() + 2.0 * static_cast<double>(b.T.nonZeros()));
    return ops * window;
  }

  /// Runs of blocks, and of stages, that are worth a task.
  void cut_tasks() {
    double load = 0.0;
    task_first = {0};
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (load >= kTaskOperations) {
        task_first.push_back(static_cast<int>(i));
        load = 0.0;
      }
      load += block_operations(blocks[i]);
    }
    task_first.push_back(static_cast<int>(blocks.size()));
    const double per_stage =
        (is_lm ? coupling.operations() : 0.0) + static_cast<double>(C_rows.value.size()) + 1.0;
    stages_per_task =
        static_cast<std::size_t>(std::max(1.0, std::ceil(kTaskOperations / per_stage)));
    stage_tasks = static_cast<int>((count + stages_per_task - 1) / stages_per_task);
    channel_work.assign(
        static_cast<std::size_t>(stage_tasks) * static_cast<std::size_t>(2 * channels + 16), 0.0);
  }

  /// Gauss–Seidel: a block comes after those before it that it is coupled to.
  void order_levels() {
    std::vector<int> level(blocks.size(), 0);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const CondensedBlock& block = *blocks[i].of;
      for (int c = block.first_channel; c < block.first_channel + block.channels; ++c) {
        for (int k = C_rows.begin[c]; k < C_rows.begin[c + 1]; ++k) {
          const int other = system.block_of_channel(C_rows.row[k]);
          if (other < static_cast<int>(i))
            level[i] = std::max(level[i], level[static_cast<std::size_t>(other)] + 1);
        }
      }
      if (levels.size() <= static_cast<std::size_t>(level[i]))
        levels.resize(static_cast<std::size_t>(level[i]) + 1);
      levels[static_cast<std::size_t>(level[i])].push_back(static_cast<int>(i));
    }
  }

  template <class Body>
  void for_blocks(const ForEach& each, const Body& body) {
    each(static_cast<int>(task_first.size()) - 1, [&](int t) {
      for (int i = task_first[static_cast<std::size_t>(t)];
           i < task_first[static_cast<std::size_t>(t) + 1]; ++i) {
        body(static_cast<std::size_t>(i));
      }
    });
  }
  template <class Body>
  void for_stages(const ForEach& each, const Body& body) {
    each(stage_tasks, [&](int t) {
      double* scratch = channel_work.data() +
                        static_cast<std::size_t>(t) * static_cast<std::size_t>(2 * channels + 16);
      const std::size_t first = static_cast<std::size_t>(t) * stages_per_task;
      for (std::size_t p = first; p < std::min(count, first + stages_per_task); ++p)
        body(p, scratch);
    });
  }

  double* zeta_of(const Block& b, std::size_t point) {
    return zeta.data() + b.waveform + point * static_cast<std::size_t>(b.of->size);
  }
  double* delta_of(const Block& b, std::size_t point) {
    return delta.data() + b.waveform + point * static_cast<std::size_t>(b.of->size);
  }

  void begin(double time_s, std::span<const double> x) {
    const std::size_t q = system.inputs().size();
    for (std::size_t point = 0; q > 0 && point < count; ++point) {
      const auto step = static_cast<double>(point / static_cast<std::size_t>(stages));
      const double t = time_s + (step + table.c[point % static_cast<std::size_t>(stages)]) * h;
      for (std::size_t k = 0; k < q; ++k) {
        const CondensedInput& input = system.inputs()[k];
        try {
          inputs[point * q + k] = (*input.signal)(t);
        } catch (const std::exception& error) {
          throw NetworkFault(input.part, -1, StepFault::threw, error.what());
        }
        if (!std::isfinite(inputs[point * q + k])) {
          throw NetworkFault(input.part, -1, StepFault::not_finite,
                             "an external input is not finite");
        }
      }
    }
    std::copy(x.begin(), x.end(), start.begin());
    given_start.clear();
    iterations = 0;
    for (const Block& b : blocks) is_lm ? begin_lm(b) : begin_relaxation(b);
    if (!is_lm) return;
  }

  /// z⁰ = Qx⁰ − λ[(J_d − αR + μEQ⁻¹)Qx⁰ + Bu] of the constant x⁰.
  void begin_lm(const Block& b) {
    const int m = b.of->size;
    const double* x0 = start.data() + b.of->first;
    double* constant = work.data() + b.work;
    std::fill(constant, constant + m, 0.0);
    const DynamicParameters& p = parameters;
    double* z = constant + m;
    std::fill(z, z + m, 0.0);
    add_product(b.of->Q, 1.0, x0, z);
    add_product(b.T, 1.0, x0, constant);
    add_product(b.of->J, -p.lambda, z, constant);
    add_product(b.of->R, p.lambda * p.alpha, z, constant);
    add_product(b.of->E, -p.lambda * p.mu, x0, constant);
    for (std::size_t point = 0; point < count; ++point) {
      double* own = zeta_of(b, point);
      std::copy(constant, constant + m, own);
      if (b.driven)
        add_product(b.of->B, -p.lambda, inputs.data() + point * system.inputs().size(), own);
    }
  }

  void begin_relaxation(const Block& b) {
    for (int c = 0; c < b.of->channels; ++c) {
      const double w = b.seen.dot(c, start.data() + b.of->first);
      for (std::size_t point = 0; point < count; ++point) {
        seen[point * static_cast<std::size_t>(channels) +
             static_cast<std::size_t>(b.of->first_channel + c)] = w;
      }
    }
  }

  void start_from(std::span<const double> values) {
    given_start.assign(values.begin(), values.end());
    for (const Block& b : blocks) {
      for (std::size_t point = 0; point < count; ++point) {
        const double* own = values.data() + point * static_cast<std::size_t>(n) + b.of->first;
        for (int c = 0; c < b.of->channels; ++c) {
          seen[point * static_cast<std::size_t>(channels) +
               static_cast<std::size_t>(b.of->first_channel + c)] = b.seen.dot(c, own);
        }
      }
    }
  }

  /// Solves a block over the window; visit(step, stage values, xⁿ⁺¹) after every step.
  template <class Visit>
  void solve_block(const Block& b, const Visit& visit) {
    const int m = b.of->size;
    double* x = work.data() + b.work;
    double* X = x + m;
    double* scratch = X + stages * m;
    std::copy_n(start.data() + b.of->first, m, x);
    for (int step = 0; step < window; ++step) {
      for (int i = 0; i < stages; ++i) {
        const std::size_t point =
            static_cast<std::size_t>(step) * static_cast<std::size_t>(stages) +
            static_cast<std::size_t>(i);
        double* g = X + i * m;
        if (is_lm) {
          const double* own = zeta_of(b, point);
          const double factor = 1.0 / parameters.lambda;
          for (int k = 0; k < m; ++k) g[k] = factor * own[k];
        } else {
          std::fill(g, g + m, 0.0);
          const double* f =
              driving.data() + point * static_cast<std::size_t>(channels) + b.of->first_channel;
          for (int c = 0; c < b.of->channels; ++c) b.into.add(c, f[c], g);
        }
        if (b.driven) add_product(b.of->B, 1.0, inputs.data() + point * system.inputs().size(), g);
      }
      b.solver.step(x, X, scratch);
      visit(step, X, x);
    }
  }

  WaveformChange iterate(const ForEach& each) {
    std::fill(change.begin(), change.end(), 0.0);
    std::fill(size.begin(), size.end(), 0.0);
    if (is_lm) {
      iterate_lm(each);
    } else {
      relax(each);
    }
    given_start.clear();
    ++iterations;
    WaveformChange out;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      out.change += change[i];
      out.size += size[i];
      out.finite = out.finite && finite[i] != 0;
    }
    out.change = std::sqrt(out.change);
    out.size = std::sqrt(out.size);
    out.finite = out.finite && std::isfinite(out.change) && std::isfinite(out.size);
    return out;
  }

  void iterate_lm(const ForEach& each) {
    // Block by block: x from z, r = 2Tx − ζ, s = shift⁻¹r, as far as a block knows without the others.
    for_blocks(each, [&](std::size_t index) {
      const Block& b = blocks[index];
      const int m = b.of->size;
      double* r = work.data() + b.work +
                  static_cast<std::size_t>(m * (1 + stages) + b.solver.scratch_size());
      double* s = r + m;
      double* scratch = s + m;
      solve_block(b, [&](int step, const double* X, const double*) {
        for (int i = 0; i < stages; ++i) {
          const std::size_t point =
              static_cast<std::size_t>(step) * static_cast<std::size_t>(stages) +
              static_cast<std::size_t>(i);
          const double* own = zeta_of(b, point);
          double* moved = delta_of(b, point);
          for (int k = 0; k < m; ++k) r[k] = -own[k];
          add_product(b.T, 2.0, X + i * m, r);
          b.shift.solve(r, s, scratch);
          double* w =
              seen.data() + point * static_cast<std::size_t>(channels) + b.of->first_channel;
          for (int c = 0; c < b.of->channels; ++c) w[c] = b.seen.dot(c, s);
          // ζ⁺ − ζ = 2Ts − r − ζ = 2T(s − x), but for what the coupling adds.
          for (int k = 0; k < m; ++k) {
            s[k] -= X[i * m + k];
            moved[k] = 0.0;
          }
          add_product(b.T, 2.0, s, moved);
        }
      });
    });
    // Stage by stage: what the couplings send.
    if (channels > 0) {
      for_stages(each, [&](std::size_t point, double* scratch) {
        double* w = scratch + channels;
        const double* w0 = seen.data() + point * static_cast<std::size_t>(channels);
        double* f = driving.data() + point * static_cast<std::size_t>(channels);
        coupling.solve(w0, w, scratch);
        for (int c = 0; c < channels; ++c) f[c] = C_rows.dot(c, w);
      });
    }
    // Block by block: ζ⁺.
    const bool energy = parameters.metric == IterationMetric::energy;
    for_blocks(each, [&](std::size_t index) {
      const Block& b = blocks[index];
      const int m = b.of->size;
      double moved_sum = 0.0, size_sum = 0.0;
      for (std::size_t point = 0; point < count; ++point) {
        double* own = zeta_of(b, point);
        double* moved = delta_of(b, point);
        const double* f =
            driving.data() + point * static_cast<std::size_t>(channels) + b.of->first_channel;
        for (int c = 0; c < b.of->channels; ++c) b.into.add(c, f[c], moved);
        double moved_here = 0.0, size_here = 0.0;
        for (int k = 0; k < m; ++k) own[k] += moved[k];
        if (energy) {
          moved_here = bilinear(b.of->Q, moved, moved);
          size_here = bilinear(b.of->Q, own, own);
        } else {
          for (int k = 0; k < m; ++k) {
            moved_here += moved[k] * moved[k];
            size_here += own[k] * own[k];
          }
        }
        const double share = point_weight(point);
        moved_sum += share * moved_here;
        size_sum += share * size_here;
      }
      change[index] = moved_sum;
      size[index] = size_sum;
      finite[index] = std::isfinite(moved_sum) && std::isfinite(size_sum) ? 1 : 0;
    });
  }

  double point_weight(std::size_t point) const {
    const auto s = static_cast<std::size_t>(stages);
    return weight[point / s] * h * table.b[point % s];
  }

  /// Jacobi: everyone with the others' last waveforms. Gauss–Seidel: with the newest, level by level.
  void relax(const ForEach& each) {
    if (parameters.kind == MethodKind::jacobi) {
      for_stages(each, [&](std::size_t point, double*) {
        const double* w = seen.data() + point * static_cast<std::size_t>(channels);
        double* f = driving.data() + point * static_cast<std::size_t>(channels);
        for (int c = 0; c < channels; ++c) f[c] = C_rows.dot(c, w);
      });
      for_blocks(each, [&](std::size_t index) { relax_block(index); });
      return;
    }
    for (const std::vector<int>& level : levels) {
      each(static_cast<int>(level.size()), [&](int i) {
        const auto index = static_cast<std::size_t>(level[static_cast<std::size_t>(i)]);
        const CondensedBlock& block = *blocks[index].of;
        for (std::size_t point = 0; point < count; ++point) {
          const double* w = seen.data() + point * static_cast<std::size_t>(channels);
          double* f = driving.data() + point * static_cast<std::size_t>(channels);
          for (int c = block.first_channel; c < block.first_channel + block.channels; ++c)
            f[c] = C_rows.dot(c, w);
        }
        relax_block(index);
      });
    }
  }

  void relax_block(std::size_t index) {
    const Block& b = blocks[index];
    const int m = b.of->size;
    double moved_sum = 0.0, size_sum = 0.0;
    bool sound = true;
    solve_block(b, [&](int step, const double* X, const double* x) {
      for (int i = 0; i < stages; ++i) {
        const std::size_t point =
            static_cast<std::size_t>(step) * static_cast<std::size_t>(stages) +
            static_cast<std::size_t>(i);
        double* w = seen.data() + point * static_cast<std::size_t>(channels) + b.of->first_channel;
        for (int c = 0; c < b.of->channels; ++c) {
          const double now = b.seen.dot(c, X + i * m);
          moved_sum += point_weight(point) * (now - w[c]) * (now - w[c]);
          size_sum += point_weight(point) * now * now;
          w[c] = now;
        }
      }
      if (b.of->channels == 0) sound = sound && std::isfinite(x[0]);
    });
    change[index] = moved_sum;
    size[index] = size_sum;
    finite[index] = sound && std::isfinite(moved_sum) && std::isfinite(size_sum) ? 1 : 0;
  }

  void solve(const ForEach& each, std::span<double> out) {
    if (!is_lm && iterations == 0) {
      for (std::size_t point = 0; point < count; ++point) {
        double* to = out.data() + point * static_cast<std::size_t>(n);
        if (given_start.empty()) {
          std::copy(start.begin(), start.end(), to);
        } else {
          std::copy_n(given_start.data() + point * static_cast<std::size_t>(n), n, to);
        }
      }
      return;
    }
    for_blocks(each, [&](std::size_t index) {
      const Block& b = blocks[index];
      const int m = b.of->size;
      solve_block(b, [&](int step, const double* X, const double*) {
        for (int i = 0; i < stages; ++i) {
          const std::size_t point =
              static_cast<std::size_t>(step) * static_cast<std::size_t>(stages) +
              static_cast<std::size_t>(i);
          std::copy_n(X + i * m, m, out.data() + point * static_cast<std::size_t>(n) + b.of->first);
        }
      });
    });
  }

  void finish(const ForEach& each, std::span<double> states, std::span<StepEnergies> energies) {
    const auto W = static_cast<std::size_t>(window);
    ledger.resize(blocks.size() * W);
    // Without any iteration Jacobi has no driving waveforms yet: those of the start iterate.
    if (!is_lm && iterations == 0) {
      for_stages(each, [&](std::size_t point, double*) {
        const double* w = seen.data() + point * static_cast<std::size_t>(channels);
        double* f = driving.data() + point * static_cast<std::size_t>(channels);
        for (int c = 0; c < channels; ++c) f[c] = C_rows.dot(c, w);
      });
    }
    for_blocks(each, [&](std::size_t index) {
      const Block& b = blocks[index];
      const int m = b.of->size;
      double* z = work.data() + b.work +
                  static_cast<std::size_t>(m * (1 + stages) + b.solver.scratch_size());
      solve_block(b, [&](int step, const double* X, const double* x) {
        StepEnergies e{bilinear(b.energy, x, x), 0.0, 0.0};
        for (int i = 0; i < stages; ++i) {
          const std::size_t point =
              static_cast<std::size_t>(step) * static_cast<std::size_t>(stages) +
              static_cast<std::size_t>(i);
          const double share = h * table.b[static_cast<std::size_t>(i)];
          std::fill(z, z + m, 0.0);
          add_product(b.of->Q, 1.0, X + i * m, z);
          e.dissipated_J += share * bilinear(b.of->R, z, z);
          if (b.driven) {
            e.supplied_J += share * bilinear(b.supply, X + i * m,
                                             inputs.data() + point * system.inputs().size());
          }
        }
        ledger[static_cast<std::size_t>(step) * blocks.size() + index] = e;
        std::copy_n(x, m,
                    states.data() + static_cast<std::size_t>(step) * static_cast<std::size_t>(n) +
                        b.of->first);
      });
    });
    for (std::size_t step = 0; step < W; ++step) {
      StepEnergies sum{0.0, 0.0, 0.0};
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        const StepEnergies& e = ledger[step * blocks.size() + i];
        sum.stored_J += e.stored_J;
        sum.supplied_J += e.supplied_J;
        sum.dissipated_J += e.dissipated_J;
      }
      energies[step] = sum;
    }
  }

  const CondensedSystem& system;
  double h;
  DynamicParameters parameters;
  Tableau table;
  int window, stages, n, channels;
  bool is_lm = false;
  std::size_t count = 0;  ///< steps · stages
  std::vector<Block> blocks;
  std::vector<Eigen::MatrixXd> responses;  ///< shift⁻¹Into, during construction
  LinearSolver coupling;                   ///< I − λ Outᵀ Q shift⁻¹ Into C
  ColumnList C_rows;
  std::vector<double> zeta, delta;  ///< ζᵏ and ζᵏ⁺¹ − ζᵏ: z, or in the energy metric Q⁻¹z
  std::vector<double> seen, driving;  ///< by channel: OutᵀQx (or of s), and C times it
  std::vector<double> inputs, start, given_start, work, channel_work, weight;
  std::vector<double> change, size;  ///< by block
  std::vector<char> finite;
  std::vector<StepEnergies> ledger;
  std::vector<int> task_first;
  std::size_t stages_per_task = 1;
  int stage_tasks = 0;
  std::vector<std::vector<int>> levels;
  int iterations = 0;
};

WaveformIteration::WaveformIteration(const CondensedSystem& system, double step_s,
                                     const CouplingMethod& method)
    : impl_(std::make_unique<Impl>(system, step_s, method)) {}
WaveformIteration::~WaveformIteration() = default;
WaveformIteration::WaveformIteration(WaveformIteration&&) noexcept = default;

const DynamicParameters& WaveformIteration::parameters() const { return impl_->parameters; }
int WaveformIteration::window_steps() const { return impl_->window; }
int WaveformIteration::stages_per_step() const { return impl_->stages; }
std::size_t WaveformIteration::stages_size() const {
  return impl_->count * static_cast<std::size_t>(impl_->n);
}
void WaveformIteration::begin(double time_s, std::span<const double> x) { impl_->begin(time_s, x); }
void WaveformIteration::start_from(std::span<const double> stages) {
  if (impl_->is_lm) throw std::logic_error("Lions-Mercier starts from a constant only");
  impl_->start_from(stages);
}

WaveformChange WaveformIteration::iterate(const ForEach& each) { return impl_->iterate(each); }
void WaveformIteration::solve(const ForEach& each, std::span<double> stages) {
  impl_->solve(each, stages);
}
void WaveformIteration::finish(const ForEach& each, std::span<double> states,
                               std::span<StepEnergies> energies) {
  impl_->finish(each, states, energies);
}

void WaveformIteration::z(std::span<double> stages) const {
  for (const Impl::Block& b : impl_->blocks) {
    for (std::size_t point = 0; point < impl_->count; ++point) {
      std::copy_n(impl_->zeta_of(b, point), b.of->size,
                  stages.data() + point * static_cast<std::size_t>(impl_->n) + b.of->first);
    }
  }
}

void WaveformIteration::z_of_solution(std::span<const double> stages, std::span<double> out) const {
  const Impl& i = *impl_;
  const DynamicParameters& p = i.parameters;
  const SparseMatrix Q = i.system.Q();
  const SparseMatrix KQ = SparseMatrix((1.0 - p.alpha) * i.system.R() - i.system.J_coupling()) * Q +
                          p.mu * i.system.E();
  SparseMatrix T(i.n, i.n);
  T.setIdentity();
  if (p.metric == IterationMetric::identity) T = Q;
  const SparseMatrix map = T - p.lambda * KQ;
  std::fill(out.begin(), out.end(), 0.0);
  for (std::size_t point = 0; point < i.count; ++point) {
    add_product(map, 1.0, stages.data() + point * static_cast<std::size_t>(i.n),
                out.data() + point * static_cast<std::size_t>(i.n));
  }
}

double WaveformIteration::weighted_norm(std::span<const double> stages) const {
  const Impl& i = *impl_;
  const bool energy = i.is_lm && i.parameters.metric == IterationMetric::energy;
  const SparseMatrix Q = energy ? i.system.Q() : SparseMatrix();
  double sum = 0.0;
  for (std::size_t point = 0; point < i.count; ++point) {
    const double* w = stages.data() + point * static_cast<std::size_t>(i.n);
    sum += i.point_weight(point) *
           (energy ? bilinear(Q, w, w) : Eigen::Map<const Eigen::VectorXd>(w, i.n).squaredNorm());
  }
  return std::sqrt(sum);
}

double WaveformIteration::plain_norm(std::span<const double> stages) const {
  const Impl& i = *impl_;
  double sum = 0.0;
  for (std::size_t point = 0; point < i.count; ++point) {
    const double* w = stages.data() + point * static_cast<std::size_t>(i.n);
    sum += i.h * i.table.b[point % static_cast<std::size_t>(i.stages)] *
           Eigen::Map<const Eigen::VectorXd>(w, i.n).squaredNorm();
  }
  return std::sqrt(sum);
}

std::size_t WaveformIteration::bytes() const {
  const Impl& i = *impl_;
  std::size_t doubles = 0;
  for (const auto* v :
       {&i.zeta, &i.delta, &i.seen, &i.driving, &i.inputs, &i.start, &i.work, &i.channel_work})
    doubles += v->capacity();
  return doubles * sizeof(double) + i.ledger.capacity() * sizeof(StepEnergies);
}

double WaveformIteration::iteration_cost_ns() const {
  double sum = 0.0;
  for (const Impl::Block& b : impl_->blocks) sum += impl_->block_operations(b);
  return kNanosecondsPerOperation * sum;
}

}  // namespace portwave
