#pragma once

#include <cmath>
#include <vector>

#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"

namespace portwave::testing {

inline StepperOptions options_of(int stages, double step_s, double tolerance = 1e-13) {
  StepperOptions options;
  options.start = Start::as_given;
  options.step_s = step_s;
  options.method = WaveCoupling::automatic(tolerance);
  options.method.waves().stages = stages;
  return options;
}

inline std::vector<double> states_of(const Stepper& stepper) {
  std::vector<double> out;
  for (int part = 0; part < static_cast<int>(stepper.system().parts().size()); ++part) {
    out.insert(out.end(), stepper.state(part).begin(), stepper.state(part).end());
  }
  return out;
}

inline double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

inline System pair_with(int of_a, int of_b) {
  SystemBuilder builder;
  builder.add("A",
              duffing_oscillator({.mass_kg = 8,
                                  .stiffness_N_per_m = 100,
                                  .cubic_stiffness_N_per_m3 = 8000,
                                  .coupling_stiffness_N_per_m = 120,
                                  .coupling_damping_Ns_per_m = 0.05}),
              {.initial_state = {0.4, 0, -0.4}, .substeps = of_a});
  builder.add("B", linear_oscillator({.mass_kg = 4, .stiffness_N_per_m = 50}), {.substeps = of_b});
  builder.connect("A.coupling", "B.coupling");
  return builder.build();
}

}  // namespace portwave::testing
