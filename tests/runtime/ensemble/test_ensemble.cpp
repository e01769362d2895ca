#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/runtime/ensemble/ensemble.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "support/systems/systems.hpp"

namespace portwave::testing::test_ensemble {
namespace {

/// A pair of which number `i` has parameters and a start of its own; B is driven by a settable
/// force.
System varied_pair(int i, bool linear = false) {
  const double share = 0.01 * i;
  SystemBuilder builder;
  builder.add("A",
              duffing_oscillator({.mass_kg = 8 + share,
                                  .stiffness_N_per_m = 100,
                                  .cubic_stiffness_N_per_m3 = linear ? 0.0 : 8000 * (1 + share),
                                  .coupling_stiffness_N_per_m = 120 + share,
                                  .coupling_damping_Ns_per_m = 0.05}),
              {.initial_state = {0.4 - share, 0, -0.4 + share}});
  builder.add(
      "B", linear_oscillator({.mass_kg = 4, .stiffness_N_per_m = 50 + share}),
      {.initial_state = {0.01 * share, 0}, .inputs = {{"force", Signal::settable(0.1 * share)}}});
  builder.connect("A.coupling", "B.coupling");
  return builder.build();
}

System varied_chain(int i) {
  SystemBuilder builder;
  const double share = 0.02 * i;
  const auto block = [&](double k, ChainEnd end) {
    return mass_spring_damper_chain({.masses = 2,
                                     .mass_kg = 0.3 + share,
                                     .stiffness_N_per_m = k,
                                     .damping_Ns_per_m = 0.1,
                                     .coupling_stiffness_N_per_m = 50,
                                     .right_end = end});
  };
  builder.add("a", block(50, ChainEnd::spring), {.initial_state = {0.1 + share, 0, 0, 0, 0}});
  builder.add("b", block(60, ChainEnd::spring), {.initial_state = {0, 0, 0, 0.2, 0}});
  builder.add("c", block(70, ChainEnd::mass));
  builder.connect("a.right", "b.left");
  builder.connect("b.right", "c.left");
  builder.join(joint::Free{}, {"a.left"});
  builder.join(joint::Resistive{0.4}, {"c.right"});
  return builder.build();
}

/// More parts than are summed at once (PartOrderReduction::kChunk).
System long_chain(int i) {
  constexpr int kBlocks = 150;
  SystemBuilder builder;
  const auto name = [](int k) { return "block" + std::to_string(k); };
  for (int k = 0; k < kBlocks; ++k) {
    builder.add(name(k),
                mass_spring_damper_chain({.masses = 2,
                                          .mass_kg = 0.3,
                                          .stiffness_N_per_m = 50.0 + 0.1 * k + i,
                                          .damping_Ns_per_m = 0.01,
                                          .coupling_stiffness_N_per_m = 50}),
                {.initial_state = {0.01 * (k % 7), 0, 0, 0.02 * (i + k % 5), 0}});
  }
  for (int k = 0; k + 1 < kBlocks; ++k) builder.connect(name(k) + ".right", name(k + 1) + ".left");
  builder.join(joint::Free{}, {name(0) + ".left"});
  builder.join(joint::Fixed{}, {name(kBlocks - 1) + ".right"});
  return builder.build();
}

struct Case {
  std::string name;
  std::function<System(int)> replica;
  std::function<void(StepperOptions&)> set = [](StepperOptions&) {};
  bool in_lanes = true;
};

void PrintTo(const Case& own, std::ostream* out) { *out << own.name; }

StepperOptions options_for(const Case& own) {
  StepperOptions options{.method = WaveCoupling{}};
  options.start = Start::as_given;
  options.step_s = 0.01;
  options.method.waves().iterations = 4;
  options.method.waves().impedance = {0.4};
  own.set(options);
  return options;
}

std::vector<Case> cases() {
  const auto pair = [](int i) { return varied_pair(i); };
  const auto waves = [](auto change) {
    return [change](StepperOptions& options) { change(options.method.waves()); };
  };
  return {
      {"budget", pair},
      {"more_parts_than_are_summed_at_once", long_chain},
      {"guard_at_work", pair, waves([](WaveCoupling& m) {
         m.iterations = 2;
         m.impedance = {10.0};
       })},
      {"guard_of_linear_parts_at_work", varied_chain, waves([](WaveCoupling& m) {
         m.iterations = 2;
         m.impedance = {2.0};
       })},
      {"no_iteration", pair, waves([](WaveCoupling& m) { m.iterations = 0; })},
      {"short_budget_without_guard", pair, waves([](WaveCoupling& m) {
         m.iterations = 1;
         m.guard = false;
       })},
      {"without_ledger", pair,
       [](StepperOptions& options) {
         options.certify = Certify::none;
         options.method.waves().guard = false;
       }},
      {"tolerance", pair, waves([](WaveCoupling& m) {
         m.iterations = 30;
         m.tolerance = 1e-8;
       })},
      {"missed_tolerance_per_part", pair, waves([](WaveCoupling& m) {
         m.tolerance = 1e-9;
         m.tolerance_per_part = true;
       })},
      {"energy_tolerance", pair, waves([](WaveCoupling& m) {
         m.iterations = 30;
         m.energy_tolerance_J = 1e-9;
       })},
      {"acceleration", pair, waves([](WaveCoupling& m) {
         m.iterations = 20;
         m.tolerance = 1e-10;
         m.acceleration = 4;
       })},
      {"interface_of_linear_parts", varied_chain,
       waves([](WaveCoupling& m) { m = WaveCoupling::of_kind(WaveUpdate::interface); })},
      {"automatic", pair, waves([](WaveCoupling& m) {
         m = WaveCoupling::automatic(1e-10);
         m.retune_factor = 0.0;
       })},
      {"automatic_of_linear_parts", varied_chain,
       waves([](WaveCoupling& m) { m = WaveCoupling::automatic(1e-10); })},
      {"early_rescue", pair, waves([](WaveCoupling& m) {
         m.iterations = 30;
         m.tolerance = 1e-10;
         m.rescue_after = 4;
       })},
      {"peaceman_rachford_with_tank", varied_chain, waves([](WaveCoupling& m) {
         m.kind = WaveUpdate::peaceman_rachford;
         m.impedance = {2.0};
         m.tank.initial_fraction = 0.01;
         m.tank.cap_J = 0.02;
       })},
      {"two_stages", pair, waves([](WaveCoupling& m) { m.stages = 2; })},
      {"three_stages_of_linear_parts", varied_chain, waves([](WaveCoupling& m) {
         m.stages = 3;
         m.tolerance = 1e-9;
       })},
      {"extrapolated_start", pair,
       waves([](WaveCoupling& m) { m.start = InnerStart::extrapolated; })},
      {"driven",
       [](int i) {
         SystemBuilder builder;
         builder.add("A", linear_oscillator({.mass_kg = 1.0 + 0.1 * i, .stiffness_N_per_m = 10}),
                     {.initial_state = {1, 0},
                      .inputs = {{"force", Signal::sine_product(0.3 * i, {{1.5, 0.2}})}}});
         builder.add("B", linear_oscillator({.mass_kg = 1.5, .stiffness_N_per_m = 20}));
         builder.connect("A.coupling", "B.coupling");
         return builder.build();
       }},
      {"star", [](int) { return star(); }},
      {"impedances_follow", pair, waves([](WaveCoupling& m) {
         m = WaveCoupling::automatic(1e-10);
         m.kind = WaveUpdate::peaceman_rachford;
         m.impedance_kind = ImpedanceKind::matched;
         m.retune_factor = 1.00000001;
       })},
      {"impedances_follow_at_two_stages", pair, waves([](WaveCoupling& m) {
         m = WaveCoupling::automatic_with_stages(2);
         m.kind = WaveUpdate::peaceman_rachford;
         m.impedance_kind = ImpedanceKind::matched;
         m.retune_factor = 1.00000001;
       })},
      // Each by itself.
      {"two_islands", [](int) { return ring_of_junctions(); }, [](StepperOptions&) {}, false},
      {"interface_of_nonlinear_parts", pair, waves([](WaveCoupling& m) {
         m = WaveCoupling::of_kind(WaveUpdate::interface);
         m.retune_factor = 0.0;
       }),
       false},
      {"sizes", pair,
       [](StepperOptions& options) {
         options.sizes.emplace().tolerance = 1e-5;
         options.method.waves() = WaveCoupling::automatic(1e-10);
       },
       false},
      {"full_certificate", pair, [](StepperOptions& options) { options.certify = Certify::full; },
       false},
      {"without_waves", [](int) { return chain_of_blocks(3, 2); },
       [](StepperOptions& options) { options.method = Splitting{}; }, false},
  };
}

/// Equal to the last bit.
bool same(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) ||
         (std::isnan(a) && std::isnan(b)) || (a == 0.0 && b == 0.0);
}

std::vector<double> numbers_of(const EnergyTotals& e) {
  return {e.initial_J,    e.final_J,    e.max_J,          e.supplied_J,
          e.dissipated_J, e.mismatch_J, e.initial_tank_J, e.tank_J,
          e.given_up_J,   e.metered_J,  e.rounding_J,     e.max_energy_ratio};
}

std::vector<double> numbers_of(const Certificate& c) {
  std::vector<double> out = {static_cast<double>(c.status),
                             c.max_passivity_residual_J,
                             static_cast<double>(c.is_part_active),
                             static_cast<double>(c.worst_passivity_part),
                             static_cast<double>(c.worst_passivity_step),
                             static_cast<double>(c.missed.steps),
                             c.missed.residual,
                             c.missed.gap_J,
                             static_cast<double>(c.missed.step),
                             static_cast<double>(c.missed.part),
                             c.missed.part_gap_J};
  if (c.growth) {
    for (const double own : {c.growth->beyond_J, c.growth->ratio}) out.push_back(own);
    out.push_back(static_cast<double>(c.growth->step));
  }
  if (c.broken_law) out.push_back(static_cast<double>(c.broken_law->step));
  return out;
}

::testing::AssertionResult equal(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << "sizes differ";
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (same(a[i], b[i])) continue;
    return ::testing::AssertionFailure()
           << fmt::format("number {}: {:.17g} and {:.17g}", i, a[i], b[i]);
  }
  return ::testing::AssertionSuccess();
}

