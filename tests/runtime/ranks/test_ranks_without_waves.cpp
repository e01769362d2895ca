// Kicks and drifts and Taylor series on several ranks: the rows of large islands are shared, small islands are dealt
// out, and bits depend neither on how many ranks there are nor on when messages come.

#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/runtime/ranks/ranked_stepper.hpp>
#include <portwave/runtime/step/stepper.hpp>

#include "support/systems/separable_networks.hpp"
#include "support/thread_ranks.hpp"
#include "support/trace.hpp"

namespace portwave::test_ranks_without_waves {
namespace {

using testing::ThreadRanks;

constexpr Splitting kKicks{.kind = SplittingKind::kick_drift, .order = 6};
constexpr Splitting kCoarseKicks{.kind = SplittingKind::kick_drift, .order = 4};
constexpr Splitting kSeries{.kind = SplittingKind::taylor, .order = 12};

/// Pairs apart from one another, the last of which is driven.
System pairs(double force_N = 3.0, std::optional<Signal> force = {}) {
  constexpr int kPairs = 7;
  SystemBuilder builder;
  for (int i = 0; i < kPairs; ++i) {
    const std::string n = std::to_string(i);
    SystemBuilder::PartOptions options;
    if (i + 1 == kPairs) {
      options.inputs["force"] =
          force ? *force : Signal::sine_product(force_N, {{.frequency_Hz = 0.7}});
    }
    builder.add("a" + n,
                duffing_oscillator({.mass_kg = 8.0 + i,
                                    .stiffness_N_per_m = 100,
                                    .cubic_stiffness_N_per_m3 = 8000,
                                    .coupling_stiffness_N_per_m = 120,
                                    .coupling_damping_Ns_per_m = 0.05}),
                {.initial_state = {0.4, 0, -0.4}});
    builder.add("b" + n, linear_oscillator({.mass_kg = 4, .stiffness_N_per_m = 50}),
                std::move(options));
    builder.connect("a" + n + ".coupling", "b" + n + ".coupling");
  }
  return builder.build();
}

struct Case {
  std::string name;
  System (*system)();
  Splitting method;
  double step_s;
  bool shares_rows = true;
};
std::ostream& operator<<(std::ostream& out, const Case& own) { return out << own.name; }

StepperOptions options_of(const Case& own) {
  StepperOptions options;
  options.start = Start::as_given;
  options.step_s = own.step_s;
  options.method = own.method;
  return options;
}

/// What is known of a run at its end, and after every step where that is asked for.
struct Outcome {
  std::vector<double> numbers;
  std::string remarks;
  std::int64_t messages = 0, gathers = 0;  ///< of rank 0, of all steps
};

void look(Stepper& stepper, std::vector<double>& out) {
  testing::append_interface(stepper, out);
  for (int j = 0; j < static_cast<int>(stepper.system().scalar_ports().size()); j += 7) {
    out.insert(out.end(), {stepper.effort(j), stepper.flow(j)});
  }
}

void run_stepper(Stepper& stepper, int steps, int look_every, Outcome& out) {
  for (int n = 1; n <= steps; ++n) {
    const StepLedger energy = stepper.step().energy;
    out.numbers.insert(out.numbers.end(), {stepper.time_s(), energy.stored_J, energy.supplied_J,
                                           energy.dissipated_J, energy.tank_J, energy.mismatch_J});
    if (look_every > 0 && n % look_every == 0) look(stepper, out.numbers);
  }
  out.remarks = stepper.remarks();
}

Outcome alone(const System& system, const StepperOptions& options, int steps, int look_every) {
  Outcome out;
  Stepper stepper(system, options);
  run_stepper(stepper, steps, look_every, out);
  look(stepper, out.numbers);
  return out;
}

Outcome on_ranks(int ranks, const System& system, StepperOptions options, int steps, int look_every,
                 unsigned seed = 0) {
  Outcome out;
  ThreadRanks::run(
      ranks,
      [&](const std::shared_ptr<Ranks>& own) {
        StepperOptions shared = options;
        shared.ranks = own;
        Stepper stepper(system, shared);
        if (own->rank() != 0) return RankedStepper(stepper).follow();
        const RankTraffic before = own->traffic();
        run_stepper(stepper, steps, look_every, out);
        const RankTraffic after = own->traffic();
        out.messages = after.messages - before.messages;
        out.gathers = after.gathers - before.gathers;
        look(stepper, out.numbers);
      },
      seed);
  return out;
}

class RanksWithoutWaves : public ::testing::TestWithParam<Case> {};

TEST_P(RanksWithoutWaves, GiveTheBitsOfOneProcess) {
  const Case& own = GetParam();
  const System system = own.system();
  const StepperOptions options = options_of(own);
  for (const int look_every : {0, 2}) {
    const Outcome expected = alone(system, options, 3, look_every);
    for (const int ranks : {2, 3, 4}) {
      const Outcome found = on_ranks(ranks, system, options, 3, look_every, ranks == 3 ? 5 : 0);
      EXPECT_TRUE(testing::same_bits(expected.numbers, found.numbers))
          << ranks << " ranks, looked at every " << look_every << " steps";
      EXPECT_EQ(expected.remarks, found.remarks);
      EXPECT_EQ(found.messages > 0, own.shares_rows);
    }
    // Control: another step is noticed.
    EXPECT_FALSE(testing::same_bits(expected.numbers, alone(system, options, 4, 0).numbers));
  }
}

TEST_P(RanksWithoutWaves, ChooseTheStepsOfOneProcess) {
  const Case& own = GetParam();
  const System system = own.system();
  StepperOptions options = options_of(own);
  options.sizes.emplace().tolerance = 1e-4;
  const Outcome expected = alone(system, options, 3, 2),
                found = on_ranks(3, system, options, 3, 2, 7);
  EXPECT_TRUE(testing::same_bits(expected.numbers, found.numbers));
  EXPECT_EQ(expected.remarks, found.remarks);
}

TEST_P(RanksWithoutWaves, GoOnFromSnapshotsOfOtherNumbersOfRanks) {
  const Case& own = GetParam();
  const System system = own.system();
  const StepperOptions options = options_of(own);
  const Outcome expected = alone(system, options, 4, 0);
  Snapshot before;
  {
    Stepper stepper(system, options);
    stepper.step(2);
    before = stepper.snapshot();
  }
  Snapshot between;
  ThreadRanks::run(3, [&](const std::shared_ptr<Ranks>& ranks) {
    StepperOptions shared = options;
    shared.ranks = ranks;
    Stepper stepper(system, shared);
    if (ranks->rank() != 0) return RankedStepper(stepper).follow();
    stepper.restore(before);
    stepper.step();
    between = stepper.snapshot();
  });
  Stepper stepper(system, options);
  stepper.restore(between);
  Outcome found;
  run_stepper(stepper, 1, 0, found);
  look(stepper, found.numbers);
  const std::size_t size = found.numbers.size();
  ASSERT_LE(size, expected.numbers.size());
  EXPECT_TRUE(testing::same_bits(
      {expected.numbers.end() - static_cast<std::ptrdiff_t>(size), expected.numbers.end()},
      found.numbers));
}

INSTANTIATE_TEST_SUITE_P(
    , RanksWithoutWaves,
    ::testing::Values(
        Case{"grid", [] { return testing::separable_grid(70, 0.05); }, kKicks, .1},
        Case{"grid_of_order_4", [] { return testing::separable_grid(70, 0.05); }, kCoarseKicks, .05,
             false},
        Case{"grid_in_disorder", [] { return testing::separable_grid(70, 0.05, 1237); }, kKicks,
             .1},
        Case{"driven_grid", [] { return testing::separable_grid(70, 0.05, 1, 100); }, kKicks, .1},
        Case{"grid_in_halved_steps", [] { return testing::separable_grid(70, 0.05); }, kKicks, .6},
        Case{"driven_line_by_series", [] { return testing::separable_line(5000, 250); }, kSeries,
             1e-3},
        Case{"pairs", [] { return pairs(); }, kKicks, .02, false},
        Case{"pairs_in_halved_steps", [] { return pairs(); }, kCoarseKicks, .6, false}),
    [](const auto& own) { return own.param.name; });

/// A kick and a drift of one message each for every neighbour, fewer at the end; and two for the balance.
TEST(RanksWithoutWavesMessages, AreOneOrTwoPerStage) {
  const System system = testing::separable_grid(70, 0.05);
  const Case own{"grid", nullptr, kKicks, .1};
  const int steps = 4, drifts = 11;
  const Outcome found = on_ranks(2, system, options_of(own), steps, 0);
  EXPECT_GE(found.messages, steps * (2 * drifts + 1));
  EXPECT_LE(found.messages, steps * (2 * drifts + 5));
  EXPECT_LE(found.gathers, steps * 8);
}

/// Ranks are no reason for waves.
TEST(RanksWithoutWavesByAuto, AreTakenWhereOneProcessTakesThem) {
  const System system = pairs();
  StepperOptions options = options_of({"pairs", nullptr, kKicks, .02});
  options.method = CouplingMethod::automatic();
  options.method.waves().stages = 3;
  options.method.waves().explicit_steps = true;
  const Outcome expected = alone(system, options, 4, 0), found = on_ranks(3, system, options, 4, 0);
  EXPECT_EQ(expected.remarks.find("auto: kicks and drifts"), 0U) << expected.remarks;
  EXPECT_EQ(expected.remarks, found.remarks);
  EXPECT_TRUE(testing::same_bits(expected.numbers, found.numbers));
}

/// Where inputs of a part fail, all ranks take the same step back.
TEST(RanksWithoutWavesFaults, AreThoseOfOneProcess) {
  const auto bad = Signal::callback(
      [](double t) { return t > 0.05 ? std::numeric_limits<double>::quiet_NaN() : 1.0; });
  const System system = pairs(0.0, bad);
  StepperOptions options = options_of({"pairs", nullptr, kKicks, .02});
  const auto fault_of = [](Stepper& stepper) -> std::string {
    try {
      stepper.step(10);
    } catch (const StepError& error) {
      return error.what();
    }
    return "none";
  };
  Stepper one(system, options);
  const std::string expected = fault_of(one);
  ASSERT_NE(expected, "none");
  ThreadRanks::run(3, [&](const std::shared_ptr<Ranks>& ranks) {
    StepperOptions shared = options;
    shared.ranks = ranks;
    Stepper stepper(system, shared);
    if (ranks->rank() != 0) return RankedStepper(stepper).follow();
    EXPECT_EQ(fault_of(stepper), expected);
    EXPECT_EQ(stepper.step_index(), one.step_index());
    std::vector<double> here, there;
    look(stepper, here);
    look(one, there);
    EXPECT_TRUE(testing::same_bits(here, there));
  });
}

}  // namespace
}  // namespace portwave::test_ranks_without_waves
