// What the protocol needs: each of these changes must be caught. What it does not need: these must
// not be. See docs/concepts/wave-exchange.md.

#include <iostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scenarios.hpp"

namespace portwave::weak_memory {
namespace {

Scenario with(Scenario scenario, Weakening weakening) {
  scenario.weakenings.push_back(std::move(weakening));
  return scenario;
}
Scenario with(Scenario scenario, Defect defect) {
  scenario.defect = defect;
  return scenario;
}

Weakening load(std::string variable, std::memory_order shipped = std::memory_order_acquire,
               Order instead = Order::relaxed) {
  return {std::move(variable), Access::load, shipped, instead};
}
Weakening store(std::string variable) {
  return {std::move(variable), Access::store, std::memory_order_release, Order::relaxed};
}
Weakening exchange(std::string variable, std::memory_order shipped, Order instead) {
  return {std::move(variable), Access::exchange, shipped, instead};
}

using Interrupts = std::vector<Interrupt>;
const Interrupts kAll = {Interrupt::everywhere, Interrupt::after_writes, Interrupt::before_reads};

/// `as`: what the violation must say; anything will do where it is empty.
void expect_caught(const Scenario& scenario, const std::string& as,
                   const Interrupts& interrupts = kAll) {
  for (Interrupt interrupt : interrupts) {
    const Exploration found = examine(scenario, interrupt, Search::breadth_first);
    EXPECT_TRUE(!found.holds() && found.violation.find(as) != std::string::npos)
        << describe(scenario) << ", interrupted " << describe(interrupt) << ": "
        << (found.holds() ? "not caught" : found.report());
  }
}

void expect_harmless(const Scenario& scenario, Interrupt interrupt) {
  const Exploration found = examine(scenario, interrupt, Search::depth_first);
  EXPECT_TRUE(found.holds()) << found.report();
}

constexpr auto kAcquire = std::memory_order_acquire;

TEST(WaveExchangeControl, EpochsNeedReleaseAndAcquire) {
  expect_caught(with(pair_of_tasks(2, {1}), store("epoch")), "race: payload");
  expect_caught(with(pair_of_tasks(2, {1}), load("epoch")), "race: payload");
}

TEST(WaveExchangeControl, TheLimitNeedsReleaseAndAcquire) {
  expect_caught(with(pair_of_tasks(2, {1}), store("limit")), "race: parameters");
  expect_caught(with(pair_of_tasks(2, {1}), load("limit")), "race: parameters");
}

TEST(WaveExchangeControl, WordsNeedReleaseAndAcquire) {
  const Scenario pair = pair_of_tasks(2, {1});
  const Weakening claim = exchange("word", kAcquire, Order::relaxed);
  expect_caught(with(pair, store("word")), "race: own");
  expect_caught(with(pair, claim), "race: own");
  // The master reads the words in the end; only that load of a word acquires.
  expect_caught(with(pair, load("word")), "race: committed");
}

TEST(WaveExchangeControl, TheFirstReadingOfAWordMayBeRelaxedIfTheClaimAcquires) {
  // Either of the two may acquire: words never repeat, so both read the same store.
  Scenario other = with(pair_of_tasks(2, {2, 1}), exchange("word", kAcquire, Order::relaxed));
  other = with(other, load("word", std::memory_order_relaxed, Order::acquire));
  expect_harmless(other, Interrupt::after_writes);
}

TEST(WaveExchangeControl, SlotsNeedTwoParities) {
  expect_caught(with(pair_of_tasks(2, {2}), Defect::single_slot), "payload");
  expect_harmless(with(pair_of_tasks(2, {1, 1}), Defect::single_slot), Interrupt::after_writes);
  // Checked iterations as well: an iteration reads the last messages, as its check has done, while
  // a neighbour that is through with it sends the next one.
  expect_caught(with(deciding(pair_of_tasks(2, {2}), {2}), Defect::single_slot), "payload");
}

TEST(WaveExchangeControl, CountedArrivalsTakeOneNeighbourForAnother) {
  expect_caught(with(line_of_three(2, {2}), Defect::arrivals_counted), "payload");
  // One neighbour cannot be taken for another.
  expect_harmless(with(pair_of_tasks(2, {2}), Defect::arrivals_counted), Interrupt::after_writes);
}

TEST(WaveExchangeControl, PhasesMustNotRestart) {
  expect_caught(with(pair_of_tasks(2, {1, 1}), Defect::words_restart), "");
  expect_caught(with(pair_of_tasks(2, {1, 1}), Defect::epochs_restart), "payload");
  expect_caught(with(pair_of_tasks(2, {1}), Defect::epochs_from_zero), "payload");
}

TEST(WaveExchangeControl, WhoHoldsNothingReadsAtomicsOnly) {
  expect_caught(with(pair_of_tasks(2, {0, 0}), Defect::plain_hint), "race: hint");
}

TEST(WaveExchangeControl, FaultsComeBeforeEpochsAndBehindThemEpochsGoOn) {
  const Scenario scenario = faulting(pair_of_tasks(2, {2}), {{1, 1, 0}});
  expect_caught(with(scenario, Defect::fault_after_publish), "payload");
  expect_caught(with(scenario, Defect::no_drain), "no progress of thread 0 alone");
}

TEST(WaveExchangeControl, ADecisionNeedsArrivalsThatAcquireAndRelease) {
  for (const Order order : {Order::relaxed, Order::acquire, Order::release}) {
    expect_caught(with(deciding(pair_of_tasks(2, {1}), {1}),
                       exchange("arrived", std::memory_order_acq_rel, order)),
                  "race: norm");
  }
}

TEST(WaveExchangeControl, TheHorizonNeedsReleaseAndAcquire) {
  // With two tasks, the epochs order the norms as well.
  const Scenario line = deciding(line_of_three(2, {2}), {2});
  const Scenario pair = deciding(pair_of_tasks(2, {2}), {2});
  expect_caught(with(line, store("horizon")), "race: norm", {Interrupt::before_reads});
  expect_caught(with(line, load("horizon")), "race: norm", {Interrupt::before_reads});
  expect_harmless(with(pair, store("horizon")), Interrupt::after_writes);
  expect_harmless(with(pair, load("horizon")), Interrupt::after_writes);
}

TEST(WaveExchangeControl, AStepThatStopsEarlyMustUseUpItsPhases) {
  expect_caught(with(deciding(pair_of_tasks(2, {2, 2}), {1, 1}), Defect::commit_stores_next), "");
}

}  // namespace
}  // namespace portwave::weak_memory
