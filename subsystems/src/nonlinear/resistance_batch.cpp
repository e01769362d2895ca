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
#include "portwave/subsystems/core/lane_exchange.hpp"
#include "portwave/subsystems/core/step_batch.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_resistance.hpp"

namespace portwave {
namespace {

/// Parts without a state, each port of which is one equation αu + βφ(u) = s a.
class ResistanceBatch final : public LanewiseBatch, public LaneExchange {
 public:
  explicit ResistanceBatch(std::span<const Subsystem* const> parts)
      : LanewiseBatch(static_cast<int>(parts.size()), 0, parts[0]->signature().wave_size(), 0),
        parts_(parts.begin(), parts.end()) {}

  double scatter_cost_ns() const override { return kPerPort_ns * wave_size(); }
  double advance_cost_ns() const override { return scatter_cost_ns(); }

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

 private:
  std::vector<PortClosure> closures_of(int lane, const Subsystem& part,
                                       const double* impedance) const {
    std::vector<double> own(at(wave_size()));
    for (int j = 0; j < wave_size(); ++j) own[at(j)] = impedance[at(lane + j * stride())];
    return port_closures(part.signature(), step_s_, own.data());
  }

  static constexpr double kPerPort_ns = 200.0;

  void freeze_lane(int /*lane*/, const Lane& /*frozen*/) const override {}
  StepFault scatter_lane(int l, const Lane& /*frozen*/, const double* a, double* b) const override {
    return solve(l, a, b, [](double /*input*/, const Subsystem& /*part*/, int /*port*/) {});
  }
  StepFault advance_lane(int l, const Lane& /*frozen*/, const double* a, double* /*x_next*/,
                         double* b, StepEnergy& energy) const override {
    energy = {};
    return solve(l, a, b, [&](double input, const Subsystem& part, int port) {
      energy.dissipated_J += step_s_ * part.port_law(port, input).value * input;
    });
  }

  template <class Use>
  StepFault solve(int l, const double* a, double* b, const Use& use) const {
    const Subsystem& part = *parts_[at(l)];
    const PortClosure* port = closures_.data() + at(l) * at(wave_size());
    for (int j = 0; j < wave_size(); ++j, ++port) {
      const double right = port->s * a[j];
      const double input = monotone_root(port->alpha, port->beta, right,
                                         [&](double u) { return part.port_law(j, u); });
      if (!std::isfinite(input)) return StepFault::not_finite;
      use(input, part, j);
      b[j] = port->slope * input + port->sign * a[j];
    }
    return StepFault::none;
  }

  std::vector<const Subsystem*> parts_;
  std::vector<PortClosure> closures_;  // by lane and port
  double step_s_ = 0.0;
};

}  // namespace

std::unique_ptr<StepBatch> NonlinearResistance::make_batch(
    std::span<const Component* const> parts) const {
  if (!saturating_) return std::make_unique<ResistanceBatch>(port_hamiltonian_parts(parts));
  std::vector<const NonlinearResistance*> saturating;
  for (const Component* part : parts) {
    saturating.push_back(dynamic_cast<const NonlinearResistance*>(part));
  }
  return make_saturation_batch(std::move(saturating));
}

}  // namespace portwave
