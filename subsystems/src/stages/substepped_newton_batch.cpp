#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "base/workspace.hpp"
#include "nonlinear/solver_of_each_lane.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/core/lane_exchange.hpp"
#include "portwave/subsystems/nonlinear/newton_batch.hpp"
#include "stages/staged_batches.hpp"
#include "stages/substep_solver.hpp"

namespace portwave {
namespace {

/// The `extra` of a record is what an inexact scatter leaves to the next.
class SubsteppedNewtonBatch final : public LanewiseBatch,
                                    public StepRoundings,
                                    public LaneExchange {
 public:
  SubsteppedNewtonBatch(std::span<const Subsystem* const> parts, const StageRule& stages,
                        const StageLayout& layout)
      : LanewiseBatch(static_cast<int>(parts.size()), layout.n, layout.ports(), layout.inputs(),
                      SubstepSolver::kept_size(layout)),
        layout_(layout),
        parts_(parts.begin(), parts.end()),
        solvers_(lanes(), wave_size(), are_one(parts_),
                 [this, stages, substeps = layout.substeps,
                  options = newton_options_of(*parts[0])](int l) {
                   return std::make_unique<SubstepSolver>(*parts_[at(l)], stages, substeps,
                                                          options);
                 }) {}

  double scatter_cost_ns() const override {
    const double n = (layout_.stages + 1) * layout_.n;
    constexpr double kNewtonSteps = 3.0;
    return kNewtonSteps * layout_.substeps * (1000.0 + 150.0 * n + 0.5 * n * n * n);
  }
  double advance_cost_ns() const override { return scatter_cost_ns(); }

  const StepRoundings* roundings() const override { return this; }

  void prepare(double step_s, const double* impedance) override {
    solvers_.prepare(step_s, impedance, stride());
  }
  bool exchange(int lane, StepBatch& one, const double* impedance) override {
    auto* const other = dynamic_cast<SubsteppedNewtonBatch*>(&one);
    if (other == nullptr) return false;
    solvers_.take(lane, other->solvers_, impedance, stride());
    parts_[at(lane)] = other->parts_.front();
    return true;
  }

  std::optional<double> step_rounding(int l, const double* record, const double* a,
                                      const double* /*next*/) const override {
    const double* const x = state_of(l, record);
    const int p = wave_size();
    detail::Workspace room(static_cast<std::size_t>(2 * p));
    double* const wave = room.data();
    double* const b = wave + p;
    for (int j = 0; j < p; ++j) wave[j] = a[j * stride() + l];
    double bound = 0.0;
    const StepFault fault = solvers_.with(l, [&](SubstepSolver& solver) {
      solver.freeze(x, x + layout_.n);
      const StepFault own = solver.solve(wave, b);
      bound = solver.energy_rounding(wave);
      return own;
    });
    if (fault != StepFault::none) return std::nullopt;
    return bound;
  }

 private:
  void freeze_lane(int /*lane*/, const Lane& frozen) const override { frozen.extra[0] = 0.0; }
  StepFault scatter_lane(int l, const Lane& frozen, const double* a, double* b) const override {
    return solvers_.with(l, [&](SubstepSolver& solver) {
      solver.freeze(frozen.x, frozen.input);
      return solver.solve(a, b);
    });
  }
  StepFault inexact_scatter_lane(int l, const Lane& frozen, const double* a,
                                 double* b) const override {
    return solvers_.with(l, [&](SubstepSolver& solver) {
      solver.freeze(frozen.x, frozen.input);
      return solver.inexact_scatter(a, b, frozen.extra);
    });
  }
  StepFault advance_lane(int l, const Lane& frozen, const double* a, double* x_next, double* b,
                         StepEnergy& energy) const override {
    return solvers_.with(l, [&](SubstepSolver& solver) {
      solver.freeze(frozen.x, frozen.input);
      const StepFault fault = solver.solve(a, b);
      if (fault == StepFault::none) energy = solver.commit(x_next);
      return fault;
    });
  }

  StageLayout layout_;
  std::vector<const Subsystem*> parts_;
  SolverOfEachLane<SubstepSolver> solvers_;
};

}  // namespace

std::unique_ptr<StepBatch> make_substepped_newton_batch(std::span<const Subsystem* const> parts,
                                                        const StageRule& stages, int substeps) {
  const Signature& signature = parts[0]->signature();
  const StageLayout layout{stages.count, signature.state_size(), signature.wave_size(),
                           signature.input_size(), substeps};
  return std::make_unique<SubsteppedNewtonBatch>(parts, stages, layout);
}

}  // namespace portwave
