// The implicit step of a contact without friction at given incident waves, as one equation in the rate v = d':
//   f = Γ⁻¹(s a − N E),  v = Nᵀf = v₀ − c E(v),  v₀ = NᵀΓ⁻¹ s a,  c = NᵀΓ⁻¹N,
// with E(v) = Σ ±|k sᵐ| max(0, 1 ± a v) over its faces, k sᵐ that of the step from d to d + h v. E does not fall.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "core/port_closure.hpp"
#include "nonlinear/contact_spring.hpp"
#include "nonlinear/damps_each_lane.hpp"
#include "nonlinear/monotone_root.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/lane_exchange.hpp"
#include "portwave/subsystems/core/port_slopes.hpp"
#include "portwave/subsystems/core/step_batch.hpp"

namespace portwave {
namespace {

/// Of damped steps, the share of the force at their end: implicit Euler for 1.
double theta_of(const StageRule& rule) { return rule.conserved != 0 ? 0.0 : 2.0 * rule.damping; }

class ContactBatch final : public LanewiseBatch,
                           public LaneExchange,
                           public PortSlopes,
                           public DampsEachLane {
 public:
  ContactBatch(std::span<const Subsystem* const> parts, std::span<const StageRule> rules)
      : LanewiseBatch(static_cast<int>(parts.size()), 1, parts[0]->signature().wave_size(), 0, 1) {
    for (std::size_t l = 0; l < parts.size(); ++l) {
      lanes_.push_back({dynamic_cast<const ContactSpring*>(parts[l]), theta_of(rules[l])});
    }
  }

  bool damps_each_lane() const override { return true; }

  double scatter_cost_ns() const override { return kSolve_ns; }
  double advance_cost_ns() const override { return kSolve_ns; }

  void prepare(double step_s, const double* impedance) override {
    step_s_ = step_s;
    for (int l = 0; l < lanes(); ++l) close(lanes_[at(l)], impedance + l);
  }
  bool exchange(int lane, StepBatch& one, const double* impedance) override {
    const auto* const other = dynamic_cast<const ContactBatch*>(&one);
    if (other == nullptr) return false;
    ClosedContact& own = lanes_[at(lane)];
    own.part = other->lanes_.front().part;
    own.theta = other->lanes_.front().theta;
    close(own, impedance + lane);
    return true;
  }

  bool port_slopes(int l, const double* record, const double* a, int stride,
                   double* matrix) const override {
    const ClosedContact& own = lanes_[at(l)];
    const double d = state_of(l, record)[0];
    const double free = free_rate(own, a, stride);
    const double slope = effort(own, d, rate(own, d, free, free)).slope;
    const double per_rate = slope / (1.0 + own.c * slope);
    const std::span<const double> N = own.part->direction();
    const int p = wave_size();
    for (int i = 0; i < p; ++i) {
      const PortClosure& to = own.ports[at(i)];
      for (int j = 0; j < p; ++j) {
        const PortClosure& from = own.ports[at(j)];
        const double flow = from.s / from.alpha;
        const double back = N[at(i)] / to.alpha * per_rate * N[at(j)] * flow;
        matrix[i * p + j] = to.slope * ((i == j ? flow : 0.0) - back) + (i == j ? to.sign : 0.0);
      }
    }
    return true;
  }

 private:
  static constexpr double kSolve_ns = 60.0;
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  /// A part with the impedances of its ports.
  struct ClosedContact {
    const ContactSpring* part = nullptr;
    double theta = 0.0;
    std::vector<PortClosure> ports = {};
    double c = 0.0;
  };

  void close(ClosedContact& own, const double* impedance) const {
    std::array<double, 3> gamma{};  // along a line, in a plane or in space, or of two shafts
    for (int j = 0; j < wave_size(); ++j) gamma[at(j)] = impedance[j * stride()];
    port_closures(own.part->signature(), step_s_, gamma.data(), own.ports);
    own.c = 0.0;
    for (int j = 0; j < wave_size(); ++j) {
      const double along = own.part->direction()[at(j)];
      own.c += along * along / own.ports[at(j)].alpha;
    }
  }

  /// E at a rate v from d, and its slope.
  PortLawValue effort(const ClosedContact& own, double d, double v) const {
    const double to = d + step_s_ * v, damping = own.part->law().damping;
    PortLawValue out{0.0, 0.0};
    for (const ContactFace& face : own.part->faces()) {
      const auto [elastic, slope] = face.over(d, to, own.theta);
      const double factor = 1.0 + damping * face.side() * v;
      if (elastic == 0.0 || !(factor > 0.0)) continue;
      out.value += elastic * factor;
      out.slope += step_s_ * slope * factor + std::abs(elastic) * damping;
    }
    return out;
  }

  /// v₀.
  double free_rate(const ClosedContact& own, const double* a, int stride) const {
    double free = 0.0;
    for (int j = 0; j < wave_size(); ++j) {
      const PortClosure& port = own.ports[at(j)];
      free += own.part->direction()[at(j)] * (port.s * a[j * stride] / port.alpha);
    }
    return free;
  }
  /// v.
  double rate(const ClosedContact& own, double d, double free, double start) const {
    return rising_root(
        own.c, free, [&](double v) { return effort(own, d, v); }, start);
  }

  /// The last rate of inexact scatters: none.
  void freeze_lane(int /*l*/, const Lane& frozen) const override { frozen.extra[0] = kNone; }

  /// The rate, from `v` where it is one, and the waves that leave.
  StepFault reflect(const ClosedContact& own, double d, const double* a, double& v,
                    double* b) const {
    const double free = free_rate(own, a, 1);
    v = wave_size() > 0 ? rate(own, d, free, std::isfinite(v) ? v : free) : 0.0;
    // That which leads to v: E(v) may be off by what a rounding of v does, and then flows would lead elsewhere.
    const double E = (free - v) / own.c;
    const std::span<const double> N = own.part->direction();
    for (int j = 0; j < wave_size(); ++j) {
      const PortClosure& port = own.ports[at(j)];
      const double f = wave_size() == 1 ? v / N[0] : (port.s * a[j] - N[at(j)] * E) / port.alpha;
      b[j] = port.slope * f + port.sign * a[j];
    }
    return std::isfinite(v) ? StepFault::none : StepFault::not_finite;
  }

  StepFault scatter_lane(int l, const Lane& frozen, const double* a, double* b) const override {
    double v = kNone;
    return reflect(lanes_[at(l)], frozen.x[0], a, v, b);
  }
  StepFault inexact_scatter_lane(int l, const Lane& frozen, const double* a,
                                 double* b) const override {
    return reflect(lanes_[at(l)], frozen.x[0], a, frozen.extra[0], b);
  }
  StepFault advance_lane(int l, const Lane& frozen, const double* a, double* x_next, double* b,
                         StepEnergy& energy) const override {
    const ClosedContact& own = lanes_[at(l)];
    const double d = frozen.x[0];
    double v = kNone;
    const StepFault fault = reflect(own, d, a, v, b);
    if (fault != StepFault::none) return fault;
    const double dx = step_s_ * v, to = d + dx;
    x_next[0] = to;
    energy = {};
    for (const ContactFace& face : own.part->faces()) {
      const double mean = face.mean_force(d, to);
      energy.change_J += mean * (to - d);
      if (own.theta > 0.0) {
        energy.numerical_dissipation_J +=
            std::max(0.0, (face.force_over(d, to, own.theta) - mean) * dx);
      }
      energy.dissipated_J += face.resistance_over(d, dx, step_s_, own.theta) * v * dx;
    }
    energy.dissipated_J += energy.numerical_dissipation_J;
    return StepFault::none;
  }

  double step_s_ = 0.0;
  std::vector<ClosedContact> lanes_;
};

}  // namespace

std::unique_ptr<StepBatch> make_contact_batch(std::span<const Subsystem* const> parts,
                                              std::span<const StageRule> rules) {
  return std::make_unique<ContactBatch>(parts, rules);
}

}  // namespace portwave
