#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "base/workspace.hpp"
#include "nonlinear/lane_solver.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"
#include "stages/staged_batches.hpp"
#include "stages/staged_physics.hpp"

namespace portwave {
namespace {

/// Newton on all stages of a part, by the solver of one stage (StagedPhysics).
class StagedNewtonBatch final : public LanewiseBatch, public StepRoundings, public StageMotion {
 public:
  StagedNewtonBatch(std::span<const Subsystem* const> parts, const GaussStages& stages)
      : StagedNewtonBatch(parts, stages, StagedPhysics(*parts[0], stages).layout()) {}

  double scatter_cost_ns() const override {
    const double n = lifted_size();
    return 2000.0 + 1000.0 * n + 2.0 * n * n * n;
  }
  double advance_cost_ns() const override { return scatter_cost_ns(); }

  const StepRoundings* roundings() const override { return this; }
  const StageMotion* stage_motion() const override { return this; }

  void prepare(double step_s, const double* impedance) override {
    step_s_ = step_s;
    impedance_.clear();
    for (int l = 0; l < lanes(); ++l) {
      for (int j = 0; j < wave_size(); ++j) impedance_.push_back(impedance[j * stride() + l]);
      solvers_[static_cast<std::size_t>(l)].part().prepare(step_s, impedance_of(l));
    }
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
    const StepFault fault = with_solver(l, [&](LaneSolver& solver) {
      solver.part().freeze(start, x + layout_.n);
      const StepFault own = solver.solve(wave, b);
      bound = solver.energy_rounding();
      return own;
    });
    if (fault != StepFault::none) return std::nullopt;
    for (int j = 0; j < p; ++j) waves += wave[j] * wave[j] + b[j] * b[j];
    return bound + kPerTerm * waves;
  }

 private:
  static constexpr double kPerTerm = 8.0 * std::numeric_limits<double>::epsilon();

  StagedNewtonBatch(std::span<const Subsystem* const> parts, const GaussStages& stages,
                    const StageLayout& layout)
      : LanewiseBatch(static_cast<int>(parts.size()), layout.n, layout.ports(), layout.inputs(),
                      2 * (layout.n + layout.states()) +
                          LastSolve::size(layout.n + layout.states(), layout.ports())),
        own_parts_(parts.begin(), parts.end()),
        stages_(stages),
        options_(newton_options_of(*parts[0])),
        layout_(layout),
        taken_(std::make_unique<std::atomic<bool>[]>(parts.size())) {
    for (const Subsystem* part : parts) {
      parts_.push_back(std::make_unique<const StagedPhysics>(*part, stages));
    }
    solvers_.reserve(parts.size());
    for (const auto& part : parts_) solvers_.emplace_back(*part, options_, part.get());
  }

  int lifted_size() const { return layout_.n + layout_.states(); }

  void freeze_lane(int /*lane*/, const Lane& frozen) const override {
    std::copy(frozen.x, frozen.x + layout_.n, frozen.extra);
    std::fill(frozen.extra + layout_.n, frozen.extra + lifted_size(), 0.0);
    last_solve(frozen).forget();
  }
  StepFault scatter_lane(int l, const Lane& frozen, const double* a, double* b) const override {
    return with_solver(l, [&](LaneSolver& solver) {
      solver.part().freeze(frozen.extra, frozen.input);
      return solver.solve(a, b);
    });
  }
  StepFault inexact_scatter_lane(int l, const Lane& frozen, const double* a,
                                 double* b) const override {
    return with_solver(l, [&](LaneSolver& solver) {
      solver.part().freeze(frozen.extra, frozen.input);
      return solver.inexact_scatter(a, b, last_solve(frozen));
    });
  }
  StepFault advance_lane(int l, const Lane& frozen, const double* a, double* x_next, double* b,
                         StepEnergy& energy) const override {
    return with_solver(l, [&](LaneSolver& solver) {
      solver.part().freeze(frozen.extra, frozen.input);
      const StepFault fault = solver.solve(a, b);
      if (fault != StepFault::none) return fault;
      double* const next = frozen.extra + lifted_size();
      energy = solver.part().commit(solver.increment(), next);
      parts_[static_cast<std::size_t>(l)]->final_state(next, x_next);
      parts_[static_cast<std::size_t>(l)]->fit_increments(x_next, next);
      return fault;
    });
  }

  double residual_of_lane(int l, const Lane& frozen, const double* a) const override {
    std::vector<double> start(static_cast<std::size_t>(lifted_size()), 0.0);
    std::vector<double> b(static_cast<std::size_t>(wave_size()));
    std::copy(frozen.x, frozen.x + layout_.n, start.begin());
    return with_solver(l, [&](LaneSolver& solver) {
      solver.part().freeze(start.data(), frozen.input);
      const bool fails = solver.solve(a, b.data()) == StepFault::not_converged;
      return fails ? solver.residual() : std::numeric_limits<double>::quiet_NaN();
    });
  }

  /// As in NewtonBatch: a solver is taken for the length of a call, and a second thread makes its
  /// own.
  template <class Act>
  std::invoke_result_t<const Act&, LaneSolver&> with_solver(int l, const Act& act) const {
    const auto lane = static_cast<std::size_t>(l);
    if (taken_[lane].exchange(true, std::memory_order_acquire)) {
      const StagedPhysics own(*own_parts_[lane], stages_);
      LaneSolver another(own, options_, &own);
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
    return {frozen.extra + static_cast<std::ptrdiff_t>(2) * lifted_size(), lifted_size(),
            wave_size()};
  }
  const double* impedance_of(int l) const { return impedance_.data() + l * wave_size(); }

  std::vector<const Subsystem*> own_parts_;
  const GaussStages& stages_;
  NewtonOptions options_;
  StageLayout layout_;
  std::vector<std::unique_ptr<const StagedPhysics>> parts_;
  double step_s_ = 0.0;
  std::vector<double> impedance_;  // lane by lane
  std::unique_ptr<std::atomic<bool>[]> taken_;
  mutable std::vector<LaneSolver> solvers_;  // of lane l: whoever has set taken_[l]
};

}  // namespace

NewtonOptions newton_options_of(const Subsystem& part) {
  const auto* const own = dynamic_cast<const NonlinearPortHamiltonian*>(&part);
  return own == nullptr ? NewtonOptions{} : NewtonOptions{own->options().max_newton_steps};
}

std::unique_ptr<StepBatch> make_staged_newton_batch(std::span<const Subsystem* const> parts,
                                                    const GaussStages& stages) {
  return std::make_unique<StagedNewtonBatch>(parts, stages);
}

}  // namespace portwave
