// Networks that are built in code: the same bits as the scenario that says the same, and every defect at once.

#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/runtime/output/recorder.hpp"
#include "portwave/runtime/scenario/network_builder.hpp"
#include "portwave/runtime/scenario/part_parameters.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/catalogue/parts.hpp"

namespace portwave::test_network_builder {
namespace {

constexpr const char* kPair = R"json({"name": "pair", "time": {"step_s": 0.01, "end_s": 1},
  "subsystems": [
    {"name": "A", "type": "mass", "initial_state": {"velocity": 1},
     "parameters": {"mass_kg": 2, "ports": 2}, "inputs": {"force": {"kind": "constant", "value": 3}}},
    {"name": "S", "type": "spring_damper",
     "parameters": {"stiffness_N_per_m": 50, "damping_Ns_per_m": 0.5}},
    {"name": "B", "type": "duffing_oscillator",
     "parameters": {"mass_kg": 1, "stiffness_N_per_m": 30, "coupling_stiffness_N_per_m": 20}}],
  "couplings": [{"kind": "connection", "ports": ["A.port_1", "S.left"]},
                {"kind": "connection", "ports": ["A.port_2", "B.coupling"]},
                {"kind": "fixed", "ports": ["S.right"]}]})json";

Scenario pair(const StepperOptions& options) {
  NetworkBuilder network("pair");
  const PartHandle A = network.add("A", parts::mass({.mass_kg = 2, .ports = 2}));
  const PartHandle S =
      network.add("S", parts::spring_damper({.stiffness_N_per_m = 50, .damping_Ns_per_m = 0.5}));
  const PartHandle B = network.add(
      "B", parts::duffing_oscillator(
               {.mass_kg = 1, .stiffness_N_per_m = 30, .coupling_stiffness_N_per_m = 20}));
  network.connect(A.port("port_1"), S.port("left"));
  network.connect(A.port(1), B.port(0));
  network.fix(S.port("right"));
  network.set_state(A, "velocity", 1.0);
  network.set_input(A, "force", Signal::constant(3.0));
  return network.build(options);
}

std::vector<double> states_after(Scenario scenario, int steps) {
  Stepper stepper(std::move(scenario.system), scenario.options);
  stepper.step(steps);
  std::vector<double> out;
  for (const Quantity& own : scenario.recording.quantities) out.push_back(observe(stepper, own));
  return out;
}

TEST(NetworkBuilder, GivesTheBitsOfTheScenarioThatSaysTheSame) {
  Scenario read = parse_scenario(kPair, "pair.json", ".");
  const StepperOptions options = read.options;
  const std::vector<double> expected = states_after(std::move(read), 100);
  EXPECT_EQ(expected.size(), 6U);
  EXPECT_EQ(states_after(pair(options), 100), expected);
  StepperOptions other = options;
  other.step_s = 0.02;
  EXPECT_NE(states_after(pair(other), 100), expected);
}

TEST(NetworkBuilder, ParametersOfItsPartsCanBeChanged) {
  NetworkBuilder network;
  const PartHandle arm =
      network.add("arm", parts::planar_arm({.lengths_m = {1.0, 0.5}, .masses_kg = {2.0, 1.0}}));
  const PartHandle wheel = network.add("wheel", parts::inertia({.inertia_kgm2 = 1}));
  const PartHandle own = network.add("own", linear_oscillator({.stiffness_N_per_m = 2}));
  network.common_flow({arm.port(0), wheel.port("shaft")}).free(arm.port(1)).free(own.port(0));
  Scenario scenario = network.build({.step_s = 1e-3});
  Stepper stepper(std::move(scenario.system), scenario.options);
  stepper.step(10);
  set_parameter(stepper, scenario, "arm.masses_kg[1]", 3.0);
  set_parameter(stepper, scenario, "wheel.inertia_kgm2", 2.0);
  EXPECT_EQ(parameter(stepper, scenario, "arm.masses_kg[1]"), 3.0);
  EXPECT_EQ(parameter(stepper, scenario, "wheel.inertia_kgm2"), 2.0);
  EXPECT_THROW(set_parameter(stepper, scenario, "wheel.inertia_kgm2", -1.0), ConfigError);
  EXPECT_THROW(set_parameter(stepper, scenario, "own.mass_kg", 2.0), std::logic_error);
  stepper.step(10);
  EXPECT_EQ(stepper.step_index(), 20);
}

