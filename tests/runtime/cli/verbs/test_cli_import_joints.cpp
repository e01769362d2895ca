// portwave import: what it joins to the joints of a robot
#ifdef PORTWAVE_CLI

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/files/source_folder.hpp"
#include "support/systems/imported_robot.hpp"

namespace portwave::test_cli_import_joints {
namespace {

using testing::contains;
using testing::CsvTable;
using testing::ImportedRobot;
using testing::ProcessResult;
using testing::said;
using testing::Words;

using CliImportJoints = ImportedRobot;

constexpr double kGravity = 9.81;

/// A rod of 1 m and 2 kg that hangs on a joint about y, 0 where it points along x.
std::string rod(const std::string& joint, const std::string& more = "",
                const std::string& type = "revolute") {
  return fmt::format(R"(<robot name="rod"><link name="base"/>
<link name="rod"><inertial><origin xyz="0.5 0 0"/><mass value="2"/>
  <inertia ixx="0.001" ixy="0" ixz="0" iyy="0.16666666666666666" iyz="0" izz="0.16666666666666666"/></inertial></link>
<joint name="hinge" type="{}"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>{}</joint>
{}</robot>)",
                     type, joint, more);
}
constexpr double kRodInertia = 0.16666666666666666 + 2 * 0.25;

/// Two equal sliders along x, where gravity does nothing; the second follows the first one.
std::string sliders(const std::string& first, const std::string& second,
                    const std::string& types = "prismatic") {
  return fmt::format(R"(<robot name="sliders"><link name="base"/>
<link name="a"><inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
<link name="b"><inertial><mass value="3"/><inertia ixx="0.5" iyy="0.5" izz="0.5"/></inertial></link>
<joint name="first" type="prismatic"><parent link="base"/><child link="a"/>{}</joint>
<joint name="second" type="{}"><parent link="base"/><child link="b"/>{}</joint></robot>)",
                     first, types, second);
}

double largest(const CsvTable& table, const std::string& name) {
  const std::size_t column = table.column(name);
  double out = -1e300;
  for (const auto& row : table.rows) out = std::max(out, row[column]);
  return out;
}

double largest_difference(const CsvTable& a, const CsvTable& b, const std::string& name) {
  EXPECT_EQ(a.rows.size(), b.rows.size());
  const std::size_t i = a.column(name), j = b.column(name);
  double out = 0.0;
  for (std::size_t k = 0; k < std::min(a.rows.size(), b.rows.size()); ++k)
    out = std::max(out, std::abs(a.rows[k][i] - b.rows[k][j]));
  return out;
}

TEST_F(CliImportJoints, StopsKeepAJointInItsRange) {
  const std::string robot = rod("<limit lower=\"-1\" upper=\"0.8\"/>");
  const CsvTable stopped = run(robot, {"--duration", "2"});
  const double reached = largest(stopped, "robot.hinge_angle");
  EXPECT_GT(reached, 0.8);
  EXPECT_LT(reached, 0.85);
  EXPECT_LT(stopped.last()[stopped.column("robot.hinge_angle")], 0.85);
  // Without stops the rod swings through: the control.
  EXPECT_GT(largest(run(robot, {"--no-limits", "--duration", "2"}), "robot.hinge_angle"), 3.0);
}

/// k = I (pi/T)^2 of a bounce of time T: half a period of a spring.
TEST_F(CliImportJoints, ABounceTakesTheTimeThatIsTold) {
  const std::string robot = rod("<limit lower=\"-1\" upper=\"0.8\" velocity=\"50\"/>");
  for (const double time_s : {0.02, 0.05}) {
    const CsvTable table =
        run(robot, {"--duration", "1", "--stop-time", fmt::format("{}", time_s)});
    const std::size_t angle = table.column("robot.hinge_angle");
    int steps = 0;
    for (const auto& row : table.rows) {
      if (row[angle] > 0.8)
        ++steps;
      else if (steps > 0)
        break;
    }
    EXPECT_NEAR(steps * 0.001, time_s, 0.08 * time_s) << time_s;
  }
}

