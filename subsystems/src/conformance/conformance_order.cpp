#include <array>
#include <complex>

#include <Eigen/Eigenvalues>

#include "conformance/conformance_tools.hpp"
#include "core/port_closure.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/matrices/decompositions.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"

// The order of convergence of a part's step, with one stage and with several, terminated by wave sources.

namespace portwave {
namespace {

using conformance::fastest_rate;
using conformance::own_batch;
using conformance::Sampler;
using conformance::Tally;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr Eigen::Index kLargestEigenproblem = 200;

MatrixXd hessian_at(const Subsystem& part, const VectorXd& x) {
  std::vector<Eigen::Triplet<double>> entries;
  part.discrete_gradient_jacobian(x.data(), x.data(), entries);
  MatrixXd hessian = MatrixXd::Zero(x.size(), x.size());
  for (const auto& d : entries) hessian(d.row(), d.col()) += 2.0 * d.value();
  return hessian;
}

/// The largest finite |λ| with det(λE − A) = 0, by the eigenvalues 1/(s − λ) of (sE − A)⁻¹E: from
/// an s far above it down to its size, where those of finite λ stand out from the others, which are
/// 0.
double fastest_descriptor_rate(const MatrixXd& E, const MatrixXd& A) {
  if (E.cwiseAbs().maxCoeff() == 0.0) return 0.0;
  double smallest = E.cwiseAbs().maxCoeff();
  for (const double entry : E.reshaped()) {
    if (entry != 0.0) smallest = std::min(smallest, std::abs(entry));
  }
  double s = 1e3 * A.cwiseAbs().rowwise().sum().maxCoeff() / smallest;
  double fastest = 0.0;
  for (int k = 0; k < 20; ++k) {
    const MatrixXd shifted = lu_solve(s * E - A, E);
    const Eigen::VectorXcd all = shifted.eigenvalues();
    const double largest = all.cwiseAbs().maxCoeff();
    fastest = 0.0;
    for (const std::complex<double>& each : all) {
      if (std::abs(each) > 1e-3 * largest) fastest = std::max(fastest, std::abs(s - 1.0 / each));
    }
    if (!(fastest < 0.25 * s)) break;
    s = std::max(2.0 * fastest, 1e-4 * s);
  }
  return fastest;
}

}  // namespace

double conformance::fastest_rate(const Subsystem& part, const VectorXd& x,
                                 const VectorXd& impedance) {
  const Eigen::Index n = x.size();
  const Eigen::Index p = impedance.size();
  if (n == 0) return 0.0;
  Structure s = part.structure();
  part.structure_at(x.data(), s);
  const auto closures = port_closures(part.signature(), 1.0, impedance.data());
  const MatrixXd B = MatrixXd(s.G - s.P).leftCols(p);
  const MatrixXd C = MatrixXd(SparseMatrix(s.G + s.P)).leftCols(p).transpose();
  MatrixXd M = MatrixXd(SparseMatrix(s.S + s.N)).topLeftCorner(p, p);
  MatrixXd closed = MatrixXd(SparseMatrix(s.J - s.R));
  for (Eigen::Index j = 0; j < p; ++j) {
    const PortClosure& port = closures[static_cast<std::size_t>(j)];
    M(j, j) += port.alpha / port.beta;
  }
  if (p > 0) closed -= B * lu_solve(M, C);
  if (const LinearForm form = part.linear_form(); form.E != nullptr) {
    if (n > kLargestEigenproblem) return 0.0;
    return fastest_descriptor_rate(MatrixXd(*form.E), closed * MatrixXd(*form.Q));
  }
  const MatrixXd rates = closed * hessian_at(part, x);
  if (n > kLargestEigenproblem) return rates.cwiseAbs().rowwise().sum().maxCoeff();
  return rates.eigenvalues().cwiseAbs().maxCoeff();
}

namespace {

struct Run {
  LaneStatus status;
  VectorXd x;
  bool passes_level = false;
};

/// The sides of the part's levels that a state is on, one after the other.
std::vector<bool> sides_of(const Subsystem& part, const VectorXd& x) {
  std::vector<bool> sides;
  for (const StateLevel& level : part.state_levels()) sides.push_back(x[level.state] > level.level);
  return sides;
}

/// What of a part steps: the part itself, or it with stages.
struct Motion {
  const Subsystem& part;
  const Component& stepped;
  const StageRule& stages;
};

/// `steps` steps of h from x, driven by e ± γf = w_j(t) and u_x(t), sines of the given rate taken at
/// the stages. The variables of stage i are √bᵢ times those of the part.
Run run(const Motion& motion, const ConformanceOptions& options, const VectorXd& impedance,
        const VectorXd& x_0, double rate, double h, int steps) {
  const Component* stepped[] = {&motion.stepped};
  const auto batch = motion.stepped.make_batch(stepped);
  const int count = motion.stages.count;
  const Eigen::Index ports = impedance.size(), inputs = motion.part.signature().input_size();
  batch->prepare(h, impedance.replicate(count, 1).eval().data());
  const auto closures = port_closures(motion.part.signature(), h, impedance.data());
  const VectorXd drive = options.wave_scale * (2.0 * rate * impedance.array()).sqrt();
  AlignedVector record(batch->record_size()), next(batch->record_size());
  batch->set_state(0, x_0.data(), record.data());
  VectorXd a = VectorXd::Zero(count * ports), b = a;
  VectorXd input = VectorXd::Zero(count * inputs);
  VectorXd x = x_0;
  const std::vector<bool> sides = sides_of(motion.part, x_0);
  bool passes_level = false;
  for (int k = 0; k < steps; ++k) {
    for (int i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double phase = rate * (k + motion.stages.c[at]) * h;
      const double share = std::sqrt(motion.stages.b[at]);
      for (Eigen::Index j = 0; j < ports; ++j) {
        const double wave = drive[j] * std::sin(phase + static_cast<double>(j));
        a[i * ports + j] = share * wave / closures[static_cast<std::size_t>(j)].s;
      }
      for (Eigen::Index j = 0; j < inputs; ++j) {
        input[i * inputs + j] =
            share * options.input_scale * std::sin(0.7 * phase - static_cast<double>(j));
      }
    }
    batch->freeze({0, 1}, record.data(), input.data());
    const LaneStatus status =
        batch->advance({0, 1}, record.data(), a.data(), next.data(), b.data(), {});
    if (!status.ok()) return {status, x_0};
    record.swap(next);
    batch->get_state(0, record.data(), x.data());
    passes_level = passes_level || sides_of(motion.part, x) != sides;
  }
  return {{}, x, passes_level};
}

/// What the runs of a trial share.
struct Start {
  VectorXd impedance, x;
  double rate;
};

Start start_of(const Subsystem& part, Sampler& sampler) {
  Start start{sampler.impedance(), sampler.state(), 0.0};
  if (!part.check_initial_state(start.x.data()).empty()) {
    const std::vector<double> by_default = part.default_state();
    start.x = Eigen::Map<const VectorXd>(by_default.data(), start.x.size());
  }
  start.rate = fastest_rate(part, start.x, start.impedance);
  return start;
}

/// States of mixed units are compared by the energy that they stand for.
class Length {
 public:
  Length(const Subsystem& part, const VectorXd& x)
      : part_(part), weight_(hessian_at(part, x).diagonal().cwiseAbs()) {
    weight_ = weight_.unaryExpr([](double v) { return v > 0.0 ? std::sqrt(v) : 1.0; });
  }
  double operator()(const VectorXd& v) const {
    // Of descriptor parts that is the energy itself: their algebraic components are no values of
    // the end of a step.
    if (part_.linear_form().E == nullptr) return weight_.cwiseProduct(v).norm();
    return std::sqrt(std::max(0.0, 2.0 * part_.storage(v.data())));
  }