TEST(PartParameters, AreKnownOfPartsOfTheCatalogueWithoutAScenario) {
  SystemBuilder builder;
  builder.add("mass", parts::mass({.mass_kg = 2, .ports = 1}));
  builder.add("contact", parts::contact({.force_N = 10, .compression_m = 0.01, .law = "hertz"}));
  builder.add("arm", parts::planar_arm({.lengths_m = {1.0}, .masses_kg = {2.0}}));
  builder.add("own", linear_oscillator({.stiffness_N_per_m = 2}));
  builder.connect("mass.port", "contact.face");
  for (const char* const port : {"arm.joint_1", "own.coupling"}) {
    builder.join(joint::Free{}, {port});
  }
  Stepper stepper(builder.build(), {.step_s = 1e-3});
  stepper.step(5);
  set_parameter(stepper, "mass.mass_kg", 4.0);
  set_parameter(stepper, "mass.mass_kg", 3.0);
  set_parameter(stepper, "contact.gap_m", 0.5);
  EXPECT_EQ(parameter(stepper, "mass.mass_kg"), 3.0);
  EXPECT_EQ(parameter(stepper, "mass.ports"), 1.0);
  EXPECT_EQ(parameter(stepper, "contact.gap_m"), 0.5);
  EXPECT_EQ(description_of(*stepper.system().parts()[1].component)->parameters().count("law"), 1U);
  EXPECT_THROW(set_parameter(stepper, "mass.mass_kg", -1.0), ConfigError);
  EXPECT_THROW(set_parameter(stepper, "mass.mas_kg", 1.0), std::out_of_range);
  EXPECT_THROW(set_parameter(stepper, "arm.gravity_m_per_s2", 1.0), std::logic_error);
  EXPECT_THROW(set_parameter(stepper, "own.mass_kg", 1.0), std::logic_error);
  EXPECT_EQ(parameter(stepper, "mass.mass_kg"), 3.0) << "nothing has changed";
  stepper.step(5);
}

TEST(NetworkBuilder, ArraysAreNumberedAndEqualPartsShareTheirComponent) {
  NetworkBuilder network;
  const auto masses = network.add_array(
      4, "cell{}/mass", [](int i) { return parts::mass({.mass_kg = i < 3 ? 1.0 : 2.0}); });
  for (const PartHandle mass : masses) network.free(mass.port("port"));
  EXPECT_EQ(network.name_of(masses[3]), "cell3/mass");
  EXPECT_EQ(network.part_count(), 4);
  const Scenario scenario = network.build();
  const auto built = scenario.system.parts();
  EXPECT_EQ(built[2].name, "cell2/mass");
  EXPECT_EQ(masses[2].index(), scenario.system.find_part("cell2/mass"));
  EXPECT_EQ(built[0].component, built[2].component);
  EXPECT_NE(built[0].component, built[3].component);
  EXPECT_THROW(network.add_array(2, "mass", [](int) { return parts::mass({}); }),
               std::invalid_argument);
}

TEST(NetworkBuilder, BuildsAgainAndAfterMoreWasAdded) {
  NetworkBuilder network("two");
  const PartHandle A = network.add("A", parts::mass({.mass_kg = 1}));
  network.free(A.port(0)).set_state(A, "velocity", 2.0);
  Scenario first = network.build({.step_s = 1e-3}), second = network.build({.step_s = 1e-3});
  EXPECT_EQ(second.name, "two");
  ASSERT_NE(second.recipes, nullptr);
  Stepper one(std::move(first.system), first.options);
  Stepper two(std::move(second.system), second.options);
  set_parameter(two, second, "A.mass_kg", 2.0);
  EXPECT_EQ(parameter(two, second, "A.mass_kg"), 2.0);
  EXPECT_EQ(parameter(one, first, "A.mass_kg"), 1.0);
  EXPECT_EQ(two.state("A")[1], 2.0);
  const PartHandle bad = network.add("bad", parts::mass({.mass_kg = -1}));
  network.free(bad.port(0));
  std::string texts[2];
  for (std::string& text : texts) {
    try {
      (void)network.build();
    } catch (const ConfigError& error) {
      text = error.what();
    }
  }
  EXPECT_NE(texts[0], "");
  EXPECT_EQ(texts[0], texts[1]);
}

TEST(NetworkBuilder, IsReturnedByFunctionsAndItsSystemServesOneStepper) {
  const auto made = [](std::vector<PartHandle>& parts) {
    NetworkBuilder network("line");
    parts = network.add_array(2, "m{}",
                              [](int i) { return parts::mass({.mass_kg = 1.0 + i, .ports = 1}); });
    return network;
  };
  std::vector<PartHandle> parts;
  NetworkBuilder network = made(parts);
  for (const PartHandle& part : parts) network.free(part.port("port"));
  Scenario scenario = network.build({.step_s = 0.01});
  Stepper first(std::move(scenario.system), scenario.options);
  first.step(2);
  try {
    const Stepper second(std::move(scenario.system), scenario.options);
    FAIL() << "a stepper without parts";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("it was moved from"), std::string::npos)
        << error.what();
  }
  first.step(2);
  EXPECT_THROW(
      (void)network.add_array(-1, "x{}", [](int) { return parts::mass({.mass_kg = 1.0}); }),
      std::invalid_argument);
}

