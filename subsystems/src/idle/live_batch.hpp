#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/core/lane_exchange.hpp"
#include "portwave/subsystems/core/port_slopes.hpp"
#include "portwave/subsystems/core/subsystem.hpp"
#include "portwave/subsystems/idle/idle_ports.hpp"
#include "stages/staged_physics.hpp"

namespace portwave {

/// A batch of parts without their idle ports, and beside each record what the outputs at these ports are
/// made of: whether a step led there, the state it came from, and its external inputs. Nothing of that is
/// evaluated before somebody reads it.
///
/// A record is that of the parts' own batch, so that its facets serve as they are, followed by
///   [1: has stepped, 2: damped, xⁿ⁻¹, ū of that step, ū of the step to come]   per lane,
/// with several stages also √bᵢ h ẋᵢ of that step.
class LiveBatch final : public StepBatch,
                        public LaneExchange,
                        public PortSlopes,
                        public IdleOutputs,
                        private BoundCalls {
 public:
  /// The physics of a lane with its idle ports.
  struct Given {
    const Subsystem* physics;
    StageRule rule;  ///< a damped one of one stage is linear
  };
  /// `own`: the batch of the parts without their idle ports.
  LiveBatch(std::unique_ptr<StepBatch> own, std::vector<Given> given);

  int lane_group() const override { return own_->lane_group(); }
  double scatter_cost_ns() const override { return own_->scatter_cost_ns(); }
  double advance_cost_ns() const override { return own_->advance_cost_ns(); }
  void prepare(double step_s, const double* impedance) override;
  void expect(const BatchUse& use) override;
  std::size_t record_size() const override;
  std::vector<RecordRegion> record_regions() const override;
  void set_state(int lane, const double* x, double* record) const override {
    own_->set_state(lane, x, record);
  }
  void get_state(int lane, const double* record, double* x) const override {
    own_->get_state(lane, record, x);
  }
  void freeze(LaneRange lanes, double* record, const double* input) const override;
  LaneStatus scatter(LaneRange lanes, double* record, const double* a, double* b) const override {
    return own_->scatter(lanes, record, a, b);
  }
  LaneStatus inexact_scatter(LaneRange lanes, double* record, const double* a,
                             double* b) const override {
    return own_->inexact_scatter(lanes, record, a, b);
  }
  LaneStatus advance(LaneRange lanes, double* record, const double* a, double* next, double* b,
                     const EnergyColumns& energy) const override;
  FailedSolve failed_solve(int lane, const double* record) const override {
    return own_->failed_solve(lane, record);
  }

  const AffineMap* affine_map() const override { return own_->affine_map(); }
  const StepRoundings* roundings() const override { return own_->roundings(); }
  const StageMotion* stage_motion() const override { return own_->stage_motion(); }
  const BoundCalls* bound_calls() const override {
    return own_->bound_calls() != nullptr ? this : nullptr;
  }
  const PortSolves* port_solves() const override { return own_->port_solves(); }

  // As LaneExchange.
  bool exchange(int lane, StepBatch& one, const double* impedance) override;

  // As PortSlopes.
  bool port_slopes(int lane, const double* record, const double* a, int step,
                   double* matrix) const override {
    const auto* const slopes = dynamic_cast<const PortSlopes*>(own_.get());
    return slopes != nullptr && slopes->port_slopes(lane, record, a, step, matrix);
  }

  // As IdleOutputs.
  double idle_output(int lane, const double* record, int scalar_port, int stage,
                     std::span<const double> inputs) const override;
  void forget_step(int lane, double* record) const override { *kept(lane, record) = 0.0; }

 private:
  // As BoundCalls: commits have more to do than one call.
  BoundCall bind_scatter(LaneRange lanes, double* record, const double* a,
                         double* b) const override {
    return own_->bound_calls()->bind_scatter(lanes, record, a, b);
  }
  BoundCall bind_advance(LaneRange, double*, const double*, double*, double*,
                         const EnergyColumns&) const override {
    return {};
  }

  double output_by(const Structure& s, const double* gradient, const double* past, int scalar_port,
                   std::span<const double> inputs) const;
  double output_of_stage(int lane, const double* own, int scalar_port, int stage,
                         std::span<const double> inputs) const;
  void keep_increments(LaneRange lanes, const double* record, const double* a, double* next) const;
  int stages() const { return given_.front().rule.count; }
  int increments() const { return stages() > 1 ? stages() * state_size() : 0; }
  std::size_t kept_size() const;
  template <class Double>
  Double* kept(int lane, Double* record) const {
    return record + own_->record_size() + static_cast<std::size_t>(lane) * kept_size();
  }

  std::unique_ptr<StepBatch> own_;
  std::vector<Given> given_;
  double step_s_ = 0.0;
  mutable Structure structure_;  ///< scratch of whoever has set `taken_`
  mutable std::atomic<bool> taken_ = false;
  mutable std::mutex reading_;                                        ///< of `staged_`
  mutable std::vector<std::unique_ptr<const StagedPhysics>> staged_;  ///< by lane, made when read
};

}  // namespace portwave