TEST_F(CliImportJoints, WithinItsRangeARobotMovesAsWithoutLimits) {
  const auto ranged = [](double lower, double upper) {
    return rod(
        fmt::format("<limit lower=\"{}\" upper=\"{}\"/><dynamics damping=\"0.3\"/>", lower, upper));
  };
  const CsvTable free = run(ranged(-1, 4), {"--no-limits", "--duration", "2"});
  const CsvTable ranged_run = run(ranged(-1, 4), {"--duration", "2"});
  EXPECT_LT(largest_difference(ranged_run, free, "robot.hinge_angle"), 1e-8);
  EXPECT_GT(largest_difference(run(ranged(-1, 2), {"--duration", "2"}), free, "robot.hinge_angle"),
            0.1);
}

/// Its stop gives way until it carries the weight: I (pi/T)^2 times the way.
TEST_F(CliImportJoints, StopsCarryTheWeight) {
  const CsvTable resting =
      run(rod("<limit lower=\"-1\" upper=\"0\"/><dynamics damping=\"2\"/>"), {"--duration", "4"});
  const double omega = std::numbers::pi / 0.02;
  const double way = 2 * kGravity * 0.5 / (kRodInertia * omega * omega);
  EXPECT_NEAR(resting.last()[resting.column("robot.hinge_angle")], way, 1e-3 * way);
}

TEST_F(CliImportJoints, StartsInsideItsRange) {
  const auto made = scenario(rod("<limit lower=\"0.3\" upper=\"0.8\"/>"));
  EXPECT_EQ(part(made, "robot")["initial_state"]["hinge_angle"], 0.31);
  EXPECT_NEAR(part(made, "hinge_stops")["initial_state"]["approach"].get<double>(), 0.24, 1e-15);
  EXPECT_TRUE(contains(import(rod("<limit lower=\"0.3\" upper=\"0.8\"/>")).err,
                       "joint \"hinge\" starts at 0.31 rad: 0 is out of its range"));
}

TEST_F(CliImportJoints, TellsInertiaThatNoBodyHas) {
  std::string odd = rod("");
  const std::string own = "izz=\"0.16666666666666666\"";
  odd.replace(odd.find(own), own.size(), "izz=\"0.2\"");
  const ProcessResult told = import(odd);
  EXPECT_EQ(told.exit_code, 0);
  EXPECT_TRUE(contains(told.err, "link \"rod\": no body has its moments of inertia")) << said(told);
  EXPECT_FALSE(contains(import(rod("")).err, "no body has"));
}

/// As macros write them, which give all joints the same.
TEST_F(CliImportJoints, DampersOfFixedJointsDoNothing) {
  const std::string dampers = "<dynamics damping=\"0.3\" friction=\"0.1\"/>";
  const auto made = scenario(rod(dampers,
                                 "<link name=\"tip\"/><joint name=\"end\" type=\"fixed\"><parent "
                                 "link=\"rod\"/><child link=\"tip\"/>" +
                                     dampers + "</joint>"));
  const Words joints = part(made, "robot")["parameters"]["names"];
  const std::vector<double> damping = part(made, "robot")["parameters"]["damping"];
  ASSERT_EQ(joints.size(), damping.size());
  for (std::size_t k = 0; k < joints.size(); ++k) {
    EXPECT_EQ(damping[k], joints[k] == "hinge" ? 0.3 : 0.0) << joints[k];
  }
}

TEST_F(CliImportJoints, RangesThatSayNothingGiveNoStops) {
  for (const char* const limit : {"<limit effort=\"3\"/>", "<limit lower=\"0\" upper=\"0\"/>"}) {
    EXPECT_TRUE(part(scenario(rod(limit)), "hinge_stops").is_null()) << limit;
  }
  const auto endless = scenario(rod("<limit lower=\"-1\" upper=\"1\"/>", "", "continuous"));
  EXPECT_TRUE(part(endless, "hinge_stops").is_null());
  EXPECT_FALSE(part(scenario(rod("<limit upper=\"1\"/>")), "hinge_stops").is_null());
}

