// Generated networks: what they are made of, that they run, and that they are always the same.
#include <cmath>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <portwave/runtime/generate/generate.hpp>
#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/subsystems/linear/linear_part.hpp>

#include "support/files/schema_checker.hpp"

namespace portwave::test_generate {
namespace {

using network::Chain;
using network::Grid;
using network::Imbalanced;
using network::Star;

Scenario parsed(const std::string& text) { return parse_scenario(text, "generated.json", {}); }
Scenario parsed(const Network& network, const GenerateOptions& options = {}) {
  return parsed(generate_scenario(network, options));
}

struct Generated {
  std::string name;
  Network network;
  std::size_t parts;
  std::size_t junctions;
};

std::vector<Generated> all_kinds() {
  return {
      {"chain", Chain{.blocks = 5}, 5, 6},
      {"chain_of_one", Chain{.blocks = 1}, 1, 2},
      {"varied_chain", Chain{.blocks = 12, .masses = 3, .vary = 0.2}, 12, 13},
      {"ring", Chain{.blocks = 4, .closed = true}, 4, 4},
      {"ring_of_two", Chain{.blocks = 2, .closed = true}, 2, 2},
      {"grid", Grid{.rows = 3, .columns = 4}, 12, 17 + 14},
      {"grid_of_one", Grid{}, 1, 4},
      {"star", Star{.limbs = 6}, 6, 7},
      {"imbalanced", Imbalanced{.parts = 5, .factor = 10.0}, 5, 6},
  };
}

class GeneratedNetwork : public ::testing::TestWithParam<Generated> {};

TEST_P(GeneratedNetwork, IsAScenarioOfItsSize) {
  const std::string text = generate_scenario(GetParam().network);
  EXPECT_TRUE(testing::SchemaChecker(scenario_schema()).accepts(text));
  const Scenario scenario = parsed(text);
  EXPECT_EQ(scenario.system.parts().size(), GetParam().parts);
  EXPECT_EQ(scenario.system.junctions().size(), GetParam().junctions);
  EXPECT_EQ(scenario.system.island_count(), 1);
  EXPECT_LE(scenario.recording.quantities.size(), 3U);
  EXPECT_GE(scenario.recording.quantities.size(), 1U);
  EXPECT_EQ(scenario.options.method.waves().iterations, 20);
}

TEST_P(GeneratedNetwork, StepsWithAllItsCertificates) {
  const Scenario scenario = parsed(GetParam().network);
  StepperOptions options = scenario.options;
  options.certify = Certify::full;
  Stepper stepper(scenario.system, options);
  const double before = stepper.state(0)[0];
  stepper.step(5);
  EXPECT_NE(stepper.state(0)[0], before) << "nothing moves";
  // The impedance is small enough for Douglas–Rachford's bound.
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
}

TEST_P(GeneratedNetwork, IsTheSameEveryTime) {
  EXPECT_EQ(generate_scenario(GetParam().network), generate_scenario(GetParam().network));
}

INSTANTIATE_TEST_SUITE_P(All, GeneratedNetwork, ::testing::ValuesIn(all_kinds()),
                         [](const auto& tested) { return tested.param.name; });

TEST(Generate, FollowsItsOptions) {
  const GenerateOptions options = {
      .step_s = 0.002, .duration_s = 0.5, .iterations = 7, .impedance_Ns_per_m = 0.3};
  const Scenario scenario = parsed(Star{.limbs = 3, .masses = 2}, options);
  EXPECT_EQ(scenario.options.step_s, 0.002);
  EXPECT_EQ(scenario.steps, 250);
  EXPECT_EQ(scenario.options.method.waves().iterations, 7);
  EXPECT_EQ(scenario.options.method.waves().impedance, std::vector<double>{0.3});
  EXPECT_EQ(scenario.system.parts()[0].component->signature().state_size(), 5);
}

// Z of a coupling spring is k h/2 within a step; a little less with the mass that it pulls.
TEST(Generate, ChoosesAShareOfTheMatchedImpedance) {
  for (const double h : {1e-4, 1e-3, 1e-2}) {
    const Scenario scenario = parsed(Chain{.blocks = 2}, {.step_s = h});
    EXPECT_NEAR(scenario.options.method.waves().impedance[0], 0.8 * 50.0 * h / 2.0,
                0.02 * 0.8 * 25.0 * h)
        << "h=" << h;
  }
  // The reference pair's Z_A = 0.64974 at h = 0.01 is of the same parameters.
  const Scenario grid = parsed(Grid{.rows = 2, .columns = 2});
  EXPECT_NEAR(grid.options.method.waves().impedance[0], 0.8 * 0.64974, 1e-3);
}

double stiffness(const Part& part) {
  return -dynamic_cast<const LinearPortHamiltonian&>(*part.component).Q().coeff(0, 2);
}

TEST(Generate, VariesEveryBlockWithinItsBounds) {
  const Scenario scenario = parsed(Chain{.blocks = 200, .vary = 0.2});
  std::set<double> values;
  for (const Part& part : scenario.system.parts()) values.insert(stiffness(part));
  EXPECT_EQ(values.size(), 200U);
  EXPECT_GE(*values.begin(), 40.0);
  EXPECT_LE(*values.rbegin(), 60.0);
  EXPECT_LE(*values.begin(), 41.0);
  EXPECT_GE(*values.rbegin(), 59.0);

  const std::string one = generate_scenario(Chain{.blocks = 20, .vary = 0.2, .seed = 1});
  EXPECT_NE(one, generate_scenario(Chain{.blocks = 20, .vary = 0.2, .seed = 2}));
  EXPECT_EQ(generate_scenario(Chain{.blocks = 20, .seed = 1}),
            generate_scenario(Chain{.blocks = 20, .seed = 2}))
      << "nothing is drawn";
}

// A change of the hash would change every file that people have generated and measured with.
TEST(Generate, VariesAsItAlwaysDid) {
  const std::string text = generate_scenario(Chain{.blocks = 2, .vary = 0.2});
  EXPECT_NE(text.find("\"mass_kg\": 0.274956, \"stiffness_N_per_m\": 44.1452,"), std::string::npos)
      << text;
}

TEST(Generate, MakesOneBlockHeavier) {
  const Scenario scenario = parsed(Imbalanced{.parts = 5, .masses = 3, .factor = 10.0});
  for (std::size_t i = 0; i < 5; ++i) {
    const int masses = i == 2 ? 30 : 3;
    EXPECT_EQ(scenario.system.parts()[i].component->signature().state_size(), 2 * masses + 1) << i;
  }
}

TEST(Generate, StarsHaveARigidHub) {
  const Scenario scenario = parsed(Star{.limbs = 4});
  Stepper stepper(scenario.system, scenario.options);
  stepper.step(200);
  double balance = 0.0;
  double largest = 0.0;
  const double hub = stepper.flow(scenario.system.first_scalar_port(0, 1));
  for (int limb = 0; limb < 4; ++limb) {
    const int port = scenario.system.first_scalar_port(limb, 1);
    EXPECT_NEAR(stepper.flow(port), hub, 1e-6 * std::abs(hub)) << limb;
    balance += stepper.effort(port);
    largest = std::max(largest, std::abs(stepper.effort(port)));
  }
  EXPECT_GT(std::abs(hub), 1e-6);
  EXPECT_GT(largest, 1e-6);
  EXPECT_NEAR(balance, 0.0, 1e-6 * largest);
}

// Motion of the first node reaches its neighbours to the east and south alike, with its own sign.
TEST(Generate, GridsAreJoinedInBothDirections) {
  const Scenario scenario = parsed(Grid{.rows = 2, .columns = 2});
  Stepper stepper(scenario.system, scenario.options);
  stepper.step(10);
  const double east = stepper.state("n1_2")[1], south = stepper.state("n2_1")[1];
  EXPECT_GT(east, 0.0);
  EXPECT_NEAR(east, south, 1e-6 * east);
  EXPECT_GT(stepper.state("n2_2")[1], 0.0);
  EXPECT_LT(stepper.state("n2_2")[1], east);
}

std::string defects(const Network& network, const GenerateOptions& options = {}) {
  try {
    generate_scenario(network, options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Generate, NamesEveryNumberOutOfRange) {
  EXPECT_EQ(defects(Chain{.blocks = 0, .masses = 0, .vary = 1.0},
                    {.step_s = 0.0, .iterations = -1, .impedance_Ns_per_m = 0.0}),
            "/blocks: must be an integer from 1 to 1000000, got 0\n"
            "/masses: must be an integer from 1 to 1000000, got 0\n"
            "/vary: must be a number >= 0 and < 1, got 1\n"
            "/step: must be a number > 0, got 0\n"
            "/iterations: must be an integer from 0 to 1000000, got -1\n"
            "/impedance: must be a number > 0, got 0");
  EXPECT_EQ(defects(Chain{.blocks = 1, .closed = true}),
            "/blocks: must be an integer from 2 to 1000000, got 1");
  EXPECT_EQ(defects(Chain{.blocks = 1000, .masses = 10000}),
            "/blocks: the network must have at most 5000000 states, got 20001000");
  EXPECT_EQ(defects(Grid{.rows = 0, .columns = -1}),
            "/rows: must be an integer from 1 to 1000000, got 0\n"
            "/columns: must be an integer from 1 to 1000000, got -1");
  EXPECT_EQ(defects(Grid{.rows = 1000, .columns = 1000}),
            "/rows: rows × columns must be at most 250000, got 1000000");
  EXPECT_EQ(defects(Star{.limbs = 1001}), "/limbs: must be an integer from 2 to 1000, got 1001");
  EXPECT_EQ(defects(Imbalanced{.parts = 1, .factor = std::nan("")}),
            "/parts: must be an integer from 2 to 1000000, got 1\n"
            "/factor: must be a number >= 1, got nan");
  EXPECT_EQ(defects(Imbalanced{.parts = 2, .masses = 5, .factor = 1e6}),
            "/factor: factor × masses must be at most 1000000, got 5000000");
  EXPECT_EQ(defects(Chain{.blocks = 1}, {.step_s = 0.01, .duration_s = 0.015}),
            "/duration: must be a whole number of steps of 0.01 s, got 0.015");
  EXPECT_EQ(defects(Chain{.blocks = 1}, {.step_s = 1e-300}),
            "/duration: 1 s in steps of 1e-300 s are more than 9000000000000000 steps");
}

TEST(Generate, RefusesFilesThatCouldNotBeRead) {
  const std::string text = defects(Chain{.blocks = 400'000});
  EXPECT_EQ(text,
            "the scenario file would be larger than 64 MiB, the most that can be read; make the "
            "network smaller");
}

}  // namespace
}  // namespace portwave::test_generate
