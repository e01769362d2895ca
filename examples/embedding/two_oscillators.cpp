#include <cstdio>

#include <portwave/portwave.hpp>

int main() {
  portwave::SystemBuilder builder;
  builder.add("A",
              portwave::parts::duffing_oscillator(
                  {.mass_kg = 8, .stiffness_N_per_m = 100, .coupling_stiffness_N_per_m = 120}),
              {.initial_state = {0.4, 0, -0.4}});  // q [m], v [m/s], elongation of the coupling
  builder.add("B", portwave::parts::linear_oscillator({.mass_kg = 4, .stiffness_N_per_m = 50}));
  builder.connect("A.coupling", "B.coupling");
  const portwave::System system = builder.build();
  portwave::Stepper stepper(system, {.step_s = 0.01});
  stepper.step(1000);
  std::printf("q1 = %.6f m, H = %.6f J\n", stepper.state("A")[0], stepper.energy().final_J);
}
