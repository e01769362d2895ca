// Tanks and the energy ratio, against sums done by hand over the raw arrays.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/coupling/energy/energy_ledger.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/coupling/waves/wave_iteration.hpp"
#include "portwave/subsystems/core/step_batch.hpp"
#include "support/systems/systems.hpp"

namespace portwave::test_ledger_sums {
namespace {

/// Two islands whose parts alternate: A and B joined, C by itself between them. C's force is
/// driven.
constexpr std::size_t kParts = 3;
constexpr std::array<std::size_t, kParts> kIslandOf = {0, 1, 0};

System two_islands(Signal force = Signal::constant(3.0)) {
  SystemBuilder builder;
  builder.add("A", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 2}),
              {.initial_state = {1, 0}});
  builder.add("C", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 2}),
              {.initial_state = {2, 0}, .inputs = {{"force", std::move(force)}}});
  builder.add("B", linear_oscillator({.mass_kg = 1.5, .stiffness_N_per_m = 20}));
  builder.connect("A.coupling", "B.coupling");
  builder.join(joint::Free{}, {"C.coupling"});
  return builder.build();
}

using ByPart = std::array<double, kParts>;

/// Waves (every part has one port) and energies of a run, part by part.
struct RawStep {
  ByPart a, b, storage_J, supplied_J;
};
struct RawRun {
  ByPart b0, storage_J;
  std::vector<RawStep> steps;
};

/// The ratio as defined, and ways to get it wrong.
enum class Formula {
  right,
  max_of_the_sum,     // max(Σ T, 0) for Σ max(T, 0)
  sum_without_max,    // Σ T
  without_tanks,      // H only
  tank_sign,          // T − ½(|b|² − |a|²)
  tank_twice,         // without the ½
  tank_from_zero,     // T₀ = 0
  one_tank_per_part,  // max(T, 0) part by part
  supply_added,
  supply_ignored,
  supply_of_the_step,     // not summed over the steps
  without_initial_store,  // denominator T₀
  without_initial_tank,   // denominator H₀
  last_step,              // no max over n
};
constexpr Formula kWrong[] = {
    Formula::max_of_the_sum,
    Formula::sum_without_max,
    Formula::without_tanks,
    Formula::tank_sign,
    Formula::tank_twice,
    Formula::tank_from_zero,
    Formula::one_tank_per_part,
    Formula::supply_added,
    Formula::supply_ignored,
    Formula::supply_of_the_step,
    Formula::without_initial_store,
    Formula::without_initial_tank,
    Formula::last_step,
};

struct ByHand {
  double ratio = -std::numeric_limits<double>::infinity();
  std::array<double, 2> tank = {};               // of each island, at the end
  double lowest_tank = 0.0, highest_tank = 0.0;  // over the run and the islands
};

ByHand by_hand(const RawRun& run, Formula f) {
  const double half = f == Formula::tank_twice ? 1.0 : 0.5;
  std::array<double, kParts> tank = {};  // by part
  double H0 = 0.0, T0 = 0.0;
  for (std::size_t i = 0; i < kParts; ++i) {
    H0 += run.storage_J[i];
    T0 += 0.5 * run.b0[i] * run.b0[i];
    if (f != Formula::tank_from_zero) tank[i] = 0.5 * run.b0[i] * run.b0[i];
  }
  double bound = H0 + T0;
  if (f == Formula::without_initial_store) bound = T0;
  if (f == Formula::without_initial_tank) bound = H0;

  ByHand result;
  const auto take = [&](double stored, double supply) {
    const std::array<double, 2> island = {tank[0] + tank[2], tank[1]};
    double reserve = std::max(island[0], 0.0) + std::max(island[1], 0.0);
    if (f == Formula::max_of_the_sum) reserve = std::max(island[0] + island[1], 0.0);
    if (f == Formula::sum_without_max) reserve = island[0] + island[1];
    if (f == Formula::without_tanks) reserve = 0.0;
    if (f == Formula::one_tank_per_part) {
      reserve = std::max(tank[0], 0.0) + std::max(tank[1], 0.0) + std::max(tank[2], 0.0);
    }
    const double ratio = (stored + reserve - supply) / bound;
    result.ratio = f == Formula::last_step ? ratio : std::max(result.ratio, ratio);
    result.tank = island;
    result.lowest_tank = std::min({result.lowest_tank, island[0], island[1]});
    result.highest_tank = std::max({result.highest_tank, island[0], island[1]});
  };
  take(H0, 0.0);
  double supplied = 0.0;
  for (const RawStep& step : run.steps) {
    double stored = 0.0, supplied_now = 0.0;
    for (std::size_t i = 0; i < kParts; ++i) {
      stored += step.storage_J[i];
      supplied_now += step.supplied_J[i];
      const double gain = half * (step.b[i] * step.b[i] - step.a[i] * step.a[i]);
      tank[i] += f == Formula::tank_sign ? -gain : gain;
    }
    supplied += supplied_now;
    double supply = f == Formula::supply_of_the_step ? supplied_now : supplied;
    if (f == Formula::supply_added) supply = -supply;
    if (f == Formula::supply_ignored) supply = 0.0;
    take(stored, supply);
  }
  return result;
}

