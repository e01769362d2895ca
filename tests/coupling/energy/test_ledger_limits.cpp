// What the laws of the ledger allow, and no more: every limit from both sides, with energies that are
// given by hand; and sums over more steps than anybody waits for.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/coupling/energy/compensated_sum.hpp"
#include "portwave/coupling/energy/energy_ledger.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "support/systems/systems.hpp"

namespace portwave::test_ledger_limits {
namespace {

constexpr double kEps = std::numeric_limits<double>::epsilon();

System one_part() {
  SystemBuilder builder;
  builder.add("A", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 2}),
              {.initial_state = {1, 0}});
  builder.join(joint::Free{}, {"A.coupling"});
  return builder.build();
}

/// The ledger of one part with one port, whose steps are whatever one says. H = 1 J at the start.
class Book {
 public:
  explicit Book(double b0, const TankOptions& tank = {}, bool guarded = true)
      : waves_(system_, 0.1, std::vector<double>{1.0}),
        b_(static_cast<std::size_t>(waves_.wave_size()), b0),
        a_(b_.size(), 0.0),
        record_(waves_.initial_record()),
        ledger_(waves_, record_.data(), b_.data(), {.tank = tank, .guarded = guarded}) {}

  EnergyLedger& ledger() { return ledger_; }
  void step(const StepEnergy& energy, double a, double b) {
    tally(energy, a, b);
    ledger_.close(committed_);
  }
  /// `next`: the state that the step leads to; empty: nobody knows.
  void tally(const StepEnergy& energy, double a, double b, const std::vector<double>& next = {}) {
    const int entry = waves_.slot(0).entry;
    ledger_.columns().set(entry, energy);
    terms_J_ = std::abs(ledger_.storage(0)) + std::abs(ledger_.storage(0) + energy.change_J) +
               0.5 * (a * a + b * b) + std::abs(energy.external_supply_J);
    a_.assign(a_.size(), a);
    b_.assign(b_.size(), b);
    for (int batch = 0; batch < static_cast<int>(waves_.batches().size()); ++batch) {
      ledger_.examine(batch, waves_.batch(batch).all(), a_.data(), b_.data());
    }
    committed_ = {.a = a_.data(), .b = b_.data()};
    if (!next.empty()) {
      next_ = record_;
      const PartSlot& slot = waves_.slot(0);
      const BatchSlot& batch = waves_.batch(slot.batch);
      batch.batch->set_state(slot.lane, next.data(), next_.data() + batch.record);
      committed_.record = record_.data();
      committed_.next = next_.data();
    }
    ASSERT_TRUE(ledger_.tally(committed_));
  }
  const CommittedStep& committed() const { return committed_; }
  const WaveDiscretisation& waves() const { return waves_; }
  bool overdraws() { return ledger_.overdraws(0, committed_); }
  /// The sizes of all that the last step put together.
  double terms_J() const { return terms_J_; }

 private:
  System system_ = one_part();
  WaveDiscretisation waves_;
  AlignedVector b_, a_, record_, next_;
  EnergyLedger ledger_;
  CommittedStep committed_;
  double terms_J_ = 0.0;
};

// Of a step with no waves and supply that adds `change_J`, r is that.
TEST(LedgerLimits, APartMayBalanceToATrillionthOfItsTerms) {
  for (const double share : {0.5, 0.9, 1.1, 2.0, 5.0}) {
    Book book(0.0, {}, false);
    book.step({.change_J = share * 2e-12}, 0.0, 0.0);  // terms: 2 J
    EXPECT_EQ(book.ledger().finding().is_part_active, share > 1.0) << share;
    Book supplied(0.0, {}, false);
    supplied.step({.change_J = 1.0 + share * 4e-12, .external_supply_J = 1.0}, 0.0, 0.0);
    EXPECT_EQ(supplied.ledger().finding().is_part_active, share > 1.0) << share;
  }
}

// T₀ = ½·2² J. What goes out is what H loses: the part balances.
TEST(LedgerLimits, ATankMayBeBelowZeroByItsRounding) {
  for (const double share : {0.5, 0.9, 1.1, 2.0, 5.0}) {
    Book book(2.0);
    const double rounding = 16.0 * kEps * (1.0 + 3.0 + 0.5 * 4.0);
    const double a = std::sqrt(4.0 + 2.0 * share * rounding);  // m = −½a²
    // As the ledger computes it.
    const double m = -0.5 * a * a;
    book.tally({.change_J = -m}, a, 0.0);
    const double below = -(2.0 + m);
    const double allowed = 16.0 * kEps * book.terms_J();
    EXPECT_EQ(book.overdraws(), below > allowed) << share;
    book.ledger().close({});
    const auto law = book.ledger().finding().broken_law;
    ASSERT_EQ(law.has_value(), below > allowed) << share;
    if (law) {
      EXPECT_EQ(law->law, BrokenLaw::Law::tank);
    }
  }
}

