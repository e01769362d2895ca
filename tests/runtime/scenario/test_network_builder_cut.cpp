// Parts of a network in code that are cut into pieces: the same motion under the same names.

#include <cmath>
#include <string>
#include <utility>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "portwave/runtime/scenario/network_builder.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/catalogue/parts.hpp"

namespace portwave::test_network_builder_cut {
namespace {

constexpr int kMasses = 24;

/// Masses of 1 kg in a row, with springs of 400 N/m; a port at either end.
CataloguePart bar() {
  Eigen::MatrixXd K = Eigen::MatrixXd::Zero(kMasses, kMasses);
  for (int i = 0; i + 1 < kMasses; ++i) {
    K(i, i) += 400.0;
    K(i + 1, i + 1) += 400.0;
    K(i, i + 1) = K(i + 1, i) = -400.0;
  }
  Eigen::MatrixXd B = Eigen::MatrixXd::Zero(kMasses, 3);
  B(0, 0) = B(kMasses - 1, 1) = B(kMasses / 2, 2) = 1.0;
  parts::SecondOrderSystemParameters parameters;
  for (int i = 1; i <= kMasses; ++i) {
    parameters.coordinates.push_back({.name = "u" + std::to_string(i), .unit = "m"});
  }
  parameters.ports = {{"left", Causality::effort_in, Domain::translation, 1},
                      {"right", Causality::effort_in, Domain::translation, 1}};
  parameters.inputs = {{"force", "N"}};
  parameters.M = Eigen::MatrixXd(Eigen::MatrixXd::Identity(kMasses, kMasses));
  parameters.D = Eigen::MatrixXd(0.01 * K);
  parameters.K = K;
  parameters.B = B;
  return parts::second_order_system(parameters);
}

/// A driven bar whose ends hang on springs, from a start that moves; pieces 0: whole.
Scenario hung(int pieces) {
  NetworkBuilder network("hung");
  const PartHandle first = network.add("first", parts::spring({.stiffness_N_per_m = 100}));
  const PartHandle long_bar = network.add("bar", bar());
  const PartHandle last = network.add("last", parts::spring({.stiffness_N_per_m = 50}));
  network.connect(first.port("right"), long_bar.port("left"));
  network.connect(long_bar.port(1), last.port("left"));
  network.fix(first.port("left")).fix(last.port("right"));
  network.set_state(long_bar, "u3", 0.02).set_input(long_bar, "force", Signal::constant(3.0));
  if (pieces > 0) network.cut(long_bar, pieces);
  return network.build({.step_s = 1e-3});
}

/// The elongation of the spring "last", by its name.
double elongation_of_last(int pieces, int steps) {
  Scenario scenario = hung(pieces);
  Stepper stepper(std::move(scenario.system), scenario.options);
  stepper.step(steps);
  const auto parts = stepper.system().parts();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].name == "last") return stepper.state(static_cast<int>(i))[0];
  }
  ADD_FAILURE() << "there is no part \"last\"";
  return NAN;
}

TEST(NetworkBuilderCut, PiecesMoveAsTheWholeAndKeepItsNames) {
  const Scenario whole = hung(0), cut = hung(3);
  EXPECT_EQ(whole.recording.quantities.size(), cut.recording.quantities.size());
  EXPECT_EQ(whole.system.parts().size(), 3U);
  EXPECT_GE(cut.system.parts().size(), 5U) << "control: it has been cut";
  const double expected = elongation_of_last(0, 1500);
  EXPECT_GT(std::abs(expected), 1e-4) << "control: it moves";
  EXPECT_NEAR(elongation_of_last(3, 1500), expected, 1e-8 * std::abs(expected));
}

TEST(NetworkBuilderCut, DefectsNameThePart) {
  NetworkBuilder network;
  const PartHandle spring = network.add(
      "stop", parts::duffing_oscillator(
                  {.mass_kg = 1, .stiffness_N_per_m = 1, .coupling_stiffness_N_per_m = 1}));
  network.fix(spring.port(0));
  network.cut(spring, 2);
  try {
    (void)network.build();
    FAIL() << "a nonlinear part was cut";
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.issues().size(), 1U);
    EXPECT_EQ(error.issues()[0].where, "/subsystems/0/cut");
    EXPECT_NE(error.issues()[0].what.find("\"stop\""), std::string::npos) << error.issues()[0].what;
  }
  NetworkBuilder other;
  const PartHandle whole = other.add("bar", bar());
  other.free(whole.port(0)).free(whole.port(1));
  other.cut(whole, 0);
  try {
    (void)other.build();
    FAIL() << "cut into nothing";
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.issues().size(), 1U);
    EXPECT_NE(error.issues()[0].what.find("1 to 10000 pieces, got 0"), std::string::npos)
        << error.issues()[0].what;
  }
}

}  // namespace
}  // namespace portwave::test_network_builder_cut
