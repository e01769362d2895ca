// The wave exchange as it is shipped, by its own code: no interleaving and no value that a load may
// return breaks it. See docs/concepts/wave-exchange.md.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "parallel/channel.hpp"
#include "scenarios.hpp"

namespace portwave::weak_memory {
namespace {

void expect_holds(const Scenario& scenario, Interrupt interrupt) {
  const Exploration found = examine(scenario, interrupt, Search::depth_first);
  EXPECT_GT(found.ends, 0u);
  if (!found.holds()) {
    const Exploration shortest = examine(scenario, interrupt, Search::breadth_first);
    ADD_FAILURE() << describe(scenario) << '\n' << shortest.report();
  }
}

TEST(WaveExchange, HoldsWhereverAThreadIsInterrupted) {
  for (const auto& budgets : {std::vector{0}, {1}, {2}, {0, 0}, {1, 0}, {0, 1}, {1, 1}}) {
    expect_holds(pair_of_tasks(2, budgets), Interrupt::everywhere);
  }
}

TEST(WaveExchange, HoldsForTwoTasks) {
  for (const auto& budgets : {std::vector{3}, {3, 3}, {2, 1}, {1, 2}, {0, 3}, {1, 1, 1}}) {
    expect_holds(pair_of_tasks(2, budgets), Interrupt::after_writes);
  }
  for (const auto& budgets : {std::vector{2}, {1, 1}, {0, 2}}) {
    expect_holds(pair_of_tasks(3, budgets), Interrupt::after_writes);
  }
  expect_holds(pair_of_tasks(3, {3}), Interrupt::before_reads);
  expect_holds(pair_of_tasks(3, {2, 1}), Interrupt::before_reads);
}

TEST(WaveExchange, HoldsForALine) {
  for (const auto& budgets : {std::vector{0}, {1}, {2}, {1, 1}}) {
    expect_holds(line_of_three(2, budgets), Interrupt::after_writes);
  }
  expect_holds(line_of_three(2, {3}), Interrupt::before_reads);
  expect_holds(line_of_three(2, {2, 1}), Interrupt::before_reads);
  expect_holds(line_of_three(3, {1}), Interrupt::before_reads);
  expect_holds(line_of_three(3, {0, 0}), Interrupt::before_reads);
}

TEST(WaveExchange, HoldsForALineOnThreeThreads) {
  expect_holds(line_of_three(3, {2}), Interrupt::before_reads);
}

TEST(WaveExchange, HoldsForATriangle) {
  for (const auto& budgets : {std::vector{0}, {1}, {2}, {1, 1}}) {
    expect_holds(triangle(2, budgets), Interrupt::after_writes);
  }
  expect_holds(triangle(2, {3}), Interrupt::before_reads);
  expect_holds(triangle(2, {2, 1}), Interrupt::before_reads);
  expect_holds(triangle(3, {1}), Interrupt::before_reads);
  expect_holds(triangle(3, {2}), Interrupt::before_reads);
}

constexpr int kCommit = Fault::kCommit;
constexpr bool kLate = true;

TEST(WaveExchange, ReportsTheFirstFaultInEverySchedule) {
  const std::vector<std::vector<Fault>> pair_faults = {{{1, 1, 0}},
                                                       {{1, 1, 1}},
                                                       {{1, 0, kCommit}},
                                                       {{1, 0, 1}, {1, 1, 0}},
                                                       {{1, 0, 1}, {1, 1, 1}},
                                                       {{1, 1, 0, kLate}},
                                                       {{1, 0, 0, kLate}, {1, 1, 1}}};
  for (const auto& faults : pair_faults) {
    expect_holds(faulting(pair_of_tasks(2, {2}), faults), Interrupt::after_writes);
    expect_holds(faulting(pair_of_tasks(3, {2}), faults), Interrupt::before_reads);
    expect_holds(faulting(pair_of_tasks(2, {2, 1}), faults),
                 Interrupt::before_reads);  // tried again
  }
  // The ends of a line: neither sees the other's fault in time.
  expect_holds(faulting(line_of_three(2, {2}), {{1, 0, 1}, {1, 2, 0}}), Interrupt::before_reads);
  expect_holds(faulting(line_of_three(2, {2}), {{1, 0, 1}, {1, 2, 1}}), Interrupt::before_reads);
}

TEST(WaveExchange, HoldsWhenEveryIterationIsDecided) {
  expect_holds(deciding(pair_of_tasks(2, {1}), {1}), Interrupt::everywhere);
  for (int stop = 1; stop <= 3; ++stop) {
    expect_holds(deciding(pair_of_tasks(2, {3}), {stop}), Interrupt::after_writes);
  }
  expect_holds(deciding(pair_of_tasks(2, {2, 2}), {1, 1}), Interrupt::before_reads);
  expect_holds(deciding(pair_of_tasks(2, {0, 2}), {0, 1}), Interrupt::before_reads);
  expect_holds(deciding(pair_of_tasks(3, {2}), {1}), Interrupt::before_reads);
  expect_holds(deciding(line_of_three(2, {2}), {2}), Interrupt::before_reads);
  expect_holds(deciding(line_of_three(2, {2}), {1}), Interrupt::before_reads);
  expect_holds(deciding(triangle(2, {2}), {1}), Interrupt::before_reads);
}

TEST(WaveExchange, DecidesAndReportsAFault) {
  const Scenario pair = deciding(pair_of_tasks(2, {2}), {2});
  for (const Fault fault : {Fault{1, 1, 0}, {1, 1, 0, kLate}, {1, 1, 1}, {1, 1, kCommit}}) {
    expect_holds(faulting(pair, {fault}), Interrupt::before_reads);
  }
  expect_holds(faulting(deciding(pair_of_tasks(2, {2, 1}), {2, 1}), {{1, 1, 0}}),
               Interrupt::before_reads);
}

TEST(WaveExchange, HoldsWhenTheClockStopsIt) {
  expect_holds(timed(pair_of_tasks(2, {1})), Interrupt::everywhere);
  for (const auto& budgets : {std::vector{0}, {1}, {2}, {3}, {1, 1}}) {
    expect_holds(timed(pair_of_tasks(2, budgets)), Interrupt::after_writes);
  }
  expect_holds(timed(line_of_three(2, {2})), Interrupt::before_reads);
  expect_holds(timed(deciding(pair_of_tasks(2, {2}), {2})), Interrupt::before_reads);
}

// An iteration by itself: who reads waves of an evaluation that has failed finds that noted.
TEST(WaveExchange, ReportsAFailureBeforeItSends) {
  for (const bool is_sound : {true, false}) {
    std::vector<std::string> done;
    iterate_edge_first(
        true,
        [&] {
          done.emplace_back("edge");
          return is_sound;
        },
        [&] {
          done.emplace_back("core");
          return is_sound;
        },
        [&] { done.emplace_back("note"); }, [&] { done.emplace_back("send"); });
    const std::vector<std::string> expected =
        is_sound ? std::vector<std::string>{"edge", "send", "core"}
                 : std::vector<std::string>{"edge", "note", "send", "core", "note"};
    EXPECT_EQ(done, expected);
  }
}

}  // namespace
}  // namespace portwave::weak_memory