/// Held by friction of more than the weight, the joint creeps; by less it swings until friction stops it.
TEST_F(CliImportJoints, DryFrictionHoldsWhatItCan) {
  const double weight = 2 * kGravity * 0.5;
  const auto rubbed = [&](double share) {
    const std::string robot =
        rod(fmt::format("<limit lower=\"-5\" upper=\"5\" velocity=\"2\"/>"
                        "<dynamics friction=\"{}\"/>",
                        share * weight));
    return run(robot, {"--duration", "1"});
  };
  // The creep speed is what friction changes in a step, and at 0.9 of its friction the rod creeps at atanh(0.9)
  // times that.
  const double creep = weight / 0.9 * 0.001 / kRodInertia;
  const CsvTable held = rubbed(1.0 / 0.9);
  EXPECT_NEAR(held.last()[held.column("robot.hinge_angle")], creep * std::atanh(0.9), 0.02 * creep);
  const CsvTable loose = rubbed(0.9);
  EXPECT_GT(loose.last()[loose.column("robot.hinge_angle")], 0.3);
}

TEST_F(CliImportJoints, MotorsStallAndIdleAtTheLimitsOfTheFile) {
  const std::string robot =
      rod("<limit effort=\"30\" velocity=\"4\"/>",
          "<transmission name=\"t\"><type>transmission_interface/SimpleTransmission</type>"
          "<joint name=\"hinge\"/><actuator "
          "name=\"m\"><mechanicalReduction>-80</mechanicalReduction></actuator>"
          "</transmission>");
  auto made = scenario(robot, {"--motors", "--duration", "3"});
  EXPECT_EQ(part(made, "hinge_gear")["parameters"]["ratio"], -80.0);
  const double volts = 48;
  const auto motor = part(made, "hinge_motor")["parameters"];
  const double k = motor["motor_constant_Vs_per_rad"], R = motor["resistance_ohm"];
  EXPECT_NEAR(80 * k * volts / R, 30, 0.01);
  EXPECT_NEAR(volts / (80 * k), 4, 0.001);
  // At its full voltage, without weight, and with the gear turned round: -4 rad/s within 4 digits of the resistance.
  made["subsystems"][0]["parameters"]["gravity_m_per_s2"] = 0;
  for (auto& own : made["subsystems"]) {
    if (own["name"] == "hinge_amplifier") own["inputs"]["effort"]["value"] = volts;
  }
  const CsvTable table = run_scenario(made);
  const std::size_t angle = table.column("robot.hinge_angle");
  const auto& rows = table.rows;
  const double speed = (rows.back()[angle] - rows[rows.size() - 101][angle]) / 0.1;
  EXPECT_NEAR(speed, -4, 0.004);
  EXPECT_NEAR(table.last()[table.column("hinge_motor.speed")], 320, 0.3);
  // Stalled from the start: 30 N m on the rod and the rotor, once the current has risen.
  const double inertia = kRodInertia + 6400 * motor["inertia_kgm2"].get<double>();
  const double at_start = (rows[6][angle] - 2 * rows[5][angle] + rows[4][angle]) / 1e-6;
  EXPECT_LT(std::abs(at_start), 30 / inertia);
  EXPECT_GT(std::abs(at_start), 0.8 * 30 / inertia);
}

TEST_F(CliImportJoints, TellsWhatItAssumesOfAMotor) {
  const ProcessResult made = import(rod("<limit effort=\"30\" velocity=\"4\"/>"), {"--motors"});
  EXPECT_TRUE(
      contains(made.err, "\"hinge\": the file says little of its motor; assumed: gear 100:1"))
      << said(made);
  EXPECT_FALSE(contains(made.err, "stalls")) << said(made);
  const ProcessResult bare = import(rod("", "", "continuous"), {"--motors"});
  // Twice g sqrt(m I), which no pose of the rod exceeds.
  const double stall = 2 * kGravity * std::sqrt(2 * kRodInertia);
  EXPECT_TRUE(contains(bare.err, fmt::format("idles at 3 rad/s, stalls at {:.4g} N m", stall)))
      << said(bare);
}

