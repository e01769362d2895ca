#include <cstdio>
#include <stdexcept>
#include <string>

#include <portwave/portwave.hpp>

// Loads a plugin and runs its scenario: host <plugin> <scenario>.
int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    const std::string plugin = argv[1], file = argv[2];
    portwave::load_plugin(plugin);  // <portwave/extend/scenario.hpp>
    const portwave::Scenario scenario = portwave::load_scenario(file);
    portwave::Stepper stepper(scenario.system, scenario.options);
    stepper.step(1000);
    std::printf("armature at %.4f mm\n", 1e3 * stepper.state("coil")[1]);
    return stepper.state("coil")[1] > 1e-3 ? 0 : 1;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
