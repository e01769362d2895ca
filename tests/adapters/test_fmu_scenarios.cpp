// FMUs in scenario files: as parts, and as blocks of "signals".

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "adapters/fmu_scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"

namespace portwave::test_fmu_scenarios {
namespace {

using testing::FmuFolder;
using testing::FmuRecipe;
using testing::has;
using testing::Json;

Json pair_scenario() {
  return Json::parse(R"({
    "name": "pair",
    "time": {"step_s": 0.01, "end_s": 2},
    "subsystems": [
      {"name": "mass", "type": "fmu", "path": "mass.fmu",
       "ports": [{"name": "flange", "effort": "F", "flow": "v", "input": "effort", "integral": "x"}],
       "start": {"mass": 2, "d": 0.1, "start.x": 0.2}},
      {"name": "spring", "type": "fmu", "path": "spring.fmu",
       "ports": [{"effort": "F", "flow": "v", "input": "flow"}],
       "start": {"k": 100, "d": 0.5, "start.x": 0.2}}
    ],
    "couplings": [{"kind": "common_flow", "ports": ["mass.flange", "spring.F_v"]}],
    "method": {"kind": "auto", "iterations": 20, "tolerance": 1e-10},
    "outputs": {"observe": ["mass.x", "mass.v", "spring.F"]}
  })");
}

const FmuFolder& pair_folder() {
  struct Filled : FmuFolder {
    Filled() {
      add("mass.fmu", FmuRecipe{.version = 3});
      add("spring.fmu", FmuRecipe{.version = 2, .library = "spring"});
    }
  };
  static const Filled folder;
  return folder;
}

TEST(FmuScenario, RunsAPair) {
  const Scenario scenario = read(pair_folder(), pair_scenario());
  Stepper stepper(scenario.system, scenario.options);
  stepper.step(static_cast<int>(scenario.steps));
  EXPECT_EQ(stepper.iterations().not_converged, 0);
  // 2 x″ = −100 x − 0.6 x′, x(0) = 0.2
  const double decay = 0.15, turn = std::sqrt(50.0 - decay * decay), t = 2.0;
  const double exact =
      0.2 * std::exp(-decay * t) * (std::cos(turn * t) + decay / turn * std::sin(turn * t));
  EXPECT_NEAR(stepper.state(0)[1], exact, 2e-3);  // of order 2
  EXPECT_TRUE(has(scenario.notes.at(0).what, "which the FMUs can give in a first step"));
  Json without = pair_scenario();
  without["subsystems"][0]["ports"][0].erase("integral");
  const Scenario other = read(pair_folder(), without);
  EXPECT_TRUE(has(other.notes.at(0).what, "port flange: the mean of v over a step"));
}

TEST(FmuScenario, IsConvergentOfOrderTwo) {
  const auto error_at = [](double h) {
    Json json = pair_scenario();
    json["time"]["step_s"] = h;
    const Scenario scenario = read(pair_folder(), json);
    Stepper stepper(scenario.system, scenario.options);
    stepper.step(static_cast<int>(scenario.steps));
    const double decay = 0.15, turn = std::sqrt(50.0 - decay * decay), t = 2.0;
    return std::abs(stepper.state(0)[1] -
                    0.2 * std::exp(-decay * t) *
                        (std::cos(turn * t) + decay / turn * std::sin(turn * t)));
  };
  const double coarse = error_at(0.01), fine = error_at(0.0025);
  EXPECT_GT(coarse / fine, 12.0);
  EXPECT_LT(coarse / fine, 20.0);
}

TEST(FmuScenario, IsCodeAndNeedsPermission) {
  const std::string text = report_of(pair_folder(), pair_scenario(), Plugins::refused);
  EXPECT_TRUE(has(text, "/subsystems/0/path: an FMU is code")) << text;
  EXPECT_TRUE(has(text, "give --allow-plugins")) << text;
}

TEST(FmuScenario, TellsEveryDefectInItsPlace) {
  Json json = pair_scenario();
  json["subsystems"][0]["ports"][0]["effort"] = "G";
  json["subsystems"][0]["start"]["masss"] = 1;
  json["subsystems"][1]["path"] = "none.fmu";
  std::string text = report_of(pair_folder(), json);
  EXPECT_TRUE(has(text, "/subsystems/0/ports/0/effort: the FMU has no variable \"G\"")) << text;
  EXPECT_TRUE(has(text, "/subsystems/0/start/masss: the FMU has no variable \"masss\"")) << text;
  EXPECT_TRUE(has(text, "/subsystems/1/path: \"none.fmu\" cannot be opened")) << text;
  json = pair_scenario();
  json["subsystems"][0].erase("path");
  json["subsystems"][1]["parameters"] = Json::object();
  json["subsystems"].push_back({{"name", "m"}, {"type", "mass"}, {"path", "x.fmu"}});
  text = report_of(pair_folder(), json);
  EXPECT_TRUE(has(text, "/subsystems/0: needs \"path\"")) << text;
  EXPECT_TRUE(has(text, "/subsystems/1/parameters: an FMU has no parameters here")) << text;
  EXPECT_TRUE(has(text, "/subsystems/2/path: is for parts of the type \"fmu\"")) << text;
}

TEST(FmuScenario, OutputsAreStatesThatNobodySets) {
  Json json = pair_scenario();
  json["subsystems"][0]["initial_state"] = {{"x", 0.3}};
  const std::string text = report_of(pair_folder(), json);
  EXPECT_TRUE(has(text, "is an output of an FMU, which nobody can set")) << text;
}

/// A force that a signal sets on an input beside the port.
TEST(FmuScenario, OtherInputsAreDriven) {
  FmuFolder folder;
  folder.add("mass.fmu", FmuRecipe{.version = 2});
  folder.add("spring.fmu", FmuRecipe{.version = 3, .library = "spring"});
  Json json = pair_scenario();
  json["subsystems"][0]["inputs"]["flag"] = {{"kind", "constant"}, {"value", 1}};
  const Scenario scenario = read(folder, json);
  EXPECT_EQ(scenario.system.parts()[0].component->signature().inputs.at(0).name, "flag");
  Stepper stepper(scenario.system, scenario.options);
  stepper.step(10);
  json["subsystems"][0]["inputs"]["F"] = {{"kind", "constant"}, {"value", 1}};
  EXPECT_TRUE(has(report_of(folder, json), "/subsystems/0/inputs/F: \"F\" belongs to a port"));
}

/// As a block: the mass is pushed by a sampled force, and its speed feeds a sensor of the graph.
Json block_scenario() {
  return Json::parse(R"({
    "name": "block",
    "time": {"step_s": 0.01, "steps": 100, "start_s": 3},
    "subsystems": [
      {"name": "seen", "type": "linear_oscillator", "parameters": {"mass_kg": 1, "stiffness_N_per_m": 1},
       "inputs": {"force": {"kind": "signal", "signal": "out"}}}
    ],
    "couplings": [{"kind": "free", "ports": ["seen.coupling"]}],
    "signals": {"blocks": [
      {"kind": "constant", "name": "push", "value": 5},
      {"kind": "fmu", "name": "mass", "path": "mass.fmu", "signals": {"F": "push"},
       "outputs": ["v", "time"], "start": {"mass": 4, "d": 0}},
      {"kind": "gain", "name": "out", "signal": "mass[0]", "factor": 2}
    ]},
    "outputs": {"observe": ["seen.q1"]}
  })");
}

