// What FMUs of other tools were found to do, by the fixture: OpenModelica's, libcosim's, the Reference FMUs.

#include <cfenv>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/fmu_pair.hpp"
#include "adapters/structure_texts.hpp"
#include "portwave/runtime/adapters/fmu.hpp"
#include "portwave/runtime/scenario/part_recipes.hpp"
#include "portwave/runtime/step/stepper.hpp"

namespace portwave::test_fmus_of_others {
namespace {

using namespace portwave::testing;

constexpr double kStep = kFmuStep;

/// The motion of the pair from rest under a constant push, by the trapezoidal rule on the whole.
double pushed(const FmuPair& pair, double push_N, int steps) {
  const double h = kStep, all = pair.c + pair.d;
  double q = pair.x, v = 0.0;
  for (int n = 0; n < steps; ++n) {
    const double next = (v * (pair.m / h - 0.5 * all - 0.25 * h * pair.k) - pair.k * q + push_N) /
                        (pair.m / h + 0.5 * all + 0.25 * h * pair.k);
    q += 0.5 * h * (v + next);
    v = next;
  }
  return q;
}

/// Two motors of another tool: all energy comes from within the FMUs, none is there at the start. The tank of the guard
/// is empty, and what went through the ports is the only measure of a deficit that a met tolerance leaves.
TEST(FmusOfOthers, FromRestTheyAreDrivenFromWithin) {
  FmuFolder folder;
  FmuPair pair{.x = 0.0};
  pair.mass_inputs = {{"push", Signal::expression("10")}};
  const System system = pair.build(folder);
  StepperOptions o = options(kStep, 50, 1e-10);
  o.method.waves().tank = {};
  Stepper stepper(system, o);
  stepper.step(500);
  EXPECT_NEAR(stepper.state(0)[1], pushed(pair, 10.0, 500), 1e-6);
  EXPECT_GT(std::abs(pushed(pair, 10.0, 500)), 1e-2);
}

TEST(FmusOfOthers, JumpsInAnswersEndASolveWhereTheyHideTheRest) {
  FmuFolder folder;
  FmuPair pair;
  pair.mass_library = "rough";
  const System system = pair.build(folder);
  Stepper stepper(system, options(kStep, 30, 1e-4));
  ASSERT_NO_THROW(stepper.step(300));
  EXPECT_NEAR(stepper.state(0)[1], pair.whole(kStep, 300), 2e-4);
}

TEST(FmusOfOthers, AnEventModeThatIsNotThereIsNotUsed) {
  for (const bool in_process : {false, true}) {
    FmuFolder folder;
    const auto file =
        folder.add("mass.fmu", FmuRecipe{.version = 3, .co_simulation = "hasEventMode=\"true\""});
    FmuPartOptions o = part_options(file, takes_force(), {{"start.v", 1.0}});
    o.process = in_process;
    EXPECT_EQ(failure_of([&] { make_fmu_part(o); }), "");
  }
}

TEST(FmusOfOthers, InFmi2ADiscardedStepMayBeTheEnd) {
  for (const auto& [library, words] :
       {std::pair("ends", "asks to end the simulation, in fmi2DoStep from 0.06 s"),
        std::pair("discards", "fmi2DoStep from 0.06 s over 0.01 s returned discard")}) {
    FmuFolder folder;
    FmuPair pair;
    pair.mass_library = library;
    const System system = pair.build(folder);
    Stepper stepper(system, options(kStep, 30, 1e-11));
    const std::string text = failure_of([&] { stepper.step(50); });
    EXPECT_TRUE(has(text, words)) << text;
    EXPECT_EQ(stepper.step_index(), 6);
  }
}

TEST(FmusOfOthers, AliasesAreNames) {
  FmuFolder folder;
  const std::string named =
      "<Float64 name=\"w\" valueReference=\"2\" causality=\"local\"><Alias name=\"speed\"/>"
      "<Alias name=\"pace\"/></Float64>";
  const auto file = folder.add("mass.fmu", FmuRecipe{.version = 3, .more_variables = named});
  FmuPartOptions o = part_options(file, takes_force(), {{"start.v", 1.5}});
  o.outputs = {"speed", "w"};
  const FmuPart part = make_fmu_part(o);
  EXPECT_EQ(part.component->signature().states[0].name, "speed");
  EXPECT_EQ(part.component->default_state(), (std::vector{1.5, 1.5}));
  o.outputs = {"space"};
  EXPECT_TRUE(has(failure_of([&] { make_fmu_part(o); }), "has no variable \"space\""));
  const auto twice =
      folder.add("twice.fmu",
                 FmuRecipe{.version = 3,
                           .more_variables = "<Float64 name=\"w\" valueReference=\"2\" "
                                             "causality=\"local\"><Alias name=\"v\"/></Float64>"});
  o.file = twice;
  EXPECT_TRUE(has(failure_of([&] { make_fmu_part(o); }), "there are two variables \"v\""));
}

/// A port takes a value once, by whatever name.
TEST(FmusOfOthers, AnotherNameOfAPortIsThePort) {
  FmuFolder folder;
  const auto file = folder.add(
      "mass.fmu",
      FmuRecipe{.version = 2, .more_variables = fmu_variable(2, "force", 3, "input", "", "0")});
  FmuPartOptions o = part_options(file, takes_force(), {});
  o.inputs = {"force"};
  EXPECT_TRUE(has(failure_of([&] { make_fmu_part(o); }), "\"force\" belongs to a port"));
}

/// The stiffness of the spring doubles after a second: x(t) is that of two runs, one after the other.
TEST(FmusOfOthers, TunableParametersAreDriven) {
  for (const int version : {2, 3}) {
    FmuFolder folder;
    folder.add("mass.fmu", FmuRecipe{.version = version});
    folder.add("spring.fmu", FmuRecipe{.version = version, .library = "spring"});
    Json json = Json::parse(R"json({"name": "pair", "time": {"step_s": 0.01, "end_s": 2},
      "subsystems": [
      {"name": "mass", "type": "fmu", "path": "mass.fmu", "start": {"mass": 2, "d": 0.1, "start.x": 0.2},
       "ports": [{"name": "p", "effort": "F", "flow": "v", "input": "effort", "integral": "x"}]},
      {"name": "spring", "type": "fmu", "path": "spring.fmu", "start": {"d": 0.5, "start.x": 0.2},
       "inputs": {"k": {"kind": "expression", "expression": "if(t < 0.9999999, 100, 200)"}},
       "ports": [{"name": "p", "effort": "F", "flow": "v", "input": "flow"}]}],
      "couplings": [{"kind": "common_flow", "ports": ["mass.p", "spring.p"]}]})json");
    const Scenario scenario = read(folder, json);
    Stepper stepper(scenario.system, scenario.options);
    stepper.step(200);
    const double h = 0.01, all = 0.6, m = 2.0;
    double q = 0.2, v = 0.0;
    for (int n = 0; n < 200; ++n) {
      const double k = n < 100 ? 100.0 : 200.0;
      const double next =
          (v * (m / h - 0.5 * all - 0.25 * h * k) - k * q) / (m / h + 0.5 * all + 0.25 * h * k);
      q += 0.5 * h * (v + next);
      v = next;
    }
    // The output x of the mass, by name: outputs are those of the description.
    const auto& states = scenario.system.parts()[0].component->signature().states;
    std::size_t x = 0;
    while (states[x].name != "x") ++x;
    EXPECT_NEAR(stepper.state(0)[x], q, 1e-6) << version;
    json["subsystems"][1]["inputs"] = {{"label", 1}};
    EXPECT_TRUE(has(report_of(folder, json), "is a parameter that is not tunable"))
        << report_of(folder, json);
  }
}

/// In a run they are parameters as those of other parts.
TEST(FmusOfOthers, TunableParametersAreSet) {
  FmuFolder folder;
  folder.add("spring.fmu", FmuRecipe{.library = "spring"});
  const Json json = Json::parse(R"json({"name": "one", "time": {"step_s": 0.01, "end_s": 2},
    "subsystems": [
    {"name": "spring", "type": "fmu", "path": "spring.fmu", "start": {"start.x": 0.2},
     "inputs": {"k": {"kind": "settable", "initial": 100}},
     "ports": [{"name": "p", "effort": "F", "flow": "v", "input": "flow"}]}],
    "couplings": [{"kind": "fixed", "ports": ["spring.p"]}]})json");
  const Scenario scenario = read(folder, json);
  Stepper stepper(scenario.system, scenario.options);
  for (const double k : {100.0, 250.0}) {
    set_parameter(stepper, scenario, "spring.k", k);
    EXPECT_EQ(parameter(stepper, scenario, "spring.k"), k);
    stepper.step();
    EXPECT_NEAR(stepper.effort(0), 0.2 * k, 1e-6);
  }
  const std::string text = failure_of([&] { set_parameter(stepper, scenario, "spring.d", 1.0); });
  EXPECT_TRUE(has(text, "\"d\": \"settable\"")) << text;
}

