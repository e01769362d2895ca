// What the protocol needs: each of these changes must be caught. What it does not need: these must
// not be. See docs/concepts/wave-exchange.md.

#include <iostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scenarios.hpp"

namespace portwave::weak_memory {
namespace {

Scenario with(Scenario scenario, Order Orders::*member, Order order) {
  scenario.orders.*member = order;
  return scenario;
}
Scenario with(Scenario scenario, Defect defect) {
  scenario.defect = defect;
  return scenario;
}
Scenario with(Scenario scenario, Base base) {
  scenario.base = base;
  return scenario;
}

using Interrupts = std::vector<Interrupt>;
const Interrupts kAll = {Interrupt::everywhere, Interrupt::after_writes, Interrupt::before_reads};

void expect_caught(const Scenario& scenario, const std::string& as,
                   const Interrupts& interrupts = kAll) {
  for (Interrupt interrupt : interrupts) {
    const Exploration found = examine(scenario, interrupt, Search::breadth_first);
    EXPECT_NE(found.violation.find(as), std::string::npos)
        << describe(scenario) << ", interrupted " << describe(interrupt) << ": "
        << (found.holds() ? "not caught" : found.report());
  }
}

void expect_harmless(const Scenario& scenario, Interrupt interrupt) {
  const Exploration found = examine(scenario, interrupt, Search::depth_first);
  EXPECT_TRUE(found.holds()) << found.report();
}

constexpr Order relaxed = Order::relaxed;

TEST(WaveExchangeControl, EpochsNeedReleaseAndAcquire) {
  expect_caught(with(pair_of_tasks(2, {1}), &Orders::epoch_store, relaxed), "race: payload");
  expect_caught(with(pair_of_tasks(2, {1}), &Orders::epoch_load, relaxed), "race: payload");
}

TEST(WaveExchangeControl, TheLimitNeedsReleaseAndAcquire) {
  expect_caught(with(pair_of_tasks(2, {1}), &Orders::limit_store, relaxed), "race: parameters");
  expect_caught(with(pair_of_tasks(2, {1}), &Orders::limit_load, relaxed), "race: parameters");
}

TEST(WaveExchangeControl, WordsNeedReleaseAndAcquire) {
  expect_caught(with(pair_of_tasks(2, {1}), &Orders::word_store, relaxed), "race: own");
  expect_caught(with(pair_of_tasks(2, {1}), &Orders::word_claim, relaxed), "race: own");
  expect_caught(with(pair_of_tasks(2, {1}), &Orders::word_await, relaxed), "race: committed");
}

TEST(WaveExchangeControl, ALookAtAWordMayBeRelaxedIfTheClaimAcquires) {
  // Either of the two may acquire: words never repeat, so both read the same store.
  Scenario other = with(pair_of_tasks(2, {2, 1}), &Orders::word_claim, relaxed);
  other = with(other, &Orders::word_load, Order::acquire);
  expect_harmless(other, Interrupt::after_writes);
}

TEST(WaveExchangeControl, SlotsNeedTwoParities) {
  expect_caught(with(pair_of_tasks(2, {2}), Defect::single_slot), "wrong data: payload");
  expect_harmless(with(pair_of_tasks(2, {1, 1}), Defect::single_slot), Interrupt::after_writes);
}

TEST(WaveExchangeControl, CountedArrivalsTakeOneNeighbourForAnother) {
  expect_caught(with(line_of_three(2, {2}), Defect::arrivals_counted), "payload");
  // One neighbour cannot be taken for another.
  expect_harmless(with(pair_of_tasks(2, {2}), Defect::arrivals_counted), Interrupt::after_writes);
}

TEST(WaveExchangeControl, PhasesMustNotRestart) {
  expect_caught(with(pair_of_tasks(2, {1, 1}), Defect::words_restart), "payload");
  expect_caught(with(pair_of_tasks(2, {1, 1}), Defect::epochs_restart), "payload");
  expect_caught(with(pair_of_tasks(2, {1}), Defect::epochs_from_zero), "payload");
}

TEST(WaveExchangeControl, APlainBaseMayOnlyBeReadBehindTheClaim) {
  expect_caught(with(pair_of_tasks(2, {0, 0}), Base::plain), "race: parameters");
  expect_harmless(with(pair_of_tasks(2, {0, 1}), Base::relaxed_atomic), Interrupt::everywhere);
  expect_harmless(with(pair_of_tasks(2, {2, 1}), Base::relaxed_atomic), Interrupt::after_writes);
}

TEST(WaveExchangeControl, FaultsComeBeforeEpochsAndBehindThemEpochsGoOn) {
  const Scenario scenario = faulting(pair_of_tasks(2, {2}), {{1, 1, 0}});
  expect_caught(with(scenario, Defect::fault_after_publish), "wrong data: payload");
  expect_caught(with(scenario, Defect::no_drain), "no progress of thread 0 alone");
}

TEST(WaveExchangeControl, ADecisionNeedsArrivalsThatAcquireAndRelease) {
  for (Order order : {Order::relaxed, Order::acquire, Order::release}) {
    expect_caught(with(deciding(pair_of_tasks(2, {1}), {1}), &Orders::arrive, order), "race: norm");
  }
}

TEST(WaveExchangeControl, TheHorizonNeedsReleaseAndAcquire) {
  // With two tasks, the epochs order the norms as well.
  const Scenario line = deciding(line_of_three(2, {2}), {2});
  const Scenario pair = deciding(pair_of_tasks(2, {2}), {2});
  expect_caught(with(line, &Orders::horizon_store, relaxed), "race: norm",
                {Interrupt::before_reads});
  expect_caught(with(line, &Orders::horizon_load, relaxed), "race: norm",
                {Interrupt::before_reads});
  expect_harmless(with(pair, &Orders::horizon_store, relaxed), Interrupt::after_writes);
  expect_harmless(with(pair, &Orders::horizon_load, relaxed), Interrupt::after_writes);
}

TEST(WaveExchangeControl, TheHorizonReplacesTheSecondSlot) {
  const Scenario pair = with(deciding(pair_of_tasks(2, {3}), {3}), Defect::single_slot);
  expect_harmless(pair, Interrupt::after_writes);
  expect_caught(with(pair, &Orders::horizon_load, relaxed), "race: payload");
}

TEST(WaveExchangeControl, AStepThatStopsEarlyMustUseUpItsPhases) {
  expect_caught(with(deciding(pair_of_tasks(2, {2, 2}), {1, 1}), Defect::commit_stores_next),
                "payload");
}

}  // namespace
}  // namespace portwave::weak_memory
