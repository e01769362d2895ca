// Types that a program adds to the catalogue, in scenario files. Each test adds in a process of its
// own.

#include <cmath>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "support/systems/opaque_parts.hpp"

namespace portwave::test_own_types {
namespace {

/// A part that shows nothing, by a name and a mass.
PartType hidden_mass() {
  PartType type;
  type.name = "hidden_mass";
  type.summary = "a mass that a program moves";
  ParameterInfo mass;
  mass.name = "mass_kg";
  mass.minimum = 0.0;
  mass.minimum_excluded = true;
  ParameterInfo start;
  start.name = "start_m";
  start.default_value = 0.25;
  type.parameters = {mass, start};
  type.build = [](const Parameters& p) -> std::unique_ptr<Component> {
    const auto number = [&p](const char* name) { return std::get<double>(p.find(name)->second); };
    if (number("mass_kg") > 1e6) throw std::runtime_error("too heavy");
    return std::make_unique<testing::OpaqueMass>(testing::MassProgram::Parameters{
        .mass_kg = number("mass_kg"), .stiffness_N_per_m = 20.0, .start_m = number("start_m")});
  };
  type.example = {{"mass_kg", 2.0}};
  return type;
}

std::string scenario_of(const std::string& type, double mass_kg) {
  return R"({"name": "s", "time": {"step_s": 0.01, "steps": 50}, "subsystems": [
    {"name": "spring", "type": "duffing_oscillator", "parameters":
      {"mass_kg": 1, "stiffness_N_per_m": 10, "coupling_stiffness_N_per_m": 30}},
    {"name": "hidden", "type": ")" +
         type + R"(", "parameters": {"mass_kg": )" + std::to_string(mass_kg) + R"(}}],
    "couplings": [{"kind": "connection", "ports": ["spring.coupling", "hidden.coupling"]}],
    "method": {"kind": "auto"}, "outputs": {"observe": ["hidden.storage", "spring.q1"]}})";
}

std::string report_of(const std::string& text) {
  try {
    parse_scenario(text, "s.json", ".");
  } catch (const ScenarioError& error) {
    return error.report();
  }
  return "";
}

bool runs() {
  Catalogue::add(hidden_mass());
  const Scenario scenario = parse_scenario(scenario_of("hidden_mass", 3.0), "s.json", ".");
  Stepper stepper(scenario.system, scenario.options);
  stepper.step(scenario.steps);
  // At 0.25 m it pulls at a spring of 20 N/m, and so moves the other.
  return std::abs(stepper.state("spring")[0]) > 1e-3 && stepper.iterations().not_converged == 0;
}

bool is_described() {
  (void)report_of(scenario_of("hidden_mass", 1.0));  // what was unknown must not be remembered
  Catalogue::add(hidden_mass());
  const nlohmann::ordered_json schema = scenario_schema();
  const std::string text = schema.dump();
  return schema["definitions"].contains("hidden_mass_parameters") &&
         text.find("a mass that a program moves") != std::string::npos &&
         report_of(scenario_of("hidden_mas", 1.0)).find("Did you mean \"hidden_mass\"?") !=
             std::string::npos &&
         report_of(scenario_of("hidden_mass", -1.0)).find("must be > 0") != std::string::npos &&
         report_of(scenario_of("hidden_mass", 1e7)).find("could not be built: too heavy") !=
             std::string::npos;
}

TEST(OwnTypes, RunFromScenarios) {
  EXPECT_EXIT(std::exit(runs() ? 0 : 1), ::testing::ExitedWithCode(0), "");
}

TEST(OwnTypes, AreCheckedAndDescribedLikeAllOthers) {
  EXPECT_EXIT(std::exit(is_described() ? 0 : 1), ::testing::ExitedWithCode(0), "");
}

TEST(OwnTypesControl, AreUnknownUnlessAdded) {
  EXPECT_NE(report_of(scenario_of("hidden_mass", 1.0)).find("\"hidden_mass\""), std::string::npos);
}

}  // namespace
}  // namespace portwave::test_own_types
