#include "portwave/subsystems/nonlinear/newton_batch.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "nonlinear/damped_physics.hpp"
#include "nonlinear/damps_each_lane.hpp"
#include "nonlinear/lane_solver.hpp"
#include "nonlinear/solver_of_each_lane.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/lane_exchange.hpp"
#include "portwave/subsystems/core/subsystem.hpp"

namespace portwave {
namespace {

/// The solver of a part, with a damped stage if `rule` says so.
struct PartSolver {
  PartSolver(const Subsystem& part, const StageRule& rule, NewtonOptions options)
      : damped(rule.is_damped() ? std::make_unique<DampedPhysics>(part, rule) : nullptr),
        newton(damped != nullptr ? *damped : part, options, nullptr, damped.get()) {}

  void prepare(double step_s, const double* impedance) { newton.prepare(step_s, impedance); }

  std::unique_ptr<DampedPhysics> damped;
  LaneSolver newton;
};

class NewtonBatch final : public LanewiseBatch, public LaneExchange, public DampsEachLane {
 public:
  /// A rule for each part.
  NewtonBatch(std::span<const Subsystem* const> parts, std::vector<StageRule> rules,
              NewtonOptions options)
      : LanewiseBatch(
            static_cast<int>(parts.size()), parts[0]->signature().state_size(),
            parts[0]->signature().wave_size(), parts[0]->signature().input_size(),
            LastSolve::size(parts[0]->signature().state_size(), parts[0]->signature().wave_size())),
        options_(options),
        parts_(parts.begin(), parts.end()),
        rules_(std::move(rules)),
        solvers_(lanes(), wave_size(), are_one(parts_) && !is_damped(), [this, options](int l) {
          return std::make_unique<PartSolver>(*parts_[at(l)], rules_[at(l)], options);
        }) {}

  NewtonOptions options() const { return options_; }
  bool damps_each_lane() const override { return !is_damped(); }
  bool is_damped() const { return std::ranges::any_of(rules_, &StageRule::is_damped); }

  double scatter_cost_ns() const override {
    const double n = state_size();
    return 1000.0 + 100.0 * n + 2.0 * n * n * n;
  }
  double advance_cost_ns() const override { return scatter_cost_ns(); }

  void prepare(double step_s, const double* impedance) override {
    solvers_.prepare(step_s, impedance, stride());
  }
  bool exchange(int lane, StepBatch& one, const double* impedance) override {
    auto* const other = dynamic_cast<NewtonBatch*>(&one);
    if (other == nullptr) return false;
    solvers_.take(lane, other->solvers_, impedance, stride());
    parts_[at(lane)] = other->parts_.front();
    rules_[at(lane)] = other->rules_.front();
    return true;
  }

 private:
  void freeze_lane(int /*lane*/, const Lane& frozen) const override { last_solve(frozen).forget(); }
  StepFault scatter_lane(int l, const Lane& frozen, const double* a, double* b) const override {
    return solvers_.with(l, [&](PartSolver& own) {
      LaneSolver& solver = own.newton;
      solver.part().freeze(frozen.x, frozen.input);
      return solver.solve(a, b);
    });
  }
  StepFault inexact_scatter_lane(int l, const Lane& frozen, const double* a,
                                 double* b) const override {
    return solvers_.with(l, [&](PartSolver& own) {
      LaneSolver& solver = own.newton;
      solver.part().freeze(frozen.x, frozen.input);
      return solver.inexact_scatter(a, b, last_solve(frozen));
    });
  }
  StepFault advance_lane(int l, const Lane& frozen, const double* a, double* x_next, double* b,
                         StepEnergy& energy) const override {
    return solvers_.with(l, [&](PartSolver& own) {
      LaneSolver& solver = own.newton;
      solver.part().freeze(frozen.x, frozen.input);
      const StepFault fault = solver.solve(a, b);
      if (fault == StepFault::none) energy = solver.part().commit(solver.increment(), x_next);
      return fault;
    });
  }

  double residual_of_lane(int l, const Lane& frozen, const double* a) const override {
    std::vector<double> b(static_cast<std::size_t>(wave_size()));
    return solvers_.with(l, [&](PartSolver& own) {
      LaneSolver& solver = own.newton;
      solver.part().freeze(frozen.x, frozen.input);
      const bool fails = solver.solve(a, b.data()) == StepFault::not_converged;
      return fails ? solver.residual() : std::numeric_limits<double>::quiet_NaN();
    });
  }

  LastSolve last_solve(const Lane& frozen) const {
    return {frozen.extra, state_size(), wave_size()};
  }

  NewtonOptions options_;
  std::vector<const Subsystem*> parts_;
  std::vector<StageRule> rules_;  // by lane
  SolverOfEachLane<PartSolver> solvers_;
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
  return std::make_unique<NewtonBatch>(parts, std::vector(parts.size(), gauss_stages(1)), options);
}

std::unique_ptr<StepBatch> make_damped_newton_batch(std::span<const Subsystem* const> parts,
                                                    std::vector<StageRule> rules,
                                                    NewtonOptions options) {
  throw_if_any(check(parts, options));
  return std::make_unique<NewtonBatch>(parts, std::move(rules), options);
}

std::optional<NewtonOptions> newton_options_of(const StepBatch& batch) {
  const auto* const own = dynamic_cast<const NewtonBatch*>(&batch);
  if (own == nullptr || own->is_damped()) return std::nullopt;
  return own->options();
}

bool damps_each_lane(const StepBatch& batch) {
  const auto* const own = dynamic_cast<const DampsEachLane*>(&batch);
  return own != nullptr && own->damps_each_lane();
}

std::unique_ptr<StepBatch> Subsystem::make_batch(std::span<const Component* const> parts) const {
  return make_newton_batch(port_hamiltonian_parts(parts));
}

}  // namespace portwave
