// The robot that walks: what `portwave import --ground` writes, and the run of examples/walking_robot.json, judged by
// its recorded files alone.
#ifdef PORTWAVE_CLI

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/files/source_folder.hpp"
#include "support/systems/imported_robot.hpp"

namespace portwave::test_walking_robot {
namespace {

using nlohmann::json;
using testing::contains;
using testing::CsvTable;
using testing::portwave_cli;
using testing::ProcessResult;
using testing::said;
using testing::Words;
using testing::operator+;

const std::string kQuadruped = testing::source_file("examples/quadruped.urdf");
const std::string kWalking = testing::source_file("examples/walking_robot.json");

class RobotOnTheGround : public testing::ImportedRobot {
 protected:
  static constexpr const char* kBox = R"(<robot name="box">
  <link name="base">
    <inertial><mass value="4"/>
      <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>
    <collision><origin xyz="0.3 0 -0.2"/><geometry><sphere radius="0.05"/></geometry></collision>
    <collision><origin xyz="-0.3 0.2 -0.2"/><geometry><sphere radius="0.05"/></geometry></collision>
    <collision><origin xyz="-0.3 -0.2 -0.2"/><geometry><sphere radius="0.05"/></geometry></collision>
    <collision><geometry><box size="1 1 1"/></geometry></collision>
  </link>
  <link name="arm">
    <inertial><mass value="1"/>
      <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>
    <collision><origin xyz="0 0 0.5"/><geometry><sphere radius="0.02"/></geometry></collision>
  </link>
  <joint name="shoulder" type="revolute">
    <parent link="base"/><child link="arm"/>
    <origin xyz="0.1 0 0.2" rpy="0 0.3 0"/><axis xyz="0 1 0"/>
    <limit lower="0.5" upper="1.5"/>
  </joint>
</robot>)";
};

TEST_F(RobotOnTheGround, HasAContactAtEachSphereWhereItIs) {
  const json made = scenario(kBox, {"--ground", "--free-base"});
  const json robot = part(made, "robot");
  EXPECT_EQ(robot["parameters"]["frames"],
            json({"base_contact", "base_contact_2", "base_contact_3", "arm_contact"}));
  EXPECT_EQ(robot["parameters"]["frame_joints"], json({"base", "base", "base", "shoulder"}));
  EXPECT_DOUBLE_EQ(robot["initial_state"]["base_z"], 0.25);
  const json foot = part(made, "base_ground_2");
  EXPECT_EQ(foot["type"], "ground_contact");
  EXPECT_DOUBLE_EQ(foot["initial_state"]["x"], -0.3);
  EXPECT_DOUBLE_EQ(foot["initial_state"]["y"], 0.2);
  EXPECT_DOUBLE_EQ(foot["initial_state"]["z"], 0.05);
  EXPECT_DOUBLE_EQ(foot["parameters"]["radius_m"], 0.05);
  // A quarter of 5 kg bounces in 20 ms.
  EXPECT_NEAR(foot["parameters"]["force_N"], 1.25 * std::pow(M_PI / 0.02, 2) * 1e-3, 0.01);
  // The joint starts 2 % of its range inside it.
  const double angle = 0.3 + 0.52;
  const json hand = part(made, "arm_ground");
  EXPECT_NEAR(hand["initial_state"]["x"], 0.1 + 0.5 * std::sin(angle), 1e-11);
  EXPECT_NEAR(hand["initial_state"]["z"], 0.45 + 0.5 * std::cos(angle), 1e-11);
  const std::string told = import(kBox, {"--ground", "--free-base"}).err;
  EXPECT_TRUE(contains(told, "1 of <collision> is no sphere, and does not touch the ground"))
      << told;
}

TEST_F(RobotOnTheGround, ComesToRestOnItsFeet) {
  json made = scenario(kBox, {"--ground", "--free-base", "--hold"});
  made["outputs"] = {{"observe", {"robot.base_z", "base_ground.z", "base_ground_2.z"}}};
  const std::string file = (folder_ / "box.json").string(), out = (folder_ / "out").string();
  testing::write_text(file, made.dump());
  const ProcessResult result = portwave_cli({"run", file, "--steps", "1500", "--out", out});
  EXPECT_EQ(result.exit_code, 0) << said(result);
  const CsvTable table = testing::read_csv(folder_ / "out" / "trajectory.csv");
  for (const auto& row : table.rows) EXPECT_NEAR(row[table.column("robot.base_z")], 0.25, 0.003);
  EXPECT_GT(table.last()[table.column("base_ground.z")], 0.049);
  EXPECT_LT(table.last()[table.column("base_ground.z")], 0.05);
}

TEST_F(RobotOnTheGround, WithoutGroundItFalls) {
  json made = scenario(kBox, {"--free-base", "--hold"});
  made["outputs"] = {{"observe", {"robot.base_z"}}};
  const CsvTable table = run_scenario(made, {"--steps", "1000"});
  EXPECT_LT(table.last()[table.column("robot.base_z")], -4.0);
}

TEST_F(RobotOnTheGround, TellsWhatIsMissing) {
  const std::string bare = R"(<robot name="bare"><link name="base">
    <inertial><mass value="4"/>
      <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link></robot>)";
  EXPECT_TRUE(contains(import(bare, {"--ground", "--free-base"}).err,
                       "--ground: no link that moves has a <sphere> in a <collision>"));
  constexpr const char* kBall = R"(<mujoco><worldbody><body><freejoint/>
    <geom type="sphere" size="1"/></body></worldbody></mujoco>)";
  std::string bad = kBox;
  bad.replace(bad.find("radius=\"0.05\""), 13, "radius=\"-1\"");
  EXPECT_TRUE(contains(import(bad).err, "radius must be >= 0 m, got -1"));
  EXPECT_TRUE(contains(import(kBall, {"--ground"}).err, "--ground is for URDF"));
}

