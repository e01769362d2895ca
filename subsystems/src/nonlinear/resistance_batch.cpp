#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/port_closure.hpp"
#include "nonlinear/monotone_root.hpp"
#include "nonlinear/saturation_batch.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/core/lane_exchange.hpp"
#include "portwave/subsystems/core/port_slopes.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/core/step_batch.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_resistance.hpp"

namespace portwave {
namespace {

/// Parts without a state, each port of which is one equation αu + βφ(u) = s a. With stages they are solved one by one:
/// at stage i everything is √bᵢ times as large.
class ResistanceBatch final : public LanewiseBatch,
                              public LaneExchange,
                              public StageMotion,
                              public PortSlopes {
 public:
  ResistanceBatch(std::span<const Subsystem* const> parts, const StageRule& stages)
      : LanewiseBatch(static_cast<int>(parts.size()), 0,
                      stages.count * parts[0]->signature().wave_size(), 0),
        parts_(parts.begin(), parts.end()),
        ports_(parts[0]->signature().wave_size()) {
    for (int i = 0; i < stages.count; ++i) root_.push_back(std::sqrt(stages.b[at(i)]));
  }

  double scatter_cost_ns() const override { return kPerPort_ns * wave_size(); }
  double advance_cost_ns() const override { return scatter_cost_ns(); }

  const StageMotion* stage_motion() const override { return root_.size() > 1 ? this : nullptr; }
  int stages() const override { return static_cast<int>(root_.size()); }
  void stage_increments(LaneRange /*lanes*/, const double* /*record*/, const double* /*a*/,
                        const double* /*next*/, double* /*out*/) const override {}

  void prepare(double step_s, const double* impedance) override {
    step_s_ = step_s;
    closures_.clear();
    for (int l = 0; l < lanes(); ++l) {
      const std::vector<PortClosure> ports = closures_of(l, *parts_[at(l)], impedance);
      closures_.insert(closures_.end(), ports.begin(), ports.end());
    }
  }

  bool exchange(int lane, StepBatch& one, const double* impedance) override {
    const auto* const other = dynamic_cast<const ResistanceBatch*>(&one);
    if (other == nullptr) return false;
    const std::vector<PortClosure> ports = closures_of(lane, *other->parts_.front(), impedance);
    std::ranges::copy(ports, closures_.begin() + lane * wave_size());
    parts_[at(lane)] = other->parts_.front();
    return true;
  }

  /// Of several stages: those of one are found by differences.
  bool port_slopes(int l, const double* /*record*/, const double* a, int step,
                   double* matrix) const override {
    if (root_.size() == 1) return false;
    const int p = wave_size();
    std::fill(matrix, matrix + p * p, 0.0);
    return for_each_port(
        l, [&](int wave) { return a[wave * step]; },
        [&](const PortClosure& port, double input, int wave) {
          const double slope = parts_[at(l)]->port_law(wave % ports_, input).slope;
          const double moved = port.s / (port.alpha + port.beta * slope);
          matrix[wave * p + wave] = port.slope * moved + port.sign;
        });
  }

 private:
  std::vector<PortClosure> closures_of(int lane, const Subsystem& part,
                                       const double* impedance) const {
    std::vector<PortClosure> out;
    std::vector<double> own(at(ports_));
    for (int first = 0; first < wave_size(); first += ports_) {
      for (int j = 0; j < ports_; ++j) own[at(j)] = impedance[lane + (first + j) * stride()];
      const std::vector<PortClosure> ports = port_closures(part.signature(), step_s_, own.data());
      out.insert(out.end(), ports.begin(), ports.end());
    }
    return out;
  }

  static constexpr double kPerPort_ns = 200.0;

  void freeze_lane(int /*lane*/, const Lane& /*frozen*/) const override {}
  StepFault scatter_lane(int l, const Lane& /*frozen*/, const double* a, double* b) const override {
    return solve(l, a, b, [](double /*input*/, int /*wave*/) {});
  }
  StepFault advance_lane(int l, const Lane& /*frozen*/, const double* a, double* /*x_next*/,
                         double* b, StepEnergy& energy) const override {
    energy = {};
    return solve(l, a, b, [&](double input, int wave) {
      const double weight = root_[at(wave / ports_)] * root_[at(wave / ports_)];
      energy.dissipated_J +=
          step_s_ * weight * (parts_[at(l)]->port_law(wave % ports_, input).value * input);
    });
  }

  /// Calls use(closure, u, wave) for each port of each stage. False where an input is not finite.
  template <class Wave, class Use>
  bool for_each_port(int l, const Wave& incident, const Use& use) const {
    const Subsystem& part = *parts_[at(l)];
    const PortClosure* port = closures_.data() + at(l) * at(wave_size());
    for (int wave = 0; wave < wave_size(); ++wave, ++port) {
      const double right = port->s * incident(wave) / root_[at(wave / ports_)];
      const double input = monotone_root(port->alpha, port->beta, right,
                                         [&](double u) { return part.port_law(wave % ports_, u); });
      if (!std::isfinite(input)) return false;
      use(*port, input, wave);
    }
    return true;
  }
  template <class Use>
  StepFault solve(int l, const double* a, double* b, const Use& use) const {
    const bool is_finite = for_each_port(
        l, [&](int wave) { return a[wave]; },
        [&](const PortClosure& port, double input, int wave) {
          use(input, wave);
          b[wave] = port.slope * (root_[at(wave / ports_)] * input) + port.sign * a[wave];
        });
    return is_finite ? StepFault::none : StepFault::not_finite;
  }

  std::vector<const Subsystem*> parts_;
  int ports_;                          // of a stage
  std::vector<double> root_;           // by stage, √bᵢ: 1 of one
  std::vector<PortClosure> closures_;  // by lane, stage and port
  double step_s_ = 0.0;
};

}  // namespace

std::unique_ptr<StepBatch> NonlinearResistance::make_batch(
    std::span<const Component* const> parts) const {
  if (!saturating_)
    return std::make_unique<ResistanceBatch>(port_hamiltonian_parts(parts), gauss_stages(1));
  std::vector<const NonlinearResistance*> saturating;
  for (const Component* part : parts) {
    saturating.push_back(dynamic_cast<const NonlinearResistance*>(part));
  }
  return make_saturation_batch(std::move(saturating));
}

std::unique_ptr<StepBatch> NonlinearResistance::make_staged_batch(
    std::span<const Component* const> parts, int stages) const {
  return make_lanes(parts, gauss_stages(stages));
}

std::unique_ptr<StepBatch> NonlinearResistance::make_lanes(std::span<const Component* const> parts,
                                                           const StageRule& stages) const {
  return std::make_unique<ResistanceBatch>(port_hamiltonian_parts(parts), stages);
}

}  // namespace portwave
