// Island groups of different size share the time of a step under a deadline. Work takes what is given, so that no test
// depends on time.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "parallel/clock.hpp"
#include "parallel/gap_shares.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/runtime/step/wave_view.hpp"
#include "support/systems/networks.hpp"
#include "support/trace.hpp"

namespace portwave::test_gap_shares {
namespace {

/// Two groups of gap_J = start factorⁿ after n evaluations.
struct Decay {
  double start_J, factor;
};

/// The gap that is left by evaluations worth `rounds` of the whole system. `chosen`: where most is gained; else in
/// turn.
double left_after(const std::vector<double>& shares, const std::vector<Decay>& decays,
                  double rounds, bool chosen) {
  GapShares groups(shares);
  std::vector<double> gap(shares.size());
  // Steps before this one have shown how the gaps fall.
  for (int step = 0; step < 20; ++step) {
    double used = 0.0;
    groups.begin(1.0);
    for (std::size_t i = 0; i < gap.size(); ++i) gap[i] = decays[i].start_J;
    int turn = 0;
    for (;;) {
      const int next = chosen ? groups.take_best() : turn++ % groups.size();
      used += groups.share(next);
      if (used > rounds + 1e-12) break;
      gap[static_cast<std::size_t>(next)] *= decays[static_cast<std::size_t>(next)].factor;
      groups.note(next, gap[static_cast<std::size_t>(next)], true);
      if (chosen) groups.put_back(next);
    }
    groups.end({});
  }
  double sum = 0.0;
  for (const double own : gap) sum += own;
  return sum;
}

TEST(GapShares, TimeGoesWhereItRemovesMostOfTheGap) {
  // A large island that agrees already, and a small one that does not.
  const std::vector<double> shares = {0.9, 0.1};
  EXPECT_LE(left_after(shares, {{1e-3, 0.5}, {1.0, 0.5}}, 5.0, true),
            0.05 * left_after(shares, {{1e-3, 0.5}, {1.0, 0.5}}, 5.0, false));
  // A gap that stands still is left alone, however large it is.
  EXPECT_LE(left_after(shares, {{0.1, 0.5}, {10.0, 0.9999}}, 5.0, true) - 10.0,
            left_after(shares, {{0.1, 0.5}, {10.0, 0.9999}}, 5.0, false) - 10.0 + 1e-3);
  // Control: among equals nothing is gained.
  const std::vector<Decay> equals = {{1.0, 0.5}, {1.0, 0.5}};
  EXPECT_DOUBLE_EQ(left_after({0.5, 0.5}, equals, 5.0, true),
                   left_after({0.5, 0.5}, equals, 5.0, false));
}

TEST(GapShares, AGroupThatIsLeftOutComesBack) {
  GapShares groups({0.5, 0.5});
  std::vector<int> evaluated(2, 0);
  int longest = 0, since = 0;
  for (int step = 0; step < 200; ++step) {  // one evaluation in each
    groups.begin(1.0);
    const int next = groups.take_best();
    ++evaluated[static_cast<std::size_t>(next)];
    since = next == 1 ? 0 : since + 1;
    longest = std::max(longest, since);
    groups.note(next, next == 0 ? 1.0 : 0.0, true);  // the second one is at rest
    groups.end({});
  }
  EXPECT_LE(longest, 17);
  EXPECT_GT(evaluated[0], 10 * evaluated[1]) << "control: the gap decides";
}

TEST(GapShares, OfEqualGainsTheFirstCountsAndNoGapIsNoNumber) {
  GapShares groups({0.25, 0.25, 0.25, 0.25});
  groups.begin(1.0);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(groups.take_best(), i);
  EXPECT_EQ(groups.take_best(), -1);
  for (int i = 0; i < 4; ++i) {
    groups.note(i, i == 2 ? std::numeric_limits<double>::quiet_NaN() : 1.0 + i, i != 3);
  }
  groups.sort();
  EXPECT_EQ(groups.take_best(), 1);
  EXPECT_EQ(groups.take_best(), 0);
  EXPECT_EQ(groups.take_best(), 2);
  EXPECT_EQ(groups.take_best(), -1) << "the last one does not go on";
}

TEST(GapShares, AGroupLeavesTheTimeThatOthersNeed) {
  const auto leaves = [](double left_s, int threads, int tasks) {
    GapShares groups({0.5, 0.5}, threads, {tasks, 1});
    groups.begin(2.0);  // an evaluation of either takes a second
    groups.note(0, 1024.0, true);
    groups.note(1, 1.0, true);
    EXPECT_FALSE(groups.leaves_to_others(0, left_s)) << "nothing gains more than the best";
    return groups.leaves_to_others(1, left_s);
  };
  EXPECT_TRUE(leaves(9.0, 1, 1));  // ten halvings
  EXPECT_FALSE(leaves(12.0, 1, 1));
  EXPECT_FALSE(leaves(9.0, 2, 1)) << "one task is no work for two threads";
  EXPECT_TRUE(leaves(4.5, 2, 2));
}

WorkCosts costs() {
  WorkCosts out{};
  cost(out, Work::first_evaluation) = cost(out, Work::evaluation) = 10e-6;
  cost(out, Work::commit) = 5e-6;
  return out;
}

StepperOptions options_of(ExecutorKind executor, double deadline_s) {
  StepperOptions out{.step_s = 0.05, .method = WaveCoupling{}};
  out.start = Start::as_given;
  out.certify = Certify::none;
  out.method.waves().guard = false;
  out.method.waves().impedance = {0.1};
  out.method.waves().iterations = 500;
  out.method.waves().tolerance = 1e-12;
  out.time.deadline_s = deadline_s;
  out.executor = executor;
  out.threads = 1;
  return out;
}

struct Outcome {
  double gap_J = 0.0;  ///< sum over the steps
  double time_s = 0.0;
  std::int64_t misses = 0;
  std::vector<double> states;
  bool is_even = true;  ///< all islands had the same number of evaluations
};

/// Islands of 2 to 70 parts. `iterations` > 0: so many for all of them, without a deadline.
Outcome run(ExecutorKind executor, double deadline_s, int iterations = 0) {
  constexpr int kSteps = 40, kLearning = 3;
  const System system = testing::archipelago();
  StepperOptions options = options_of(executor, deadline_s);
  if (iterations > 0) options.method.waves().iterations = iterations;
  SimulatedTime time(costs());
  Stepper stepper(system, options);
  Outcome out;
  // The time of a commit is learnt in the first steps.
  std::int64_t early = 0;
  for (int n = 0; n < kSteps; ++n) {
    if (n == kLearning && stepper.deadline()) early = stepper.deadline()->misses;
    const double start_s = time.now_s();
    const StepReport report = stepper.step();
    out.gap_J += report.gap_J;
    if (n >= kLearning) out.time_s = std::max(out.time_s, time.now_s() - start_s);
    int least = 1000, most = 0;
    for (int island = 0; island < system.island_count(); ++island) {
      const int own = stepper.waves()->iterations_of_island(island);
      least = std::min(least, own);
      most = std::max(most, own);
    }
    out.is_even = out.is_even && least == most;
  }
  if (stepper.deadline()) out.misses = stepper.deadline()->misses - early;
  for (int part = 0; part < static_cast<int>(system.parts().size()); ++part) {
    const auto own = stepper.state(part);
    out.states.insert(out.states.end(), own.begin(), own.end());
  }
  return out;
}

class SharedDeadline : public ::testing::TestWithParam<ExecutorKind> {};

TEST_P(SharedDeadline, LeavesLessOfTheGapThanEqualShares) {
  for (const double deadline_s : {45e-6, 95e-6}) {
    const Outcome shared = run(GetParam(), deadline_s);
    EXPECT_EQ(shared.misses, 0);
    EXPECT_LE(shared.time_s, deadline_s + 1e-9);
    EXPECT_FALSE(shared.is_even);
    // As many equal rounds as there is time for, and none is kept in reserve.
    const int rounds = static_cast<int>((deadline_s - 5e-6) / 10e-6);
    const Outcome equal = run(GetParam(), 0.0, rounds);
    EXPECT_LT(shared.gap_J, 0.6 * equal.gap_J) << deadline_s;
    EXPECT_LE(equal.time_s, deadline_s + 1e-9);
  }
}

TEST_P(SharedDeadline, IsRepeatedToTheBit) {
  const Outcome once = run(GetParam(), 65e-6), twice = run(GetParam(), 65e-6);
  EXPECT_TRUE(testing::same_bits(once.states, twice.states));
  EXPECT_FALSE(testing::same_bits(once.states, run(GetParam(), 85e-6).states)) << "control";
}

// With time for all of them to converge nobody leaves any: the bits of a run without a deadline.
TEST_P(SharedDeadline, ChangesNothingWhereEverythingConverges) {
  const Outcome ample = run(GetParam(), 1.0), none = run(GetParam(), 0.0);
  EXPECT_TRUE(testing::same_bits(ample.states, none.states));
  EXPECT_FALSE(testing::same_bits(ample.states, run(GetParam(), 45e-6).states)) << "control";
}

INSTANTIATE_TEST_SUITE_P(Executors, SharedDeadline,
                         ::testing::Values(ExecutorKind::serial, ExecutorKind::graph,
                                           ExecutorKind::async),
                         [](const auto& each) { return std::string(to_string(each.param)); });

}  // namespace
}  // namespace portwave::test_gap_shares
