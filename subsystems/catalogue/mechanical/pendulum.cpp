#include <array>
#include <cmath>
#include <memory>
#include <numbers>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/sinc.hpp"
#include "catalogue/part_types.hpp"
#include "expressions/expression_batch.hpp"
#include "expressions/split_energy.hpp"
#include "portwave/subsystems/core/subsystem.hpp"
#include "portwave/subsystems/idle/idle_ports.hpp"

namespace portwave {
namespace {
namespace pendulum_part {

enum State { kAngle, kMomentum, kStates };
enum Input { kShaft, kTorque, kInputs };

struct PendulumParameters {
  double inertia_kgm2 = 1.0;  ///< about the pivot
  double weight_Nm = 0.0;     ///< m g l
  double damping_Nms_per_rad = 0.0;
  bool allow_active = false;
};

Structure pendulum_structure(double damping, bool has_shaft) {
  Structure s = Structure::zero(kStates, kInputs - (has_shaft ? 0 : 1));
  s.J.insert(kAngle, kMomentum) = 1.0;
  s.J.insert(kMomentum, kAngle) = -1.0;
  s.R.insert(kMomentum, kMomentum) = damping;
  if (has_shaft) s.G.insert(kMomentum, kShaft) = -1.0;
  s.G.insert(kMomentum, has_shaft ? kTorque : kShaft) = 1.0;
  return s;
}

/// p²/(2J) + w (1 − cos q), as lanes take it.
SplitEnergy pendulum_energy(const PendulumParameters& parameters) {
  ExpressionGraph graph(kStates);
  const Expression cosine = Expression::parse("1 - cos(q)", std::vector<std::string>{"q", "p"});
  const ExpressionGraph::Node swing =
      graph.add(cosine, std::array{graph.variable(kAngle), graph.variable(kMomentum)});
  const ExpressionGraph::Node square = graph.power(graph.variable(kMomentum), graph.number(2.0));
  SplitEnergy energy(
      graph, graph.sum(graph.product(graph.number(0.5 / parameters.inertia_kgm2), square), swing));
  energy.set_weight(parameters.weight_Nm);
  return energy;
}

class Pendulum final : public Subsystem, public LeavesPorts {
 public:
  explicit Pendulum(const PendulumParameters& p, bool has_shaft = true)
      : Subsystem(Signature{"pendulum",
                            {{"angle", "rad"}, {"momentum", "kg m^2/s"}},
                            ports_of(has_shaft),
                            {{"torque", "N m"}}}),
        p_(p),
        structure_(pendulum_structure(p.damping_Nms_per_rad, has_shaft)),
        split_(pendulum_energy(p)) {}

  std::string batch_key() const override { return "pendulum"; }
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> parts) const override {
    std::vector<ExpressionLane> lanes;
    for (const Component* part : parts) {
      const auto& own = dynamic_cast<const Pendulum&>(*part);
      lanes.push_back({&own, &own.split_});
    }
    return make_expression_batch(std::move(lanes), {});
  }
  std::shared_ptr<const Component> without_ports(const std::vector<bool>& idle) const override {
    if (idle.empty() || !idle[kShaft]) return nullptr;
    return std::make_shared<const Pendulum>(p_, /*has_shaft=*/false);
  }

  /// That of a swing to the horizontal, or at 1 rad/s where gravity does not count.
  std::vector<double> typical_state() const override {
    const double speed = std::sqrt(2.0 * p_.weight_Nm / p_.inertia_kgm2);
    return {std::numbers::pi / 2.0, p_.inertia_kgm2 * (speed > 0.0 ? speed : 1.0)};
  }

