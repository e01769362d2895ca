// A network of 2000 parts that is built in code, stepped under a deadline, changed and rolled back.
// See docs/tutorial/network-in-code.md.

#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <portwave/portwave.hpp>

int main() try {
  // [build]
  namespace parts = portwave::parts;
  constexpr int kCells = 500;
  portwave::NetworkBuilder network("ring");
  const auto masses = network.add_array(kCells, "cell{}/mass", [](int i) {
    return parts::mass({.mass_kg = 1.0 + 0.001 * i, .ports = 4});
  });
  const auto springs = network.add_array(kCells, "cell{}/spring", [](int) {
    return parts::spring_damper({.stiffness_N_per_m = 400, .damping_Ns_per_m = 0.1});
  });
  const auto oscillators = network.add_array(kCells, "cell{}/oscillator", [](int) {
    return parts::duffing_oscillator({.mass_kg = 0.5,
                                      .stiffness_N_per_m = 20,
                                      .cubic_stiffness_N_per_m3 = 2000,
                                      .coupling_stiffness_N_per_m = 50});
  });
  const auto frictions = network.add_array(kCells, "cell{}/friction", [](int) {
    return parts::coulomb_damper({.friction_N = 0.05, .creep_speed_m_per_s = 0.01});
  });
  for (int i = 0; i < kCells; ++i) {
    network.connect(masses[i].port("port_1"), springs[i].port("left"));
    network.connect(masses[(i + 1) % kCells].port("port_2"), springs[i].port("right"));
    network.connect(masses[i].port("port_3"), oscillators[i].port("coupling"));
    network.connect(masses[i].port("port_4"), frictions[i].port("end"));
  }
  network.set_state(masses[0], "velocity", 2.0);
  network.set_input(masses[250], "force", portwave::Signal::settable());
  // [build]

  // [options]
  portwave::StepperOptions options;
  options.step_s = 1e-3;
  options.threads = 2;
  options.arena = std::make_shared<portwave::Arena>(2);  // whoever shares it shares its two threads
  options.time.deadline_s = 2e-3;
  portwave::Scenario ring = network.build(options);
  portwave::Stepper stepper(std::move(ring.system), ring.options);
  // [options]

  // [loop]
  std::vector<portwave::Quantity> watched;
  for (int i = 0; i < kCells; i += 5) {
    watched.push_back(
        portwave::find_quantity(stepper, "cell" + std::to_string(i) + "/mass.velocity"));
  }
  const portwave::InputSlot force = stepper.find_input("cell250/mass.force");

  std::vector<double> values(watched.size());
  for (int step = 0; step < 200; ++step) {
    stepper.set_input(force, step < 100 ? 5.0 : 0.0);
    stepper.step();
    for (std::size_t k = 0; k < watched.size(); ++k) values[k] = observe(stepper, watched[k]);
  }
  // [loop]

  // [rollback]
  portwave::set_parameter(stepper, ring, "cell0/oscillator.stiffness_N_per_m", 80.0);
  const portwave::Snapshot now = stepper.snapshot();
  stepper.set_input(force, 50.0);
  stepper.step(100);
  const double if_pushed = observe(stepper, watched[50]);
  stepper.restore(now);
  // [rollback]

  const auto deadline = stepper.deadline();
  std::printf("%zu parts, %zu velocities, %g m/s at %g s, %g m/s if pushed, %s\n",
              stepper.system().parts().size(), values.size(), observe(stepper, watched[50]),
              stepper.time_s(), if_pushed,
              deadline && deadline->steps == 300 ? "300 steps under a deadline" : "no deadline");
  return stepper.certificate().status == portwave::CertificateStatus::violated ? 1 : 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
