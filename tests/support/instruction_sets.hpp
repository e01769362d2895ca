#pragma once

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/subsystems/base/instruction_set.hpp"
#include "support/files/subprocess.hpp"

// The instruction set is chosen once per process, so a law about all of them runs this program
// again, as `<program> --print-digests=<suite>`: it then runs no test, but the computations of a
// DigestSuite, which print a line each. `digests` collects them. The program needs a main that calls
// `run_tests_or_print_digests`.

namespace portwave::testing {

/// FNV-1a over the bits of numbers.
class Digest {
 public:
  void add(double value) { add(std::bit_cast<std::uint64_t>(value)); }
  void add(std::uint64_t bits) {
    for (int i = 0; i < 8; ++i, bits >>= 8) value_ = (value_ ^ (bits & 0xFF)) * 0x100000001B3u;
  }
  template <class Numbers>
  void add_all(const Numbers& numbers) {
    for (const double value : numbers) add(value);
  }
  std::uint64_t value() const { return value_; }
  void print(const std::string& name) const {
    std::fputs(fmt::format("digest {} {:016x}\n", name, value_).c_str(), stdout);
  }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325u;
};

/// Computations that print their digests, under the name of the tests that compare them. Made at
/// namespace scope.
class DigestSuite {
 public:
  DigestSuite(const std::string& name, std::function<void()> print) {
    all()[name] = std::move(print);
  }
  static std::map<std::string, std::function<void()>>& all() {
    static std::map<std::string, std::function<void()>> suites;
    return suites;
  }
};

inline constexpr std::string_view kPrintDigests = "--print-digests=";

/// Prints the instruction set, and the digests of a suite unless its name is empty. Gives the exit code.
inline int print_digests(const std::string& suite) {
  std::fputs(fmt::format("instruction_set {}\n", to_string(instruction_set())).c_str(), stdout);
  if (suite.empty()) return 0;
  const auto found = DigestSuite::all().find(suite);
  if (found == DigestSuite::all().end()) {
    std::fputs(fmt::format("there is no suite {}\n", suite).c_str(), stderr);
    return 2;
  }
  found->second();
  return 0;
}

/// The main of a program of tests some of which compare digests.
inline int run_tests_or_print_digests(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]).starts_with(kPrintDigests)) {
    return print_digests(std::string(argv[1] + kPrintDigests.size()));
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

/// A value of PORTWAVE_ISA and what it is to give. Under qemu the machine is chosen too.
struct WantedSet {
  std::string isa;
  InstructionSet set;
  std::string cpu = {};
};

#if defined(__aarch64__)
/// A machine without SVE, and then the sets with it.
inline const WantedSet kBaselineSet = {"baseline", InstructionSet::baseline, "cortex-a72"};
inline const std::vector<WantedSet> kOtherSets = {
    {"sve256", InstructionSet::sve_256, "max,sve-default-vector-length=32"},
    {"sve512", InstructionSet::sve_512, "max,sve-default-vector-length=64"}};
#else
inline const WantedSet kBaselineSet = {"baseline", InstructionSet::baseline};
inline const std::vector<WantedSet> kOtherSets = {{"v3", InstructionSet::x86_64_v3},
                                                  {"v4", InstructionSet::x86_64_v4}};
#endif

/// True where PORTWAVE_EMULATOR, a command and its arguments one to a line, runs this program.
inline constexpr bool kIsEmulated =
#ifdef PORTWAVE_EMULATOR
    true;
#else
    false;
#endif

/// The command that starts this program once more.
inline std::vector<std::string> this_program() {
#ifdef PORTWAVE_EMULATOR
  // The system does not run it by itself, nor does it know it as /proc/self/exe.
  std::vector<std::string> command;
  std::istringstream words(PORTWAVE_EMULATOR);
  for (std::string word; std::getline(words, word);) command.push_back(word);
  command.push_back(std::filesystem::read_symlink("/proc/self/exe").string());
  return command;
#else
  return {"/proc/self/exe"};
#endif
}

/// Runs such a program with these arguments, on an emulated machine of that kind.
inline ProcessResult run_tests(std::vector<std::string> program,
                               const std::vector<std::string>& arguments, const std::string& isa,
                               const std::string& cpu) {
  ::setenv("PORTWAVE_ISA", isa.c_str(), 1);
  if (!cpu.empty()) ::setenv("QEMU_CPU", cpu.c_str(), 1);
  program.insert(program.end(), arguments.begin(), arguments.end());
  ProcessResult result = run_process(std::move(program));
  ::unsetenv("PORTWAVE_ISA");
  ::unsetenv("QEMU_CPU");
  return result;
}

/// What the program prints of a suite.
struct Digests {
  std::string instruction_set;
  std::map<std::string, std::string> of;  ///< by name
};

inline Digests digests(const std::vector<std::string>& program, const std::string& suite,
                       const WantedSet& wanted) {
  const ProcessResult result =
      run_tests(program, {std::string(kPrintDigests) + suite}, wanted.isa, wanted.cpu);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  Digests found;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind, name, value;
    words >> kind >> name >> value;
    if (kind == "digest") found.of[name] = value;
    if (kind == "instruction_set") found.instruction_set = name;
  }
  EXPECT_FALSE(found.instruction_set.empty()) << result.out;
  return found;
}

