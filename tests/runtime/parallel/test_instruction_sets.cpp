// Junctions, ledger and residual have kernels too: whole runs give the same bits on every
// instruction set.

#include <gtest/gtest.h>

#include "support/instruction_sets.hpp"
#include "support/systems/networks.hpp"
#include "support/trace.hpp"

namespace portwave::test_instruction_sets {
namespace {

// Run in processes of its own.
const testing::DigestSuite kRunBitsDigests("RunBits", [] {
  std::vector<testing::NamedSystem> systems = testing::sample_systems();
  for (testing::NamedSystem& system : testing::large_systems()) systems.push_back(system);
  for (const testing::NamedSystem& sample : systems) {
    const System system = sample.make();
    StepperOptions o{.method = WaveCoupling{}};
    o.start = Start::as_given;
    o.method.waves().impedance = {sample.impedance};
    o.method.waves().iterations = 12;
    for (const bool checked : {false, true}) {
      o.method.waves().tolerance = checked ? 1e-4 : 0.0;
      o.method.waves().tolerance_per_part = checked;
      testing::Digest digest, control;
      digest.add_all(testing::trace(system, o, 20));
      digest.print(sample.name + (checked ? "_checked" : "_plain"));
      if (checked) continue;
      --o.method.waves().iterations;
      control.add_all(testing::trace(system, o, 20));
      control.print(sample.name + "_plain'");
      ++o.method.waves().iterations;
    }
    // The averaged iteration, accelerated, with tanks that are empty.
    o.method.waves().kind = WaveUpdate::peaceman_rachford;
    o.method.waves().relaxation = 0.5;
    o.method.waves().iterations = 3;
    o.method.waves().tolerance = 0.0;
    o.method.waves().tank.initial_J = 0.0;
    for (const int memory : {0, 3}) {
      o.method.waves().acceleration = memory;
      testing::Digest digest;
      digest.add_all(testing::trace(system, o, 40));
      digest.print(sample.name + (memory > 0 ? "_accelerated" : "_averaged"));
    }
    o.method.waves().stages = 3;
    testing::Digest digest;
    digest.add_all(testing::trace(system, o, 10));
    digest.print(sample.name + "_staged");
  }
});

TEST(RunBits, AreTheSameOnEveryInstructionSet) { testing::expect_equal_digests("RunBits", 42); }

}  // namespace
}  // namespace portwave::test_instruction_sets
