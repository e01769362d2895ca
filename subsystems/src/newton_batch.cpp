#include "portwave/subsystems/newton_batch.hpp"

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <Eigen/LU>

#include "closed_part.hpp"

namespace portwave {
namespace {

using Eigen::VectorXd;

/// A residual of this size relative to its terms is round-off: nothing is left to gain.
constexpr double kRoundOff = 4.0 * std::numeric_limits<double>::epsilon();
/// Below this, a step that does not gain a factor 4 has met the noise of the part's own functions;
/// the better of the last two iterates is then the answer.
constexpr double kStagnation = 1e-12;
constexpr int kMaxHalvings = 30;

/// Damped Newton on Δx from Δx = 0, where the first step solves the step linearised at x. Every
/// solve starts from scratch, so that it is a pure function of (x, ū, a).
class LaneSolver {
 public:
  LaneSolver(const Subsystem& part, NewtonOptions options)
      : part_(part), max_steps_(options.max_steps) {
    const int n = part_.size();
    for (VectorXd* v : {&dx_, &start_, &step_, &F_, &w_}) v->setZero(n);
    jacobian_.setZero(n, n);
    lu_ = Eigen::PartialPivLU<Eigen::MatrixXd>(n);
  }

  ClosedPart& part() { return part_; }
  const VectorXd& increment() const { return dx_; }

  StepFault solve(const double* a) {
    dx_.setZero();
    part_.linearise(dx_);
    double size = part_.evaluate(a, dx_);
    if (!part_.residual().allFinite() || !part_.inputs_are_finite()) return StepFault::not_finite;
    for (int k = 0; size > kRoundOff; ++k) {
      if (k == max_steps_) {
        return size <= kStagnation ? StepFault::none : StepFault::not_converged;
      }
      if (k > 0) part_.linearise(dx_);
      const double before = size;
      if (!find_step(a)) return StepFault::not_converged;
      if (before <= kStagnation) {
        dx_ = start_ - step_;
        size = part_.evaluate(a, dx_);
        if (size <= 0.25 * before) continue;
        if (!(size < before)) {
          dx_ = start_;
          part_.evaluate(a, dx_);
        }
        return StepFault::none;
      }
      if (const StepFault fault = descend(a, size); fault != StepFault::none) return fault;
    }
    return StepFault::none;
  }

 private:
  /// The Newton step at Δx, to be subtracted. Keeps Δx, F and w of its start.
  bool find_step(const double* a) {
    start_ = dx_;
    F_ = part_.residual();
    w_ = part_.magnitude();
    part_.assemble_jacobian(a, dx_, jacobian_);
    lu_.compute(jacobian_);
    step_.noalias() = lu_.solve(F_);
    return step_.allFinite();
  }

  /// Takes as much of the step as makes max |F_i|/w_i decrease, by halving; w is held during the
  /// search, and is the larger of that at the start and at the full step, because terms that are
  /// zero at the start say nothing about their size.
  StepFault descend(const double* a, double& size) {
    double length = 1.0;
    for (int halvings = 0; halvings <= kMaxHalvings; ++halvings, length *= 0.5) {
      dx_ = start_ - length * step_;
      size = part_.evaluate(a, dx_);
      if (halvings == 0 && part_.magnitude().allFinite()) w_ = w_.cwiseMax(part_.magnitude());
      const double wanted = (1.0 - 1e-4 * length) * scaled_size(F_, w_);
      if (std::isfinite(size) && scaled_size(part_.residual(), w_) <= wanted) {
        return StepFault::none;
      }
    }
    return part_.residual().allFinite() ? StepFault::not_converged : StepFault::not_finite;
  }

  ClosedPart part_;
  int max_steps_;
  VectorXd dx_, start_, step_, F_, w_;
  Eigen::MatrixXd jacobian_;
  Eigen::PartialPivLU<Eigen::MatrixXd> lu_;
};

class NewtonBatch final : public LanewiseBatch {
 public:
  NewtonBatch(std::span<const Subsystem* const> parts, NewtonOptions options)
      : LanewiseBatch(static_cast<int>(parts.size()), parts[0]->signature().state_size(),
                      parts[0]->signature().wave_size(), parts[0]->signature().input_size()) {
    lanes_.reserve(parts.size());
    for (const Subsystem* part : parts) lanes_.emplace_back(*part, options);
  }

  double scatter_cost_ns() const override {
    const double n = state_size();
    return 1000.0 + 100.0 * n + 2.0 * n * n * n;
  }
  double advance_cost_ns() const override { return scatter_cost_ns(); }

  void prepare(double step_s, const double* impedance) override {
    std::vector<double> gamma(static_cast<std::size_t>(wave_size()));
    for (int l = 0; l < lanes(); ++l) {
      for (int j = 0; j < wave_size(); ++j) {
        gamma[static_cast<std::size_t>(j)] = impedance[j * stride() + l];
      }
      lane(l).part().prepare(step_s, gamma.data());
    }
  }

 private:
  void freeze_lane(int l, const Lane& frozen) override {
    lane(l).part().freeze(frozen.x, frozen.input);
  }
  StepFault scatter_lane(int l, const Lane& frozen, const double* a, double* b) override {
    LaneSolver& solver = lane(l);
    solver.part().freeze(frozen.x, frozen.input);
    const StepFault fault = solver.solve(a);
    if (fault == StepFault::none) solver.part().outgoing(a, b);
    return fault;
  }
  StepFault advance_lane(int l, const Lane& frozen, const double* a, double* x_next, double* b,
                         StepEnergy& energy) override {
    const StepFault fault = scatter_lane(l, frozen, a, b);
    if (fault != StepFault::none) return fault;
    energy = lane(l).part().commit(lane(l).increment(), x_next);
    return StepFault::none;
  }

  LaneSolver& lane(int l) { return lanes_[static_cast<std::size_t>(l)]; }

  std::vector<LaneSolver> lanes_;
};

Issues check(std::span<const Subsystem* const> parts, NewtonOptions options) {
  Issues issues;
  if (parts.empty()) issues.push_back({"", "a batch needs at least one part"});
  for (const Subsystem* part : parts) {
    const Signature& first = parts[0]->signature();
    const Signature& other = part->signature();
    if (other.state_size() == first.state_size() && other.wave_size() == first.wave_size() &&
        other.input_size() == first.input_size()) {
      continue;
    }
    issues.push_back(
        {"", "parts of one batch must have equal numbers of states, ports and inputs"});
    break;
  }
  if (options.max_steps < 1) issues.push_back({"/max_steps", "must be > 0"});
  return issues;
}

}  // namespace

std::unique_ptr<StepBatch> make_newton_batch(std::span<const Subsystem* const> parts,
                                             NewtonOptions options) {
  throw_if_any(check(parts, options));
  return std::make_unique<NewtonBatch>(parts, options);
}

}  // namespace portwave
