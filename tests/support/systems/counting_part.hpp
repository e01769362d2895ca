#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "portwave/subsystems/core/step_batch.hpp"
#include "portwave/subsystems/core/subsystem.hpp"
#include "portwave/subsystems/nonlinear/newton_batch.hpp"

namespace portwave::testing {

/// Passes a batch on, with `inexact_scatter` as exact as `scatter`.
class ExactBatch : public StepBatch {
 public:
  explicit ExactBatch(std::unique_ptr<StepBatch> batch)
      : StepBatch(batch->lanes(), batch->state_size(), batch->wave_size(), batch->input_size()),
        batch_(std::move(batch)) {}
  int lane_group() const override { return batch_->lane_group(); }
  void prepare(double step_s, const double* gamma) override { batch_->prepare(step_s, gamma); }
  std::size_t record_size() const override { return batch_->record_size(); }
  std::vector<RecordRegion> record_regions() const override { return batch_->record_regions(); }
  void set_state(int lane, const double* x, double* record) const override {
    batch_->set_state(lane, x, record);
  }
  void get_state(int lane, const double* record, double* x) const override {
    batch_->get_state(lane, record, x);
  }
  void freeze(LaneRange lanes, double* record, const double* input) const override {
    batch_->freeze(lanes, record, input);
  }
  LaneStatus scatter(LaneRange lanes, double* record, const double* a, double* b) const override {
    return batch_->scatter(lanes, record, a, b);
  }
  LaneStatus advance(LaneRange lanes, double* record, const double* a, double* next, double* b,
                     const EnergyColumns& energy) const override {
    return batch_->advance(lanes, record, a, next, b, energy);
  }

 protected:
  const StepBatch& passed_on() const { return *batch_; }

 private:
  std::unique_ptr<StepBatch> batch_;
};

/// A part as a user writes one: physics, and no batch of its own. Counts what port solves ask of
/// it.
class CountingPart : public Subsystem {
 public:
  explicit CountingPart(std::shared_ptr<const Subsystem> physics, bool exact = false)
      : Subsystem(physics->signature()), physics_(std::move(physics)), exact_(exact) {}

  double storage(const double* x) const override { return physics_->storage(x); }
  void gradient(const double* x, double* g) const override { physics_->gradient(x, g); }
  void discrete_gradient(const double* x, const double* x_next, double* g) const override {
    ++gradients;
    physics_->discrete_gradient(x, x_next, g);
  }
  void discrete_gradient_jacobian(const double* x, const double* x_next,
                                  std::vector<Eigen::Triplet<double>>& j) const override {
    ++jacobians;
    physics_->discrete_gradient_jacobian(x, x_next, j);
  }
  const Structure& structure() const override { return physics_->structure(); }
  bool constant_structure() const override { return physics_->constant_structure(); }
  void structure_at(const double* x, Structure& out) const override {
    physics_->structure_at(x, out);
  }
  void structure_over(const double* x, const double* dx, double step_s,
                      Structure& out) const override {
    physics_->structure_over(x, dx, step_s, out);
  }
  bool structure_depends_on(int state) const override {
    return physics_->structure_depends_on(state);
  }
  void stop_at_bounds(double* x_next) const override { physics_->stop_at_bounds(x_next); }
  std::vector<double> default_state() const override { return physics_->default_state(); }
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> parts) const override {
    auto batch = Subsystem::make_batch(parts);
    if (!exact_) return batch;
    return std::make_unique<ExactBatch>(std::move(batch));
  }

  mutable long gradients = 0;
  mutable long jacobians = 0;

 private:
  std::shared_ptr<const Subsystem> physics_;
  bool exact_;
};

/// A part whose batch is a `Batch`, which is made of the usual one and a number. Nobody measures what it
/// costs, so that its calls may be counted.
template <class Batch>
class NumberedPart final : public CountingPart {
 public:
  NumberedPart(std::shared_ptr<const Subsystem> physics, int number)
      : CountingPart(std::move(physics)), number_(number) {}
  Capabilities capabilities() const override {
    Capabilities own = CountingPart::capabilities();
    own.repeatable = false;
    return own;
  }
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> parts) const override {
    return std::make_unique<Batch>(Subsystem::make_batch(parts), number_);
  }

 private:
  int number_;
};

}  // namespace portwave::testing