TEST_F(CliImportJoints, OnlyDrivenJointsHaveMotorsWhereTheFileSaysWhich) {
  const std::string robot = testing::read_text(testing::source_file("examples/robot.urdf"));
  const std::size_t end = robot.rfind("</robot>");
  const std::string driven =
      robot.substr(0, end) +
      "<transmission name=\"t\"><joint name=\"elbow\"/></transmission></robot>";
  const auto made = scenario(driven, {"--motors", "--hold"});
  EXPECT_FALSE(part(made, "elbow_motor").is_null());
  EXPECT_TRUE(part(made, "shoulder_motor").is_null());
  EXPECT_EQ(made["signals"]["blocks"].size(), 1u);
  EXPECT_TRUE(contains(import(driven, {"--motors"}).err, "joint \"shoulder\" has no motor"));
  const ProcessResult unknown =
      import(robot.substr(0, end) +
             "<transmission name=\"t\"><joint name=\"elbo\"/></transmission></robot>");
  EXPECT_TRUE(contains(unknown.err,
                       "<transmission> \"t\": there is no joint \"elbo\". Did you mean \"elbow\"?"))
      << said(unknown);
}

TEST_F(CliImportJoints, MotorsHoldTheExample) {
  const std::string robot = testing::read_text(testing::source_file("examples/robot.urdf"));
  const CsvTable held = run(robot, {"--motors", "--hold", "--duration", "2"});
  const CsvTable limp = run(robot, {"--motors", "--duration", "2"});
  for (const char* const state :
       {"robot.shoulder_angle", "robot.elbow_angle", "robot.wrist_pitch_angle"}) {
    EXPECT_NEAR(held.last()[held.column(state)], 0.0, 1e-3) << state;
  }
  EXPECT_GT(std::abs(limp.last()[limp.column("robot.elbow_angle")]), 0.1);
  // The gears do not slip: the rotor is 100 times as far.
  EXPECT_NEAR(limp.last()[limp.column("elbow_motor.angle")],
              100 * limp.last()[limp.column("robot.elbow_angle")], 1e-5);
}

/// Four ways to follow: turning or sliding, what turns or slides.
TEST_F(CliImportJoints, JointsFollowOthersExactly) {
  for (const char* const type : {"prismatic", "continuous"}) {
    const std::string robot =
        sliders("<limit effort=\"50\" velocity=\"1\"/>",
                "<mimic joint=\"first\" multiplier=\"-1.5\" offset=\"0.2\"/>", type);
    auto made = scenario(robot, {"--duration", "1"});
    const std::string second =
        std::string("second_") + (std::string(type) == "prismatic" ? "position" : "angle");
    EXPECT_EQ(part(made, "robot")["initial_state"][second], 0.2);
    EXPECT_TRUE(part(made, "second_motor").is_null());
    made["subsystems"][0]["inputs"]["first_force"] = {{"kind", "constant"}, {"value", 4.0}};
    const CsvTable table = run_scenario(made);
    const double x = table.last()[table.column("robot.first_position")];
    // 4 N on 2 kg and what moves 1.5 times as fast, in one second.
    const double moved = std::string(type) == "prismatic" ? 3.0 : 0.5;
    EXPECT_NEAR(x, 0.5 * 4.0 / (2.0 + 2.25 * moved), 1e-7) << type;
    EXPECT_NEAR(table.last()[table.column("robot." + second)], 0.2 - 1.5 * x, 1e-9) << type;
  }
}

