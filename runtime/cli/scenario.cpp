// Loading a scenario as the command line asks for it.

#include "commands.hpp"

namespace portwave::cli {

Scenario load(const ScenarioArguments& arguments) {
  Scenario scenario = load_scenario(arguments.file, arguments.overrides);
  if (arguments.steps) scenario.steps = *arguments.steps;
  return scenario;
}

Stepper make_stepper(const Scenario& scenario, const StepperOptions& options,
                     const std::string& file) {
  try {
    return Stepper(scenario.system, options);
  } catch (const ConfigError& error) {
    throw ScenarioError(file, error.issues());
  }
}

}  // namespace portwave::cli
