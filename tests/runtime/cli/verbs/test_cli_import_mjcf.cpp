// portwave import of MuJoCo's format
#ifdef PORTWAVE_CLI

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/systems/imported_robot.hpp"

namespace portwave::test_cli_import_mjcf {
namespace {

using testing::contains;
using testing::CsvTable;
using testing::ImportedRobot;
using testing::ProcessResult;
using testing::said;
using testing::Words;

using CliImportMjcf = ImportedRobot;

/// Hinges, slides, a ball, a free body; two joints in one body; classes; shapes of every kind.
const std::string kTrial = R"(<mujoco model="trial">
  <compiler angle="degree" eulerseq="xyz"/>
  <option gravity="0 0 -9.81"/>
  <default>
    <geom density="800" contype="0" conaffinity="0"/>
    <joint damping="0.05"/>
    <default class="light"><geom density="300"/><joint armature="0.02" damping="0.1"/></default>
  </default>
  <asset><material name="grey" rgba=".5 .5 .5 1"/></asset>
  <worldbody>
    <geom type="plane" size="1 1 .1"/>
    <light pos="0 0 3"/>
    <body name="post" pos="0 0 1" euler="0 10 20">
      <geom type="cylinder" size="0.05 0.2"/>
      <body name="upper" pos="0 0.1 0.25" euler="20 0 0">
        <joint name="shoulder" axis="0 1 0" pos="0.01 0 0.02"/>
        <joint name="shoulder_x" axis="1 0 0.2" pos="0 0.02 0" range="-170 170" stiffness="3" springref="10"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0.1" size="0.04"/>
        <geom type="box" size="0.05 0.03 0.02" pos="0.3 0 0.1" euler="30 20 10"/>
        <body name="fore" pos="0.3 0 0.1" childclass="light" axisangle="0 1 0 40">
          <joint name="elbow" axis="0 1 0"/>
          <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
          <geom type="ellipsoid" size="0.05 0.04 0.03" pos="0.3 0 0"/>
          <body name="slider" pos="0.1 0 0.05" quat="0.9 0.1 0.2 0.3">
            <joint name="slide" type="slide" axis="1 0 0" range="-5 5" stiffness="200"/>
            <inertial pos="0.01 0 0" mass="0.3" fullinertia="0.001 0.0012 0.0009 0.0001 0 0.00005"/>
          </body>
          <body pos="0.32 0 0">
            <joint name="ball" type="ball" armature="0" damping="0.01"/>
            <geom type="sphere" size="0.04" pos="0 0 -0.15" class="main"/>
            <geom type="capsule" size="0.02 0.06" pos="0 0.05 -0.1" xyaxes="0 1 0 1 0 0"/>
          </body>
        </body>
      </body>
    </body>
    <body name="drone" pos="1 2 3" euler="10 20 30">
      <freejoint name="fly"/>
      <geom type="box" size="0.1 0.2 0.03" mass="1.5"/>
      <body name="rotor" pos="0.05 0 0.05">
        <joint name="spin" axis="0 0 1" damping="0.001" stiffness="0.2" springref="90"/>
        <geom type="cylinder" size="0.1 0.005"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="m" joint="elbow" gear="20" ctrlrange="-1 1"/></actuator>
</mujoco>)";

/// After 0.5 s, from MuJoCo 4.0.0, by tests/tools/mjcf_golden.py.
const std::map<std::string, double> kAfterHalfASecond = {
    {"shoulder_angle", 2.34529271}, {"shoulder_x_angle", 0.204311658},
    {"elbow_angle", -1.52618902},   {"slide_position", -0.0153418467},
    {"ball_q_w", 0.281376589},      {"ball_q_x", -0.519767119},
    {"ball_q_y", -0.560388595},     {"ball_q_z", 0.580201672},
    {"fly_x", 0.999953056},         {"fly_y", 2.00008368},
    {"fly_z", 1.77378208},          {"fly_q_w", 0.945654125},
    {"fly_q_x", 0.126458819},       {"fly_q_y", 0.145749105},
    {"fly_q_z", 0.261732003},       {"spin_angle", 0.308165238},
};

std::string changed(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

/// Of steps of order 2, two sizes extrapolated.
TEST_F(CliImportMjcf, MovesAsInMuJoCo) {
  const auto largest_error = [this](const std::string& model) {
    const CsvTable coarse = run(model, {"--duration", "0.5"});
    const CsvTable fine = run(model, {"--duration", "0.5", "--step", "0.0005"});
    double out = 0.0;
    for (const auto& [name, expected] : kAfterHalfASecond) {
      const std::size_t column = fine.column("robot." + name);
      const double own = (4 * fine.last()[column] - coarse.last()[column]) / 3;
      out = std::max(out, std::abs(own - expected));
    }
    return out;
  };
  EXPECT_LT(largest_error(kTrial), 3e-7);
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"density=\"300\"", "density=\"301\""},
           {"class=\"main\"", ""},
           {"eulerseq=\"xyz\"", "eulerseq=\"XYZ\""},
           {"armature=\"0.02\"", "armature=\"0.0201\""}}) {
    EXPECT_GT(largest_error(changed(kTrial, from, to)), 1e-5) << from;
  }
}

