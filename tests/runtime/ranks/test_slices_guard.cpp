// The guard where no rank has the whole system: it looks at what an island is as a whole, and decides on
// every rank what it does in one process, bit by bit.

#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/runtime/ranks/ranked_stepper.hpp>
#include <portwave/runtime/step/stepper.hpp>

#include "support/sliced_runs.hpp"
#include "support/systems/counting_part.hpp"
#include "support/thread_ranks.hpp"

namespace portwave::test_slices_guard {
namespace {

using testing::chain;
using testing::Cuts;
using testing::even_cuts;
using testing::expect_same;
using testing::grid;
using testing::islands;
using testing::options_of;
using testing::run_in_slices;
using testing::run_whole;
using testing::SlicedNetwork;
using testing::star;
using testing::ThreadRanks;

StepperOptions guarded(double impedance, int iterations) {
  StepperOptions options = options_of(impedance);
  options.method.waves().guard = true;
  options.method.waves().iterations = iterations;
  return options;
}

/// What the guard did in a run of one process.
GuardStatistics guard_of(const SlicedNetwork& network, const StepperOptions& options, int steps) {
  const System system = network.whole();
  Stepper stepper(system, options);
  for (int n = 0; n < steps; ++n) stepper.step();
  return *stepper.waves()->guard();
}

void expect_same_in_slices(const SlicedNetwork& network, const StepperOptions& options,
                           const std::vector<Cuts>& cuts, int steps) {
  const auto whole = run_whole(network, options, steps);
  for (const Cuts& own : cuts) {
    SCOPED_TRACE(own.size() - 1);
    expect_same(run_in_slices(network, options, own, steps, static_cast<unsigned>(own.size())),
                whole);
  }
}

std::vector<Cuts> some_cuts(const SlicedNetwork& network) {
  return {even_cuts(network, 2), even_cuts(network, 3), even_cuts(network, 4)};
}

TEST(SlicesGuard, ActsWithTheBitsOfOneProcess) {
  struct Case {
    std::string name;
    SlicedNetwork network;
    double impedance;
    bool acts;
  };
  const std::vector<Case> cases = {
      {"chain", chain(64 * 5 + 17), 0.8, true},
      {"chain, large impedance", chain(64 * 5 + 17), 50.0, false},
      {"ring", chain(64 * 4 + 1, /*closed=*/true), 0.8, true},
      {"star", star(64 * 5), 0.8, true},
      {"grid", grid(24, 16), 30.0, true},
      {"grid, small impedance", grid(24, 16), 0.5, true},
      {"grid, large impedance", grid(24, 16), 5000.0, false},
  };
  for (const Case& own : cases) {
    SCOPED_TRACE(own.name);
    std::int64_t uses = 0;
    for (const int iterations : {0, 1, 2, 4}) {
      SCOPED_TRACE(iterations);
      const StepperOptions options = guarded(own.impedance, iterations);
      uses += guard_of(own.network, options, 12).uses;
      expect_same_in_slices(own.network, options, some_cuts(own.network), 12);
    }
    EXPECT_EQ(uses > 0, own.acts) << "used " << uses << " times";
  }
}

TEST(SlicesGuard, KeepsTanksOfManyIslands) {
  const SlicedNetwork network = islands();
  std::int64_t most = 0;
  for (const int iterations : {1, 2, 3}) {
    SCOPED_TRACE(iterations);
    StepperOptions options = guarded(0.8, iterations);
    options.threads = iterations;
    options.grain = Grain::of_parts(30);
    most = std::max(most, guard_of(network, options, 8).uses);
    expect_same_in_slices(network, options,
                          {Cuts{0, 81, 145, 361}, Cuts{0, 145, 209, 361}, Cuts{0, 20, 273, 361}},
                          8);
  }
  EXPECT_GT(most, 8) << "several islands at a time";
}

TEST(SlicesGuard, TakesTanksAsTheyAreGiven) {
  const SlicedNetwork network = chain(64 * 3 + 9);
  std::int64_t uses = 0;
  for (const double share : {1e-4, 1e-2}) {
    StepperOptions options = guarded(0.8, 2);
    options.method.waves().tank.initial_J = 0.0;
    options.method.waves().tank.initial_fraction = share;
    options.method.waves().tank.cap_J = 3.0;
    uses += guard_of(network, options, 20).uses;
    expect_same_in_slices(network, options, some_cuts(network), 20);
  }
  EXPECT_GT(uses, 0);
}

// With nothing in the tanks it acts whenever there is a mismatch, and has a long way to go.
TEST(SlicesGuard, ActsOnEmptyTanks) {
  const std::vector<std::pair<SlicedNetwork, std::vector<double>>> cases = {
      {chain(64 * 3 + 9), {0.05, 0.8, 20.0}}, {grid(24, 16), {0.5, 30.0, 500.0}}};
  std::int64_t uses = 0;
  for (const auto& [network, impedances] : cases) {
    for (const double impedance : impedances) {
      SCOPED_TRACE(impedance);
      for (const int iterations : {0, 1, 3}) {
        StepperOptions options = guarded(impedance, iterations);
        options.method.waves().tank.cap_J = 0.0;
        uses += guard_of(network, options, 10).uses;
        expect_same_in_slices(network, options, some_cuts(network), 10);
      }
      StepperOptions nearly = guarded(impedance, 400);
      nearly.method.waves().tolerance = 1e-4;
      nearly.method.waves().tank.cap_J = 0.0;
      uses += guard_of(network, nearly, 6).uses;
      expect_same_in_slices(network, nearly, some_cuts(network), 6);
    }
  }
  EXPECT_GT(uses, 40);
}

// Accounts that close only up to what states round off, and those that waves drown.
TEST(SlicesGuard, JudgesWhatRoundsOff) {
  SlicedNetwork far = chain(64 * 3 + 7);
  for (std::size_t i = 0; i < far.parts.size(); ++i) {
    std::vector<double>& state = far.parts[i].options.initial_state;
    if (i < 130) state[0] = state[2] = 1e12;
  }
  for (const int iterations : {1, 6}) {
    expect_same_in_slices(far, guarded(0.8, iterations), some_cuts(far), 8);
  }
  const SlicedNetwork network = chain(64 * 3 + 7);
  for (const double impedance : {1e-9, 1e9, 1e14}) {
    SCOPED_TRACE(impedance);
    for (const int iterations : {0, 2}) {
      expect_same_in_slices(network, guarded(impedance, iterations), some_cuts(network), 6);
    }
  }
}

TEST(SlicesGuard, IsMetWithATolerance) {
  const SlicedNetwork network = grid(24, 16);
  StepperOptions options = guarded(30.0, 40);
  options.method.waves().tolerance = 1e-2;
  EXPECT_GT(guard_of(network, options, 10).uses, 0);
  expect_same_in_slices(network, options, some_cuts(network), 10);
  options.method.waves().stages = 2;
  expect_same_in_slices(network, options, some_cuts(network), 6);
}

/// Throws in its `nth` commit.
class BreakingBatch final : public testing::ExactBatch {
 public:
  BreakingBatch(std::unique_ptr<StepBatch> batch, int nth)
      : ExactBatch(std::move(batch)), left_(nth) {}
  LaneStatus advance(LaneRange lanes, double* record, const double* a, double* next, double* b,
                     const EnergyColumns& energy) const override {
    if (--left_ == 0) throw std::runtime_error("broken");
    return ExactBatch::advance(lanes, record, a, next, b, energy);
  }

