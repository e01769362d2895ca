// Plugins on the command line.
#ifdef PORTWAVE_CLI

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plugins/plugin_files.hpp"
#include "support/cli_process.hpp"
#include "support/schema_checker.hpp"

namespace portwave {
namespace {

using testing::built_plugin;
using testing::contains;
using testing::PluginFolder;
using testing::portwave_cli;
using testing::ProcessResult;
using testing::said;
using testing::solenoid_scenario;
using testing::Words;
using testing::operator+;

TEST(PluginCli, RunsAScenarioOnlyIfAllowedTo) {
  const PluginFolder folder;
  std::filesystem::copy_file(built_plugin("solenoid"), folder.path() / "libmy.so");
  const std::string file = folder.write("s.json", solenoid_scenario("[\"./libmy.so\"]"));
  for (const Words& line : {Words{"run", file}, Words{"validate", file}, Words{"tune", file},
                            Words{"study", "budget", file}, Words{"study", "scaling", file},
                            Words{"study", "order", file, "--steps", "1e-5"}}) {
    const ProcessResult refused = portwave_cli(line);
    EXPECT_EQ(refused.exit_code, 2) << said(refused);
    EXPECT_TRUE(contains(refused.err, "/plugins: plugins are code")) << said(refused);
    EXPECT_TRUE(contains(refused.err, "1 error; nothing was run")) << said(refused);
  }
  const std::string plugin = folder.path() / "libmy.so";
  for (const Words& words : {Words{"--allow-plugins"}, Words{"--plugin", plugin}}) {
    const ProcessResult run =
        portwave_cli(Words{"run", file, "--steps", "100", "--strict"} + words);
    EXPECT_EQ(run.exit_code, 0) << said(run);
    const ProcessResult valid = portwave_cli(Words{"validate", file} + words);
    EXPECT_EQ(valid.exit_code, 0) << said(valid);
  }
}

TEST(PluginCli, APluginWithItsOwnCopyOfPortwaveGivesTheSame) {
  const PluginFolder folder;
  std::string trajectories[3];
  int i = 0;
  for (const char* name : {"solenoid", "solenoid_linked", "solenoid_with_copy"}) {
    const std::string file =
        folder.write("s.json", solenoid_scenario("[\"" + built_plugin(name).string() + "\"]"));
    const std::string out = folder.path() / name;
    const ProcessResult run = portwave_cli(
        {"run", file, "--allow-plugins", "--allow-outside-files", "--steps", "1500", "--out", out});
    ASSERT_EQ(run.exit_code, 0) << said(run);
    trajectories[i++] = testing::read_text(std::filesystem::path(out) / "trajectory.csv");
  }
  EXPECT_GT(trajectories[0].size(), 1000U);
  EXPECT_EQ(trajectories[0], trajectories[1]);
  EXPECT_EQ(trajectories[0], trajectories[2]);
}

TEST(PluginCli, ListsAndDescribesTypes) {
  const std::string plugin = built_plugin("solenoid");
  const ProcessResult one = portwave_cli({"list", "solenoid", "--plugin", plugin});
  EXPECT_EQ(one.exit_code, 0) << said(one);
  EXPECT_TRUE(contains(one.out, "armature   effort_in  translation")) << said(one);
  const ProcessResult all = portwave_cli({"list", "--plugin", plugin});
  EXPECT_TRUE(contains(all.out, "  solenoid  ")) << said(all);
  EXPECT_TRUE(contains(all.err, "From plugins: solenoid.")) << said(all);
  const ProcessResult page = portwave_cli({"list", "solenoid", "--markdown", "--plugin", plugin});
  EXPECT_TRUE(contains(page.out, "### solenoid")) << said(page);
  EXPECT_EQ(portwave_cli({"list", "solenoid"}).exit_code, 2);

  // A schema that knows the type checks its parameters.
  const ProcessResult schema = portwave_cli({"schema", "--plugin", plugin});
  ASSERT_EQ(schema.exit_code, 0) << said(schema);
  const testing::SchemaChecker checker(nlohmann::ordered_json::parse(schema.out));
  auto scenario = nlohmann::json::parse(solenoid_scenario("[\"a.so\"]"));
  EXPECT_TRUE(checker.accepts(scenario.dump()));
  scenario["subsystems"][1]["parameters"]["turns"] = -1;
  EXPECT_FALSE(checker.accepts(scenario.dump()));
}

TEST(PluginCli, TellsAllThatIsWrongWithPlugins) {
  const PluginFolder folder;
  const std::string text = folder.write("text.so", "?");
  const std::string none = folder.path() / "none.so";
  const ProcessResult result = portwave_cli({"list", "--plugin", none, "--plugin", text, "--plugin",
                                             folder.copy_of_faulty("takes_names").string()});
  EXPECT_EQ(result.exit_code, 2) << said(result);
  EXPECT_TRUE(contains(result.err, "plugin \"" + none + "\" cannot be opened")) << said(result);
  EXPECT_TRUE(contains(result.err, "plugin \"" + text + "\" is not a shared")) << said(result);
  EXPECT_TRUE(contains(result.err, "type /mass/name: there is a type \"mass\" already"))
      << said(result);
  EXPECT_EQ(result.out, "");
  const ProcessResult empty = portwave_cli({"list", "--plugin", ""});
  EXPECT_EQ(empty.exit_code, 2);
  EXPECT_TRUE(contains(empty.err, "--plugin: needs a file")) << said(empty);
}

}  // namespace
}  // namespace portwave

#endif
