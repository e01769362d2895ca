// Asynchronous exchange between ranks: waves that are late, come in any order, or very late. The energy of
// all is that of states, computed here; the ranks are threads of this process.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/coupling/method/method_table.hpp>
#include <portwave/runtime/ranks/ranked_stepper.hpp>
#include <portwave/runtime/ranks/thread_ranks.hpp>
#include <portwave/runtime/step/stepper.hpp>

#include "support/systems/coupled_systems.hpp"
#include "support/systems/systems.hpp"
#include "support/trace.hpp"

namespace portwave::test_stale_waves {
namespace {

using testing::sprung_mass;
using testing::SprungMass;
using Lateness = std::function<int(int from, int to, std::uint64_t number)>;

constexpr int kBlocks = 18;

SprungMass block(int i) {
  return {.mass = std::pow(10.0, i % 5 - 2),
          .stiffness = i % 3 == 0 ? 0.0 : 5.0 * i,  // some only hang on their neighbours
          .damping = 0.0,
          .up_stiffness = 30.0 + 20.0 * (i % 4),
          .up_damping = 0.0,
          .rigid_ports = i == 0 ? 0 : 1,
          .velocity = i % 4 - 1.5};
}

/// Masses from 0.01 to 100 in a row, without loss, that start far out.
System row() {
  SystemBuilder builder;
  const auto name = [](int i) { return "m" + std::to_string(i); };
  for (int i = 0; i < kBlocks; ++i) {
    builder.add(name(i), sprung_mass(block(i)),
                {.initial_state = {3.0 * std::sin(i), block(i).velocity, 0.5 * std::cos(i)}});
  }
  for (int i = 0; i + 1 < kBlocks; ++i) builder.connect(name(i) + ".up", name(i + 1) + ".p0");
  builder.join(joint::Free{}, {name(kBlocks - 1) + ".up"});
  return builder.build();
}

/// H of the row by its formula, from states alone.
double energy_of(const Stepper& stepper) {
  double sum = 0.0;
  for (int i = 0; i < kBlocks; ++i) {
    const auto x = stepper.state(i);
    const SprungMass p = block(i);
    sum += 0.5 * (p.stiffness * x[0] * x[0] + p.mass * x[1] * x[1] + p.up_stiffness * x[2] * x[2]);
  }
  return sum;
}

struct Law {
  double start_J = 0.0, highest_J = 0.0;  ///< of H + T
  double lowest_tank_J = 0.0;
  CertificateStatus status = CertificateStatus::holds;
};

StepperOptions options_for(int iterations, int max_delay, double impedance, bool guard) {
  StepperOptions options{.method = WaveCoupling{}};
  options.start = Start::as_given;
  options.step_s = 0.02;
  options.grain = Grain::of_parts(3);
  WaveCoupling& waves = options.method.waves();
  waves.kind = WaveUpdate::peaceman_rachford;
  waves.iterations = iterations;
  waves.impedance = {impedance};
  waves.guard = guard;
  if (max_delay > 0) waves.exchange = {ExchangeKind::asynchronous, max_delay};
  return options;
}

/// body(stepper) on rank 0 of `ranks`.
void on_ranks(int ranks, const System& system, const StepperOptions& options,
              const ThreadRanksOptions& transport, const std::function<void(Stepper&)>& body) {
  run_thread_ranks(
      ranks,
      [&](const std::shared_ptr<Ranks>& own) {
        StepperOptions shared = options;
        shared.ranks = own;
        Stepper stepper(system, shared);
        own->rank() == 0 ? body(stepper) : RankedStepper(stepper).follow();
      },
      transport);
}

Law run_law(int ranks, const StepperOptions& options, const ThreadRanksOptions& transport,
            int steps) {
  Law law;
  const System system = row();
  on_ranks(ranks, system, options, transport, [&](Stepper& stepper) {
    law.start_J = law.highest_J = energy_of(stepper) + stepper.waves()->tank(0);
    law.lowest_tank_J = stepper.waves()->tank(0);
    for (int n = 0; n < steps; ++n) {
      stepper.step();
      const double tank = stepper.waves()->tank(0);
      law.lowest_tank_J = std::min(law.lowest_tank_J, tank);
      law.highest_J = std::max(law.highest_J, energy_of(stepper) + tank);
    }
    law.status = stepper.certificate().status;
  });
  return law;
}

/// Of a message, without memory: some are as good as lost.
int scattered(int from, int to, std::uint64_t number) {
  std::uint64_t x = number * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(from * 31 + to);
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9U;
  x ^= x >> 32;
  return x % 7 == 0 ? 1000 : static_cast<int>(x % 5);
}

std::vector<std::pair<const char*, Lateness>> latenesses() {
  return {{"one late", [](int, int, std::uint64_t) { return 1; }},
          {"one way", [](int from, int to, std::uint64_t) { return from < to ? 6 : 0; }},
          {"in reverse", [](int, int, std::uint64_t n) { return static_cast<int>(6 - n % 4 * 2); }},
          {"scattered", scattered},
          {"lost and late", [](int, int, std::uint64_t) { return 1'000'000; }}};
}

TEST(StaleWaves, AreSafeAtEveryDelayAndBudget) {
  int delays_that_mattered = 0;
  for (const auto& [name, lateness] : latenesses()) {
    for (const int max_delay : {1, 2, 5}) {
      for (const int iterations : {1, 2, 5, 12}) {
        for (const double impedance : {0.05, 3.0, 200.0}) {
          const StepperOptions options = options_for(iterations, max_delay, impedance, true);
          const Law law = run_law(3, options, {.lateness = lateness}, 30);
          const std::string where = std::string(name) + ", delay " + std::to_string(max_delay) +
                                    ", K " + std::to_string(iterations) + ", impedance " +
                                    std::to_string(impedance);
          EXPECT_LE(law.highest_J, law.start_J * (1.0 + 1e-12)) << where;
          EXPECT_GE(law.lowest_tank_J, -1e-12 * law.start_J) << where;
          EXPECT_EQ(law.status, CertificateStatus::holds) << where;
          ++delays_that_mattered;
        }
      }
    }
  }
  EXPECT_EQ(delays_that_mattered, 180);
}

/// The same runs without the guard do overdraw their tanks.
TEST(StaleWavesControl, WithoutTheGuardTanksAreOverdrawn) {
  int overdrawn = 0;
  for (const auto& [name, lateness] : latenesses()) {
    const Law law = run_law(3, options_for(2, 2, 3.0, false), {.lateness = lateness}, 30);
    overdrawn += law.lowest_tank_J < -1e-3 * law.start_J ? 1 : 0;
  }
  EXPECT_GE(overdrawn, 3);
}

TEST(StaleWaves, AreSafeWhenMessagesComeAsTheyCome) {
  for (const unsigned seed : {1U, 2U, 3U}) {
    const Law law = run_law(4, options_for(6, 3, 3.0, true), {.seed = seed}, 40);
    EXPECT_LE(law.highest_J, law.start_J * (1.0 + 1e-12));
    EXPECT_GE(law.lowest_tank_J, -1e-12 * law.start_J);
    EXPECT_EQ(law.status, CertificateStatus::holds);
  }
}

std::vector<double> trace_of(int ranks, const StepperOptions& options,
                             const ThreadRanksOptions& transport, int steps) {
  std::vector<double> out;
  const System system = row();
  on_ranks(ranks, system, options, transport, [&](Stepper& stepper) {
    for (int n = 0; n < steps; ++n) {
      stepper.step();
      testing::append_interface(stepper, out);
    }
  });
  return out;
}

TEST(StaleWaves, ThatAreNotLateGiveTheBitsOfOneProcess) {
  const Lateness none = [](int, int, std::uint64_t) { return 0; };
  const std::vector<double> expected = trace_of(1, options_for(5, 0, 3.0, true), {}, 30);
  for (const int max_delay : {1, 3}) {
    const StepperOptions options = options_for(5, max_delay, 3.0, true);
    EXPECT_TRUE(testing::same_bits(expected, trace_of(1, options, {}, 30)));
    EXPECT_TRUE(testing::same_bits(expected, trace_of(3, options, {.lateness = none}, 30)));
    // Control: any lateness is seen.
    const Lateness one = [](int, int, std::uint64_t) { return 1; };
    EXPECT_FALSE(testing::same_bits(expected, trace_of(3, options, {.lateness = one}, 30)));
  }
}

TEST(StaleWaves, OfAGivenLatenessDoNotDependOnTiming) {
  const StepperOptions options = options_for(5, 3, 3.0, true);
  const std::vector<double> expected = trace_of(4, options, {.lateness = scattered}, 30);
  for (const unsigned seed : {5U, 6U}) {
    EXPECT_TRUE(testing::same_bits(
        expected, trace_of(4, options, {.lateness = scattered, .seed = seed}, 30)));
  }
}

/// Connections at which one side steps with the wave that the other committed in the step before.
int connections_a_step_behind(const Lateness& lateness, int max_delay) {
  const System system = row();
  int count = 0;
  on_ranks(2, system, options_for(1, max_delay, 3.0, false), {.lateness = lateness},
           [&](Stepper& stepper) {
             stepper.step(5);
             std::vector<double> before;
             const auto ports = static_cast<int>(system.scalar_ports().size());
             for (int i = 0; i < ports; ++i) before.push_back(stepper.waves()->outgoing(i));
             stepper.step();
             for (const Junction& junction : system.junctions()) {
               if (junction.waves.size() != 2) continue;
               // Of equal impedance: the waves change sides.
               const double wave = before[static_cast<std::size_t>(junction.waves[1])];
               const double taken = stepper.waves()->incident(junction.waves[0]);
               count += wave != 0.0 && std::abs(wave) == std::abs(taken) ? 1 : 0;
             }
           });
  return count;
}

TEST(StaleWaves, OfAnEvaluationThatHasNotComeAreThoseOfTheLastStep) {
  const Lateness one = [](int, int, std::uint64_t) { return 1; };
  EXPECT_EQ(connections_a_step_behind(one, 1), 1) << "the one that is cut";
  EXPECT_EQ(connections_a_step_behind(one, 0), 0);
}

/// What is iterated long enough is the same however late waves are.
TEST(StaleWaves, ConvergeToWhatTheyConvergeToWithoutDelay) {
  const std::vector<double> expected = trace_of(1, options_for(6000, 0, 3.0, true), {}, 4);
  double scale = 0.0;
  for (const double x : expected) scale = std::max(scale, std::abs(x));
  const auto distance = [&](int iterations, const Lateness& lateness) {
    const std::vector<double> got =
        trace_of(3, options_for(iterations, 4, 3.0, true), {.lateness = lateness}, 4);
    double worst = 0.0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      worst = std::max(worst, std::abs(got[i] - expected[i]));
    }
    return worst / scale;
  };
  for (const auto& [name, lateness] : latenesses()) {
    const double few = distance(60, lateness), many = distance(6000, lateness);
    EXPECT_LT(many, 1e-9) << name;
    EXPECT_GT(few, 1e3 * many) << name;
  }
}

TEST(StaleWaves, AreRefusedWhereRanksWaitForOneAnother) {
  const auto issues_of = [](const std::function<void(WaveCoupling&)>& change) {
    CouplingMethod method = WaveCoupling{};
    method.waves().exchange.kind = ExchangeKind::asynchronous;
    change(method.waves());
    return check_method(method);
  };
  EXPECT_TRUE(issues_of([](WaveCoupling&) {}).empty());
  EXPECT_EQ(issues_of([](WaveCoupling& w) { w.tolerance = 1e-6; }).size(), 1U);
  EXPECT_EQ(issues_of([](WaveCoupling& w) { w.energy_tolerance_J = 1e-6; }).size(), 1U);
  EXPECT_EQ(issues_of([](WaveCoupling& w) { w.acceleration = 2; }).size(), 1U);
  EXPECT_EQ(issues_of([](WaveCoupling& w) { w.exchange.max_delay = 0; }).size(), 1U);
  EXPECT_EQ(issues_of([](WaveCoupling& w) { w.exchange.max_delay = 65; }).size(), 1U);
  const Issues automatic = issues_of([](WaveCoupling& w) {
    w = WaveCoupling::automatic();
    w.exchange.kind = ExchangeKind::asynchronous;
  });
  ASSERT_EQ(automatic.size(), 1U);
  EXPECT_EQ(automatic[0].where, "/method/exchange/kind");
  EXPECT_EQ(issues_of([](WaveCoupling& w) {
              w.tolerance = 1e-6;
              w.acceleration = 2;
            }).size(),
            2U);
}

}  // namespace
}  // namespace portwave::test_stale_waves