/// Offsets of the three parts in the vectors of a discretisation.
struct Places {
  explicit Places(const WaveDiscretisation& waves)
      : wave_size(static_cast<std::size_t>(waves.wave_size())) {
    for (std::size_t i = 0; i < kParts; ++i) {
      wave[i] = static_cast<std::size_t>(waves.slots()[i].wave);
      entry[i] = waves.slots()[i].entry;
    }
  }
  AlignedVector waves(const ByPart& by_part) const {
    AlignedVector out(wave_size, 0.0);
    for (std::size_t i = 0; i < kParts; ++i) out[wave[i]] = by_part[i];
    return out;
  }
  ByPart by_part(std::span<const double> waves) const {
    return {waves[wave[0]], waves[wave[1]], waves[wave[2]]};
  }
  std::size_t wave_size;
  std::array<std::size_t, kParts> wave = {};
  std::array<int, kParts> entry = {};
};

ByPart initial_storage(const System& system) {
  ByPart out = {};
  for (std::size_t i = 0; i < kParts; ++i) {
    out[i] = system.parts()[i].port_hamiltonian()->storage(system.parts()[i].initial_state.data());
  }
  return out;
}

constexpr double kStep_s = 0.01;

AlignedVector initial_record_of(const WaveDiscretisation& waves) {
  AlignedVector record(waves.record_size(), 0.0);
  for (std::size_t i = 0; i < kParts; ++i) {
    const BatchSlot& own = waves.batch(waves.slots()[i].batch);
    own.batch->set_state(waves.slots()[i].lane, waves.system().parts()[i].initial_state.data(),
                         record.data() + own.record);
  }
  return record;
}

/// Books `run` as it stands and checks every ledger on the way.
EnergyTotals account(const System& system, const RawRun& run) {
  const WaveDiscretisation waves(system, kStep_s, std::vector<double>(kParts, 1.0));
  const Places slots(waves);
  const AlignedVector b0 = slots.waves(run.b0);
  EnergyLedger ledger(waves, initial_record_of(waves).data(), b0.data());
  RawRun so_far{run.b0, run.storage_J, {}};
  ByPart stored = run.storage_J;
  for (const RawStep& step : run.steps) {
    so_far.steps.push_back(step);
    const AlignedVector a = slots.waves(step.a), b = slots.waves(step.b);
    for (std::size_t i = 0; i < kParts; ++i) {
      ledger.columns().set(slots.entry[i], {.change_J = step.storage_J[i] - stored[i],
                                            .external_supply_J = step.supplied_J[i]});
    }
    stored = step.storage_J;
    const auto accounted = ledger.account({.a = a.data(), .b = b.data()});
    EXPECT_TRUE(accounted.has_value());
    const ByHand hand = by_hand(so_far, Formula::right);
    EXPECT_NEAR(accounted.value_or(StepLedger{}).tank_J, hand.tank[0] + hand.tank[1],
                1e-13 * (1.0 + hand.highest_tank - hand.lowest_tank));
    EXPECT_NEAR(ledger.totals().max_energy_ratio, hand.ratio, 1e-13 * hand.ratio);
  }
  return ledger.totals();
}

/// Numbers without physics, every sum exact: island 0 falls to −8.5 J, island 1 rises to 10.5 J,
/// and the largest ratio is at the second of three steps.
RawRun made_up(const System& system) {
  return {.b0 = {2, 1, 0},
          .storage_J = initial_storage(system),
          .steps = {{{5, 1, 1}, {1, 3, 2}, {3, 6, 2}, {0.5, 1, 0}},
                    {{1, 2, 0}, {2, 4, 1}, {4, 7, 3}, {0.25, 2, 0}},
                    {{0, 4, 0}, {1, 0, 0}, {3, 5, 1}, {0, -1, 0}}}};
}

TEST(EnergyBookByHand, TanksAndRatioOfMadeUpNumbers) {
  const System system = two_islands();
  ASSERT_EQ(system.island_count(), 2);
  for (std::size_t i = 0; i < kParts; ++i) {
    ASSERT_EQ(system.island_of_part(static_cast<int>(i)), static_cast<int>(kIslandOf[i]));
  }
  const RawRun run = made_up(system);
  const ByHand hand = by_hand(run, Formula::right);
  ASSERT_EQ(hand.lowest_tank, -8.5);
  ASSERT_EQ(hand.highest_tank, 10.5);
  const EnergyTotals totals = account(system, run);
  EXPECT_EQ(totals.initial_J, 5.0);       // ½·2·1² + ½·2·2²
  EXPECT_EQ(totals.initial_tank_J, 2.5);  // ½·2² + ½·1²
  EXPECT_EQ(totals.tank_J, -6.0 + 2.5);
  EXPECT_EQ(totals.mismatch_J, totals.tank_J - 2.5);
  EXPECT_EQ(totals.supplied_J, 2.75);
  EXPECT_EQ(totals.max_J, 14.0);
  EXPECT_EQ(totals.final_J, 9.0);
  EXPECT_DOUBLE_EQ(totals.max_energy_ratio, (14.0 + 10.5 - 3.75) / 7.5);
  for (const Formula wrong : kWrong) {
    EXPECT_GT(std::abs(by_hand(run, wrong).ratio - totals.max_energy_ratio), 0.01)
        << "formula " << static_cast<int>(wrong);
  }
}

