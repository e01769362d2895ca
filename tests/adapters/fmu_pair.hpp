#pragma once

// Two FMUs that are coupled, a mass and a spring, made of the fixture.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "adapters/fmu_scenario.hpp"
#include "portwave/runtime/adapters/fmu.hpp"
#include "portwave/runtime/step/stepper.hpp"

namespace portwave::testing {

constexpr double kFmuStep = 0.01;

inline FmuPort takes_force(std::string integral = "x") {
  FmuPort port;
  port.name = "port";
  port.effort = "F";
  port.flow = "v";
  port.integral = std::move(integral);
  return port;
}
inline FmuPort takes_speed() {
  FmuPort port;
  port.name = "port";
  port.effort = "F";
  port.flow = "v";
  port.input = Causality::flow_in;
  return port;
}

inline FmuPartOptions part_options(const std::filesystem::path& file, FmuPort port,
                                   std::map<std::string, FmuValue> start,
                                   double step_s = kFmuStep) {
  FmuPartOptions out;
  out.file = file;
  out.ports = {std::move(port)};
  out.start = std::move(start);
  out.step_s = step_s;
  return out;
}

inline StepperOptions options(double step_s, int iterations, double tolerance) {
  StepperOptions o{.method = CouplingMethod::automatic()};
  o.step_s = step_s;
  o.method.waves().iterations = iterations;
  o.method.waves().tolerance = tolerance;
  // Nothing is known of what the parts hold, so that the guard has nothing to spend unless it is given some.
  o.method.waves().tank.initial_J = 1e3;
  return o;
}

/// A mass (m, c) and a spring and damper to ground (k, d), as two FMUs that move together.
struct FmuPair {
  double m = 2.0, c = 0.1, k = 100.0, d = 0.5, x = 0.2;
  int mass_version = 2, spring_version = 3;
  std::string mass_library = "mass";
  std::string mass_harm = {};  ///< of the library "rogue"
  std::string spring_library = "spring";
  double hardens_at_m = 0.1;                      ///< of the library "spring_that_hardens"
  bool saves_state = true, writes_state = false;  ///< both
  std::optional<bool> rollback = {};
  std::optional<double> spring_held_J = {};
  std::map<std::string, Signal> mass_inputs = {};  ///< "push"
  std::string units = "si";
  bool mass_in_process = false, spring_in_process = false;
  double time_limit_s = 60.0;  ///< of a busy machine
  std::vector<std::string> mass_outputs = {"v", "x", "steps", "calls"};

  System build(FmuFolder& folder, double step_s = kFmuStep) const {
    const auto mass_file = folder.add(
        "mass.fmu",
        FmuRecipe{.version = mass_version,
                  .library = mass_library,
                  .saves_state = saves_state,
                  .writes_state = writes_state,
                  .units = units,
                  .more_variables = fmu_variable(mass_version, "push", 15, "input", "", "0"),
                  .harm = mass_harm});
    const auto spring_file = folder.add("spring.fmu", FmuRecipe{.version = spring_version,
                                                                .library = spring_library,
                                                                .saves_state = saves_state,
                                                                .writes_state = writes_state});
    const bool is_kilo = units == "kilo";
    FmuPartOptions mass = part_options(mass_file, takes_force(),
                                       {{"mass", is_kilo ? m * 1e-6 : m},
                                        {"d", is_kilo ? c * 1e-6 : c},
                                        {"start.x", is_kilo ? 1e3 * x : x}},
                                       step_s);
    mass.outputs = mass_outputs;
    mass.rollback = rollback;
    for (const auto& [name, signal] : mass_inputs) mass.inputs.push_back(name);
    mass.process = mass_in_process;
    mass.time_limit_s = time_limit_s;
    FmuPartOptions spring =
        part_options(spring_file, takes_speed(), {{"k", k}, {"d", d}, {"start.x", x}}, step_s);
    if (spring_library == "spring_that_hardens") spring.start["start.v"] = hardens_at_m;
    spring.rollback = rollback;
    spring.held_J = spring_held_J;
    spring.outputs = {"F", "x", "steps"};
    spring.process = spring_in_process;
    spring.time_limit_s = time_limit_s;
    SystemBuilder builder;
    SystemBuilder::PartOptions driven;
    driven.inputs.insert(mass_inputs.begin(), mass_inputs.end());
    builder.add("mass", make_fmu_part(mass).component, driven);
    builder.add("spring", make_fmu_part(spring).component);
    builder.join(joint::CommonFlow{}, {"mass.port", "spring.port"});
    return builder.build();
  }

  /// The same by the trapezoidal rule on the whole: what the converged coupling must give, since each FMU
  /// answers with exact means of its own trapezoidal steps.
  double whole(double h, int steps) const {
    double q = x, v = 0.0;
    for (int n = 0; n < steps; ++n) {
      // m(v⁺−v)/h = −c(v+v⁺)/2 − k(q+q⁺)/2 − d(v+v⁺)/2,  q⁺ = q + h(v+v⁺)/2
      const double all = c + d;
      const double next =
          (v * (m / h - 0.5 * all - 0.25 * h * k) - k * q) / (m / h + 0.5 * all + 0.25 * h * k);
      q += 0.5 * h * (v + next);
      v = next;
    }
    return q;
  }
};

}  // namespace portwave::testing