TEST_F(CliImportMjcf, TellsWhatItLeavesOut) {
  const ProcessResult plain = import(kTrial);
  EXPECT_TRUE(contains(plain.err, "joint \"elbow\": limits are not simulated: effort 20 N m"))
      << said(plain);
  EXPECT_FALSE(contains(plain.err, "contacts")) << said(plain);
  const std::string touching = changed(changed(kTrial, " contype=\"0\" conaffinity=\"0\"", ""),
                                       "<asset>", "<sensor/><contact/><asset>");
  const ProcessResult told = import(touching);
  EXPECT_EQ(told.exit_code, 0) << said(told);
  for (const char* const part :
       {"contacts of 9 geoms are left out", "<sensor> is left out", "<contact> is left out"})
    EXPECT_TRUE(contains(told.err, part)) << part << said(told);
}

/// What would move otherwise than in MuJoCo is refused by name, all at once.
TEST_F(CliImportMjcf, RefusesWhatWouldMoveOtherwise) {
  const ProcessResult result = import(R"(<mujoco>
  <compiler settotalmass="3" eulerseq="xyq"/>
  <option gravity="0 9.81 0" density="1.2"><flag spring="disable"/></option>
  <worldbody>
    <body name="a" gravcomp="1"><joint name="j" axis="0 0 0"/><geom type="mesh" mesh="m"/>
      <body name="b"><freejoint/><geom size="1"/></body>
      <body name="c"><joint type="ball" range="0 1"/><geom type="box" size="1 1"/></body>
      <body name="d"><joint name="j" type="screw"/><geom size="1" class="none"/></body>
      <frame/>
    </body>
  </worldbody>
  <actuator><position name="p" joint="jj"/><muscle joint="j"/></actuator>
  <equality/>
</mujoco>)");
  EXPECT_EQ(result.exit_code, 2);
  for (const char* const part :
       {"line 2, <compiler>: settotalmass is not read",
        "line 2, <compiler>: eulerseq must be three", "line 3, <option>: gravity must be along -z",
        "line 3, <option>: density of a medium", "line 3, <flag>: spring cannot be disabled",
        "line 5, <body> \"a\": gravcomp is not read",
        "line 5, <joint> \"j\": axis must not be 0 0 0", "line 5, <geom>: has the shape \"mesh\"",
        "line 6, <freejoint>: is free, which only a body of the world can be",
        "line 7, <joint>: range of a ball joint is not read",
        "line 7, <geom>: size of a box must be 3 numbers",
        "line 8, <joint> \"j\": the name is taken",
        "line 8, <joint> \"j\": \"screw\" is no type of joint",
        "line 8, <geom>: there is no default class \"none\"", "line 9, <frame>: is not read",
        "line 12, <position> \"p\": there is no joint \"jj\". Did you mean \"j\"?",
        "line 12, <muscle>: is not read: motor, position and velocity are",
        "line 13, <equality>: is not read"}) {
    EXPECT_TRUE(contains(result.err, part)) << part << "\n" << said(result);
  }
  EXPECT_TRUE(contains(import(kTrial, {"--free-base"}).err, "--free-base is for URDF"));
  EXPECT_TRUE(contains(import("<mujoco/>").err, "has no <body> in its <worldbody>"));
}

/// Nothing would come through a gear of 0, and gains below 0 push away.
TEST_F(CliImportMjcf, RefusesActuatorsThatCannotBe) {
  const auto robot = [](const std::string& actuator) {
    return "<mujoco><worldbody><body><joint name=\"j\"/><geom size=\"1\"/></body></worldbody>\n"
           "<actuator>" +
           actuator + "</actuator></mujoco>";
  };
  const auto error = [&](const std::string& actuator) { return import(robot(actuator)).err; };
  EXPECT_TRUE(contains(error("<motor name=\"m\" joint=\"j\" gear=\"0\"/>"),
                       "line 2, <motor> \"m\": gear must not begin with 0"));
  EXPECT_TRUE(contains(error("<position name=\"p\" joint=\"j\" kp=\"-3\"/>"),
                       "line 2, <position> \"p\": kp must be >= 0, got -3"));
  EXPECT_TRUE(contains(error("<velocity joint=\"j\" kv=\"3\" ctrlrange=\"1 2\"/>"),
                       "ctrlrange must not exclude 0: a speed to keep is not read"));
  EXPECT_TRUE(contains(error("<velocity name=\"v\" joint=\"j\" kv=\"-1\"/>"),
                       "line 2, <velocity> \"v\": kv must be >= 0, got -1"));
  EXPECT_TRUE(contains(error("<motor name=\"m\" joint=\"j\" forcerange=\"5 -5\"/>"),
                       "line 2, <motor> \"m\": forcerange must not fall, got \"5 -5\""));
  for (const char* const sound :
       {"<motor joint=\"j\" gear=\"-2\" forcerange=\"-5 5\"/>", "<position joint=\"j\" kp=\"0\"/>"})
    EXPECT_EQ(import(robot(sound)).exit_code, 0) << sound;
}