/// A stepper of one replica alone, by the options that it is said to have.
struct Alone {
  Alone(const Case& own, const Ensemble& ensemble, int i)
      : system(own.replica(i)), stepper(system, ensemble.options_of(i)) {}

  void run(int steps, double step_s) {
    if (stepper.step_sizes() != nullptr) {
      stepper.run_until(steps * step_s);
    } else {
      stepper.step(steps - static_cast<int>(stepper.step_index()));
    }
  }
  std::vector<double> state() const {
    std::vector<double> out;
    for (int part = 0; part < static_cast<int>(system.parts().size()); ++part) {
      const auto own = stepper.state(part);
      out.insert(out.end(), own.begin(), own.end());
    }
    return out;
  }

  System system;
  Stepper stepper;
};

std::vector<double> state_of(const Ensemble& ensemble, int i) {
  std::vector<double> out(static_cast<std::size_t>(ensemble.state_size()));
  ensemble.get_state(i, out);
  return out;
}

class EnsembleLaw : public ::testing::TestWithParam<Case> {};

TEST_P(EnsembleLaw, EachReplicaHasTheBitsOfAStepperOfItsOwn) {
  const Case& own = GetParam();
  const StepperOptions options = options_for(own);
  constexpr int kReplicas = 19;
  Ensemble ensemble(kReplicas, own.replica, options);
  EXPECT_EQ(ensemble.in_lanes(), own.in_lanes) << ensemble.execution();
  std::vector<std::unique_ptr<Alone>> alone;
  for (int i = 0; i < kReplicas; ++i) alone.push_back(std::make_unique<Alone>(own, ensemble, i));
  std::int64_t guarded = 0, tuned = 0;
  for (const int steps : {1, 2, 60}) {
    ensemble.step(steps - ensemble.step_index());
    for (int i = 0; i < kReplicas; ++i) {
      Alone& one = *alone[static_cast<std::size_t>(i)];
      one.run(steps, options.step_s);
      const std::string where = fmt::format("replica {} after {} steps", i, steps);
      ASSERT_TRUE(equal(state_of(ensemble, i), one.state())) << where;
      if (one.stepper.keeps_ledger()) {
        ASSERT_TRUE(equal(numbers_of(ensemble.energy(i)), numbers_of(one.stepper.energy())))
            << where;
      }
      ASSERT_TRUE(equal(numbers_of(ensemble.certificate(i)), numbers_of(one.stepper.certificate())))
          << where;
      const ReplicaStatus status = ensemble.status(i);
      EXPECT_FALSE(status.failed) << status.error;
      EXPECT_EQ(status.steps, one.stepper.iterations().steps);
      EXPECT_EQ(status.iterations, one.stepper.iterations().total) << where;
      EXPECT_EQ(status.max_iterations, one.stepper.iterations().max) << where;
      EXPECT_EQ(status.not_converged, one.stepper.iterations().not_converged) << where;
      const WaveView* const waves = one.stepper.waves();
      if (waves == nullptr || waves->guard() == nullptr) continue;
      EXPECT_EQ(status.guard.uses, waves->guard()->uses) << where;
      EXPECT_EQ(status.guard.min_alpha, waves->guard()->min_alpha) << where;
      EXPECT_TRUE(same(status.guard.withheld_J, waves->guard()->withheld_J)) << where;
      guarded += status.guard.uses;
      tuned += waves->tuning().changes;
    }
  }
  if (own.name.ends_with("at_work")) {
    EXPECT_GT(guarded, 0);
  }
  if (own.name.starts_with("impedances_follow")) {
    EXPECT_GT(tuned, 0);
  }
}

