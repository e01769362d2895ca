// Descriptor parts in wave coupling: what the inner iteration converges to, energies, scenarios.

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/coupling/reference/monolithic.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "support/systems/descriptor_parts.hpp"

namespace portwave::test_descriptor_parts {
namespace {

struct Sample {
  std::string name;
  std::function<System()> make;
  double step_s;
};

System circuit() {
  SystemBuilder builder;
  builder.add("left", testing::circuit_left(),
              {.initial_state = {},
               .inputs = {{"source", Signal::sine_product(1.0, {{50, 0}, {500, 0}}, 0.0)}}});
  builder.add("right", testing::circuit_right());
  builder.connect("left.right", "right.left");
  return builder.build();
}

/// A ladder cut in two at a node without a capacitor, both halves `nodes` long.
System ladder(int nodes) {
  SystemBuilder builder;
  builder.add(
      "left", testing::rc_ladder(nodes),
      {.initial_state = {}, .inputs = {{"source", Signal::sine_product(1.0, {{20, 0}}, 0.3)}}});
  builder.add("right", testing::rc_ladder(nodes, StepMapStorage::automatic, 0.7));
  builder.join(joint::Resistive{3.0}, {"left.left"});
  builder.connect("left.right", "right.left");
  builder.join(joint::Resistive{0.7}, {"right.right"});
  return builder.build();
}

System rod_on_a_spring() {
  SystemBuilder builder;
  builder.add("rod", testing::rigid_rod(),
              {.initial_state = {2.0, 3.0, 0.0}, .inputs = {{"force", Signal::constant(0.5)}}});
  builder.add("body", duffing_oscillator({.mass_kg = 1.5,
                                          .stiffness_N_per_m = 20.0,
                                          .cubic_stiffness_N_per_m3 = 50.0,
                                          .coupling_stiffness_N_per_m = 30.0,
                                          .coupling_damping_Ns_per_m = 0.3}));
  builder.connect("body.coupling", "rod.end");
  return builder.build();
}

std::vector<Sample> samples() {
  return {{"circuit", circuit, 1e-4},
          {"short_ladder", [] { return ladder(21); }, 1e-3},
          {"long_ladder", [] { return ladder(301); }, 1e-3},
          {"rod", rod_on_a_spring, 1e-2}};
}

StepperOptions converged(const Sample& sample, WaveUpdate kind) {
  StepperOptions options;
  options.step_s = sample.step_s;
  if (kind == WaveUpdate::automatic) {
    options.method = CouplingMethod::automatic(1e-14);
  } else {
    options.method.waves().kind = kind;
    options.method.waves().impedance_kind =
        kind == WaveUpdate::douglas_rachford ? ImpedanceKind::fne : ImpedanceKind::matched;
    options.method.waves().tolerance = 1e-14;
  }
  options.method.waves().iterations = 300;
  options.method.waves().integrator = StageKind::gauss;  // as the reference
  return options;
}

/// Largest difference of any state over 100 steps, relative to the largest of its part.
double distance_to_monolithic(const Sample& sample, StepperOptions options) {
  const System system = sample.make();
  Stepper stepper(system, options);
  MonolithicReference reference(system, sample.step_s);
  double gap = 0.0;
  std::vector<double> size(system.parts().size(), 0.0);
  for (int k = 0; k < 100; ++k) {
    stepper.step();
    reference.step();
    for (int part = 0; part < static_cast<int>(system.parts().size()); ++part) {
      const std::span<const double> expected = reference.state(part);
      const std::span<const double> x = stepper.state(part);
      double& largest = size[static_cast<std::size_t>(part)];
      for (const double value : expected) largest = std::max(largest, std::abs(value));
      for (std::size_t i = 0; i < x.size(); ++i) {
        gap = std::max(gap, std::abs(x[i] - expected[i]) / largest);
      }
    }
  }
  return gap;
}

class DescriptorWaves : public ::testing::TestWithParam<Sample> {};

TEST_P(DescriptorWaves, ConvergeToTheMonolithicStep) {
  for (const WaveUpdate kind :
       {WaveUpdate::douglas_rachford, WaveUpdate::peaceman_rachford, WaveUpdate::automatic}) {
    const double gap = distance_to_monolithic(GetParam(), converged(GetParam(), kind));
    EXPECT_LE(gap, 1e-12) << to_string(kind);
  }
  StepperOptions few = converged(GetParam(), WaveUpdate::douglas_rachford);
  few.method.waves().tolerance = 0.0;
  few.method.waves().iterations = 1;
  few.method.waves().impedance_kind = ImpedanceKind::given;
  few.method.waves().impedance = {20.0};
  EXPECT_GT(distance_to_monolithic(GetParam(), few), 1e-9);  // control
}

TEST_P(DescriptorWaves, KeepTheirCertificatesAtEveryBudget) {
  for (const WaveUpdate kind : {WaveUpdate::douglas_rachford, WaveUpdate::peaceman_rachford}) {
    for (const int iterations : {0, 1, 3, 20}) {
      for (const double factor : {1.0, 100.0}) {
        StepperOptions options = converged(GetParam(), kind);
        options.method.waves().tolerance = 0.0;
        options.method.waves().iterations = iterations;
        options.step_s = factor * GetParam().step_s;
        options.certify = Certify::energy;
        const System system = GetParam().make();
        Stepper stepper(system, options);
        stepper.step(50);
        const Certificate c = stepper.certificate();
        EXPECT_EQ(c.status, CertificateStatus::holds)
            << to_string(kind) << " K=" << iterations << " h=" << options.step_s;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Systems, DescriptorWaves, ::testing::ValuesIn(samples()),
                         [](const auto& each) { return each.param.name; });

// Scenarios.

/// The circuit's right block, discharged through a resistor.
std::string scenario_text(const std::string& E, const std::string& start) {
  return R"({"name": "node", "time": {"step_s": 1e-5, "steps": 10},
    "subsystems": [{"name": "rc", "type": "descriptor_port_hamiltonian",
      "parameters": {
        "states": [{"name": "u4", "unit": "V"}, {"name": "u5", "unit": "V"}],
        "ports": [{"name": "left", "causality": "flow_in", "domain": "electrical"}],
        "E": )" +
         E + R"(,
        "J": [[0, 0], [0, 0]],
        "R": {"entries": [[0, 0, 2], [0, 1, -2], [1, 0, -2], [1, 1, 2.2]]},
        "B": [[1], [0]]},
      "initial_state": )" +
         start + R"(}],
    "couplings": [{"kind": "resistive", "ports": ["rc.left"], "resistance": 0.5}],
    "method": {"kind": "auto"}})";
}

TEST(DescriptorScenario, RunsAsAnyOther) {
  const Scenario scenario =
      parse_scenario(scenario_text("[[0, 0], [0, 5e-4]]", R"({"u5": 2})"), "node.json", ".");
  Stepper stepper(scenario.system, scenario.options);
  stepper.step(scenario.steps);
  // 5e-4 u5' = −0.2 u5 − u5/(0.5 + 0.5) by midpoint steps; u4 halves the u5 of the middle of a
  // step.
  const double z = 1.2 / 5e-4 * 1e-5, factor = (1.0 - 0.5 * z) / (1.0 + 0.5 * z);
  const double u5 = 2.0 * std::pow(factor, 10);
  EXPECT_NEAR(stepper.state("rc")[1], u5, 1e-9);
  EXPECT_NEAR(stepper.state("rc")[0], 0.5 * 0.5 * (u5 + u5 / factor), 1e-9);
}

TEST(DescriptorScenario, PointsAtTheMatrixThatIsAtFault) {
  try {
    (void)parse_scenario(scenario_text("[[0, 1], [0, 5e-4]]", R"({"u5": 2})"), "node.json", ".");
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.issues().front().where, "/subsystems/0/parameters/E");
    EXPECT_EQ(error.issues().front().what.rfind("E^T Q is not symmetric", 0), 0u) << error.what();
  }
}

}  // namespace
}  // namespace portwave::test_descriptor_parts
