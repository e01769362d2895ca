// A position servo: the program owns the loop and is the controller.
// See docs/tutorial/embedding.md.

#include <algorithm>
#include <cstdio>
#include <exception>

#include <portwave/portwave.hpp>

int main(int argc, char** argv) try {
  const char* file = argc > 1 ? argv[1] : "examples/embedding/servo.json";
  // [servo]
  const portwave::Scenario scenario = portwave::load_scenario(file);
  portwave::Stepper stepper(scenario.system, scenario.options);
  const portwave::InputSlot voltage = stepper.find_input("supply.effort");
  const portwave::Quantity angle = portwave::find_quantity(stepper, "load.angle");
  const portwave::Quantity speed = portwave::find_quantity(stepper, "motor.speed");

  while (stepper.time_s() < 2.0) {
    const double error = 1.0 - observe(stepper, angle);
    const double wanted = 30.0 * error - 0.15 * observe(stepper, speed);
    stepper.set_input(voltage, std::clamp(wanted, -24.0, 24.0));
    stepper.step();
  }

  // Try half a second at full voltage, then return.
  const portwave::Snapshot now = stepper.snapshot();
  stepper.set_input(voltage, 24.0);
  stepper.run_until(2.5);
  const double if_full_voltage = observe(stepper, angle);
  stepper.restore(now);
  // [servo]

  std::printf("%.9f rad at %g s, %.9f rad with full voltage, %g J supplied\n",
              observe(stepper, angle), stepper.time_s(), if_full_voltage,
              stepper.energy().supplied_J);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
