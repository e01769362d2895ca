// An arm that follows a path by computed torque: the torques of its own model for the accelerations that the path and
// its errors ask for. See docs/guides/robots.md.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <portwave/portwave.hpp>
#include <portwave/subsystems/catalogue/inverse_dynamics.hpp>

namespace {

constexpr int kLinks = 3;
using Vector = std::array<double, kLinks>;

/// Where the joints should be: all turn to and fro.
struct Path {
  Vector q{}, v{}, a{};

  explicit Path(double time_s) {
    for (std::size_t k = 0; k < q.size(); ++k) {
      const double rate = 1.0 + 0.5 * static_cast<double>(k);
      q[k] = 0.8 * std::sin(rate * time_s);
      v[k] = 0.8 * rate * std::cos(rate * time_s);
      a[k] = -rate * rate * q[k];
    }
  }
};

}  // namespace

int main() {
  portwave::SystemBuilder builder;
  const std::shared_ptr<const portwave::Component> arm =
      portwave::parts::planar_arm({.lengths_m = {0.5, 0.4, 0.3}, .masses_kg = {4, 3, 1}}).build();
  builder.add("arm", arm,
              {.inputs = {{"torque_1", portwave::Signal::settable()},
                          {"torque_2", portwave::Signal::settable()},
                          {"torque_3", portwave::Signal::settable()}}});
  for (int k = 1; k <= kLinks; ++k)
    builder.join(portwave::joint::Free{}, {"arm.joint_" + std::to_string(k)});
  const portwave::System system = builder.build();
  portwave::StepperOptions options{.step_s = 0.001,
                                   .method = portwave::CouplingMethod::automatic()};

  const int part = system.find_part("arm");
  portwave::InverseDynamics model(arm);

  // u: angles and momenta of the joints; y: their torques
  const auto computed_torque = [&model](const portwave::SampleTime& now, std::span<const double> u,
                                        std::span<double> y) {
    constexpr double kStiffness = 400.0, kDamping = 40.0;  // per inertia: the errors die in 0.1 s
    // [law]
    const auto q = u.first(kLinks), p = u.last(kLinks);
    const Path path(now.time_s);
    Vector v, a;
    model.velocities_of(q, p, v);
    for (std::size_t k = 0; k < a.size(); ++k)
      a[k] = path.a[k] + kDamping * (path.v[k] - v[k]) + kStiffness * (path.q[k] - q[k]);
    model.torques(q, v, a, y);
    // [law]
  };

  portwave::SignalGraphBuilder graph(system);
  std::vector<std::string> sensors;
  for (int state = 0; state < 2 * kLinks; ++state) {
    sensors.push_back("x" + std::to_string(state));
    graph.sensor(sensors.back(), {portwave::Sensor::Kind::state, part, state});
  }
  graph.block("controller", portwave::block::callback(2 * kLinks, kLinks, computed_torque),
              sensors);
  for (int k = 0; k < kLinks; ++k) graph.actuate("controller[" + std::to_string(k) + "]", part, k);
  options.signals = std::make_shared<const portwave::SignalGraph>(graph.build());

  portwave::Stepper stepper(system, options);
  stepper.step(1000);  // it has caught up with the path
  double worst = 0.0;
  for (int step = 0; step < 4000; ++step) {
    stepper.step(1);
    const Path path(stepper.time_s());
    for (std::size_t k = 0; k < path.q.size(); ++k)
      worst = std::max(worst, std::abs(stepper.state("arm")[k] - path.q[k]));
  }
  std::printf("at most %.2g rad off a path of 0.8 rad\n", worst);
  return worst < 3e-3 ? 0 : 1;
}