/// Bodies, feet and couplings of the example are those that import writes; controllers and steps are its own.
TEST_F(RobotOnTheGround, TheExampleIsTheImportedQuadruped) {
  const ProcessResult result =
      portwave_cli({"import", kQuadruped, "--free-base", "--ground", "--hold", "--no-limits"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  json made = json::parse(result.out), walking = json::parse(testing::read_text(kWalking));
  EXPECT_EQ(made["couplings"], walking["couplings"]);
  ASSERT_EQ(made["subsystems"].size(), walking["subsystems"].size());
  made["subsystems"][0].erase("inputs");
  walking["subsystems"][0].erase("inputs");
  EXPECT_EQ(made["subsystems"], walking["subsystems"]);
}

/// Of a run: how far it has come, its least height, the largest turn from upright, and what the account is out by.
struct Walk {
  double way_m = 0.0, least_height_m = 1e9, most_tilt_rad = 0.0, balance_J = 0.0;
  double most_lift_m = 0.0, supplied_J = 0.0;
};

class WalkingRobot : public ::testing::Test {
 protected:
  Walk walk(const Words& options) {
    const std::string out = (folder_ / "out").string();
    const ProcessResult result =
        portwave_cli(Words{"run", kWalking, "--compare", "none", "--out", out} + options);
    EXPECT_EQ(result.exit_code, 0) << said(result);
    const CsvTable path = testing::read_csv(folder_ / "out" / "trajectory.csv");
    const CsvTable energy = testing::read_csv(folder_ / "out" / "energy.csv");
    const auto of = [](const CsvTable& table, const std::vector<double>& row, const char* name) {
      return row[table.column(name)];
    };
    Walk seen;
    seen.way_m = of(path, path.last(), "robot.trunk_x");
    for (const auto& row : path.rows) {
      const double x = of(path, row, "robot.trunk_q_x"), y = of(path, row, "robot.trunk_q_y");
      seen.least_height_m = std::min(seen.least_height_m, of(path, row, "robot.trunk_z"));
      seen.most_tilt_rad = std::max(seen.most_tilt_rad, 2.0 * std::hypot(x, y));
      seen.most_lift_m = std::max(seen.most_lift_m, of(path, row, "front_left_shank_ground.z"));
    }
    double received = 0.0;  // rows hold what came since the row before
    for (const auto& row : energy.rows) {
      seen.supplied_J += of(energy, row, "supplied_J");
      received += of(energy, row, "supplied_J") - of(energy, row, "dissipated_J") -
                  of(energy, row, "mismatch_J");
      const double stored = of(energy, row, "stored_J"),
                   start = of(energy, energy.rows[0], "stored_J");
      seen.balance_J = std::max(seen.balance_J, std::abs(stored - start - received));
    }
    return seen;
  }
  testing::TemporaryFolder folder_;
};

TEST_F(WalkingRobot, WalksOnAndStaysUpright) {
  const Walk seen = walk({"--steps", "1500"});
  EXPECT_GT(seen.way_m, 0.3);
  EXPECT_GT(seen.least_height_m, 0.29);
  EXPECT_LT(seen.most_tilt_rad, 0.15);
  EXPECT_GT(seen.most_lift_m, 0.045);
  EXPECT_GT(seen.supplied_J, 5.0);
  EXPECT_LT(seen.balance_J, 1e-8);
}

/// On ice its feet slide, and it stays where it is.
TEST_F(WalkingRobot, IsMovedByFriction) {
  Words ice = {"--steps", "1500"};
  for (int k = 1; k <= 4; ++k) {
    ice = ice + Words{"--set", "/subsystems/" + std::to_string(k) + "/parameters/friction=0.01"};
  }
  EXPECT_LT(std::abs(walk(ice).way_m), 0.1);
}

}  // namespace
}  // namespace portwave::test_walking_robot

#endif  // PORTWAVE_CLI
