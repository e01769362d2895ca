#include <cmath>
#include <cstdio>

#include <portwave/portwave.hpp>

namespace {

/// Types that the library throws and makes are the same types here, also where it is shared.
bool types_are_shared() {
  bool caught = false;
  try {
    portwave::linear_oscillator({.mass_kg = -1, .stiffness_N_per_m = 10});
  } catch (const portwave::ConfigError&) {
    caught = true;
  }
  const auto part = portwave::linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 10});
  const portwave::Component* component = part.get();
  return caught && dynamic_cast<const portwave::Subsystem*>(component) != nullptr;
}

}  // namespace

// Steps two coupled oscillators with nothing but the installed package.
int main() {
  portwave::SystemBuilder builder;
  builder.add("A", portwave::linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 10}),
              {.initial_state = {1, 0}});
  builder.add("B", portwave::linear_oscillator({.mass_kg = 2, .stiffness_N_per_m = 20}));
  builder.connect("A.coupling", "B.coupling");
  const portwave::System system = builder.build();
  portwave::Stepper stepper(system,
                            {.step_s = 0.01,
                             .method = portwave::WaveCoupling{.iterations = 5, .impedance = {20.0}},
                             .threads = 2});
  stepper.step(10);
  std::printf("portwave: H = %.3f J after %.2f s\n", stepper.energy().final_J, stepper.time_s());
  if (!types_are_shared()) {
    std::printf("a type of portwave is another one here than in the library\n");
    return 1;
  }
  return std::isfinite(stepper.energy().final_J) ? 0 : 1;
}
