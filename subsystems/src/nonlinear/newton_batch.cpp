#include "portwave/subsystems/nonlinear/newton_batch.hpp"

#include <atomic>
#include <cstddef>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "nonlinear/lane_solver.hpp"
#include "portwave/subsystems/core/subsystem.hpp"

namespace portwave {
namespace {

/// The solver of a lane works in memory of its own, too large for every record: matrices of the
/// part, and whatever structure a user's part writes. It holds nothing between two calls. So each
/// lane has one, which a call takes for as long as it lasts; a second thread that solves the same
/// lane at the same time, with another record, makes one for that call.
class NewtonBatch final : public LanewiseBatch {
 public:
  NewtonBatch(std::span<const Subsystem* const> parts, NewtonOptions options)
      : LanewiseBatch(
            static_cast<int>(parts.size()), parts[0]->signature().state_size(),
            parts[0]->signature().wave_size(), parts[0]->signature().input_size(),
            LastSolve::size(parts[0]->signature().state_size(), parts[0]->signature().wave_size())),
        parts_(parts.begin(), parts.end()),
        options_(options),
        taken_(std::make_unique<std::atomic<bool>[]>(parts.size())) {
    solvers_.reserve(parts.size());
    for (const Subsystem* part : parts) solvers_.emplace_back(*part, options);
  }

  double scatter_cost_ns() const override {
    const double n = state_size();
    return 1000.0 + 100.0 * n + 2.0 * n * n * n;
  }
  double advance_cost_ns() const override { return scatter_cost_ns(); }

  void prepare(double step_s, const double* impedance) override {
    step_s_ = step_s;
    impedance_.clear();
    for (int l = 0; l < lanes(); ++l) {
      for (int j = 0; j < wave_size(); ++j) impedance_.push_back(impedance[j * stride() + l]);
      solvers_[static_cast<std::size_t>(l)].part().prepare(step_s, impedance_of(l));
    }
  }

 private:
  void freeze_lane(int /*lane*/, const Lane& frozen) const override { last_solve(frozen).forget(); }
  StepFault scatter_lane(int l, const Lane& frozen, const double* a, double* b) const override {
    return with_solver(l, [&](LaneSolver& solver) {
      solver.part().freeze(frozen.x, frozen.input);
      return solver.solve(a, b);
    });
  }
  StepFault inexact_scatter_lane(int l, const Lane& frozen, const double* a,
                                 double* b) const override {
    return with_solver(l, [&](LaneSolver& solver) {
      solver.part().freeze(frozen.x, frozen.input);
      return solver.inexact_scatter(a, b, last_solve(frozen));
    });
  }
  StepFault advance_lane(int l, const Lane& frozen, const double* a, double* x_next, double* b,
                         StepEnergy& energy) const override {
    return with_solver(l, [&](LaneSolver& solver) {
      solver.part().freeze(frozen.x, frozen.input);
      const StepFault fault = solver.solve(a, b);
      if (fault == StepFault::none) energy = solver.part().commit(solver.increment(), x_next);
      return fault;
    });
  }

  double residual_of_lane(int l, const Lane& frozen, const double* a) const override {
    std::vector<double> b(static_cast<std::size_t>(wave_size()));
    return with_solver(l, [&](LaneSolver& solver) {
      solver.part().freeze(frozen.x, frozen.input);
      const bool fails = solver.solve(a, b.data()) == StepFault::not_converged;
      return fails ? solver.residual() : std::numeric_limits<double>::quiet_NaN();
    });
  }

  /// act(solver of the lane, prepared).
  template <class Act>
  std::invoke_result_t<const Act&, LaneSolver&> with_solver(int l, const Act& act) const {
    const auto lane = static_cast<std::size_t>(l);
    if (taken_[lane].exchange(true, std::memory_order_acquire)) {
      LaneSolver another(*parts_[lane], options_);
      another.part().prepare(step_s_, impedance_of(l));
      return act(another);
    }
    struct Return {
      std::atomic<bool>& taken;
      ~Return() { taken.store(false, std::memory_order_release); }
    } const give_back{taken_[lane]};  // also where a callback throws
    return act(solvers_[lane]);
  }

  LastSolve last_solve(const Lane& frozen) const {
    return {frozen.extra, state_size(), wave_size()};
  }
  const double* impedance_of(int l) const { return impedance_.data() + l * wave_size(); }

  std::vector<const Subsystem*> parts_;
  NewtonOptions options_;
  double step_s_ = 0.0;
  std::vector<double> impedance_;  // lane by lane
  std::unique_ptr<std::atomic<bool>[]> taken_;
  mutable std::vector<LaneSolver> solvers_;  // of lane l: whoever has set taken_[l]
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

std::unique_ptr<StepBatch> Subsystem::make_batch(std::span<const Component* const> parts) const {
  return make_newton_batch(port_hamiltonian_parts(parts));
}

}  // namespace portwave