TEST(LedgerLimits, AStepThatAddsToATankOverdrawsNothing) {
  TankOptions tank;
  tank.initial_J = 0.0;
  Book book(0.0, tank);
  book.step({.change_J = 0.5}, 1.0, 0.0);  // nobody has kept it from that
  EXPECT_LT(book.ledger().tank(0), -0.4);
  book.tally({.change_J = -0.125}, 0.0, 0.5);
  EXPECT_FALSE(book.overdraws());
  book.tally({.change_J = 0.125}, 0.5, 0.0);  // control
  EXPECT_TRUE(book.overdraws());
}

// Waves of 5·10¹⁵ J that leave as they came: their rounding is some 30 J. It excuses nothing.
TEST(LedgerLimits, WhereWavesDrownAnAccountAMillionthIsTooMuch) {
  for (const bool guarded : {false, true}) {
    for (const double share : {0.5, 0.9, 1.1, 2.0, 1e3}) {
      TankOptions tank;
      tank.initial_J = 0.0;
      Book book(0.0, tank, guarded);
      book.step({.change_J = share * 1e-6}, 1e8, 1e8);
      EXPECT_FALSE(book.ledger().finding().is_part_active);
      EXPECT_EQ(book.ledger().finding().growth.has_value(), share > 1.0) << share;
      EXPECT_EQ(book.ledger().unjudged_islands(), 1);
    }
  }
}

// H = 1 J at the start: waves whose rounding is more than 1e-10 J are too loud, where parts are passive.
TEST(LedgerLimits, WavesThatNoEnergyCanPayForAreTooLoud) {
  for (const double share : {0.5, 0.9, 1.1, 1.9, 2.1}) {
    const double energy_J = share * 1e-10 / (16.0 * kEps);  // ½|a|² + ½|b|²
    const double wave = std::sqrt(energy_J);
    TankOptions tank;
    tank.initial_J = 0.0;
    Book book(0.0, tank);
    book.tally({}, wave, wave);
    EXPECT_EQ(book.ledger().is_too_loud(0, book.committed()), share > 1.0) << share;
    EXPECT_EQ(book.overdraws(), share > 1.0) << share;
    Book supplied(0.0, tank);  // as much again is supplied
    supplied.tally({.change_J = 1.0, .external_supply_J = 1.0}, wave, wave);
    EXPECT_EQ(supplied.overdraws(), share > 2.0) << share;
    Book free(0.0, tank, /*guarded=*/false);
    free.tally({}, wave, wave);
    EXPECT_FALSE(free.overdraws());
  }
}

// 16ε of 2 J in every step: after 1e-6/(32ε) steps it is a millionth.
TEST(LedgerLimits, ALongRunIsJudgedUntilItsRoundingMayBeAMillionth) {
  TankOptions tank;
  tank.initial_J = 0.0;
  Book book(0.0, tank);
  const double wave = std::sqrt(1e-11 / (16.0 * kEps));  // 10⁻¹¹ of what there is, in a step
  constexpr int kExpected = 100000;
  int steps = 0;
  while (book.ledger().unjudged_islands() == 0 && steps < 2 * kExpected) {
    book.step({}, wave, wave);
    ++steps;
  }
  EXPECT_NEAR(steps, kExpected, 0.001 * kExpected);
  EXPECT_FALSE(book.ledger().finding().is_violated());
}

// Energies below all normal numbers: they have no digits that a law could be judged by.
TEST(LedgerLimits, WhatUnderflowsBreaksNoLaw) {
  constexpr double kLeast = std::numeric_limits<double>::denorm_min();
  for (const bool guarded : {false, true}) {
    TankOptions tank;
    tank.initial_J = 0.0;
    System system = one_part();
    SystemBuilder builder;
    builder.add("A", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 2}),
                {.initial_state = {1e-162, 0}});
    builder.join(joint::Free{}, {"A.coupling"});
    const System small = builder.build();
    const WaveDiscretisation waves(small, 0.1, std::vector<double>{1.0});
    const AlignedVector record = waves.initial_record();
    const AlignedVector none(static_cast<std::size_t>(waves.wave_size()), 0.0);
    EnergyLedger ledger(waves, record.data(), none.data(), {.tank = tank, .guarded = guarded});
    ledger.columns().set(waves.slot(0).entry, {.change_J = kLeast});
    for (int batch = 0; batch < static_cast<int>(waves.batches().size()); ++batch) {
      ledger.examine(batch, waves.batch(batch).all(), none.data(), none.data());
    }
    ASSERT_TRUE(ledger.tally({.a = none.data(), .b = none.data()}));
    ledger.close({.a = none.data(), .b = none.data()});
    EXPECT_FALSE(ledger.finding().growth) << guarded;
    EXPECT_EQ(ledger.unjudged_islands(), 0) << guarded;
    EXPECT_FALSE(ledger.finding().is_violated()) << guarded;
  }
}

