#include "nonlinear/stribeck_friction.hpp"

#include <cmath>
#include <utility>
#include <vector>

#include "core/port_closure.hpp"
#include "nonlinear/monotone_root.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/core/lane_exchange.hpp"
#include "portwave/subsystems/core/step_batch.hpp"

namespace portwave {

double StribeckLaw::level(double speed) const {
  const double share = speed / falls_at;
  return sliding + (at_rest - sliding) * std::exp(-share * share);
}

StribeckFriction::StribeckFriction(Signature signature, const StribeckLaw& law)
    : Subsystem(std::move(signature)), law_(law), structure_(Structure::zero(1, 1)) {}

PortLawValue StribeckFriction::value(double level, double u) const {
  const double t = std::tanh(u / law_.reach);
  return {level * t + law_.viscosity * u, level / law_.reach * (1.0 - t * t) + law_.viscosity};
}

namespace {

/// The port of stage i has √bᵢ times the variables of the part: αu + β√bᵢφ(u/√bᵢ) = s a. What is frozen is the
/// level of the step.
class StribeckBatch final : public LanewiseBatch, public StageMotion, public LaneExchange {
 public:
  StribeckBatch(std::vector<const StribeckFriction*> parts, const StageRule& stages)
      : LanewiseBatch(static_cast<int>(parts.size()), 1, stages.count, 0, 1),
        parts_(std::move(parts)),
        closures_(at(lanes() * stages.count)) {
    for (int i = 0; i < stages.count; ++i) root_.push_back(std::sqrt(stages.b[at(i)]));
  }

  double scatter_cost_ns() const override { return kPerStage_ns * stages(); }
  double advance_cost_ns() const override { return scatter_cost_ns(); }

  void prepare(double step_s, const double* impedance) override {
    step_s_ = step_s;
    for (int l = 0; l < lanes(); ++l) close(l, impedance);
  }
  bool exchange(int lane, StepBatch& one, const double* impedance) override {
    const auto* const other = dynamic_cast<const StribeckBatch*>(&one);
    if (other == nullptr) return false;
    parts_[at(lane)] = other->parts_.front();
    close(lane, impedance);
    return true;
  }

  const StageMotion* stage_motion() const override { return stages() > 1 ? this : nullptr; }
  int stages() const override { return static_cast<int>(root_.size()); }
  void stage_increments(LaneRange range, const double* record, const double* /*a*/,
                        const double* next, double* out) const override {
    for (int l = range.first; l < range.last; ++l) {
      const double moved = *state_of(l, next) - *state_of(l, record);
      for (int i = 0; i < stages(); ++i) out[i * stride() + l] = root_[at(i)] * moved;
    }
  }

 private:
  static constexpr double kPerStage_ns = 250.0;

  void close(int lane, const double* impedance) {
    for (int i = 0; i < stages(); ++i) {
      const double own = impedance[lane + i * stride()];
      closures_[at(lane * stages() + i)] =
          port_closures(parts_[at(lane)]->signature(), step_s_, &own).front();
    }
  }

  void freeze_lane(int l, const Lane& frozen) const override {
    frozen.extra[0] = parts_[at(l)]->law().level(frozen.x[0]);
  }
  StepFault scatter_lane(int l, const Lane& frozen, const double* a, double* b) const override {
    return solve(l, frozen, a, b, [](int /*stage*/, double /*input*/) {});
  }
  StepFault advance_lane(int l, const Lane& frozen, const double* a, double* x_next, double* b,
                         StepEnergy& energy) const override {
    energy = {};
    double mean = 0.0;
    const StepFault fault = solve(l, frozen, a, b, [&](int i, double input) {
      mean += root_[at(i)] * input;
      energy.dissipated_J += step_s_ * output(l, frozen, i, input).value * input;
    });
    if (fault == StepFault::none) parts_[at(l)]->remember(&mean, x_next);
    return fault;
  }

  PortLawValue output(int l, const Lane& frozen, int stage, double input) const {
    const double root = root_[at(stage)];
    const PortLawValue own = parts_[at(l)]->value(frozen.extra[0], input / root);
    return {root * own.value, own.slope};
  }

  template <class Use>
  StepFault solve(int l, const Lane& frozen, const double* a, double* b, const Use& use) const {
    for (int i = 0; i < stages(); ++i) {
      const PortClosure& port = closures_[at(l * stages() + i)];
      const double input = monotone_root(port.alpha, port.beta, port.s * a[i],
                                         [&](double u) { return output(l, frozen, i, u); });
      if (!std::isfinite(input)) return StepFault::not_finite;
      use(i, input);
      b[i] = port.slope * input + port.sign * a[i];
    }
    return StepFault::none;
  }

  std::vector<const StribeckFriction*> parts_;
  std::vector<double> root_;           ///< √bᵢ
  std::vector<PortClosure> closures_;  ///< by lane and stage
  double step_s_ = 0.0;
};

}  // namespace

std::unique_ptr<StepBatch> make_stribeck_batch(std::span<const Subsystem* const> parts,
                                               const StageRule& stages) {
  std::vector<const StribeckFriction*> own;
  own.reserve(parts.size());
  for (const Subsystem* const part : parts) {
    own.push_back(dynamic_cast<const StribeckFriction*>(part));
  }
  return std::make_unique<StribeckBatch>(std::move(own), stages);
}

std::unique_ptr<StepBatch> StribeckFriction::make_batch(
    std::span<const Component* const> parts) const {
  return make_stribeck_batch(port_hamiltonian_parts(parts), gauss_stages(1));
}

}  // namespace portwave
