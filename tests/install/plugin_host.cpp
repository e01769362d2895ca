#include <cstdio>
#include <stdexcept>

#include <portwave/runtime/execution/stepper.hpp>
#include <portwave/runtime/scenario/scenario.hpp>

// Loads a plugin and runs its scenario: host <plugin> <scenario>.
int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    portwave::load_plugin(argv[1]);
    const portwave::Scenario scenario = portwave::load_scenario(argv[2], {{"/plugins/0", argv[1]}});
    portwave::Stepper stepper(scenario.system, scenario.options);
    stepper.run(1000);
    std::printf("armature at %.4f mm\n", 1e3 * stepper.state("coil")[1]);
    return stepper.state("coil")[1] > 1e-3 ? 0 : 1;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
