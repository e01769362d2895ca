// "plugins" in scenario files.

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <portwave/runtime/scenario/scenario.hpp>

#include "plugins/plugin_files.hpp"
#include "support/files/schema_checker.hpp"

namespace portwave {
namespace {

using Json = nlohmann::ordered_json;
using testing::built_plugin;
using testing::PluginFolder;
using testing::solenoid_scenario;

/// "pointer: text" of everything that is wrong.
std::vector<std::string> defects_of(const Json& scenario, Plugins plugins,
                                    const std::filesystem::path& folder = PORTWAVE_PLUGINS) {
  try {
    parse_scenario(scenario.dump(), "s.json", folder, {}, {}, plugins);
  } catch (const ScenarioError& error) {
    std::vector<std::string> lines;
    for (const Issue& issue : error.issues()) lines.push_back(issue.where + ": " + issue.what);
    return lines;
  }
  return {};
}

Json with_plugins(const Json& plugins) { return Json::parse(solenoid_scenario(plugins.dump())); }

/// A scenario of one part of that type.
Json scenario_of(const std::string& type, const Json& plugins) {
  return {{"name", "s"},
          {"plugins", plugins},
          {"time", {{"step_s", 0.01}, {"steps", 3}}},
          {"subsystems", {{{"name", "m"}, {"type", type}, {"parameters", {{"mass_kg", 1}}}}}},
          {"couplings", {{{"kind", "free"}, {"ports", {"m.port"}}}}},
          {"method", {{"kind", "auto"}}}};
}

TEST(PluginScenario, IsLoadedOnlyWhereThatIsAllowed) {
  const PluginFolder folder;
  folder.copy_of_faulty("guarded");
  const Json scenario = scenario_of("guarded", {"./guarded.so"});
  const auto refused = defects_of(scenario, Plugins::refused, folder.path());
  ASSERT_EQ(refused.size(), 1U) << "an unknown type may be the plugin's";
  EXPECT_TRUE(refused.front().starts_with("/plugins: plugins are code")) << refused.front();
  EXPECT_NE(refused.front().find("--allow-plugins"), std::string::npos);
  EXPECT_EQ(find_part_type("guarded"), nullptr);

  EXPECT_TRUE(defects_of(scenario, Plugins::allowed, folder.path()).empty());
  EXPECT_NE(find_part_type("guarded"), nullptr);
  // Whoever has loaded it has allowed it.
  EXPECT_TRUE(defects_of(scenario, Plugins::refused, folder.path()).empty());
}

TEST(PluginScenario, TypesComeToAssembliesToo) {
  const PluginFolder folder;
  folder.copy_of_faulty("in_assembly");
  Json scenario = scenario_of("in_assembly", {"in_assembly.so"});
  scenario["assemblies"] = {
      {"pair", {{"subsystems", scenario["subsystems"]}, {"couplings", scenario["couplings"]}}}};
  scenario["subsystems"] = {{{"name", "a"}, {"assembly", "pair"}}};
  scenario["couplings"] = Json::array();
  const auto defects = defects_of(scenario, Plugins::allowed, folder.path());
  EXPECT_TRUE(defects.empty()) << defects.front();
}

TEST(PluginScenario, TellsEverythingAtOnce) {
  const PluginFolder folder;
  folder.copy_of_faulty("throws");
  folder.copy_of_faulty("takes_names");
  folder.write("text.so", "?");
  folder.built_with("old", [](PluginBuild& build) {
    std::memcpy(build.portwave, "0.0.9", 6);
    build.eigen = 30300;
  });
  std::filesystem::create_symlink("throws.so", folder.path() / "link.so");
  Json scenario = scenario_of("of_some_plugin", {"none.so", "throws.so", "text.so", "./link.so", "",
                                                 7, "old.so", "takes_names.so"});
  scenario["time"]["steps"] = -1;
  scenario["subsystems"][0]["substeps"] = 0;
  const auto defects = defects_of(scenario, Plugins::allowed, folder.path());
  const std::vector<std::string> expected = {
      "/plugins/0: \"none.so\" cannot be opened: No such file or directory",
      "/plugins/1: \"throws.so\" failed in its entry: the licence has expired",
      "/plugins/2: \"text.so\" is not a shared library",
      "/plugins/3: \"./link.so\" is listed twice, first as /plugins/1",
      "/plugins/4: must not be empty",
      "/plugins/5: must be a string, got 7",
      "/plugins/6: \"old.so\" was built with portwave 0.0.9",
      "was built with Eigen 3.3.0",
      "/plugins/7: \"takes_names.so\": the type \"mass\", /name: there is a type \"mass\" "
      "already\n",
      "the type \"twice\": is there twice",
      "/time/steps: ",
      "/subsystems/0/substeps: "};
  for (const std::string& text : expected) {
    EXPECT_TRUE(std::any_of(defects.begin(), defects.end(), [&](const std::string& line) {
      return text[0] == '/' ? line.starts_with(text) : line.find(text) != std::string::npos;
    })) << text;
  }
  EXPECT_EQ(defects.size(), 10U) << "and nothing of the type that some plugin may have";
}

TEST(PluginScenario, UnknownTypesAreDefectsWhereAllPluginsAreThere) {
  const PluginFolder folder;
  folder.copy_of_faulty("present");
  const auto defects =
      defects_of(scenario_of("presnt", {"present.so"}), Plugins::allowed, folder.path());
  ASSERT_EQ(defects.size(), 1U);
  EXPECT_TRUE(defects.front().starts_with("/subsystems/0/type: must be one of"));
  EXPECT_NE(defects.front().find("Did you mean \"present\"?"), std::string::npos);
}

TEST(PluginScenario, PartsThatCannotBeBuiltAreTold) {
  const PluginFolder folder;
  folder.copy_of_faulty("builds_nothing");
  const auto defects = defects_of(scenario_of("builds_nothing", {"builds_nothing.so"}),
                                  Plugins::allowed, folder.path());
  ASSERT_EQ(defects.size(), 1U);
  EXPECT_NE(defects.front().find("built nothing"), std::string::npos) << defects.front();
}

TEST(PluginScenario, TheKeyMustBeAListOfFiles) {
  for (const Json& plugins : {Json("a.so"), Json::array(), Json::object(), Json()}) {
    const auto defects = defects_of(with_plugins(plugins), Plugins::allowed);
    ASSERT_FALSE(defects.empty()) << plugins;
    EXPECT_TRUE(defects.front().starts_with("/plugins: must be an array of at least one file"))
        << defects.front();
  }
}

TEST(PluginSchema, IsOpenForTypesOfPlugins) {
  Json names = Json::array();
  const testing::SchemaChecker schema(scenario_schema());
  Json scenario = scenario_of("of_some_plugin", {"some.so"});
  EXPECT_TRUE(schema.accepts(scenario.dump()));
  Json wrong = scenario;
  wrong["subsystems"][0]["parameter"] = Json::object();
  EXPECT_FALSE(schema.accepts(wrong.dump())) << "an unknown key";
  wrong = scenario_of("mass", {"some.so"});
  EXPECT_TRUE(schema.accepts(wrong.dump()));
  wrong["subsystems"][0]["parameters"]["mass_kg"] = -1;
  EXPECT_FALSE(schema.accepts(wrong.dump())) << "types that are known are checked";
  scenario.erase("plugins");
  EXPECT_FALSE(schema.accepts(scenario.dump())) << "without plugins there are no other types";
  for (const Json& plugins : {Json("a.so"), Json::array(), Json{""}, Json{"a.so", "a.so"}}) {
    EXPECT_FALSE(schema.accepts(scenario_of("mass", plugins).dump())) << plugins;
  }
}

}  // namespace
}  // namespace portwave