// What a met tolerance left is on the other side of both laws.
TEST(LedgerLimits, ADeficitThatIsToleratedIsAnEntryOfItsOwn) {
  for (const bool is_told : {true, false}) {
    TankOptions tank;
    tank.initial_J = 0.0;
    Book book(0.0, tank);
    const double a = 1e-4, deficit = 0.5 * a * a;
    book.tally({.change_J = deficit}, a, 0.0);
    EXPECT_TRUE(book.overdraws());
    const ToleratedDeficit own{0, deficit};
    const StepLedger step =
        is_told ? book.ledger().close(book.committed(), 1.0, 0.0, std::span(&own, 1))
                : book.ledger().close(book.committed());
    EXPECT_EQ(book.ledger().finding().is_violated(), !is_told);
    EXPECT_EQ(book.ledger().finding().growth.has_value(), !is_told);
    EXPECT_EQ(step.tolerated_J, is_told ? deficit : 0.0);
    EXPECT_EQ(book.ledger().totals().tolerated_J, step.tolerated_J);
    EXPECT_EQ(book.ledger().tank(0), is_told ? 0.0 : -deficit);
    // 1 % of the 1 J at the start in all; any number while H is not more than it was at the start.
    book.tally({.change_J = 1e-3}, 0.0, 0.0);
    EXPECT_TRUE(book.ledger().takes(0, 0.00999 - step.tolerated_J, book.committed()));
    EXPECT_FALSE(book.ledger().takes(0, 0.01001 - step.tolerated_J, book.committed()));
    book.tally({.change_J = -1e-3}, 0.0, 0.0);
    EXPECT_TRUE(book.ledger().takes(0, 0.01001 - step.tolerated_J, book.committed()));
  }
}

// H⁺ − H of a linear part is formed anew from its states where it does not balance, and its residual with
// it: x from (1, 0) to (1.1, 0), H from 1 J to 1.21 J.
TEST(LedgerLimits, AChangeThatIsFormedAnewIsInTheResidualToo) {
  Book book(0.0, {}, false);
  const double exact = 1.1 * 1.1 - 1.0;
  book.tally({.change_J = exact + 1e-9}, std::sqrt(2.0 * exact), 0.0, std::vector{1.1, 0.0});
  const StepLedger ledger = book.ledger().close(book.committed());
  EXPECT_NEAR(ledger.changed_J, exact, 1e-15);
  EXPECT_NEAR(ledger.max_passivity_residual_J, 0.0, 1e-15);
  EXPECT_FALSE(book.ledger().finding().is_part_active);
}

// Of many islands each is judged as by itself.
TEST(LedgerLimits, AnIslandOfManyMayOverdrawItsTankByItsRounding) {
  for (const double share : {0.5, 0.9, 1.1, 2.0, 5.0}) {
    Book book(2.0);
    const double rounding = 16.0 * kEps * (1.0 + 3.0 + 0.5 * 4.0);
    const double a = std::sqrt(4.0 + 2.0 * share * rounding);
    const double change = 0.5 * a * a;
    book.step({.change_J = change}, a, 0.0);
    AlignedVector waves(static_cast<std::size_t>(book.waves().wave_size()), 2.0);
    EnergyLedger islands(book.waves(), book.waves().initial_record().data(), waves.data(),
                         {.guarded = true, .replicas = true});
    islands.columns().set(book.waves().slot(0).entry, {.change_J = change});
    std::fill(waves.begin(), waves.end(), a);
    const AlignedVector none(waves.size(), 0.0);
    ASSERT_TRUE(islands.account({.a = waves.data(), .b = none.data()}).has_value());
    EXPECT_EQ(islands.certificate(0).broken_law.has_value(),
              book.ledger().finding().broken_law.has_value())
        << share;
    EXPECT_EQ(islands.totals(0).rounding_J, book.ledger().totals().rounding_J);
  }
}

