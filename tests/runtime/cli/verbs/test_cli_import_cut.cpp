// portwave import --cut: the pieces of a robot move as the robot
#ifdef PORTWAVE_CLI

#include <algorithm>
#include <cmath>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/systems/imported_robot.hpp"

namespace portwave::test_cli_import_cut {
namespace {

using nlohmann::json;
using testing::contains;
using testing::CsvTable;
using testing::ImportedRobot;
using testing::ProcessResult;
using testing::said;
using testing::Words;
using testing::operator+;

using CliImportCut = ImportedRobot;

/// A body that may be free, with a bracket fixed to it, a leg of three joints on the bracket, and an arm that follows
/// the knee.
constexpr const char* kLeg = R"(<robot name="leg">
  <link name="trunk"><inertial><origin xyz="0.02 0 0.01"/><mass value="4"/>
    <inertia ixx="0.05" ixy="0.002" ixz="0" iyy="0.08" iyz="0.001" izz="0.1"/></inertial></link>
  <link name="bracket"><inertial><origin xyz="0 0.05 0" rpy="0.3 0 0"/><mass value="0.5"/>
    <inertia ixx="0.001" ixy="0" ixz="0" iyy="0.002" iyz="0" izz="0.002"/></inertial></link>
  <link name="hip"><inertial><origin xyz="0 0.03 0"/><mass value="0.6"/>
    <inertia ixx="0.001" ixy="0" ixz="0" iyy="0.001" iyz="0" izz="0.001"/></inertial></link>
  <link name="thigh"><inertial><origin xyz="0.01 0 -0.1"/><mass value="1"/>
    <inertia ixx="0.006" ixy="0" ixz="0.0002" iyy="0.006" iyz="0" izz="0.001"/></inertial></link>
  <link name="shank"><inertial><origin xyz="0 0 -0.1"/><mass value="0.4"/>
    <inertia ixx="0.002" ixy="0" ixz="0" iyy="0.002" iyz="0" izz="0.0003"/></inertial></link>
  <link name="arm"><inertial><origin xyz="0.1 0 0"/><mass value="0.3"/>
    <inertia ixx="0.0005" ixy="0" ixz="0" iyy="0.001" iyz="0" izz="0.001"/></inertial></link>
  <joint name="bolt" type="fixed"><parent link="trunk"/><child link="bracket"/>
    <origin xyz="0.2 0.1 -0.05" rpy="0.2 0.1 0.7"/></joint>
  <joint name="side" type="revolute"><parent link="bracket"/><child link="hip"/>
    <origin xyz="0 0.1 0" rpy="0 0 -0.6"/><axis xyz="1 0 0"/><dynamics damping="0.05"/>
    <limit lower="-2" upper="2" effort="100" velocity="20"/></joint>
  <joint name="swing" type="revolute"><parent link="hip"/><child link="thigh"/>
    <origin xyz="0 0.08 0"/><axis xyz="0 1 0"/><dynamics damping="0.05"/>
    <limit lower="-2" upper="2" effort="100" velocity="20"/></joint>
  <joint name="knee" type="revolute"><parent link="thigh"/><child link="shank"/>
    <origin xyz="0 0 -0.2"/><axis xyz="0 1 0"/><dynamics damping="0.05"/>
    <limit lower="0.3" upper="2" effort="100" velocity="20"/></joint>
  <joint name="reach" type="revolute"><parent link="trunk"/><child link="arm"/>
    <origin xyz="-0.2 0 0.1"/><axis xyz="0 0 1"/><dynamics damping="0.05"/>
    <mimic joint="knee" multiplier="-0.5" offset="0.1"/></joint>
</robot>)";

double last(const CsvTable& table, const std::string& name) {
  return table.rows.back()[table.column(name)];
}

/// Of angles after a second, in the file that is cut and in the one that is not.
void expect_same(const CsvTable& whole, const CsvTable& cut, const json& owner, double most) {
  for (const auto& [joint, part] : owner.items()) {
    const std::string name = "." + joint + "_angle";
    EXPECT_NEAR(last(cut, part.get<std::string>() + name), last(whole, "robot" + name), most)
        << joint;
  }
  // The control: they have moved, and not as without what hangs on them.
  EXPECT_GT(std::abs(last(whole, "robot.swing_angle")), 0.05);
}

TEST_F(CliImportCut, WhatHangsOnACutMovesAsBefore) {
  const Words options = {"--no-limits", "--step", "5e-4", "--duration", "0.5"};
  const CsvTable whole = run(kLeg, options);
  const CsvTable cut = run(kLeg, options + Words{"--cut", "swing,reach"});
  expect_same(whole, cut,
              {{"side", "robot"},
               {"swing", "robot_swing"},
               {"knee", "robot_swing"},
               {"reach", "robot_reach"}},
              1e-5);
}

/// With a torque at the swing, which is a joint of that part.
json driven(json scenario, const std::string& part) {
  for (json& own : scenario["subsystems"]) {
    if (own["name"] == part) own["inputs"]["swing_torque"] = "3*sin(20*t)";
  }
  return scenario;
}

TEST_F(CliImportCut, FreeBasesAreShared) {
  const Words options = {"--free-base", "--no-limits", "--step", "5e-4", "--duration", "0.5"};
  const json pieces = scenario(kLeg, options + Words{"--cut", "side", "--cut", "knee"});
  EXPECT_EQ(part(pieces, "robot_side")["parameters"]["names"], json({"base", "side", "swing"}));
  EXPECT_EQ(part(pieces, "robot")["parameters"]["names"], json({"trunk", "bolt", "reach"}));
  // Trunk and bracket are one body, of which each piece has half.
  EXPECT_DOUBLE_EQ(part(pieces, "robot")["parameters"]["masses_kg"][0].get<double>(), 2.0);
  EXPECT_DOUBLE_EQ(part(pieces, "robot_side")["parameters"]["masses_kg"][0].get<double>(), 2.25);
  const CsvTable whole = run_scenario(driven(scenario(kLeg, options), "robot"));
  const CsvTable cut = run_scenario(driven(pieces, "robot_side"));
  for (const char* const state : {"trunk_x", "trunk_z", "trunk_q_x", "trunk_q_y", "trunk_q_z"}) {
    const std::string name = std::string("robot.") + state;
    EXPECT_NEAR(last(cut, name), last(whole, name), 1e-6) << state;
  }
  expect_same(
      whole, cut,
      {{"side", "robot_side"}, {"swing", "robot_side"}, {"knee", "robot_knee"}, {"reach", "robot"}},
      3e-5);
  EXPECT_LT(last(whole, "robot.trunk_z"), -1.0) << "it falls";
}

TEST_F(CliImportCut, ControllersFindTheirJoints) {
  const json pieces = scenario(kLeg, {"--hold", "--no-limits", "--cut", "knee"});
  bool is_measured = false;
  for (const json& block : pieces["signals"]["blocks"]) {
    if (block["name"] == "hold_knee") is_measured = block["measurement"] == "robot_knee.knee_angle";
  }
  EXPECT_TRUE(is_measured) << pieces["signals"].dump();
  EXPECT_TRUE(part(pieces, "robot_knee")["inputs"].contains("knee_torque"));
  EXPECT_FALSE(part(pieces, "robot")["inputs"].contains("knee_torque"));
}

TEST_F(CliImportCut, WhatHangsOnTheWorldIsNotWelded) {
  const json pieces = scenario(kLeg, {"--no-limits", "--cut", "side,reach"});
  EXPECT_EQ(pieces["subsystems"].size(), 3u) << "two limbs and a gear";
  EXPECT_EQ(part(pieces, "robot"), nullptr) << "nothing of it moves";
  EXPECT_FALSE(contains(pieces.dump(), "base_cut"));
}

TEST_F(CliImportCut, TellsEveryNameThatIsWrong) {
  const ProcessResult made = import(kLeg, {"--cut", "kneee,bolt,swing", "--cut", "swing"});
  EXPECT_EQ(made.exit_code, 2) << said(made);
  EXPECT_TRUE(
      contains(made.err, "\"kneee\": there is no joint of this name. Did you mean \"knee\"?"))
      << said(made);
  EXPECT_TRUE(contains(made.err, "\"bolt\": is fixed")) << said(made);
  EXPECT_TRUE(contains(made.err, "\"swing\": is given twice")) << said(made);
  EXPECT_TRUE(contains(made.err, "3 errors")) << said(made);
}

}  // namespace
}  // namespace portwave::test_cli_import_cut

#endif