 private:
  const Subsystem& part_;
  VectorXd weight_;
};

/// The ends of runs with h, h/2, h/4 and h/8.
struct Ends {
  std::array<VectorXd, 4> x;
  /// The equations change on the way, where no order can be told.
  bool pass_level = false;
};

/// Orders are those of short steps: where one is low, it is looked for with steps this many times shorter.
constexpr double kShorter = 8.0;
constexpr int kMostTries = 3;

/// False when a run fails, which the tally is told.
bool run_all(const Motion& motion, const ConformanceOptions& options, const Start& start, double h,
             int steps, const std::string& where, Tally& tally, Ends& ends) {
  for (int level = 0; level < 4; ++level) {
    const int finer = 1 << level;
    const Run done =
        run(motion, options, start.impedance, start.x, start.rate, h / finer, steps * finer);
    if (!done.status.ok()) {
      tally.fail(fmt::format("port solve: {}, h={:g}, {}", to_string(done.status.fault), h / finer,
                             where));
      return false;
    }
    ends.x[static_cast<std::size_t>(level)] = done.x;
    ends.pass_level = ends.pass_level || done.passes_level;
  }
  return true;
}

}  // namespace

LawReport check_order_of_convergence(const Subsystem& part, const ConformanceOptions& options) {
  constexpr double kMargin = 0.25;
  constexpr int kSteps = 10;
  Tally tally("order_of_convergence");
  Sampler sampler(part, options);
  for (int trial = 0; trial < options.trials; ++trial) {
    const std::string where = fmt::format("trial={}, seed={}", trial, options.seed);
    const Start start = start_of(part, sampler);
    if (!(start.rate > 0.0) || !std::isfinite(start.rate)) continue;
    const Length length(part, start.x);
    double h = 0.1 / start.rate;
    for (int tried = 1;; ++tried, h /= kShorter) {
      Ends ends;
      if (!run_all({part, part, gauss_stages(1)}, options, start, h, kSteps, where, tally, ends)) {
        return std::move(tally).report();
      }
      if (ends.pass_level) break;
      const auto& x = ends.x;
      const double last = length(x[2] - x[3]);
      if (last <= 1e-12 * (length(x[3]) + length(start.x))) break;  // exact, or nothing moves
      const double order = std::log2(length(x[1] - x[2]) / last);
      if (options.order - order > kMargin && tried < kMostTries) continue;
      tally.see(options.order - order, kMargin, [&] {
        return fmt::format("observed order {:.3f}, expected {:g}, h={:g} and halves, {}", order,
                           options.order, h, where);
      });
      break;
    }
  }
  return std::move(tally).report();
}

LawReport check_orders_of_stages(const Subsystem& part, const ConformanceOptions& options) {
  constexpr double kMargin = 0.5;
  constexpr double kRoundOff = 1e-11;
  constexpr int kSteps = 4;
  Tally tally("orders_of_stages");
  if (!part.is_smooth() || !staging_defect(part).empty()) return std::move(tally).report();
  std::vector<StageRule> rules = {gauss_stages(2), gauss_stages(3)};
  for (int stages = 1; stages <= kMostStages; ++stages) {
    rules.push_back(damped(stage_rule(stages, StageNodes::radau)));
  }
  for (const StageRule& rule : rules) {
    const int expected = 2 * rule.count - (rule.is_damped() ? 1 : 0);
    const std::shared_ptr<const Component> staged =
        staged_part(std::shared_ptr<const Component>(&part, [](const Component*) {}), rule);
    const std::string name =
        fmt::format("order {}, {} {}stage{}", expected, rule.count,
                    rule.is_damped() ? "damped " : "", rule.count == 1 ? "" : "s");
    Sampler sampler(part, options);
    for (int trial = 0; trial < options.trials; ++trial) {
      const std::string where = fmt::format("{}, trial={}, seed={}", name, trial, options.seed);
      const Start start = start_of(part, sampler);
      if (!(start.rate > 0.0) || !std::isfinite(start.rate)) continue;
      const Length length(part, start.x);
      double h = (rule.count == 1 ? 0.05 : 0.4) / start.rate;
      for (int tried = 1;; ++tried, h /= kShorter) {
        Ends ends;
        if (!run_all({part, *staged, rule}, options, start, h, kSteps, where, tally, ends)) {
          return std::move(tally).report();
        }
        if (ends.pass_level) break;
        const auto& x = ends.x;
        // Orders are seen between where steps are short enough and where round-off begins.
        const double floor = kRoundOff * (length(x[3]) + length(start.x));
        const double steps[] = {length(x[0] - x[1]), length(x[1] - x[2]), length(x[2] - x[3])};
        if (steps[1] <= floor) break;
        double order = std::log2(steps[0] / steps[1]);
        if (steps[2] > floor) order = std::max(order, std::log2(steps[1] / steps[2]));
        if (expected - order > kMargin && tried < kMostTries) continue;
        tally.see_rule(name);
        tally.see(expected - order, kMargin, [&] {
          return fmt::format("observed order {:.3f}, expected {}, h={:g} and halves, {}", order,
                             expected, h, where);
        });
        break;
      }
    }
  }
  return std::move(tally).report();
}

}  // namespace portwave
