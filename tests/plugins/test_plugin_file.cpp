// What is read of a library before it is loaded: of any bytes, without harm.

#include <random>
#include <string>

#include <gtest/gtest.h>

#include "plugins/plugin_files.hpp"
#include "scenario/files/plugins.hpp"

namespace portwave {
namespace {

using scenario_file::differences;
using scenario_file::inspect_plugin_bytes;

TEST(PluginFile, TellsWhatItWasBuiltWith) {
  const auto file = scenario_file::inspect_plugin(testing::built_plugin("solenoid"));
  EXPECT_EQ(file.problem, "");
  EXPECT_TRUE(differences(file.build, plugin_build()).empty());
}

TEST(PluginFile, EveryBeginningOfALibraryIsRefused) {
  const std::string bytes = testing::read_text(testing::built_plugin("no_entry"));
  for (std::size_t length = 0; length < bytes.size(); length += 1 + bytes.size() / 997) {
    EXPECT_FALSE(inspect_plugin_bytes(bytes.substr(0, length)).ok()) << length;
  }
}

TEST(PluginFile, DamagedLibrariesDoNoHarm) {
  const std::string sound = testing::read_text(testing::built_plugin("later_entry"));
  std::mt19937_64 random(14);
  int refused = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    std::string bytes = sound;
    for (int i = 0; i < 3; ++i) {  // headers lie at both ends
      const std::size_t within = random() % 2048;
      const std::size_t place = random() % 2 == 0 ? within : bytes.size() - 1 - within;
      bytes[place] = static_cast<char>(random());
    }
    refused += inspect_plugin_bytes(bytes).ok() ? 0 : 1;
  }
  EXPECT_EQ(refused, 2000) << "none of them has the entry of a plugin";
}

TEST(PluginFile, OtherProcessorsAndKindsAreNamed) {
  std::string bytes = testing::read_text(testing::built_plugin("solenoid"));
  ASSERT_TRUE(inspect_plugin_bytes(bytes).ok());
  const auto with = [&](std::size_t place, char value) {
    std::string changed = bytes;
    changed[place] = value;
    return inspect_plugin_bytes(changed).problem;
  };
  const std::string other = "is a library for another processor";
  EXPECT_EQ(with(4, sizeof(void*) == 8 ? 1 : 2), other);  // word size
  EXPECT_EQ(with(5, bytes[5] == 1 ? 2 : 1), other);       // byte order
  EXPECT_EQ(with(18, 2), other);                          // SPARC
  EXPECT_EQ(with(16, 1), "is an object file, which must be linked into a shared library");
  EXPECT_EQ(with(16, 2), "is a program, not a shared library");
}

TEST(PluginFile, DifferencesAreAllTold) {
  PluginBuild program = plugin_build();
  program.eigen = 30400;
  program.eigen_alignment = 16;
  program.sanitizers = 1;
  const auto all_of = [&](auto change) {
    PluginBuild plugin = program;
    change(plugin);
    return differences(plugin, program);
  };
  EXPECT_TRUE(all_of([](PluginBuild&) {}).empty());
  EXPECT_TRUE(all_of([](PluginBuild& b) { b.sanitizers = 0; }).empty()) << "that does no harm";
  const std::string threads = "was built with the thread sanitizer, and this program was not";
  EXPECT_EQ(all_of([](PluginBuild& b) { b.sanitizers = 3; }), std::vector<std::string>{threads});
  EXPECT_EQ(all_of([](PluginBuild& b) { b.eigen = 30309; }),
            std::vector<std::string>{"was built with Eigen 3.3.9, this program with Eigen 3.4.0"});
  EXPECT_EQ(all_of([](PluginBuild& b) { b.string_abi += 1; }).size(), 1U);
  EXPECT_EQ(all_of([](PluginBuild& b) { b.checked_iterators ^= 1; }).size(), 1U);
  EXPECT_EQ(all_of([](PluginBuild& b) { b.standard_library = 99; }).size(), 1U);
  const auto unended = all_of([](PluginBuild& b) { std::memset(b.portwave, '9', 16); });
  EXPECT_EQ(unended.size(), 1U);
  EXPECT_NE(unended.front().find("portwave 9999999999999999,"), std::string::npos);
  EXPECT_EQ(all_of([](PluginBuild& b) {
              b.layout ^= 1;
              b.eigen = 40000;
              b.portwave[0] = '7';
            }).size(),
            2U)
      << "the layout follows from the versions";
}

}  // namespace
}  // namespace portwave
