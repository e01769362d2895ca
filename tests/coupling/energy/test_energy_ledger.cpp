// The energy ledger of a run balances to round-off, and a tampered entry shows by just its size.

#include <cmath>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/coupling/energy/energy_ledger.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/coupling/waves/wave_iteration.hpp"
#include "portwave/subsystems/core/step_batch.hpp"
#include "support/systems/systems.hpp"

namespace portwave::test_energy_ledger {
namespace {

using testing::NamedSystem;
using testing::sample_systems;

std::vector<double> uniform(const System& system, double gamma) {
  return std::vector<double>(system.scalar_ports().size(), gamma);
}

/// What is added to the entries of part 0 before they are booked, and a gain on all outgoing waves.
struct Tamper {
  StepEnergy energy = {};
  double wave_gain = 1.0;
};

struct BookRun {
  EnergyTotals totals;
  bool violated = false;
  double outgoing_J = 0.0;  ///< Σ over steps of ½|b|², untampered

  /// Zero for a ledger that balances.
  double imbalance() const {
    return (totals.final_J - totals.initial_J) -
           (totals.supplied_J - totals.dissipated_J - totals.mismatch_J);
  }
};

/// Runs `steps` explicit (K = 0) steps and books them.
BookRun book_run(const System& system, double h, double gamma, int steps,
                 const Tamper& tamper = {}) {
  WaveDiscretisation waves(system, h, uniform(system, gamma));
  AlignedVector record = waves.initial_record(), next(record.size());
  WaveIteration iteration(waves, {&peaceman_rachford(), 1.0});
  AlignedVector b(static_cast<std::size_t>(waves.wave_size()), 0.0);
  AlignedVector input(waves.input_size(), 0.0);
  EnergyLedger ledger(waves, record.data(), b.data());
  const int tampered = waves.slot(0).entry;
  BookRun run;
  PhaseStatus failure;
  for (int n = 0; n < steps; ++n) {
    EXPECT_TRUE(waves.sample_inputs(n * h, input.data(), failure));
    EXPECT_TRUE(waves.freeze_all(record.data(), input.data()).ok());
    EXPECT_TRUE(iteration.step(record.data(), b, 0, next.data(), b.data(), ledger.columns()).ok());
    const std::span<const double> a = iteration.shadow();
    StepEnergy energy = ledger.columns().at(tampered);
    energy.change_J += tamper.energy.change_J;
    energy.external_supply_J += tamper.energy.external_supply_J;
    energy.dissipated_J += tamper.energy.dissipated_J;
    ledger.columns().set(tampered, energy);
    AlignedVector booked_b = b;
    for (std::size_t j = 0; j < booked_b.size(); ++j) {
      if (waves.part_of_wave(static_cast<int>(j)) < 0) continue;
      run.outgoing_J += 0.5 * booked_b[j] * booked_b[j];
      booked_b[j] *= tamper.wave_gain;
    }
    EXPECT_TRUE(ledger.account({.a = a.data(), .b = booked_b.data()}).has_value());
    record.swap(next);
  }
  run.totals = ledger.totals();
  run.violated = ledger.finding().is_violated();
  return run;
}

TEST(EnergyLedger, BalancesToRoundOff) {
  for (const NamedSystem& sample : sample_systems()) {
    const System system = sample.make();
    const BookRun run = book_run(system, 0.01, sample.impedance, 200);
    const EnergyTotals& t = run.totals;
    EXPECT_NEAR(run.imbalance(), 0.0, 1e-11 * (t.initial_J + std::abs(t.mismatch_J) + 1.0))
        << sample.name;
    EXPECT_FALSE(run.violated) << sample.name;
    EXPECT_NEAR(t.tank_J - t.initial_tank_J, t.mismatch_J, 1e-11 * (1.0 + std::abs(t.mismatch_J)));
    EXPECT_GE(t.dissipated_J, 0.0);
  }
}

TEST(EnergyLedgerControl, ATamperedEntryBreaksTheBalanceByJustThat) {
  constexpr int steps = 20;
  constexpr double tamper = 1e-6, round_off = 1e-12;
  for (const NamedSystem& sample : sample_systems()) {
    const System system = sample.make();
    const auto run = [&](const Tamper& t) {
      return book_run(system, 0.01, sample.impedance, steps, t);
    };
    const BookRun honest = run({});
    const auto imbalance = [&](const StepEnergy& energy) {
      return run({.energy = energy}).imbalance() - honest.imbalance();
    };
    EXPECT_NEAR(imbalance({.change_J = tamper}), steps * tamper, round_off) << sample.name;
    EXPECT_NEAR(imbalance({.external_supply_J = tamper}), -steps * tamper, round_off)
        << sample.name;
    EXPECT_NEAR(imbalance({.dissipated_J = tamper}), steps * tamper, round_off) << sample.name;
    // ½|b|² of every part and step.
    constexpr double gain = 1.0 + 1e-6;
    const double louder = run({.wave_gain = gain}).imbalance() - honest.imbalance();
    EXPECT_GT(honest.outgoing_J, 1e-4) << sample.name;
    EXPECT_NEAR(louder, (gain * gain - 1.0) * honest.outgoing_J, 1e-12 * (1.0 + honest.outgoing_J))
        << sample.name;
  }
}

TEST(EnergyLedgerControl, CatchesEnergyFromNowhere) {
  const System system = testing::lossless_pair();
  EXPECT_FALSE(book_run(system, 0.01, 20.0, 1).violated);
  EXPECT_TRUE(book_run(system, 0.01, 20.0, 1, {.energy = {.change_J = 1e-9}}).violated);
}

}  // namespace
}  // namespace portwave::test_energy_ledger
