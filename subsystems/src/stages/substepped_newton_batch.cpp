#include <algorithm>
#include <atomic>
#include <cstddef>
#include <optional>
#include <vector>

#include "base/workspace.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/nonlinear/newton_batch.hpp"
#include "stages/staged_batches.hpp"
#include "stages/substep_solver.hpp"

namespace portwave {
namespace {

/// The `extra` of a record is what an inexact scatter leaves to the next.
class SubsteppedNewtonBatch final : public LanewiseBatch, public StepRoundings {
 public:
  SubsteppedNewtonBatch(std::span<const Subsystem* const> parts, const GaussStages& stages,
                        const StageLayout& layout)
      : LanewiseBatch(static_cast<int>(parts.size()), layout.n, layout.ports(), layout.inputs(),
                      SubstepSolver::kept_size(layout)),
        parts_(parts.begin(), parts.end()),
        stages_(stages),
        layout_(layout),
        options_(newton_options_of(*parts[0])),
        taken_(std::make_unique<std::atomic<bool>[]>(parts.size())) {
    for (const Subsystem* part : parts) {
      solvers_.push_back(std::make_unique<SubstepSolver>(*part, stages, layout.substeps, options_));
    }
  }

  double scatter_cost_ns() const override {
    const double n = (layout_.stages + 1) * layout_.n;
    constexpr double kNewtonSteps = 3.0;
    return kNewtonSteps * layout_.substeps * (1000.0 + 150.0 * n + 0.5 * n * n * n);
  }
  double advance_cost_ns() const override { return scatter_cost_ns(); }

  const StepRoundings* roundings() const override { return this; }

  void prepare(double step_s, const double* impedance) override {
    step_s_ = step_s;
    impedance_.clear();
    for (int l = 0; l < lanes(); ++l) {
      for (int j = 0; j < wave_size(); ++j) impedance_.push_back(impedance[j * stride() + l]);
      solvers_[static_cast<std::size_t>(l)]->prepare(step_s, impedance_of(l));
    }
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
    const StepFault fault = with_solver(l, [&](SubstepSolver& solver) {
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
    return with_solver(l, [&](SubstepSolver& solver) {
      solver.freeze(frozen.x, frozen.input);
      return solver.solve(a, b);
    });
  }
  StepFault inexact_scatter_lane(int l, const Lane& frozen, const double* a,
                                 double* b) const override {
    return with_solver(l, [&](SubstepSolver& solver) {
      solver.freeze(frozen.x, frozen.input);
      return solver.inexact_scatter(a, b, frozen.extra);
    });
  }
  StepFault advance_lane(int l, const Lane& frozen, const double* a, double* x_next, double* b,
                         StepEnergy& energy) const override {
    return with_solver(l, [&](SubstepSolver& solver) {
      solver.freeze(frozen.x, frozen.input);
      const StepFault fault = solver.solve(a, b);
      if (fault == StepFault::none) energy = solver.commit(x_next);
      return fault;
    });
  }

  /// As in NewtonBatch: a solver is taken for the length of a call, and a second thread makes its
  /// own.
  template <class Act>
  StepFault with_solver(int l, const Act& act) const {
    const auto lane = static_cast<std::size_t>(l);
    if (taken_[lane].exchange(true, std::memory_order_acquire)) {
      SubstepSolver another(*parts_[lane], stages_, layout_.substeps, options_);
      another.prepare(step_s_, impedance_of(l));
      return act(another);
    }
    struct Return {
      std::atomic<bool>& taken;
      ~Return() { taken.store(false, std::memory_order_release); }
    } const give_back{taken_[lane]};  // also where a callback throws
    return act(*solvers_[lane]);
  }
  const double* impedance_of(int l) const { return impedance_.data() + l * wave_size(); }

  std::vector<const Subsystem*> parts_;
  const GaussStages& stages_;
  StageLayout layout_;
  NewtonOptions options_;
  double step_s_ = 0.0;
  std::vector<double> impedance_;  // lane by lane
  std::unique_ptr<std::atomic<bool>[]> taken_;
  std::vector<std::unique_ptr<SubstepSolver>> solvers_;  // of lane l: whoever has set taken_[l]
};

}  // namespace

std::unique_ptr<StepBatch> make_substepped_newton_batch(std::span<const Subsystem* const> parts,
                                                        const GaussStages& stages, int substeps) {
  const Signature& signature = parts[0]->signature();
  const StageLayout layout{stages.count, signature.state_size(), signature.wave_size(),
                           signature.input_size(), substeps};
  return std::make_unique<SubsteppedNewtonBatch>(parts, stages, layout);
}

}  // namespace portwave
