#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "base/workspace.hpp"
#include "nonlinear/lane_solver.hpp"
#include "nonlinear/solver_of_each_lane.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/core/lane_exchange.hpp"
#include "portwave/subsystems/core/port_slopes.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"
#include "stages/staged_batches.hpp"
#include "stages/staged_physics.hpp"

namespace portwave {
namespace {

/// The solver of one stage for all stages of a part.
struct StagedSolver {
  StagedSolver(const Subsystem& part, const StageRule& stages, NewtonOptions options)
      : physics(part, stages), newton(physics, options, &physics, &physics) {}
  StagedSolver(const StagedSolver&) = delete;
  StagedSolver& operator=(const StagedSolver&) = delete;

  void prepare(double step_s, const double* impedance) { newton.prepare(step_s, impedance); }

  StagedPhysics physics;
  LaneSolver newton;
};

/// Newton on all stages of a part (StagedPhysics).
class StagedNewtonBatch final : public LanewiseBatch,
                                public StepRoundings,
                                public StageMotion,
                                public LaneExchange,
                                public PortSlopes {
 public:
  StagedNewtonBatch(std::span<const Subsystem* const> parts, const StageRule& stages)
      : StagedNewtonBatch(parts, stages, StagedPhysics(*parts[0], stages).layout()) {}

  double scatter_cost_ns() const override { return 2000.0 + 500.0 * lifted_size(); }
  double advance_cost_ns() const override { return scatter_cost_ns(); }

  const StepRoundings* roundings() const override { return this; }
  const StageMotion* stage_motion() const override { return this; }

  void prepare(double step_s, const double* impedance) override {
    solvers_.prepare(step_s, impedance, stride());
  }
  bool exchange(int lane, StepBatch& one, const double* impedance) override {
    auto* const other = dynamic_cast<StagedNewtonBatch*>(&one);
    if (other == nullptr) return false;
    solvers_.take(lane, other->solvers_, impedance, stride());
    parts_[at(lane)] = other->parts_.front();
    return true;
  }

  int stages() const override { return layout_.stages; }
  void stage_increments(LaneRange range, const double* record, const double* /*a*/,
                        const double* /*next*/, double* out) const override {
    for (int l = range.first; l < range.last; ++l) {
      // What the commit has left: (x, δ⁺).
      const double* const moved = extra_of(l, record) + lifted_size() + layout_.n;
      for (int i = 0; i < layout_.states(); ++i) out[i * stride() + l] = moved[i];
    }
  }

  bool port_slopes(int l, const double* record, const double* /*a*/, int /*step*/,
                   double* matrix) const override {
    const double* const x = state_of(l, record);
    return solvers_.with(l, [&](StagedSolver& own) {
      own.newton.part().freeze(extra_of(l, record), x + layout_.n);
      return own.newton.port_slopes(matrix);
    });
  }

  std::optional<double> step_rounding(int l, const double* record, const double* a,
                                      const double* /*next*/) const override {
    const double* const x = state_of(l, record);
    const int p = wave_size();
    detail::Workspace room(static_cast<std::size_t>(lifted_size() + 2 * p));
    double* const start = room.data();
    double* const wave = start + lifted_size();
    double* const b = wave + p;
    std::fill(std::copy(x, x + layout_.n, start), wave, 0.0);
    for (int j = 0; j < p; ++j) wave[j] = a[j * stride() + l];
    double bound = 0.0, waves = 0.0;
    const StepFault fault = solvers_.with(l, [&](StagedSolver& own) {
      LaneSolver& solver = own.newton;
      solver.part().freeze(start, x + layout_.n);
      const StepFault found = solver.solve(wave, b);
      bound = solver.energy_rounding();
      return found;
    });
    if (fault != StepFault::none) return std::nullopt;
    for (int j = 0; j < p; ++j) waves += wave[j] * wave[j] + b[j] * b[j];
    return bound + kPerTerm * waves;
  }

 private:
  static constexpr double kPerTerm = 8.0 * std::numeric_limits<double>::epsilon();

  StagedNewtonBatch(std::span<const Subsystem* const> parts, const StageRule& stages,
                    const StageLayout& layout)
      : LanewiseBatch(static_cast<int>(parts.size()), layout.n, layout.ports(), layout.inputs(),
                      2 * (layout.n + layout.states()) +
                          LastSolve::size(layout.n + layout.states(), layout.ports())),
        layout_(layout),
        parts_(parts.begin(), parts.end()),
        solvers_(lanes(), wave_size(), are_one(parts_),
                 [this, stages, options = newton_options_of(*parts[0])](int l) {
                   return std::make_unique<StagedSolver>(*parts_[at(l)], stages, options);
                 }) {}

  int lifted_size() const { return layout_.n + layout_.states(); }

  void freeze_lane(int /*lane*/, const Lane& frozen) const override {
    std::copy(frozen.x, frozen.x + layout_.n, frozen.extra);
    std::fill(frozen.extra + layout_.n, frozen.extra + lifted_size(), 0.0);
    last_solve(frozen).forget();
  }
  StepFault scatter_lane(int l, const Lane& frozen, const double* a, double* b) const override {
    return solvers_.with(l, [&](StagedSolver& own) {
      LaneSolver& solver = own.newton;
      solver.part().freeze(frozen.extra, frozen.input);
      return solver.solve(a, b);
    });
  }
  StepFault inexact_scatter_lane(int l, const Lane& frozen, const double* a,
                                 double* b) const override {
    return solvers_.with(l, [&](StagedSolver& own) {
      LaneSolver& solver = own.newton;
      solver.part().freeze(frozen.extra, frozen.input);
      return solver.inexact_scatter(a, b, last_solve(frozen));
    });
  }
  StepFault advance_lane(int l, const Lane& frozen, const double* a, double* x_next, double* b,
                         StepEnergy& energy) const override {
    return solvers_.with(l, [&](StagedSolver& own) {
      LaneSolver& solver = own.newton;
      solver.part().freeze(frozen.extra, frozen.input);
      const StepFault fault = solver.solve(a, b);
      if (fault != StepFault::none) return fault;
      double* const next = frozen.extra + lifted_size();
      energy = solver.part().commit(solver.increment(), next);
      own.physics.final_state(next, x_next);
      own.physics.fit_increments(x_next, next);
      return fault;
    });
  }

  double residual_of_lane(int l, const Lane& frozen, const double* a) const override {
    std::vector<double> start(static_cast<std::size_t>(lifted_size()), 0.0);
    std::vector<double> b(static_cast<std::size_t>(wave_size()));
    std::copy(frozen.x, frozen.x + layout_.n, start.begin());
    return solvers_.with(l, [&](StagedSolver& own) {
      LaneSolver& solver = own.newton;
      solver.part().freeze(start.data(), frozen.input);
      const bool fails = solver.solve(a, b.data()) == StepFault::not_converged;
      return fails ? solver.residual() : std::numeric_limits<double>::quiet_NaN();
    });
  }

  LastSolve last_solve(const Lane& frozen) const {
    return {frozen.extra + static_cast<std::ptrdiff_t>(2) * lifted_size(), lifted_size(),
            wave_size()};
  }

  StageLayout layout_;
  std::vector<const Subsystem*> parts_;
  SolverOfEachLane<StagedSolver> solvers_;
};

}  // namespace

NewtonOptions newton_options_of(const Subsystem& part) {
  const auto* const own = dynamic_cast<const NonlinearPortHamiltonian*>(&part);
  return own == nullptr ? NewtonOptions{} : NewtonOptions{own->options().max_newton_steps};
}

std::unique_ptr<StepBatch> make_staged_newton_batch(std::span<const Subsystem* const> parts,
                                                    const StageRule& stages) {
  return std::make_unique<StagedNewtonBatch>(parts, stages);
}

}  // namespace portwave
