#include "portwave/subsystems/nonlinear/newton_batch.hpp"

#include <cstddef>
#include <vector>

#include "nonlinear/lane_solver.hpp"

namespace portwave {
namespace {

class NewtonBatch final : public LanewiseBatch {
 public:
  NewtonBatch(std::span<const Subsystem* const> parts, NewtonOptions options)
      : LanewiseBatch(static_cast<int>(parts.size()), parts[0]->signature().state_size(),
                      parts[0]->signature().wave_size(), parts[0]->signature().input_size(),
                      LastSolve::size(parts[0]->signature().state_size(),
                                      parts[0]->signature().wave_size())) {
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
    last_solve(frozen).forget();
  }
  StepFault scatter_lane(int l, const Lane& frozen, const double* a, double* b) override {
    LaneSolver& solver = lane(l);
    solver.part().freeze(frozen.x, frozen.input);
    return solver.solve(a, b);
  }
  StepFault inexact_scatter_lane(int l, const Lane& frozen, const double* a, double* b) override {
    LaneSolver& solver = lane(l);
    solver.part().freeze(frozen.x, frozen.input);
    return solver.inexact_scatter(a, b, last_solve(frozen));
  }
  StepFault advance_lane(int l, const Lane& frozen, const double* a, double* x_next, double* b,
                         StepEnergy& energy) override {
    const StepFault fault = scatter_lane(l, frozen, a, b);
    if (fault != StepFault::none) return fault;
    energy = lane(l).part().commit(lane(l).increment(), x_next);
    return StepFault::none;
  }

  LastSolve last_solve(const Lane& frozen) const {
    return {frozen.extra, state_size(), wave_size()};
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
