// Loading a plugin: what it brings, and everything that keeps it from being loaded. Types stay in the
// catalogue, so each test takes names of its own.

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/runtime/scenario/plugins.hpp>
#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/runtime/step/stepper.hpp>

#include "examples/plugin/solenoid.hpp"
#include "plugins/plugin_files.hpp"

namespace portwave {
namespace {

using testing::built_plugin;
using testing::PluginFolder;

/// All that is wrong with a plugin, a line each; "" if it was loaded.
std::string problem_of(const std::filesystem::path& file) {
  try {
    load_plugin(file);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

/// The library that has the code of an object with virtual functions.
std::string library_of(const Component& part) {
  const void* table = nullptr;
  std::memcpy(&table, &part, sizeof(table));
  Dl_info info = {};
  return ::dladdr(table, &info) != 0 ? info.dli_fname : "";
}

TEST(LoadPlugin, BringsItsTypesOnce) {
  const LoadedPlugin& plugin = load_plugin(built_plugin("solenoid"));
  EXPECT_EQ(plugin.types, std::vector<std::string>{"solenoid"});
  EXPECT_EQ(plugin.file, std::filesystem::canonical(built_plugin("solenoid")));
  const PartType* const type = find_part_type("solenoid");
  ASSERT_NE(type, nullptr);
  const std::size_t before = catalogue().size();
  EXPECT_EQ(&load_plugin(built_plugin("solenoid")), &plugin);

  const PluginFolder folder;
  std::filesystem::create_symlink(built_plugin("solenoid"), folder.path() / "link.so");
  EXPECT_EQ(&load_plugin(folder.path() / "link.so"), &plugin);
  EXPECT_EQ(catalogue().size(), before);
  EXPECT_EQ(find_part_type("solenoid"), type);
}

TEST(LoadPlugin, PartsRunAsThoseOfTheProgramBitByBit) {
  load_plugin(built_plugin("solenoid"));
  if (find_part_type("solenoid_here") == nullptr) {
    PartType here = solenoid_type();
    here.name = "solenoid_here";
    Catalogue::add(std::move(here));
  }
  // They are not the same code.
  const auto there = make_part("solenoid", solenoid_type().example);
  const auto here = make_part("solenoid_here", solenoid_type().example);
  EXPECT_NE(library_of(*there), library_of(*here));
  EXPECT_NE(library_of(*there).find("solenoid.so"), std::string::npos) << library_of(*there);

  const auto scenario_with = [](const std::string& type) {
    return parse_scenario(testing::solenoid_scenario("[\"solenoid.so\"]"), "s.json",
                          PORTWAVE_PLUGINS,
                          {{"/subsystems/1/type", type}, {"/method/stages", "2"}});
  };
  const Scenario plugin = scenario_with("solenoid"), program = scenario_with("solenoid_here");
  Stepper one(plugin.system, plugin.options), other(program.system, program.options);
  double furthest = 0.0;
  for (int n = 0; n < 2000; ++n) {
    one.step();
    other.step();
    for (std::size_t i = 0; i < 3; ++i)
      ASSERT_EQ(one.state("coil")[i], other.state("coil")[i]) << n;
    furthest = std::max(furthest, one.state("coil")[1]);
  }
  EXPECT_GT(furthest, 0.004) << "the armature must have reached its stop";
  EXPECT_EQ(one.energy().final_J, other.energy().final_J);
  EXPECT_EQ(one.certificate().status, CertificateStatus::holds);
}

TEST(LoadPlugin, ExceptionsCrossTheBorderBothWays) {
  const PluginFolder folder;
  EXPECT_EQ(problem_of(folder.copy_of_faulty("catches")),
            "failed in its entry: caught: /mass_kg: must be > 0 kg, got -1");
  EXPECT_EQ(problem_of(folder.copy_of_faulty("throws")),
            "failed in its entry: the licence has expired");
  EXPECT_EQ(problem_of(folder.copy_of_faulty("throws_config")),
            "failed in its entry: /a: is wrong\n/b: is wrong too");
  EXPECT_EQ(problem_of(folder.copy_of_faulty("throws_number")),
            "failed in its entry with an exception that is no std::exception");
}

TEST(LoadPlugin, RefusesTypesWithDefectsAltogether) {
  const PluginFolder folder;
  const std::size_t before = catalogue().size();
  const std::string problem = problem_of(folder.copy_of_faulty("takes_names"));
  for (const char* says : {"/mass/name: there is a type \"mass\" already", "/twice: is there twice",
                           "/no_build/build: ", "/bad name/name: "}) {
    EXPECT_NE(problem.find(says), std::string::npos) << says << "\n" << problem;
  }
  EXPECT_EQ(catalogue().size(), before) << "all or none";
  EXPECT_EQ(problem_of(folder.copy_of_faulty("adds_nothing")), "adds no type");
}

TEST(LoadPlugin, SaysWhichPluginHasTakenAName) {
  const PluginFolder folder, other;
  const std::filesystem::path first = folder.copy_of_faulty("contested");
  EXPECT_EQ(problem_of(first), "");
  EXPECT_EQ(problem_of(other.copy_of_faulty("contested")),
            "/contested/name: there is a type \"contested\" already, from the plugin \"" +
                std::filesystem::canonical(first).string() + "\"");
}

TEST(LoadPlugin, NoticesThatItHasChanged) {
  const PluginFolder folder;
  const std::filesystem::path file = folder.copy_of_faulty("changing");
  EXPECT_EQ(problem_of(file), "");
  EXPECT_EQ(problem_of(file), "");
  std::filesystem::rename(folder.copy_of_faulty("new"), file);
  EXPECT_NE(problem_of(file).find("has changed since this program loaded it"), std::string::npos)
      << problem_of(file);
}

TEST(LoadPlugin, SaysWhatAFileIsThatIsNoPlugin) {
  const PluginFolder folder;
  EXPECT_EQ(problem_of(folder.path() / "none.so"), "cannot be opened: No such file or directory");
  EXPECT_EQ(problem_of(folder.path()), "is a folder, not a file");
  EXPECT_EQ(problem_of(folder.write("text.so", "no library\n")), "is not a shared library");
  EXPECT_EQ(problem_of(folder.write("empty.so", "")), "is not a shared library");
  EXPECT_EQ(problem_of(folder.write("archive.so", "!<arch>\n...")).substr(0, 20),
            "is a static library,");
  EXPECT_EQ(problem_of(built_plugin("no_entry")).substr(0, 34),
            "is a shared library, but no plugin");
  EXPECT_NE(problem_of(built_plugin("later_entry"))
                .find("another generation of portwave: it has portwave_plugin_build_v9"),
            std::string::npos)
      << problem_of(built_plugin("later_entry"));
}

TEST(LoadPlugin, SaysThatAFileMayNotBeRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const PluginFolder folder;
  const std::filesystem::path secret = folder.copy_of_faulty("secret");
  std::filesystem::permissions(secret, std::filesystem::perms::none);
  EXPECT_EQ(problem_of(secret), "cannot be opened: Permission denied");
}

TEST(LoadPlugin, NamesSymbolsThatAreNowhere) {
  const std::string own = problem_of(built_plugin("undefined"));
  EXPECT_NE(own.find("it uses portwave::type_that_is_nowhere(int), which is nowhere"),
            std::string::npos)
      << own;
  EXPECT_NE(own.find("portwave::subsystems"), std::string::npos) << own;
  const std::string foreign = problem_of(built_plugin("undefined_foreign"));
  EXPECT_NE(foreign.find("it uses foreign_function_that_is_nowhere, which is nowhere"),
            std::string::npos)
      << foreign;
  EXPECT_NE(foreign.find("Link the plugin"), std::string::npos) << foreign;
}

constexpr const char* kHasRun = "PORTWAVE_TEST_PLUGIN_HAS_RUN";

TEST(LoadPlugin, RunsNothingOfWhatWasBuiltOtherwise) {
  const PluginFolder folder;
  ::unsetenv(kHasRun);
  EXPECT_EQ(problem_of(folder.built_with("old",
                                         [](PluginBuild& build) {
                                           std::memcpy(build.portwave, "0.0.9", 6);
                                           build.eigen_alignment = 128;
                                           build.sanitizers |= 4;
                                         })),
            "was built with portwave 0.0.9, this program with portwave " + std::string(kVersion) +
                "\nwas built with Eigen objects aligned to 128 bytes, this program with " +
                std::to_string(plugin_build().eigen_alignment) +
                " (options such as -march=native change that)"
                "\nwas built with the memory sanitizer, and this program was not");
  EXPECT_NE(problem_of(folder.built_with("other", [](PluginBuild& build) { build.layout ^= 1; }))
                .find("headers of portwave"),
            std::string::npos);
  EXPECT_EQ(std::getenv(kHasRun), nullptr);
  // The control: a library that is loaded does run.
  EXPECT_EQ(problem_of(folder.copy_of_faulty("runs")), "");
  EXPECT_NE(std::getenv(kHasRun), nullptr);
}

}  // namespace
}  // namespace portwave