// H + T ≤ H₀ + T₀ + supply: a part that creates less in a step than a step can show.
TEST(LedgerLimits, EnergyFromNowhereIsFoundBeforeItIsMoreThanItsAccountCanBeWrong) {
  for (const double created : {20.0, 40.0, 400.0}) {  // ε of the terms in a step
    Book book(0.0);
    int steps = 0;
    while (!book.ledger().finding().broken_law && steps < 2000000) {
      book.step({.change_J = created * kEps * 2.0}, 0.0, 0.0);
      ++steps;
    }
    EXPECT_FALSE(book.ledger().finding().is_part_active);
    ASSERT_TRUE(book.ledger().finding().broken_law) << created;
    EXPECT_EQ(book.ledger().finding().broken_law->law, BrokenLaw::Law::balance);
    // 1e-12 of what was there at the start, and 16ε of the terms in every step.
    const double expected = 1e-12 / ((created - 16.0) * kEps * 2.0);
    EXPECT_NEAR(steps, expected, 2.0 + 0.01 * expected) << created;
  }
}

// The allowance grows with the steps, and faster than what rounding leaves in them, 8ε at most.
TEST(LedgerLimits, ARunDoesNotComeToBreakALawByItsOwnRounding) {
  constexpr int kSteps = 1000000;
  Book book(0.0);
  for (int n = 0; n < kSteps; ++n) book.step({.change_J = 8.0 * kEps * 2.0}, 0.0, 0.0);
  EXPECT_FALSE(book.ledger().finding().is_violated());
  EXPECT_FALSE(book.ledger().finding().growth);
  const double per_step = 16.0 * kEps * 2.0;
  EXPECT_NEAR(book.ledger().totals().rounding_J, kSteps * per_step, 1e-6 * kSteps * per_step);
}

TEST(LedgerLimits, GrowthOfHIsToldBeyondTwiceTheRounding) {
  for (const double share : {0.5, 0.9, 1.1, 2.0, 5.0}) {
    Book book(0.0, {}, false);
    const double rounding = 16.0 * kEps * 2.0;
    const double change = share * (1e-12 + 2.0 * rounding);
    book.step({.change_J = change, .dissipated_J = 0.0}, std::sqrt(2.0 * change), 0.0);
    EXPECT_EQ(book.ledger().finding().growth.has_value(), share > 1.0) << share;
    EXPECT_FALSE(book.ledger().finding().is_part_active);
  }
}

TEST(LedgerLimits, ATankHoldsWhatItsCapAllows) {
  TankOptions tank;
  tank.cap_J = 3.0;
  Book book(2.0, tank);
  for (int i = 0; i < 4; ++i) {
    book.tally({.change_J = -0.5}, 0.0, 1.0);  // m = ½
    EXPECT_EQ(book.ledger().prospect(0), i < 2 ? 2.5 + 0.5 * i : 3.0);
    book.ledger().close({});
  }
  EXPECT_EQ(book.ledger().totals().tank_J, 3.0);
  EXPECT_EQ(book.ledger().totals().given_up_J, 1.0);
}

// As many terms as a run of 2·10⁹ steps has, as if most of them had been added already.
TEST(CompensatedSum, DoesNotDriftHoweverManyTermsThereAre) {
  constexpr std::int64_t kMore = 1000000;
  for (const double term : {0.1, 1.0 / 3.0, 1e-9, 1e9 / 7.0}) {
    for (const double before : {0.0, 2e9}) {
      CompensatedSum sum(before * term);
      double plain = before * term;
      for (std::int64_t n = 0; n < kMore; ++n) {
        sum.add(term);
        plain += term;
      }
      const long double exact = static_cast<long double>(before * term) +
                                static_cast<long double>(kMore) * static_cast<long double>(term);
      const auto off = [&](double value) {
        return static_cast<double>(std::abs(value - exact) / exact);
      };
      EXPECT_LE(off(sum.value()), kEps) << term << " after " << before;
      EXPECT_GT(off(plain), 10.0 * kEps) << term << " after " << before;  // control
    }
  }
}

TEST(LedgerLimits, SumsOfARunDoNotDrift) {
  constexpr int kSteps = 300000;
  TankOptions tank;
  tank.cap_J = 0.0;
  Book book(0.0, tank);
  const double m = 0.5 * 0.3 * 0.3;
  for (int n = 0; n < kSteps; ++n) {
    book.step({.change_J = 0.0, .external_supply_J = 0.1, .dissipated_J = 0.1 - m}, 0.0, 0.3);
  }
  const EnergyTotals& totals = book.ledger().totals();
  const auto expect = [](double sum, double term) {
    const long double exact = static_cast<long double>(kSteps) * term;
    EXPECT_LE(std::abs(static_cast<double>(sum - exact)), 2.0 * kEps * static_cast<double>(exact));
  };
  expect(totals.supplied_J, 0.1);
  expect(totals.dissipated_J, 0.1 - m);
  expect(totals.mismatch_J, m);
  expect(totals.given_up_J, m);
}

}  // namespace
}  // namespace portwave::test_ledger_limits