/// Upright at rest, with a servo at the cart: rounding alone moves it, and that is no motion to be resolved.
TEST_F(CliImportMjcf, RestCountsAsResolved) {
  const std::string at_rest = R"(<mujoco><compiler angle="radian"/><worldbody>
    <body name="cart"><joint name="s" type="slide" axis="1 0 0"/>
      <inertial pos="0 0 0" mass="1" diaginertia="0.1 0.1 0.1"/>
      <body name="pole"><joint name="h" axis="0 1 0"/>
        <inertial pos="0 0 0.5" mass="0.3" diaginertia="0.01 0.01 0.01"/></body>
    </body></worldbody>
    <actuator><position joint="s" kp="20" kv="5"/></actuator></mujoco>)";
  run(at_rest, {"--step", "0.01"});
  run(at_rest, {"--motors"});
}

/// A position servo is a spring towards its target, and of a velocity one a damper is left.
TEST_F(CliImportMjcf, ServosActAtTheirJoints) {
  const std::string model = R"(<mujoco model="servo"><option gravity="0 0 0"/>
  <default><position kp="40" kv="4"/></default>
  <worldbody>
    <body name="a"><joint name="j" type="slide" ref="1"/><geom type="sphere" size="0.1" mass="2"/></body>
  </worldbody>
  <actuator><position name="p" joint="j" gear="2" forcerange="-3 3"/></actuator></mujoco>)";
  auto made = scenario(model, {"--duration", "2"});
  const auto block = made["signals"]["blocks"][0];
  EXPECT_EQ(block["name"], "j_servo");
  EXPECT_EQ(block["proportional"], 160.0);
  EXPECT_EQ(block["derivative"], 16.0);
  EXPECT_EQ(block["maximum"], 6.0);
  // MuJoCo's coordinate is 1 as drawn, where ours is 0; its control is 0, or what is allowed beside it, over the gear.
  EXPECT_EQ(block["setpoint"], -1.0);
  const auto target_with = [&](const std::string& range) {
    std::string own = model;
    own.replace(own.find("forcerange"), 0, range + " ");
    return scenario(own)["signals"]["blocks"][0]["setpoint"].get<double>();
  };
  EXPECT_EQ(target_with("ctrlrange=\"1 3\""), -0.5);
  EXPECT_EQ(target_with("ctrlrange=\"1 3\" ctrllimited=\"false\""), -1.0);
  EXPECT_EQ(target_with("ctrlrange=\"-3 1\""), -1.0);
  // Of the range of the joint, 0.5 to 4.5 in MuJoCo's coordinate, half of it about its middle: 1.5 to 3.5.
  const auto inherited = [&](const std::string& limits) {
    std::string own = model;
    own.replace(own.find("forcerange"), 0, "inheritrange=\"0.5\" ");
    own.replace(own.find("ref="), 0, limits + " ");
    return scenario(own)["signals"]["blocks"][0]["setpoint"].get<double>();
  };
  EXPECT_EQ(inherited("range=\"0.5 4.5\""), -0.25);
  EXPECT_EQ(inherited(""), -1.0);
  EXPECT_TRUE(contains(import(model).err, "\"j\": its coordinate counts from ref = 1"));
  made["signals"]["blocks"][0]["setpoint"] = 0.02;
  const CsvTable table = run_scenario(made);
  // m x" = 160 (0.02 - x) - 16 x', twice the damping ratio being 16/sqrt(320): exp(-4 t), at 2 s well below 1e-4.
  EXPECT_NEAR(table.last()[table.column("robot.j_position")], 0.02, 1e-4);
  // With a motor the same controller sets volts.
  const auto driven = scenario(model, {"--motors"});
  EXPECT_FALSE(part(driven, "j_motor").is_null());
  EXPECT_EQ(driven["signals"]["blocks"][0]["maximum"], 48.0);
}

}  // namespace
}  // namespace portwave::test_cli_import_mjcf

#endif
