#pragma once

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/subsystems/base/instruction_set.hpp"
#include "support/subprocess.hpp"

// The instruction set is chosen once per process, so a law about all of them runs this program
// again. A test named `PrintDigests` in a suite of its own, disabled, prints one line per
// computation; `digests` collects them.

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
  void print(const std::string& name) const {
    std::fputs(fmt::format("digest {} {:016x}\n", name, value_).c_str(), stdout);
  }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325u;
};

/// By name; empty when this machine or build does not have the instruction set.
inline std::optional<std::map<std::string, std::string>> digests(const std::string& suite,
                                                                 const std::string& isa,
                                                                 InstructionSet wanted) {
  ::setenv("PORTWAVE_ISA", isa.c_str(), 1);
  const ProcessResult result = run_process({"/proc/self/exe", "--gtest_also_run_disabled_tests",
                                            "--gtest_filter=" + suite + ".DISABLED_PrintDigests"});
  ::unsetenv("PORTWAVE_ISA");
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  std::map<std::string, std::string> found;
  std::istringstream lines(result.out);
  std::string used;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind, name, value;
    words >> kind >> name >> value;
    if (kind == "digest") found[name] = value;
    if (kind == "instruction_set") used = name;
  }
  EXPECT_FALSE(used.empty()) << result.out;
  if (used != to_string(wanted)) return std::nullopt;
  return found;
}

inline void print_instruction_set() {
  std::fputs(fmt::format("instruction_set {}\n", to_string(instruction_set())).c_str(), stdout);
}

/// The law: every computation has the same digest whatever the instruction set. Names of controls
/// end in "'": theirs must differ from that of the name without.
inline void expect_equal_digests(const std::string& suite, std::size_t at_least) {
  const auto baseline = digests(suite, "baseline", InstructionSet::baseline);
  ASSERT_TRUE(baseline.has_value());
  EXPECT_GE(baseline->size(), at_least);
  for (const auto& [isa, set] :
       {std::pair{"v3", InstructionSet::x86_64_v3}, std::pair{"v4", InstructionSet::x86_64_v4}}) {
    const auto other = digests(suite, isa, set);
    if (!other) continue;
    EXPECT_EQ(other->size(), baseline->size()) << isa;
    for (const auto& [name, value] : *baseline) {
      const auto it = other->find(name);
      EXPECT_EQ(it == other->end() ? "missing" : it->second, value) << name << " on " << isa;
    }
  }
  int controls = 0;
  for (const auto& [name, value] : *baseline) {
    if (name.back() != '\'') continue;
    ++controls;
    EXPECT_NE(baseline->at(name.substr(0, name.size() - 1)), value) << name;
  }
  EXPECT_GE(controls, 1);
}

}  // namespace portwave::testing
