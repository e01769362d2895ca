// Plugins on the command line.
#ifdef PORTWAVE_CLI

#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <portwave/runtime/output/checkpoint.hpp>

#include "plugins/plugin_files.hpp"
#include "support/files/cli_process.hpp"
#include "support/files/schema_checker.hpp"
#include "support/files/text_file.hpp"

namespace portwave {
namespace {

using Json = nlohmann::json;
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

/// A run that uses a plugin, stopped after its first checkpoints.
struct StoppedPluginRun {
  explicit StoppedPluginRun(const Words& allowed) {
    std::filesystem::copy_file(built_plugin("solenoid"), plugin);
    Json scenario = Json::parse(solenoid_scenario("[\"./libmy.so\"]"));
    if (allowed.front() == "--plugin") scenario.erase("plugins");
    const std::string file = folder.write("s.json", scenario.dump());
    testing::Subprocess process(testing::command(
        Words{"run", file, "--steps", "200000", "--out", out, "--checkpoint-every", "20"} +
        allowed));
    while (!std::filesystem::exists(out / "checkpoint/before.checkpoint") && !process.has_ended()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    process.send(SIGTERM);
    stopped = process.wait();
    // What is left to be done is short.
    change([](Json& record) { record["arguments"]["steps"] = 2000; });
  }
  void change(const std::function<void(Json&)>& act) const {
    const std::filesystem::path last = out / "checkpoint/last.checkpoint";
    const std::string bytes = testing::read_text(last);
    Checkpoint checkpoint = Checkpoint::from_bytes(std::as_bytes(std::span(bytes)));
    Json record = Json::parse(checkpoint.run);
    act(record);
    checkpoint.run = record.dump();
    const std::vector<std::byte> other = checkpoint.to_bytes();
    testing::write_text(last,
                        std::string(reinterpret_cast<const char*>(other.data()), other.size()));
  }
  ProcessResult go_on(const Words& allowed) const {
    return portwave_cli(Words{"run", "--resume", out} + allowed);
  }

  PluginFolder folder;
  std::filesystem::path out = folder.path() / "out", plugin = folder.path() / "libmy.so";
  ProcessResult stopped;
};

TEST(PluginCli, RunsAreGoneOnWithOnlyIfPluginsAreAllowedAnew) {
  const std::string plugin = built_plugin("solenoid").string();
  // One that the scenario names lies in its folder, which is not that of the results.
  const std::pair<Words, Words> ways[] = {
      {{"--plugin", plugin}, {"--plugin", plugin}},
      {{"--allow-plugins"}, {"--allow-plugins", "--allow-outside-files"}}};
  for (const auto& [begun, allowed] : ways) {
    const StoppedPluginRun run(begun);
    ASSERT_EQ(run.stopped.exit_code, 128 + SIGTERM) << said(run.stopped);
    const std::string flags = allowed[0] + " " + allowed[1];
    EXPECT_TRUE(contains(run.stopped.err, flags)) << said(run.stopped);
    const ProcessResult refused = run.go_on({});
    EXPECT_EQ(refused.exit_code, 2) << said(refused);
    EXPECT_TRUE(contains(refused.err, begun.front())) << said(refused);
    const ProcessResult on = run.go_on(allowed);
    EXPECT_EQ(on.exit_code, 0) << said(on);
  }
}

// Checkpoints that were made up: what they name does not run, whatever they say of permissions.
TEST(PluginCli, NoCheckpointHasCodeRun) {
  const PluginFolder folder;
  const std::filesystem::path plugin = folder.path() / "leaves_a_mark.so",
                              mark = folder.path() / "leaves_a_mark.so.mark";
  std::filesystem::copy_file(built_plugin("leaves_a_mark"), plugin);
  StoppedPluginRun run(Words{"--allow-plugins"});
  const std::pair<const char*, std::function<void(Json&)>> changes[] = {
      {"of the line", [&](Json& record) { record["arguments"]["plugins"] = {plugin.string()}; }},
      {"of the scenario",
       [&](Json& record) {
         record["arguments"]["plugins"] = Json::array();
         Json scenario = Json::parse(record["text"].get<std::string>());
         scenario["plugins"] = {plugin.string()};
         record["text"] = scenario.dump();
       }},
      {"by --set", [&](Json& record) {
         record["arguments"]["overrides"] =
             Json::array({Json::array({"/plugins", "[\"" + plugin.string() + "\"]"})});
       }}};
  for (const auto& [name, change] : changes) {
    run.change([&](Json& record) {
      change(record);
      record["arguments"]["allow_plugins"] = true;
      record["arguments"]["allow_outside_files"] = true;
    });
    const ProcessResult result = run.go_on({});
    EXPECT_EQ(result.exit_code, 2) << name << '\n' << said(result);
    EXPECT_FALSE(std::filesystem::exists(mark)) << name;
  }
  // The control: where it is allowed it runs.
  EXPECT_EQ(portwave_cli({"list", "--plugin", plugin}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(mark));
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
