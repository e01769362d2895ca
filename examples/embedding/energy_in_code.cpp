// A part given by its energy, as a function of numbers. See docs/tutorial/your-own-part.md.

#include <cstdio>
#include <exception>
#include <utility>

#include <portwave/portwave.hpp>

int main() try {
  // [part]
  const double m = 1.0, l = 0.5, g = 9.81, c = 0.02;
  const auto H = [=](auto q, auto p) { return p * p / (2 * m * l * l) + m * g * l * (1 - cos(q)); };
  const auto pendulum = portwave::parts::port_hamiltonian(
      {.states = {{"q", "rad"}, {"p", "kg m^2/s"}},
       .ports = {{"shaft", portwave::Causality::effort_in, portwave::Domain::rotation, 1}},
       .energy = portwave::traced(H, "q", "p"),
       .J = {{0, 1}, {-1, 0}},
       .R = {{0, 0}, {0, c}},
       .G = {{0}, {-1}}});
  // [part]

  portwave::NetworkBuilder network("pendulum");
  const auto swing = network.add("pendulum", pendulum);
  const auto spring =
      network.add("spring", portwave::parts::torsional_spring({.stiffness_Nm_per_rad = 2}));
  const auto wheel = network.add("flywheel", portwave::parts::inertia({.inertia_kgm2 = 0.1}));
  network.connect(swing.port("shaft"), spring.port("left"));
  network.connect(spring.port("right"), wheel.port("shaft"));
  network.set_state(swing, "q", 2.8);
  portwave::StepperOptions options;
  options.step_s = 1e-3;
  portwave::Scenario scenario = network.build(options);
  portwave::Stepper stepper(std::move(scenario.system), scenario.options);
  const portwave::Quantity angle = portwave::find_quantity(stepper, "pendulum.q");
  for (int second = 1; second <= 3; ++second) {
    stepper.run_until(second);
    std::printf("%d s  %+.4f rad\n", second, observe(stepper, angle));
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