/// Nothing when this machine or build does not have the instruction set. One that is emulated has
/// all.
inline std::optional<std::map<std::string, std::string>> digests(const std::string& suite,
                                                                 const WantedSet& wanted) {
  Digests found = digests(this_program(), suite, wanted);
  if (found.instruction_set == to_string(wanted.set)) return std::move(found.of);
  EXPECT_FALSE(kIsEmulated) << found.instruction_set << " instead of " << to_string(wanted.set);
  return std::nullopt;
}

/// Names of controls end in "'": their digests must differ from that of the name without.
inline bool is_control(const std::string& name) { return name.back() == '\''; }

/// The law: every computation has the same digest whatever the instruction set.
inline void expect_equal_digests(const std::string& suite, std::size_t at_least) {
  const auto baseline = digests(suite, kBaselineSet);
  ASSERT_TRUE(baseline.has_value());
  EXPECT_GE(baseline->size(), at_least);
  for (const WantedSet& wanted : kOtherSets) {
    const auto other = digests(suite, wanted);
    if (!other) continue;
    EXPECT_EQ(other->size(), baseline->size()) << wanted.isa;
    for (const auto& [name, value] : *baseline) {
      const auto it = other->find(name);
      EXPECT_EQ(it == other->end() ? "missing" : it->second, value) << name << " on " << wanted.isa;
    }
  }
  int controls = 0;
  for (const auto& [name, value] : *baseline) {
    if (!is_control(name)) continue;
    ++controls;
    EXPECT_NE(baseline->at(name.substr(0, name.size() - 1)), value) << name;
  }
  EXPECT_GE(controls, 1);
}

/// The law for two architectures: `program` is this one, built for the machine that runs the
/// emulator. Of the computations that `is_portable` names, every one has the digest that it has
/// there, and no control has.
inline void expect_digests_of(const std::string& program, const std::string& suite,
                              std::size_t at_least,
                              const std::function<bool(const std::string&)>& is_portable) {
  ASSERT_TRUE(std::filesystem::exists(program)) << program << " is to be built first";
  const Digests there = digests({program}, suite, {"", InstructionSet::baseline});
  const auto here = digests(suite, kBaselineSet);
  ASSERT_TRUE(here.has_value());
  EXPECT_EQ(there.of.size(), here->size());
  std::size_t compared = 0, controls = 0;
  for (const auto& [name, value] : *here) {
    if (!is_portable(name)) continue;
    const bool control = is_control(name);
    const auto it = there.of.find(control ? name.substr(0, name.size() - 1) : name);
    ASSERT_NE(it, there.of.end()) << name;
    if (control) {
      ++controls;
      EXPECT_NE(it->second, value) << name << " and " << there.instruction_set;
    } else {
      ++compared;
      EXPECT_EQ(it->second, value) << name << " and " << there.instruction_set;
    }
  }
  EXPECT_GE(compared, at_least);
  EXPECT_GE(controls, 1u);
}

}  // namespace portwave::testing