/// States of all replicas, step by step.
std::vector<double> rolled_out(Ensemble& ensemble, std::span<const double> x0,
                               std::span<const double> u, int steps) {
  std::vector<double> x(static_cast<std::size_t>(ensemble.replicas()) *
                        static_cast<std::size_t>(steps) *
                        static_cast<std::size_t>(ensemble.state_size()));
  ensemble.rollout(x0, u, steps, x);
  return x;
}

TEST_P(EnsembleLaw, NeitherThreadsNorChunksNorWhatWasBeforeChangeABit) {
  const Case& own = GetParam();
  const StepperOptions options = options_for(own);
  constexpr int kReplicas = 37, kSteps = 12;
  std::vector<double> expected;
  for (const int threads : {1, 2, 5}) {
    for (const int chunk : {0, 1, 3, 16, 100}) {
      Ensemble ensemble(kReplicas, own.replica, options, {.threads = threads, .chunk = chunk});
      for (int run = 0; run < 2; ++run) {
        const std::vector<double> x = rolled_out(ensemble, {}, {}, kSteps);
        if (expected.empty()) expected = x;
        ASSERT_TRUE(equal(x, expected))
            << threads << " threads, chunks of " << chunk << ", run " << run;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ensemble, EnsembleLaw, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

// A step size is no number of steps, and would be 0 of them.
template <class Stepping>
concept TakesASizeForANumber = requires(Stepping& stepping) {
  stepping.step(0.01);
};
static_assert(!TakesASizeForANumber<Ensemble> && !TakesASizeForANumber<Stepper>);

TEST(EnsembleSignals, InputsThatAControllerDrivesAreItsOwnAndOthersAreSet) {
  const auto replica = [](int i) {
    SystemBuilder builder;
    builder.add("B", linear_oscillator({.mass_kg = 4.0 + i, .stiffness_N_per_m = 50}),
                {.inputs = {{"force", Signal::settable()}}});
    builder.add("C", linear_oscillator({.mass_kg = 2.0 + i, .stiffness_N_per_m = 5}),
                {.inputs = {{"force", Signal::settable()}}});
    builder.join(joint::Free{}, {"B.coupling"});
    builder.join(joint::Free{}, {"C.coupling"});
    return builder.build();
  };
  const System first = replica(0);
  SignalGraphBuilder graph(first);
  graph.sensor("q", {Sensor::Kind::state, 0, 0});
  graph.block("law", block::gain(-3.0, 1.0), {"q"}, 2);
  graph.actuate("law", 0, 0);
  StepperOptions options;
  options.start = Start::as_given;
  options.method = CouplingMethod::automatic();
  options.signals = std::make_shared<const SignalGraph>(graph.build());

  Ensemble ensemble(3, replica, options);
  for (int i = 0; i < 3; ++i) ensemble.set_input(i, 1, 0.5);
  ensemble.step(100);
  for (int i = 0; i < 3; ++i) {
    const System system = replica(i);
    Stepper alone(system, options);
    alone.set_input(InputSlot{1}, 0.5);
    alone.step(100);
    const std::vector<double> expected = {alone.state(0)[0], alone.state(0)[1], alone.state(1)[0],
                                          alone.state(1)[1]};
    EXPECT_NE(expected[0], 0.0);
    EXPECT_NE(expected[2], 0.0);
    EXPECT_TRUE(equal(state_of(ensemble, i), expected)) << i;
  }
}

TEST(EnsembleRun, WhoIsAskedBeforeAStepEndsTheRunOnAllThreads) {
  const Case own{"pair", [](int i) { return varied_pair(i); }};
  for (const int threads : {1, 2}) {
    Ensemble ensemble(64, own.replica, options_for(own), {.threads = threads, .chunk = 8});
    std::atomic<int> asked = 0;
    const auto ask = [&] {
      if (++asked > 100) throw std::runtime_error("enough");
    };
    EXPECT_THROW(ensemble.step(1'000'000'000, ask), std::runtime_error);
    EXPECT_LE(asked, 102);
    asked = 0;
    std::vector<double> x(64 * static_cast<std::size_t>(ensemble.state_size()));
    EXPECT_THROW(ensemble.rollout({}, {}, 1'000'000, x, {.every = 1'000'000, .ask = ask}),
                 std::runtime_error);
    EXPECT_LE(asked, 102);

    // Then it begins anew, from the start.
    asked = -1000;
    ensemble.step(10, ask);
    EXPECT_EQ(ensemble.step_index(), 10);
    Ensemble other(64, own.replica, options_for(own), {.chunk = 64});
    other.step(10);
    EXPECT_TRUE(equal(state_of(ensemble, 63), state_of(other, 63)));
  }
}

TEST(EnsembleControl, AnotherBitIsSeen) {
  const Case own{"pair", [](int i) { return varied_pair(i); }};
  Ensemble ensemble(9, own.replica, options_for(own));
  std::vector<double> state = state_of(ensemble, 4);
  state[0] = std::nextafter(state[0], 1.0);
  ensemble.set_state(4, state);
  Alone changed(own, ensemble, 4), left(own, ensemble, 5);
  changed.run(20, 0.01);
  left.run(20, 0.01);
  ensemble.step(20);
  EXPECT_FALSE(equal(state_of(ensemble, 4), changed.state()));
  EXPECT_TRUE(equal(state_of(ensemble, 5), left.state()));
}

TEST(EnsembleRollout, TakesStatesAndInputsOfEachReplica) {
  const Case own{"pair", [](int i) { return varied_pair(i); }};
  const StepperOptions options = options_for(own);
  constexpr int kReplicas = 21, kSteps = 30, kEvery = 5;
  Ensemble ensemble(kReplicas, own.replica, options, {.threads = 2, .chunk = 8});
  ASSERT_EQ(ensemble.input_size(), 1);
  ASSERT_EQ(ensemble.state_size(), 5);
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  std::vector<double> x0(kReplicas * 5), u(kReplicas * kSteps), x(kReplicas * kSteps / kEvery * 5);
  for (double& value : x0) value = 0.1 * normal(random);
  for (double& value : u) value = normal(random);
  ensemble.rollout(x0, u, kSteps, x, {.every = kEvery});
  for (int i = 0; i < kReplicas; ++i) {
    SystemBuilder builder;
    const System given = varied_pair(i);
    const double* start = x0.data() + i * 5;
    builder.add("A", given.parts()[0].component, {.initial_state = {start[0], start[1], start[2]}});
    builder.add("B", given.parts()[1].component,
                {.initial_state = {start[3], start[4]}, .inputs = {{"force", Signal::settable()}}});
    builder.connect("A.coupling", "B.coupling");
    const System system = builder.build();
    Stepper stepper(system, ensemble.options_of(i));
    for (int t = 0; t < kSteps; ++t) {
      stepper.set_input(1, 0, u[static_cast<std::size_t>(i * kSteps + t)]);
      stepper.step();
      if ((t + 1) % kEvery != 0) continue;
      const double* row = x.data() + (i * (kSteps / kEvery) + (t + 1) / kEvery - 1) * 5;
      for (int k = 0; k < 5; ++k) {
        const double expected = k < 3 ? stepper.state(0)[static_cast<std::size_t>(k)]
                                      : stepper.state(1)[static_cast<std::size_t>(k - 3)];
        ASSERT_TRUE(same(row[k], expected)) << "replica " << i << " step " << t << " state " << k;
      }
    }
    EXPECT_TRUE(equal(numbers_of(ensemble.energy(i)), numbers_of(stepper.energy())));
  }
}

TEST(EnsembleRollout, TellsWrongShapes) {
  const Case own{"pair", [](int i) { return varied_pair(i); }};
  Ensemble ensemble(3, own.replica, options_for(own));
  std::vector<double> x(3 * 10 * 5);
  const auto text_of = [&](std::size_t x0, std::size_t u, int steps, std::size_t out, int every) {
    try {
      ensemble.rollout(std::vector<double>(x0), std::vector<double>(u), steps,
                       std::span(x).first(out), {.every = every});
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(text_of(15, 30, 10, 150, 1), "");
  EXPECT_EQ(text_of(14, 30, 10, 150, 1), "x0 has 14 numbers, and its shape must be [3, 5]: 15");
  EXPECT_EQ(text_of(15, 31, 10, 150, 1), "u has 31 numbers, and its shape must be [3, 10, 1]: 30");
  EXPECT_EQ(text_of(15, 30, 10, 149, 1),
            "x has 149 numbers, and its shape must be [3, 10, 5]: 150");
  EXPECT_EQ(text_of(0, 0, 10, 75, 2), "");
  EXPECT_NE(text_of(0, 0, 10, 150, 3), "");
}

TEST(EnsembleSettings, AreCheckedAndHeld) {
  const Case own{"pair", [](int i) { return varied_pair(i); }};
  Ensemble ensemble(3, own.replica, options_for(own));
  EXPECT_EQ(ensemble.input(2, 0), 0.002);
  ensemble.set_input(1, 0, 3.0);
  EXPECT_EQ(ensemble.input(1, 0), 3.0);
  EXPECT_THROW(ensemble.set_input(3, 0, 1.0), std::out_of_range);
  EXPECT_THROW(ensemble.set_input(0, 1, 1.0), std::out_of_range);
  EXPECT_THROW(ensemble.set_input(0, 0, std::nan("")), std::invalid_argument);
  EXPECT_THROW(ensemble.set_state(0, std::vector<double>(4)), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(ensemble.status(-1)), std::out_of_range);
  // A state that is set while a run goes on is where the next one starts.
  ensemble.step(2);
  const std::vector<double> now = state_of(ensemble, 0);
  ensemble.set_state(0, 1, std::vector<double>{0.5, 0.25});
  EXPECT_TRUE(equal(state_of(ensemble, 0), now));
  ensemble.reset();
  EXPECT_EQ(state_of(ensemble, 0)[3], 0.5);
  EXPECT_EQ(ensemble.step_index(), 0);
  EXPECT_EQ(ensemble.first_state(1), 3);
}

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(EnsembleSettings, RefusesWhatHasNoMeaning) {
  const Case own{"pair", [](int i) { return varied_pair(i); }};
  const System one = varied_pair(0);
  StepperOptions options = options_for(own);
  EXPECT_NE(refusal([&] { Ensemble(one, 0, options); }).find("replicas: must be >= 1, got 0"),
            std::string::npos);
  EXPECT_NE(refusal([&] { Ensemble(one, 1, options, {.threads = 0}); }).find("/ensemble/threads"),
            std::string::npos);
  options.time.deadline_s = 1.0;
  EXPECT_NE(refusal([&] { Ensemble(one, 2, options); }).find("no deadline"), std::string::npos);
  options = options_for(own);
  options.watches.push_back({.name = "w", .of = {.kind = Sensor::Kind::state, .part = 0}});
  EXPECT_NE(refusal([&] { Ensemble(one, 2, options); }).find("/events"), std::string::npos);
  options = options_for(own);
  options.method = Splitting{};
  EXPECT_NE(refusal([&] { Ensemble(one, 2, options); }).find("settable"), std::string::npos);
  options = options_for(own);
  EXPECT_NE(refusal([&] {
              Ensemble(
                  3, [](int i) { return i < 2 ? varied_pair(i) : lossless_pair(); }, options);
            }).find("/ensemble/replicas/2"),
            std::string::npos);
  EXPECT_EQ(refusal([&] { Ensemble(one, 2, options); }), "");
}

}  // namespace
}  // namespace portwave::testing::test_ensemble
