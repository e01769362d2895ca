// Snapshots that somebody has made up, with checksums that are right: they are refused with a reason and
// nothing has changed, or the run goes on from them.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/runtime/scenario/scenario.hpp"
#include "support/files/made_up_bytes.hpp"
#include "support/systems/example_scenarios.hpp"

namespace portwave::test_made_up_snapshots {
namespace {

using testing::Bytes;
using testing::change_one;
using testing::Choices;
using testing::example;
using testing::SnapshotBytes;

struct Case {
  std::string name;
  std::string scenario;
  std::vector<Override> overrides = {};
  int before = 7;
  int mutants = 1500;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

/// One of each kind of thing that snapshots hold.
std::vector<Case> cases() {
  return {
      {"guard", "two_oscillators"},
      {"automatic_adaptive_events",
       "published_douglas_rachford",
       {{"/time", R"({"step": {"kind": "adaptive", "tolerance": 1e-5}, "end_s": 10})"},
        {"/method", R"({"kind": "auto", "stages": 2})"},
        {"/events", R"([{"name": "middle", "of": "A.q1", "level": 0}])"}},
       20},
      {"interface",
       "published_douglas_rachford",
       {{"/method",
         R"({"kind": "interface", "impedance": {"kind": "matched"}, "tolerance": 1e-12})"}}},
      {"extrapolated",
       "published_douglas_rachford",
       {{"/method",
         R"({"kind": "douglas-rachford", "iterations": 4, "start": "extrapolated",
             "impedance": {"kind": "matched", "retune_factor": 1.02}})"}}},
      {"islands", "ring_junctions"},
      {"controller", "drive_pid", {}, 30},
      {"contact_and_controllers", "crane", {}, 20, 300},
      {"splitting", "msd_chains", {{"/method", R"({"kind": "strang"})"}}, 7, 200},
      {"dynamic_iteration",
       "msd_chains",
       {{"/method", R"({"kind": "lions-mercier", "window_steps": 5, "iterations": 40})"}},
       7,
       200},
  };
}

class MadeUpSnapshots : public ::testing::TestWithParam<Case> {
 protected:
  MadeUpSnapshots() : scenario_(example(GetParam().scenario, GetParam().overrides)) {}
  Stepper stepper() const { return Stepper(scenario_.system, scenario_.options); }

  Scenario scenario_;
};

/// A step of whatever was accepted. Budgets that nobody waits for are none of the stepper's concern.
void step_if_possible(Stepper& stepper) {
  if (WaveView* waves = stepper.waves()) waves->set_iterations(3);
  try {
    stepper.step(2);
  } catch (const StepError&) {
  } catch (const ConfigError&) {  // no step maps of such a size
  }
}

TEST_P(MadeUpSnapshots, AreRefusedWithNothingChangedOrGoneOnWith) {
  Stepper stepper = this->stepper();
  stepper.step(GetParam().before);
  const Snapshot start = stepper.snapshot();
  const Bytes genuine = start.to_bytes();
  ASSERT_TRUE(SnapshotBytes(genuine).sealed() == genuine) << "the layout is the one described here";
  int accepted = 0, refused = 0;
  for (int seed = 0; seed < GetParam().mutants; ++seed) {
    Choices choices(static_cast<std::uint64_t>(seed));
    SnapshotBytes bytes(genuine);
    Bytes state = bytes.state();
    for (std::size_t changes = 1 + choices.below(3); changes > 0; --changes) {
      change_one(state, choices);
    }
    bytes.set_state(state);
    const Snapshot mutant = Snapshot::from_bytes(bytes.sealed());
    try {
      stepper.restore(mutant);
    } catch (const std::invalid_argument& error) {
      ++refused;
      EXPECT_NE(std::string(error.what()).find("nothing has changed"), std::string::npos)
          << error.what();
      ASSERT_TRUE(stepper.snapshot().to_bytes() == genuine)
          << "seed " << seed << ": " << error.what();
      continue;
    }
    ++accepted;
    step_if_possible(stepper);
    stepper.restore(start);
  }
  // Both happen: the checks are reached, and so is what lies behind them.
  EXPECT_GT(accepted, 0);
  EXPECT_GT(refused, GetParam().mutants / 20);
  Stepper other = this->stepper();
  other.restore(start);
  stepper.step(10);
  other.step(10);
  EXPECT_TRUE(stepper.snapshot().to_bytes() == other.snapshot().to_bytes());
}

/// What a snapshot is of may be made up as well.
TEST_P(MadeUpSnapshots, OfSomethingElseAreRefused) {
  Stepper stepper = this->stepper();
  const Bytes genuine = stepper.snapshot().to_bytes();
  for (int seed = 0; seed < 100; ++seed) {
    Choices choices(static_cast<std::uint64_t>(seed));
    SnapshotBytes bytes(genuine);
    const std::span<std::byte> identity = bytes.identity();
    Bytes changed(identity.begin(), identity.end());
    change_one(changed, choices);
    changed.resize(identity.size());
    std::ranges::copy(changed, identity.begin());
    const Bytes sealed = bytes.sealed();
    if (sealed == genuine) continue;
    EXPECT_THROW(stepper.restore(Snapshot::from_bytes(sealed)), std::invalid_argument) << seed;
  }
  EXPECT_TRUE(stepper.snapshot().to_bytes() == genuine);
}

INSTANTIATE_TEST_SUITE_P(Runs, MadeUpSnapshots, ::testing::ValuesIn(cases()),
                         [](const auto& own) { return own.param.name; });

TEST(MadeUpSnapshot, WithATimeThatIsNotTheStatesIsRefused) {
  const Scenario scenario = example("published_douglas_rachford");
  Stepper stepper(scenario.system, scenario.options);
  stepper.step(3);
  const Bytes genuine = stepper.snapshot().to_bytes();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& [time_s, steps] :
       {std::pair{1e9, std::int64_t{3}}, std::pair{kNan, std::int64_t{3}},
        std::pair{stepper.time_s(), std::int64_t{-1}}}) {
    SnapshotBytes bytes(genuine);
    bytes.set_time(time_s, steps);
    const Snapshot mutant = Snapshot::from_bytes(bytes.sealed());
    EXPECT_THROW(stepper.restore(mutant), std::invalid_argument);
    EXPECT_TRUE(stepper.snapshot().to_bytes() == genuine);
  }
}

}  // namespace
}  // namespace portwave::test_made_up_snapshots