TEST(FmuBlock, IsSteppedFromSampleToSample) {
  for (const int version : {2, 3}) {
    for (const bool saves : {true, false}) {
      FmuFolder folder;
      folder.add("mass.fmu", FmuRecipe{.version = version, .saves_state = saves});
      Json json = block_scenario();
      json["subsystems"][0].erase("inputs");
      json.erase("outputs");
      const Scenario scenario = read(folder, json);
      Stepper stepper(scenario.system, scenario.options);
      const auto speed = static_cast<std::size_t>(scenario.options.signals->find_signal("mass[0]"));
      const auto time = static_cast<std::size_t>(scenario.options.signals->find_signal("mass[1]"));
      for (int n = 0; n < 50; ++n) {
        // v = F t/m, one sample after the force acts
        EXPECT_NEAR(stepper.signals()[speed], 5.0 / 4.0 * 0.01 * n, 1e-12) << n;
        EXPECT_NEAR(stepper.signals()[time], 3.0 + 0.01 * n, 1e-12);
        stepper.step();
      }
    }
  }
}

/// One that cannot go back begins again as a new instance, in a run after another; the old one is gone by then.
TEST(FmuBlock, BeginsAgainInTheNextRun) {
  for (const bool saves : {true, false}) {
    FmuFolder folder;
    folder.add("mass.fmu", FmuRecipe{.version = 2, .saves_state = saves, .is_only_once = true});
    Json json = block_scenario();
    json["subsystems"][0].erase("inputs");
    json.erase("outputs");
    const Scenario scenario = read(folder, json);
    const auto speed = static_cast<std::size_t>(scenario.options.signals->find_signal("mass[0]"));
    for (int run = 0; run < 3; ++run) {
      Stepper stepper(scenario.system, scenario.options);
      stepper.step(50);
      EXPECT_NEAR(stepper.signals()[speed], 5.0 / 4.0 * 0.5, 1e-12) << run;
    }
  }
}

TEST(FmuBlock, TellsEveryDefectInItsPlace) {
  FmuFolder folder;
  folder.add("mass.fmu", FmuRecipe{.version = 2});
  Json json = block_scenario();
  json["subsystems"][0].erase("inputs");
  json.erase("outputs");
  json["signals"]["blocks"][1]["outputs"] = {"w"};
  json["signals"]["blocks"][1]["start"]["masss"] = 1;
  const std::string text = report_of(folder, json);
  EXPECT_TRUE(has(text, "/signals/blocks/1/outputs/0: the FMU has no variable \"w\"")) << text;
  EXPECT_TRUE(has(text, "/signals/blocks/1/start/masss")) << text;
  const std::string refused = report_of(folder, block_scenario(), Plugins::refused);
  EXPECT_TRUE(has(refused, "/signals/blocks/1/path: an FMU is code")) << refused;
}

}  // namespace
}  // namespace portwave::test_fmu_scenarios
