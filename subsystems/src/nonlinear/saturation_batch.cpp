#include "nonlinear/saturation_batch.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/port_closure.hpp"
#include "kernels/saturation_kernels.hpp"
#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/core/lane_exchange.hpp"

namespace portwave {
namespace {

/// Records are empty: there are neither states nor inputs.
class SaturationBatch final : public StepBatch, public BoundCalls, public LaneExchange {
 public:
  explicit SaturationBatch(std::vector<const NonlinearResistance*> parts)
      : StepBatch(static_cast<int>(parts.size()), 0, parts[0]->signature().wave_size(), 0),
        parts_(std::move(parts)),
        width_(lanes() == 1 ? 1 : kLaneGroup),
        coefficients_(at(stride()) * at(wave_size()) * saturation::kCoefficientCount) {}

  double scatter_cost_ns() const override { return (lanes() == 1 ? 100.0 : 30.0) * wave_size(); }
  double advance_cost_ns() const override { return scatter_cost_ns(); }

  void prepare(double step_s, const double* impedance) override {
    step_s_ = step_s;
    for (int l = 0; l < lanes(); ++l) put(l, impedance);
  }

  bool exchange(int lane, StepBatch& one, const double* impedance) override {
    const auto* const other = dynamic_cast<const SaturationBatch*>(&one);
    if (other == nullptr) return false;
    parts_[at(lane)] = other->parts_.front();
    put(lane, impedance);
    return true;
  }

  std::size_t record_size() const override { return 0; }
  std::vector<RecordRegion> record_regions() const override { return {RecordRegion{}}; }
  void set_state(int /*lane*/, const double* /*x*/, double* /*record*/) const override {}
  void get_state(int /*lane*/, const double* /*record*/, double* /*x*/) const override {}
  void freeze(LaneRange /*lanes*/, double* /*record*/, const double* /*input*/) const override {}

  LaneStatus scatter(LaneRange range, double* /*record*/, const double* a,
                     double* b) const override {
    const saturation::Task task = task_for(range, a, b);
    return outcome(scatter_kernel()(&task), range);
  }
  LaneStatus advance(LaneRange range, double* /*record*/, const double* a, double* /*next*/,
                     double* b, const EnergyColumns& energy) const override {
    const saturation::Task task = advance_task(range, a, b, energy);
    return outcome(advance_kernel()(&task), range);
  }

  const BoundCalls* bound_calls() const override { return this; }
  BoundCall bind_scatter(LaneRange range, double* /*record*/, const double* a,
                         double* b) const override {
    return BoundCall::of(scatter_kernel(), task_for(range, a, b));
  }
  BoundCall bind_advance(LaneRange range, double* /*record*/, const double* a, double* /*next*/,
                         double* b, const EnergyColumns& energy) const override {
    return BoundCall::of(advance_kernel(), advance_task(range, a, b, energy));
  }

 private:
  /// The coefficients of a lane, and of the padding that follows the last one.
  void put(int lane, const double* impedance) {
    const SaturatingLaw& law = *parts_[at(lane)]->saturating_law();
    std::vector<double> own(at(wave_size()));
    for (int j = 0; j < wave_size(); ++j) own[at(j)] = impedance[lane + j * stride()];
    const std::vector<PortClosure> ports =
        port_closures(parts_[at(lane)]->signature(), step_s_, own.data());
    const int first = lane % width_, last = lane + 1 < lanes() ? first + 1 : width_;
    for (int j = 0; j < wave_size(); ++j) {
      const PortClosure& port = ports[at(j)];
      double values[saturation::kCoefficientCount];
      values[saturation::kRight] = port.s;
      values[saturation::kOwn] = port.alpha + port.beta * law.slope;
      values[saturation::kLimit] = port.beta * law.saturation;
      values[saturation::kPerReach] = 1.0 / law.reach;
      values[saturation::kSlope] = port.slope;
      values[saturation::kSign] = port.sign;
      values[saturation::kForce] = law.saturation;
      values[saturation::kViscosity] = law.slope;
      double* const group = coefficients_.data() + at((lane / width_ * wave_size() + j) *
                                                      saturation::kCoefficientCount * width_);
      for (int k = 0; k < saturation::kCoefficientCount; ++k) {
        std::fill(group + k * width_ + first, group + k * width_ + last, values[k]);
      }
    }
  }

  int (*scatter_kernel() const)(const void*) {
    return width_ == 1 ? saturation::kernels().scatter_alone : saturation::kernels().scatter;
  }
  int (*advance_kernel() const)(const void*) {
    return width_ == 1 ? saturation::kernels().advance_alone : saturation::kernels().advance;
  }
  saturation::Task task_for(LaneRange range, const double* a, double* b) const {
    return {.coefficients = coefficients_.data(),
            .ports = wave_size(),
            .first = range.first / width_,
            .last = (range.last + width_ - 1) / width_,
            .stride = stride(),
            .step_s = step_s_,
            .a = a,
            .b = b,
            .energy = {}};
  }
  saturation::Task advance_task(LaneRange range, const double* a, double* b,
                                const EnergyColumns& energy) const {
    saturation::Task task = task_for(range, a, b);
    task.energy = energy;
    return task;
  }
  static LaneStatus outcome(int bad, LaneRange range) {
    if (bad < 0 || bad >= range.last) return {};
    return {bad, StepFault::not_finite};
  }

  std::vector<const NonlinearResistance*> parts_;
  int width_;
  double step_s_ = 0.0;
  AlignedVector coefficients_;
};

}  // namespace

namespace saturation {

const Kernels& kernels() { return PORTWAVE_KERNELS(kSaturation); }

}  // namespace saturation

std::unique_ptr<StepBatch> make_saturation_batch(std::vector<const NonlinearResistance*> parts) {
  return std::make_unique<SaturationBatch>(std::move(parts));
}

}  // namespace portwave
