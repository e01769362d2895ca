// portwave import
#ifdef PORTWAVE_CLI

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/files/cli_process.hpp"
#include "support/files/source_folder.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"

namespace portwave::test_cli_import {
namespace {

using testing::contains;
using testing::portwave_cli;
using testing::ProcessResult;
using testing::read_text;
using testing::said;
using testing::TemporaryFolder;
using testing::Words;
using testing::operator+;

const std::string kRobot = testing::source_file("examples/robot.urdf");

class CliImport : public ::testing::Test {
 protected:
  void SetUp() override {
    if (contains(portwave_cli({"import", kRobot}).err, "built without tinyxml2")) {
      GTEST_SKIP() << "built without tinyxml2";
    }
  }

  ProcessResult import(const std::string& urdf, const Words& options = {}) {
    const std::string file = (folder_ / "robot.urdf").string();
    testing::write_text(file, urdf);
    return portwave_cli(Words{"import", file} + options);
  }
  std::string changed(const std::string& from, const std::string& to) {
    std::string text = read_text(kRobot);
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  }

  TemporaryFolder folder_;
};

TEST_F(CliImport, WritesScenariosThatRun) {
  for (const Words& options : {Words{}, Words{"--hold"}, Words{"--free-base"}, Words{"--no-limits"},
                               Words{"--motors", "--hold"}}) {
    const std::string file = (folder_ / "robot.json").string();
    const ProcessResult made = portwave_cli(Words{"import", kRobot, "--out", file} + options);
    ASSERT_EQ(made.exit_code, 0) << said(made);
    const bool keeps_speed = contains(made.err, "\"shoulder\": limits are not simulated");
    EXPECT_EQ(keeps_speed, options != Words({"--motors", "--hold"})) << said(made);
    const ProcessResult run = portwave_cli({"run", file, "--steps", "20"});
    EXPECT_EQ(run.exit_code, 0) << said(run);
    EXPECT_TRUE(contains(run.err, "holds")) << said(run);
  }
}

TEST_F(CliImport, MovesTheMassesOfTheFile) {
  const ProcessResult made = portwave_cli({"import", kRobot});
  const auto scenario = nlohmann::json::parse(made.out);
  const auto& given = scenario["subsystems"][0]["parameters"];
  EXPECT_EQ(given["names"], (nlohmann::json{"turn", "shoulder", "elbow", "wrist_roll",
                                            "wrist_pitch", "flange", "grip", "camera_mount"}));
  EXPECT_EQ(given["parents"], (nlohmann::json{0, 1, 2, 3, 4, 5, 6, 6}));
  EXPECT_EQ(given["joints"][0], "revolute");
  EXPECT_EQ(given["damping"][6], 20);
  EXPECT_EQ(given["turns_rad"][2], (nlohmann::json{0.0, 1.1, 0.0}));
  // rpy of the inertial frame turns its moments: by 0.1 about z, of which xx and yy are 0.095 and 0.094.
  const double c = std::cos(0.1), s = std::sin(0.1);
  EXPECT_NEAR(given["inertias_kgm2"][1][0].get<double>(), c * c * 0.095 + s * s * 0.094, 1e-15);
  EXPECT_NEAR(given["inertias_kgm2"][1][1].get<double>(), c * s * 0.001, 1e-15);
  EXPECT_NEAR(given["inertias_kgm2"][1][2].get<double>(), c * 0.002, 1e-15);
}

TEST_F(CliImport, HoldsTheArmWhereItStarts) {
  const std::string file = (folder_ / "robot.json").string();
  ASSERT_EQ(portwave_cli({"import", kRobot, "--hold", "--duration", "3", "--out", file}).exit_code,
            0);
  const auto last_angle = [&](const std::string& scenario) {
    const std::string out = (folder_ / "out").string();
    const ProcessResult run = portwave_cli({"run", scenario, "--out", out});
    EXPECT_EQ(run.exit_code, 0) << said(run);
    const std::string rows = read_text(folder_ / "out" / "trajectory.csv");
    const std::size_t line = rows.rfind('\n', rows.size() - 2) + 1;
    const std::string names = rows.substr(0, rows.find('\n'));
    std::size_t column = 0, at = 0;
    for (const std::size_t end = names.find("robot.shoulder_angle"); at < end; ++at)
      column += names[at] == ',';
    std::size_t from = line;
    for (std::size_t k = 0; k < column; ++k) from = rows.find(',', from) + 1;
    return std::stod(rows.substr(from));
  };
  EXPECT_NEAR(last_angle(file), 0.0, 1e-3);
  const std::string limp = (folder_ / "limp.json").string();
  ASSERT_EQ(portwave_cli({"import", kRobot, "--duration", "3", "--out", limp}).exit_code, 0);
  EXPECT_GT(std::abs(last_angle(limp)), 0.1);
}

TEST_F(CliImport, TellsEverythingThatIsWrongAtOnce) {
  const ProcessResult result = import(R"(<robot name="r">
  <link name="base"/>
  <link name="arm"><inertial><mass value="heavy"/><inertia ixx="1" iyy="1"/></inertial></link>
  <link name="arm"/>
  <joint name="a" type="hinge"><parent link="base"/><child link="arm"/></joint>
  <joint name="b" type="revolute"><parent link="base"/><axis xyz="1 0"/></joint>
  <joint name="c" type="planar"><parent link="base"/><child link="arm"/><mimic joint="a"/></joint>
  <joint name="d.e" type="revolute"><origin xyz="0 0 x"/><parent link="base"/><child link="arm"/></joint>
</robot>)");
  EXPECT_EQ(result.exit_code, 2);
  for (const char* const part :
       {"line 3, <mass>: value: \"heavy\" is not a number", "line 3, <inertia>: has no izz",
        "line 4, <link> \"arm\": the name is taken since line 3",
        "line 5, <joint> \"a\": \"hinge\" is no type", "line 6, <joint> \"b\": has no <child",
        "line 6, <axis>: xyz must be 3 numbers", "line 7, <joint> \"c\": is planar",
        "line 8, <joint> \"d.e\": a name must not have dots",
        "line 8, <origin>: xyz: \"x\" is not a number"}) {
    EXPECT_TRUE(contains(result.err, part)) << part << "\n" << said(result);
  }
  EXPECT_EQ(result.out, "");
}

TEST_F(CliImport, SaysOfAnEmptyFileThatItIsOne) {
  EXPECT_TRUE(contains(import("").err, "is empty: URDF has an element <robot>, MJCF one <mujoco>"));
  EXPECT_TRUE(contains(import(" \n").err, "is empty"));
}

TEST_F(CliImport, RefusesLimitsBelowZero) {
  const auto robot = [](const std::string& limit) {
    return "<robot name=\"r\"><link name=\"a\"/><link name=\"b\"><inertial><mass value=\"1\"/>"
           "<inertia ixx=\"1\" iyy=\"1\" izz=\"1\"/></inertial></link>\n"
           "<joint name=\"j\" type=\"revolute\"><parent link=\"a\"/><child link=\"b\"/>\n<limit " +
           limit + "/></joint></robot>";
  };
  EXPECT_TRUE(contains(import(robot("effort=\"-1\" velocity=\"2\"")).err,
                       "line 3, <limit>: effort must be >= 0, got -1"));
  EXPECT_TRUE(contains(import(robot("effort=\"1\" velocity=\"-2\"")).err,
                       "line 3, <limit>: velocity must be >= 0, got -2"));
  EXPECT_EQ(import(robot("effort=\"0\" velocity=\"0\"")).exit_code, 0);
}

TEST_F(CliImport, WantsOneTree) {
  const auto error = [this](const std::string& urdf) { return import(urdf).err; };
  const std::string unknown = error(changed("<child link=\"hand\"/>", "<child link=\"hend\"/>"));
  EXPECT_TRUE(
      contains(unknown, "<joint> \"flange\": there is no link \"hend\". Did you mean \"hand\"?"))
      << unknown;
  const std::string twice = error(changed("<child link=\"finger\"/>", "<child link=\"hand\"/>"));
  EXPECT_TRUE(contains(twice, "\"grip\": the link \"hand\" is the child of \"flange\" already"))
      << twice;
  const std::string loop = error(changed("<parent link=\"turret\"/>", "<parent link=\"finger\"/>"));
  EXPECT_TRUE(contains(loop, "is in a loop")) << loop;
  const std::string roots = error(changed("</robot>", "<link name=\"cup\"/></robot>"));
  EXPECT_TRUE(contains(roots, "<link> \"cup\": is no child of any joint")) << roots;
  const std::string xml = error("<robot name=\"r\">\n<link name=\"a\">\n</robot>");
  EXPECT_TRUE(contains(xml, "line 2: is no XML") || contains(xml, "line 3: is no XML")) << xml;
  EXPECT_TRUE(contains(error("<!-- nothing -->"), "robot.urdf: has no element"));
  EXPECT_TRUE(contains(error("<robot name=\"r\"><xacro:macro name=\"m\"/></robot>"),
                       "run xacro on the file"));
  EXPECT_TRUE(contains(error("<sdf/>"), "<robot> as its outermost element"));
}

/// What the part finds is told of the joint of the file.
TEST_F(CliImport, NamesTheJointThatNothingHangsOn) {
  const ProcessResult result = import(
      "<robot name=\"r\"><link name=\"base\"/><link name=\"arm\"/>\n"
      "<joint name=\"a\" type=\"continuous\"><parent link=\"base\"/><child "
      "link=\"arm\"/></joint></robot>");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(contains(result.err, "line 2, <joint> \"a\": nothing that the joint"))
      << said(result);
  const ProcessResult beyond_a_mount = import(
      "<robot name=\"r\"><link name=\"base\"/><link name=\"post\"/><link name=\"arm\"/>\n"
      "<joint name=\"mount\" type=\"fixed\"><parent link=\"base\"/><child link=\"post\"/></joint>\n"
      "<joint name=\"a\" type=\"continuous\"><parent link=\"post\"/><child "
      "link=\"arm\"/></joint></robot>");
  EXPECT_TRUE(contains(beyond_a_mount.err, "line 3, <joint> \"a\": nothing that the joint"))
      << said(beyond_a_mount);
}

}  // namespace
}  // namespace portwave::test_cli_import

#endif