/// A rod that follows its equal has half the weight for each, and one that is turned round balances it.
TEST_F(CliImportJoints, HingesFollowHingesAndSlides) {
  const auto pair = [](double multiplier) {
    const std::string one = rod("");
    std::string second = one.substr(one.find("<link name=\"rod\">"));
    second = second.substr(0, second.rfind("</robot>"));
    const auto replace = [&](const std::string& from, const std::string& to) {
      for (std::size_t at = 0; (at = second.find(from, at)) != std::string::npos; at += to.size())
        second.replace(at, from.size(), to);
    };
    replace("\"rod\"", "\"other\"");
    replace("\"hinge\"", "\"follower\"");
    replace("</joint>",
            fmt::format("<mimic joint=\"hinge\" multiplier=\"{}\"/></joint>", multiplier));
    return one.substr(0, one.rfind("</robot>")) + second + "</robot>";
  };
  const CsvTable alone = run(rod(""), {"--duration", "0.5"});
  const CsvTable alike = run(pair(1), {"--duration", "0.5"});
  EXPECT_LT(largest_difference(alike, alone, "robot.hinge_angle"), 1e-8);
  EXPECT_GT(largest(alone, "robot.hinge_angle"), 0.5);
  const CsvTable opposed = run_at_rest(pair(-1), {"--duration", "0.5"});
  EXPECT_LT(std::abs(largest(opposed, "robot.hinge_angle")), 1e-9);
  // A slider follows the hinge by 0.1 m/rad: what it adds to the inertia is 0.01 of its mass.
  const std::string slider =
      "<link name=\"b\"><inertial><mass value=\"50\"/><inertia ixx=\"1\" iyy=\"1\" "
      "izz=\"1\"/></inertial></link>"
      "<joint name=\"slide\" type=\"prismatic\"><parent link=\"base\"/><child link=\"b\"/>"
      "<mimic joint=\"hinge\" multiplier=\"0.1\"/></joint>";
  const CsvTable laden = run(rod("", slider), {"--duration", "0.1"});
  const double q = laden.last()[laden.column("robot.hinge_angle")];
  const double falls = 2 * kGravity * 0.5 / (kRodInertia + 0.5);
  EXPECT_NEAR(q, 0.5 * falls * 0.01, 2e-4 * q);
  EXPECT_NEAR(laden.last()[laden.column("robot.slide_position")], 0.1 * q, 1e-10);
}

/// A follower's stops and dry friction act on the joint that leads, as much as they do through the gear.
TEST_F(CliImportJoints, WhatStopsAFollowerStopsItsLeader) {
  const std::string mimic =
      "<mimic joint=\"first\" multiplier=\"-1.5\" offset=\"0.2\"/>"
      "<limit lower=\"-0.3\" upper=\"0.3\"/>";
  const std::string robot =
      sliders("<limit lower=\"-1\" upper=\"0.1\"/>", mimic + "<dynamics friction=\"0.6\"/>");
  auto made = scenario(robot, {"--duration", "2"});
  // From (0.3 - 0.2)/-1.5 to the first one's own 0.1 m.
  EXPECT_NEAR(part(made, "first_stops")["parameters"]["gap_m"].get<double>(), (0.1 + 0.1 / 1.5) / 2,
              1e-15);
  EXPECT_TRUE(part(made, "second_stops").is_null());
  const auto pushed = [&](double force) {
    made["subsystems"][0]["inputs"]["first_force"] = {{"kind", "constant"}, {"value", force}};
    const CsvTable table = run_scenario(made);
    return table.last()[table.column("robot.first_position")];
  };
  EXPECT_NEAR(pushed(-5), -0.1 / 1.5, 0.01);
  EXPECT_NEAR(pushed(0.6), 0.0, 2e-3);  // less than the 0.9 N of friction
  const ProcessResult stuck = import(sliders("<limit lower=\"0.5\" upper=\"1\"/>", mimic));
  EXPECT_EQ(stuck.exit_code, 2);
  EXPECT_TRUE(
      contains(stuck.err, "line 5, <joint> \"second\": its range leaves the joint \"first\""))
      << said(stuck);
}

TEST_F(CliImportJoints, TellsWhatIsWrongWithFollowers) {
  const auto error = [this](const std::string& first, const std::string& second) {
    return import(sliders(first, second)).err;
  };
  const auto follow = [](const char* joint, double multiplier = 1.0) {
    return fmt::format("<mimic joint=\"{}\" multiplier=\"{}\"/>", joint, multiplier);
  };
  EXPECT_TRUE(contains(
      error("", follow("firts")),
      "line 5, <joint> \"second\": follows the joint \"firts\", and there is none. Did you mean"))
      << error("", follow("firts"));
  const std::string loop = error(follow("second"), follow("first"));
  EXPECT_TRUE(contains(loop, "line 4, <joint> \"first\": follows itself in the end")) << loop;
  EXPECT_TRUE(contains(error("", follow("first", 0)), "line 5, <mimic>: multiplier must not be 0"));
  EXPECT_TRUE(contains(error("", "<dynamics friction=\"-1\"/>"),
                       "line 5, <dynamics>: friction must be >= 0, got -1"));
}

}  // namespace
}  // namespace portwave::test_cli_import_joints

#endif