 private:
  mutable int left_;
};
using BreakingPart = testing::NumberedPart<BreakingBatch>;

struct End {
  std::vector<double> numbers;
  std::string text;  // of what it failed with
};
End run_to_the_end(Stepper& stepper, int steps) {
  End end;
  try {
    for (int n = 0; n < steps; ++n) testing::append_report(stepper, stepper.step(), end.numbers);
  } catch (const StepError& error) {
    end.text = error.what();
  }
  return end;
}

// A commit that fails in a trial is not taken, and one that fails before ends the step: on all ranks, whoever
// has the part.
TEST(SlicesGuard, RejectsCommitsThatFail) {
  int failed = 0, went_on = 0;
  for (const int part : {3, 250}) {
    for (int nth = 1; nth <= 24; ++nth) {
      SCOPED_TRACE(nth);
      SlicedNetwork network = chain(64 * 4 + 5);
      network.parts[static_cast<std::size_t>(part)].component =
          std::make_shared<BreakingPart>(testing::block(part), nth);
      StepperOptions options = guarded(0.8, 1);
      options.method.waves().tank.cap_J = 0.0;
      const System whole = network.whole();
      Stepper alone(whole, options);
      const End expected = run_to_the_end(alone, 8);
      ++(expected.text.empty() ? went_on : failed);
      ThreadRanks::run(3, [&](const std::shared_ptr<Ranks>& own) {
        const Cuts cuts = even_cuts(network, 3);
        const auto r = static_cast<std::size_t>(own->rank());
        const System slice = network.slice(cuts[r], cuts[r + 1]).build(*own);
        StepperOptions shared = options;
        shared.ranks = own;
        Stepper stepper(slice, shared);
        if (r > 0) return RankedStepper(stepper).follow();
        const End found = run_to_the_end(stepper, 8);
        EXPECT_EQ(found.text, expected.text);
        EXPECT_EQ(testing::difference(found.numbers, expected.numbers), "");
      });
    }
  }
  EXPECT_GT(failed, 0);
  EXPECT_GT(went_on, 0);
}

}  // namespace
}  // namespace portwave::test_slices_guard