TEST(NetworkBuilder, AParameterThatIsRefusedNamesItsPart) {
  Scenario scenario = pair({.step_s = 0.01});
  Stepper stepper(std::move(scenario.system), scenario.options);
  const std::string expected = "/mass_kg: \"A\" (mass): must be > 0 kg, got -1";
  const auto text_of = [](const auto& change) {
    try {
      change();
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(text_of([&] { set_parameter(stepper, scenario, "A.mass_kg", -1.0); }), expected);
  EXPECT_EQ(text_of([&] { set_parameter(stepper, "A.mass_kg", -1.0); }), expected);
  const ParameterSlot slot = find_parameter(stepper, scenario, "A.mass_kg");
  EXPECT_EQ(text_of([&] { set_parameter(stepper, scenario, slot, -1.0); }), expected);
}

TEST(NetworkBuilder, OptionsThatAreRefusedAreNamedWithTheirValue) {
  const auto text_of = [](const StepperOptions& options) {
    try {
      Scenario scenario = pair(options);
      const Stepper stepper(std::move(scenario.system), scenario.options);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  StepperOptions options{.step_s = 0.01};
  options.time.deadline_s = -1e-3;
  EXPECT_EQ(text_of(options), "/deadline_s: must be finite and >= 0, got -0.001 s");
  options.time = {.pace = -2.0};
  EXPECT_EQ(text_of(options), "/pace: must be finite and >= 0, got -2");
  options.time = {};
  options.threads = 0;
  EXPECT_EQ(text_of(options), "/threads: must be in 1..1024, got 0");
  EXPECT_EQ(text_of({.step_s = std::nan("")}), "/time/step_s: must be finite and > 0, got nan s");
}

TEST(NetworkBuilder, ReportsEveryDefectAtOnceAndNamesTheParts) {
  NetworkBuilder other;
  const PartHandle stranger = other.add("stranger", parts::mass({.mass_kg = 1}));
  NetworkBuilder network;
  const PartHandle bad = network.add("bad", parts::mass({.mass_kg = -1, .ports = 2}));
  const PartHandle good = network.add("good", parts::mass({.mass_kg = 1}));
  const PartHandle unknown = network.add("unknown", CataloguePart("mas", {{"mass_kg", 1.0}}));
  const PartHandle none = network.add("none", std::shared_ptr<const Component>());
  const PartHandle spring = network.add("spring", parts::spring({.stiffness_N_per_m = 1}));
  network.connect(bad.port(0), spring.port("lift")).connect(bad.port("port_2"), good.port(7));
  network.connect(unknown.port("port"), none.port("port"));
  network.connect(stranger.port("port"), spring.port("right"));
  network.set_state(good, "speed", 1.0).set_input(good, "torque", Signal::constant(1.0));
  network.set_state(stranger, "velocity", 1.0);
  std::vector<std::string> expected = {
      ": state \"velocity\": the part is not of this network",
      "/subsystems/0/parameters/mass_kg: \"bad\" (mass): must be > 0 kg, got -1",
      "/subsystems/1/initial_state/speed: \"good\" (mass): there is no state \"speed\"",
      "/subsystems/1/inputs/torque: subsystem \"good\" has no input \"torque\"",
      "/subsystems/2/type: \"unknown\" (mas): there is no part type \"mas\"",
      "/subsystems/3: \"none\" (component): its component is null",
      "/couplings/0/ports/1: subsystem \"spring\" has no port "
      "\"lift\"",
      "/couplings/1/ports/1: \"good\" has 1 port, and none of number 7",
      "/couplings/3/ports/0: \"spring\": the port is of a part",
  };
  try {
    (void)network.build();
    FAIL() << "nothing was noticed";
  } catch (const ConfigError& error) {
    std::string all;
    std::size_t next = 0;
    for (const Issue& issue : error.issues()) {
      const std::string text = issue.where + ": " + issue.what;
      all += text + "\n";
      if (next < expected.size() && text.starts_with(expected[next])) ++next;
    }
    EXPECT_EQ(next, expected.size()) << (next < expected.size() ? expected[next] : "") << "\nin\n"
                                     << all;
  }
}

}  // namespace
}  // namespace portwave::test_network_builder