  // 1 − cos q = 2 sin²(q/2), which does not cancel near the equilibrium.
  double storage(const double* x) const override {
    const double half = std::sin(0.5 * x[kAngle]);
    return 0.5 * x[kMomentum] * x[kMomentum] / p_.inertia_kgm2 + 2.0 * p_.weight_Nm * half * half;
  }
  void gradient(const double* x, double* g) const override {
    g[kAngle] = p_.weight_Nm * std::sin(x[kAngle]);
    g[kMomentum] = x[kMomentum] / p_.inertia_kgm2;
  }
  // (cos q − cos q⁺)/(q⁺ − q) = sin((q + q⁺)/2) sinc((q⁺ − q)/2)
  void discrete_gradient(const double* x, const double* y, double* g) const override {
    const Sinc sinc(0.5 * (y[kAngle] - x[kAngle]));
    g[kAngle] = p_.weight_Nm * std::sin(0.5 * (x[kAngle] + y[kAngle])) * sinc.value;
    g[kMomentum] = 0.5 * (x[kMomentum] + y[kMomentum]) / p_.inertia_kgm2;
  }
  void discrete_gradient_jacobian(const double* x, const double* y,
                                  std::vector<Eigen::Triplet<double>>& jacobian) const override {
    const double middle = 0.5 * (x[kAngle] + y[kAngle]);
    const Sinc sinc(0.5 * (y[kAngle] - x[kAngle]));
    jacobian.emplace_back(
        kAngle, kAngle,
        0.5 * p_.weight_Nm * (std::cos(middle) * sinc.value + std::sin(middle) * sinc.slope));
    jacobian.emplace_back(kMomentum, kMomentum, 0.5 / p_.inertia_kgm2);
  }
  bool hessian(const double* x, std::vector<Eigen::Triplet<double>>& hessian) const override {
    hessian.emplace_back(kAngle, kAngle, p_.weight_Nm * std::cos(x[kAngle]));
    hessian.emplace_back(kMomentum, kMomentum, 1.0 / p_.inertia_kgm2);
    return true;
  }
  const Structure& structure() const override { return structure_; }
  bool is_active() const override { return p_.allow_active; }

 private:
  static std::vector<Port> ports_of(bool has_shaft) {
    if (!has_shaft) return {};
    return {{"shaft", Causality::effort_in, Domain::rotation, 1}};
  }

  PendulumParameters p_;
  Structure structure_;
  SplitEnergy split_;
};

}  // namespace pendulum_part
}  // namespace

PartType pendulum_type() {
  PartType type;
  type.name = "pendulum";
  type.group = "rotation";
  type.summary = "A rigid pendulum under gravity; it hangs at angle 0, and the port is its shaft.";
  type.equations =
      "H(q,p) = p^2/(2 J) + m g l (1 - cos q),  J = J_c + m l^2\n"
      "q' = p/J,  p' = -m g l sin q - c q' - e + T,  f = -q'";
  ParameterInfo inertia =
      non_negative_number("inertia_kgm2", "kg m^2", "moment of inertia J_c about the mass centre");
  inertia.default_value = 0.0;
  ParameterInfo gravity =
      non_negative_number("gravity_m_per_s2", "m/s^2", "acceleration g of gravity");
  gravity.default_value = 9.81;
  type.parameters = {
      positive_number("mass_kg", "kg", "mass m"),
      positive_number("length_m", "m", "distance l from the shaft to the mass centre"),
      std::move(inertia),
      damper("damping_Nms_per_rad", "N m s/rad", "damper c in the bearing"),
      std::move(gravity),
  };
  type.build = [](const Parameters& p) -> std::unique_ptr<Subsystem> {
    const double mass = number_of(p, "mass_kg"), length = number_of(p, "length_m");
    return std::make_unique<pendulum_part::Pendulum>(pendulum_part::PendulumParameters{
        .inertia_kgm2 = number_of(p, "inertia_kgm2") + mass * length * length,
        .weight_Nm = mass * number_of(p, "gravity_m_per_s2") * length,
        .damping_Nms_per_rad = number_of(p, "damping_Nms_per_rad"),
        .allow_active = allows_active(p)});
  };
  type.example = {
      {"mass_kg", 1.2}, {"length_m", 0.8}, {"inertia_kgm2", 0.1}, {"damping_Nms_per_rad", 0.05}};
  return type;
}

}  // namespace portwave