/// Steps two_islands() with one Douglas–Rachford iteration and keeps what was booked.
RawRun step_two_islands(const System& system, const ByPart& b0, int steps) {
  WaveDiscretisation waves(system, kStep_s, std::vector<double>(kParts, 0.5));
  const Places slots(waves);
  WaveIteration iteration(waves, {&peaceman_rachford(), 1.0});
  AlignedVector record = waves.initial_record(), next(record.size());
  AlignedVector b = slots.waves(b0);
  AlignedVector input(waves.input_size());
  AlignedVector columns[3];
  for (AlignedVector& column : columns)
    column.resize(static_cast<std::size_t>(waves.entry_count()));
  const EnergyColumns energy{columns[0].data(), columns[1].data(), columns[2].data()};
  RawRun run{b0, initial_storage(system), {}};
  PhaseStatus failure;
  for (int n = 0; n < steps; ++n) {
    EXPECT_TRUE(waves.sample_inputs(n * kStep_s, input.data(), failure));
    EXPECT_TRUE(waves.freeze_all(record.data(), input.data()).ok());
    EXPECT_TRUE(iteration.step(record.data(), b, 1, next.data(), b.data(), energy).ok());
    const std::span<const double> a = iteration.shadow();
    RawStep step{slots.by_part(a), slots.by_part(b), {}, {}};
    for (std::size_t i = 0; i < kParts; ++i) {
      const Part& part = system.parts()[i];
      std::vector<double> x(part.initial_state.size());
      waves.get_state(static_cast<int>(i), next.data(), x.data());
      step.storage_J[i] = part.port_hamiltonian()->storage(x.data());
      step.supplied_J[i] = energy.at(slots.entry[i]).external_supply_J;
    }
    run.steps.push_back(step);
    record.swap(next);
  }
  return run;
}

TEST(EnergyBookByHand, TanksAndRatioOfADrivenRun) {
  const System system = two_islands(Signal::sine_product(-10.0, {{0.3, 0.0}}));
  const RawRun run = step_two_islands(system, {0.5, -1.0, -0.25}, 200);
  const ByHand hand = by_hand(run, Formula::right);
  EXPECT_LT(hand.tank[0], -1.0);
  EXPECT_GT(hand.tank[1], 1.0);
  const double ratio = account(system, run).max_energy_ratio;
  for (const Formula wrong : kWrong) {
    EXPECT_GT(std::abs(by_hand(run, wrong).ratio - ratio), 0.01)
        << "formula " << static_cast<int>(wrong);
  }
}

TEST(EnergyBookByHand, RatioCountsTheStart) {
  const System system = two_islands();
  const RawRun losing{.b0 = {2, 1, 0},
                      .storage_J = initial_storage(system),
                      .steps = {{{2, 1, 0}, {1, 0, 0}, {0.5, 2, 0}, {0, 0, 0}}}};
  EXPECT_EQ(account(system, losing).max_energy_ratio, 1.0);
  EXPECT_LT(by_hand(losing, Formula::last_step).ratio, 0.9);
}

System driven_from_rest() {
  SystemBuilder builder;
  for (const char* name : {"A", "C", "B"}) {
    builder.add(name, linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 2}),
                {.initial_state = {}, .inputs = {{"force", Signal::constant(3.0)}}});
  }
  builder.connect("A.coupling", "B.coupling");
  builder.join(joint::Free{}, {"C.coupling"});
  return builder.build();
}

TEST(EnergyBookByHand, RatioIsNullWithoutInitialEnergyOnly) {
  const System system = driven_from_rest();
  const auto ratio = [&](const ByPart& b0, bool booked) {
    const WaveDiscretisation waves(system, kStep_s, std::vector<double>(kParts, 2.0));
    const Places slots(waves);
    const AlignedVector b = slots.waves(b0);
    EnergyLedger ledger(waves, initial_record_of(waves).data(), b.data());
    if (booked) {
      const AlignedVector a = slots.waves({0.5, 0.5, 0.5}),
                          b_next = slots.waves({0.25, 0.25, 0.25});
      for (const int entry : slots.entry) {
        ledger.columns().set(entry, {.change_J = 1, .external_supply_J = 0.5});
      }
      EXPECT_TRUE(ledger.account({.a = a.data(), .b = b_next.data()}).has_value());
    }
    return ledger.totals().max_energy_ratio;
  };
  for (const bool booked : {false, true}) {
    EXPECT_TRUE(std::isnan(ratio({0, 0, 0}, booked))) << booked;
    EXPECT_TRUE(std::isfinite(ratio({0, 1e-3, 0}, booked))) << booked;  // T₀ alone
  }
}

}  // namespace
}  // namespace portwave::test_ledger_sums
