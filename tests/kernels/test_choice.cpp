// Which instruction set is used: the machine decides, and PORTWAVE_ISA lowers it.

#include <string>

#include <gtest/gtest.h>

#include "support/instruction_sets.hpp"

namespace portwave {
namespace {

std::string chosen(const std::string& isa, const std::string& cpu = "") {
  return testing::digests(testing::this_program(), "", {isa, InstructionSet::baseline, cpu})
      .instruction_set;
}

TEST(InstructionSetChoice, IsBaselineWhereThatIsWanted) {
  EXPECT_EQ(chosen("baseline"), "baseline");
}

TEST(InstructionSetChoice, IgnoresWhatIsNotOfThisArchitecture) {
  const std::string widest = chosen("");
#if defined(__aarch64__)
  for (const char* isa : {"v3", "v4", "sve-256", "neon"}) EXPECT_EQ(chosen(isa), widest) << isa;
#else
  for (const char* isa : {"sve256", "sve512", "x86-64-v3", "avx2"})
    EXPECT_EQ(chosen(isa), widest) << isa;
#endif
}

#if defined(__x86_64__)
TEST(InstructionSetChoice, IsLowered) {
  const std::string widest = chosen("");
  EXPECT_EQ(chosen("v4"), widest);
  EXPECT_EQ(chosen("v3"), widest == "x86-64-v4" ? "x86-64-v3" : widest);
}
#endif

#ifdef PORTWAVE_EMULATOR
/// Code for vectors of one length gives wrong numbers on a machine of another.
TEST(InstructionSetChoice, IsThatOfTheLengthOfTheMachinesVectors) {
  struct Machine {
    const char* cpu;
    const char* isa;
    const char* expected;
  };
  for (const auto& [cpu, isa, expected] : {
           Machine{"cortex-a72", "", "baseline"},
           {"neoverse-n1", "sve512", "baseline"},
           {"max,sve=off", "", "baseline"},
           {"max,sve-default-vector-length=16", "", "baseline"},
           {"max,sve-default-vector-length=32", "", "sve-256"},
           {"max,sve-default-vector-length=32", "sve512", "sve-256"},
           {"max,sve-default-vector-length=48", "", "baseline"},
           {"max,sve-default-vector-length=64", "", "sve-512"},
           {"max,sve-default-vector-length=64", "sve256", "baseline"},
           {"max,sve-default-vector-length=128", "", "baseline"},
           {"a64fx", "", "sve-512"},
       }) {
    EXPECT_EQ(chosen(isa, cpu), expected) << cpu << " PORTWAVE_ISA=" << isa;
  }
}
#endif

}  // namespace
}  // namespace portwave