TEST(FmusOfOthers, HowTheyComputeIsTheirs) {
  FmuFolder folder;
  FmuPair pair;
  pair.mass_library = "rogue";
  pair.mass_harm = "step round";
  const System system = pair.build(folder);
  Stepper stepper(system, options(kStep, 30, 1e-10));
  stepper.step(20);
  const int rounding = std::fegetround();
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(rounding, FE_TONEAREST);
}

/// Of two descriptions others may read the other one.
TEST(FmusOfOthers, OneNameTwiceIsRefused) {
  FmuFolder folder;
  std::vector<ZipMember> members = fmu_members(FmuRecipe{});
  members.push_back({"modelDescriptioN.xml", "<other/>"});
  const auto file = folder.add("mass.fmu", members);
  const FmuPartOptions o = part_options(file, takes_force(), {});
  EXPECT_EQ(failure_of([&] { make_fmu_part(o); }), "");
  std::string bytes = read_text(file);
  for (std::size_t at; (at = bytes.find("modelDescriptioN")) != std::string::npos;)
    bytes[at + 15] = 'n';
  write_text(file, bytes);
  EXPECT_TRUE(has(failure_of([&] { make_fmu_part(o); }), "is there twice"));
}

TEST(FmusOfOthers, ComponentsForModelExchangeGiveTheirCoSimulation) {
  SspFolder folder;
  const auto file = folder.package(
      ssd(elements(component("mass", "resources/mass.fmu", "", "implementation=\"ModelExchange\"")),
          experiment("stopTime=\"1\"", "0.01")),
      pair_fmus());
  EXPECT_TRUE(has(notes_of(structure_of(file)), "wants ModelExchange: its co-simulation is taken"));
}

