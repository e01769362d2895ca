// How often a robot on its feet solves its ports: the parts tell how these respond, so that the interface equation asks
// for no differences. Beside the same robot as a part that tells nothing.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/coupling/system/system.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/core/subsystem.hpp"
#include "support/systems/counting_part.hpp"

namespace portwave::test_robot_solves {
namespace {

using Numbers = std::vector<double>;
using Texts = std::vector<std::string>;

/// A trunk on four feet that are points of it, with an arm that swings.
std::shared_ptr<const Component> robot() {
  return make_part(
      "articulated",
      {{"joints", Texts{"free", "revolute"}},
       {"masses_kg", Numbers{4.0, 1.0}},
       {"places_m", MatrixRows{{0, 0, 0}, {0.1, 0, 0.1}}},
       {"axes", MatrixRows{{0, 0, 1}, {0, 1, 0}}},
       {"centres_m", MatrixRows{{0, 0, 0}, {0, 0, 0.2}}},
       {"inertias_kgm2", MatrixRows{{0.05, 0, 0, 0.1, 0, 0.12}, {0.05, 0, 0, 0.05, 0, 0.001}}},
       {"damping", Numbers{0.0, 0.05}},
       {"joint_ports", false},
       {"frames", Texts{"foot_1", "foot_2", "foot_3", "foot_4"}},
       {"frame_joints", Texts(4, "joint_1")},
       {"frame_points_m",
        MatrixRows{{0.2, 0.1, -0.2}, {0.2, -0.1, -0.2}, {-0.2, 0.1, -0.2}, {-0.2, -0.1, -0.2}}}});
}

struct Walk {
  Numbers state;
  double linearisations = 0.0, evaluations = 0.0;  ///< per step
  double off_J = 0.0;                              ///< the account
};

Walk walk(std::shared_ptr<const Component> part) {
  constexpr int kSteps = 80;
  SystemBuilder builder;
  // 1 cm above the ground and forward at 0.3 m/s, the arm at 0.4 rad.
  builder.add("robot", std::move(part),
              {.initial_state = Numbers{0, 0, 0.205, 1, 0, 0, 0, 0.4, 1.5, 0, -0.5, 0, 0, 0, 0.1},
               .inputs = {}});
  const double x[] = {0.2, 0.2, -0.2, -0.2}, y[] = {0.1, -0.1, 0.1, -0.1};
  for (int k = 0; k < 4; ++k) {
    const std::string name = fmt::format("ground_{}", k + 1);
    builder.add(name,
                make_part("ground_contact", {{"force_N", 1.2e4},
                                             {"compression_m", 1.0},
                                             {"damping_s_per_m", 0.5},
                                             {"friction", 0.6},
                                             {"creep_speed_m_per_s", 0.01}}),
                {.initial_state = Numbers{x[k], y[k], 0.005}, .inputs = {}});
    builder.connect(fmt::format("robot.foot_{}", k + 1), name + ".point");
  }
  StepperOptions options;
  options.step_s = 1e-3;
  Stepper stepper(builder.build(), options);
  stepper.step(kSteps);
  Walk out;
  const auto state = stepper.state("robot");
  out.state.assign(state.begin(), state.end());
  const IterationStatistics& counts = stepper.iterations();
  out.linearisations = static_cast<double>(counts.linearisations) / kSteps;
  out.evaluations = counts.per_step();
  EXPECT_EQ(counts.not_converged, 0);
  const EnergyTotals energy = stepper.energy();
  out.off_J = std::abs(energy.final_J - energy.initial_J - energy.supplied_J + energy.dissipated_J +
                       energy.mismatch_J);
  return out;
}

TEST(RobotSolves, TakeNoDifferences) {
  const Walk own = walk(robot());
  EXPECT_LT(own.linearisations, 2.5);
  EXPECT_LT(own.evaluations, 9.0);
  EXPECT_LT(own.off_J, 1e-10);
  // The control: the same physics in a part that tells nothing takes 24 solves for each set of differences.
  const auto component = robot();
  const auto physics = std::shared_ptr<const Subsystem>(component, component->port_hamiltonian());
  ASSERT_NE(physics.get(), nullptr);
  const Walk plain = walk(std::make_shared<testing::CountingPart>(physics));
  EXPECT_GT(plain.linearisations, 10.0);
  double apart = 0.0;
  for (std::size_t i = 0; i < own.state.size(); ++i) {
    apart = std::max(apart, std::abs(own.state[i] - plain.state[i]));
  }
  EXPECT_LT(apart, 1e-8);
  // It has landed, bounced, and been braked: nothing else keeps it above 17 cm, or takes momentum along x from both.
  EXPECT_GT(own.state[2], 0.19);
  EXPECT_LT(own.state[8], 1.4);
}

}  // namespace
}  // namespace portwave::test_robot_solves