/// OSP names FMUs that are to run in processes of their own by "proxyfmu://localhost?file=…".
TEST(FmusOfOthers, ProxiesOnThisMachineAreProcesses) {
  FmuFolder folder;
  folder.add("mass.fmu", FmuRecipe{});
  const auto made = [&](const std::string& source) {
    const auto file = folder.path() / "OspSystemStructure.xml";
    write_text(file,
               "<OspSystemStructure xmlns=\"http://opensimulationplatform.com/MSMI/"
               "OSPSystemStructure\" version=\"0.1\"><EndTime>1</EndTime><BaseStepSize>0.01"
               "</BaseStepSize><Simulators><Simulator name=\"mass\" source=\"" +
                   source + "\"/></Simulators></OspSystemStructure>\n");
    return block_named(scenario_of(file), "mass");
  };
  EXPECT_FALSE(made("mass.fmu").contains("process"));
  for (const char* const host : {"localhost", "localhost:9090", "127.0.0.1"}) {
    const Json block = made(std::string("proxyfmu://") + host + "?file=mass.fmu");
    EXPECT_EQ(block["process"], true) << block.dump();
  }
  const std::string text = failure_of([&] { made("proxyfmu://example.org?file=mass.fmu"); });
  EXPECT_TRUE(has(text, "run on other machines")) << text;
}

}  // namespace
}  // namespace portwave::test_fmus_of_others
