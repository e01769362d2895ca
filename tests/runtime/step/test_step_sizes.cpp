// Steps that choose their size: that the tolerance means something, that nothing of the promises of
// a step is lost, and where they end. Exact solutions are those of formulas, or of references that
// share no code with the estimate.

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/coupling/reference/gauss_reference.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/chain.hpp"
#include "portwave/subsystems/core/step_batch.hpp"
#include "support/energy_laws.hpp"
#include "support/systems/coupled_systems.hpp"
#include "support/systems/linear_networks.hpp"
#include "support/systems/opaque_parts.hpp"
#include "support/systems/systems.hpp"

namespace portwave::test_step_sizes {
namespace {

StepperOptions sized(int stages, double tolerance, double largest_s) {
  StepperOptions options;
  options.start = Start::as_given;
  options.step_s = largest_s;
  options.method = WaveCoupling::automatic();
  options.method.waves().stages = stages;
  options.sizes = StepSizes{.tolerance = tolerance};
  return options;
}

std::vector<double> states_of(const Stepper& stepper) {
  std::vector<double> out;
  for (int part = 0; part < static_cast<int>(stepper.system().parts().size()); ++part) {
    out.insert(out.end(), stepper.state(part).begin(), stepper.state(part).end());
  }
  return out;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

class StepSizesTest : public ::testing::TestWithParam<int> {};

/// The pair at t = 10 s, by two integrators at 1e-13 that share no code with this one.
TEST_P(StepSizesTest, ErrorsOfThePairFallWithTheTolerance) {
  const System system = testing::duffing_linear_pair();
  double before = 1.0;
  for (const double tolerance : {1e-4, 1e-6, 1e-8}) {
    if (GetParam() == 1 && tolerance < 1e-6) continue;  // 33 000 steps
    Stepper stepper(system, sized(GetParam(), tolerance, 0.25));
    stepper.run_until(10.0);
    EXPECT_EQ(stepper.time_s(), 10.0);
    const double error =
        std::hypot(stepper.state(0)[0] + 0.2774531015, stepper.state(1)[0] - 0.0905967774);
    // Local errors add up: of an amplitude of 0.4 m, and over so many steps.
    EXPECT_LT(error, 0.4 * tolerance * static_cast<double>(stepper.step_index()));
    EXPECT_LT(error, 0.2 * before);
    before = error;
    EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
    EXPECT_LT(stepper.step_sizes()->rejected, stepper.step_index() / 20 + 10);
  }
}

/// The exact flow of m v' = −k q, q' = v.
std::array<double, 2> exact_step(double mass, double stiffness, double q, double v, double h) {
  const double w = std::sqrt(stiffness / mass);
  return {q * std::cos(w * h) + v / w * std::sin(w * h),
          v * std::cos(w * h) - q * w * std::sin(w * h)};
}

/// For one stage it is the error, for more an upper bound of it.
TEST_P(StepSizesTest, TheEstimateCoversTheLocalError) {
  // From 1e-9 to 1e9 in mass, stiffness and time.
  for (const auto& [mass, stiffness] : {std::array{2.0, 30.0}, {1e-9, 1e9}, {1e9, 1e-9}}) {
    SystemBuilder builder;
    builder.add("A", linear_oscillator({.mass_kg = mass, .stiffness_N_per_m = stiffness}),
                {.initial_state = {0.3, 0.0}});
    builder.join(joint::Free{}, {"A.coupling"});
    const System system = builder.build();
    const double period = 2.0 * std::numbers::pi * std::sqrt(mass / stiffness);
    const double tolerance = 1e-6;
    Stepper stepper(system, sized(GetParam(), tolerance, 0.25 * period));
    double q = 0.3, v = 0.0, largest = 0.0;
    int judged = 0;
    while (stepper.time_s() < 3.0 * period && stepper.step_index() < 4000) {
      const StepReport report = stepper.step();
      const auto exact = exact_step(mass, stiffness, q, v, report.step_s);
      q = stepper.state(0)[0];
      v = stepper.state(0)[1];
      const auto energy = [&](double dq, double dv) {
        return 0.5 * mass * dv * dv + 0.5 * stiffness * dq * dq;
      };
      largest = std::max(largest, energy(q - 0.3, v));
      const double error = std::sqrt(energy(q - exact[0], v - exact[1]) / largest) / tolerance;
      EXPECT_LT(error, 4.0) << "step " << stepper.step_index();
      // At first it is compared with the motion that attempts came to, too.
      if (stepper.step_index() < 40) continue;
      ++judged;
      EXPECT_GT(report.error, 0.7 * error) << "step " << stepper.step_index();
      EXPECT_LT(report.error, GetParam() == 1 ? 1.5 * error : 1.0);
      EXPECT_LT(report.error, 1.0);
    }
    EXPECT_GT(judged, 20);
  }
}

TEST_P(StepSizesTest, AStepLedToTheEndIsExactAndShortStepsAreNotTiny) {
  const System system = testing::chain_of_blocks(3, 2);
  for (const double end_s : {0.7, 1.0, std::numbers::pi}) {
    Stepper stepper(system, sized(GetParam(), 1e-5, 0.125));
    double last = 0.0;
    while (stepper.time_s() < end_s) {
      const StepReport report = stepper.step_towards(end_s);
      EXPECT_NEAR(stepper.time_s(), last + report.step_s, 1e-12);
      last = stepper.time_s();
    }
    EXPECT_EQ(stepper.time_s(), end_s);
    EXPECT_GT(stepper.step_sizes()->smallest_s, 5e-6);
  }
}

TEST_P(StepSizesTest, KinksOfTablesAreStepEnds) {
  SystemBuilder builder;
  const Signal pulse =
      Signal::piecewise_linear({{0.0, 0.0}, {0.31, 0.0}, {0.37, 4.0}, {1.113, 4.0}, {1.114, 0.0}});
  builder.add("A", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 30}),
              {.inputs = {{"force", pulse}}});
  builder.add("B", linear_oscillator({.mass_kg = 1.5, .stiffness_N_per_m = 20}));
  builder.connect("A.coupling", "B.coupling");
  const System system = builder.build();
  Stepper stepper(system, sized(GetParam(), 1e-7, 0.25));
  std::vector<double> ends;
  while (stepper.time_s() < 2.0) {
    stepper.step_towards(2.0);
    ends.push_back(stepper.time_s());
  }
  for (const double kink : {0.31, 0.37, 1.113, 1.114}) {
    EXPECT_NE(std::ranges::find(ends, kink), ends.end()) << kink;
  }
  // From kink to kink in equal steps of order 6, short ones.
  double now_s = 0.0;
  std::vector<double> x(4, 0.0);
  for (const double until : {0.31, 0.37, 1.113, 1.114, 2.0}) {
    SystemBuilder own;
    const Signal shifted = Signal::callback([pulse, now_s](double t) { return pulse(now_s + t); });
    own.add("A", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 30}),
            {.initial_state = {x[0], x[1]}, .inputs = {{"force", shifted}}});
    own.add("B", linear_oscillator({.mass_kg = 1.5, .stiffness_N_per_m = 20}),
            {.initial_state = {x[2], x[3]}});
    own.connect("A.coupling", "B.coupling");
    const System piece = own.build();
    GaussReference reference(piece, (until - now_s) / 64.0, 3);
    for (int n = 0; n < 64; ++n) reference.step();
    x = {reference.state(0)[0], reference.state(0)[1], reference.state(1)[0],
         reference.state(1)[1]};
    now_s = until;
  }
  EXPECT_LT(largest_difference(states_of(stepper), x), GetParam() == 1 ? 2e-4 : 2e-5);
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
}

/// A jump that nobody announces: steps become short there, and grow again.
TEST_P(StepSizesTest, AnUnknownJumpIsSteppedOverWithCare) {
  const auto system_of = [] {
    SystemBuilder builder;
    builder.add(
        "A", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 30}),
        {.inputs = {{"force", Signal::callback([](double t) { return t < 0.777 ? 0.0 : 5.0; })}}});
    builder.add("B", linear_oscillator({.mass_kg = 1.5, .stiffness_N_per_m = 20}),
                {.initial_state = {0.1, 0.0}});
    builder.connect("A.coupling", "B.coupling");
    return builder.build();
  };
  const System system = system_of();
  Stepper stepper(system, sized(GetParam(), 1e-6, 0.25));
  double shortest_before = 1.0, shortest_at = 1.0, last = 0.0;
  while (stepper.time_s() < 2.0) {
    last = stepper.step_towards(2.0).step_s;
    const bool is_at = std::abs(stepper.time_s() - 0.777) < 0.01;
    if (stepper.time_s() > 0.2 && stepper.time_s() < 0.7) {
      shortest_before = std::min(shortest_before, last);
    }
    if (is_at) shortest_at = std::min(shortest_at, last);
  }
  EXPECT_LT(shortest_at, 0.1 * shortest_before);
  EXPECT_GT(last, 4.0 * shortest_at);
}

TEST_P(StepSizesTest, FarFromTheOriginAndOnTheMoveNothingChanges) {
  // A free chain: shifted by 1e6 m and moving at 1e3 m/s, it vibrates as it does at rest.
  const auto chain = [](double shift, double speed) {
    SystemBuilder builder;
    std::vector<double> x;
    for (int i = 0; i < 4; ++i) {
      x.push_back(shift + (i == 1 ? 0.1 : 0.0));
      x.push_back(speed);
    }
    builder.add("A",
                mass_spring_damper_chain({.masses = 4,
                                          .mass_kg = 0.5,
                                          .stiffness_N_per_m = 40,
                                          .left_end = ChainEnd::mass,
                                          .right_end = ChainEnd::mass}),
                {.initial_state = x});
    builder.join(joint::Free{}, {"A.left"});
    builder.join(joint::Free{}, {"A.right"});
    return builder.build();
  };
  const System still = chain(0.0, 0.0), moving = chain(1e6, 1e3);
  Stepper a(still, sized(GetParam(), 1e-5, 0.25)), b(moving, sized(GetParam(), 1e-5, 0.25));
  a.run_until(2.0);
  b.run_until(2.0);
  EXPECT_NEAR(static_cast<double>(b.step_index()), static_cast<double>(a.step_index()),
              0.1 * static_cast<double>(a.step_index()) + 3.0);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(b.state(0)[2 * i] - 1e6 - 2e3, a.state(0)[2 * i], 1e-4) << i;
  }
}

TEST_P(StepSizesTest, BitsDoNotDependOnWhoExecutes) {
  const System system = testing::chain_of_blocks(12, 2);
  const auto run = [&](int threads, ExecutorKind executor) {
    StepperOptions options = sized(GetParam(), 1e-5, 0.125);
    options.threads = threads;
    options.executor = executor;
    Stepper stepper(system, options);
    stepper.run_until(1.0);
    std::vector<double> out = states_of(stepper);
    out.push_back(stepper.energy().mismatch_J);
    out.push_back(static_cast<double>(stepper.step_index()));
    out.push_back(static_cast<double>(stepper.step_sizes()->rejected));
    return out;
  };
  const std::vector<double> serial = run(1, ExecutorKind::serial);
  for (const auto kind : {ExecutorKind::async, ExecutorKind::graph}) {
    EXPECT_EQ(run(3, kind), serial) << to_string(kind);
  }
}

TEST_P(StepSizesTest, EnergyLawsHoldAtEveryBudget) {
  for (const int iterations : {1, 2, 5, 50}) {
    for (const bool wide : {false, true}) {
      const System system = testing::duffing_linear_pair();
      StepperOptions options = sized(GetParam(), wide ? 1e-2 : 1e-5, 0.25);
      options.method.waves() = WaveCoupling{.kind = WaveUpdate::douglas_rachford,
                                            .iterations = iterations,
                                            .stages = GetParam(),
                                            .impedance = {7.0}};
      Stepper stepper(system, options);
      double stored = stepper.energy().initial_J, least_tank = 0.0;
      long double balance = 0.0L;
      while (stepper.time_s() < 0.5 && stepper.step_index() < 3000) {
        const StepReport report = stepper.step_towards(0.5);
        balance += static_cast<long double>(report.energy.changed_J) + report.energy.dissipated_J +
                   report.energy.mismatch_J - report.energy.supplied_J;
        least_tank = std::min(least_tank, report.energy.tank_J);
      }
      EXPECT_NEAR(static_cast<double>(balance), 0.0, 1e-11 * stored) << iterations;
      EXPECT_GE(least_tank, -1e-9 * stored);
      EXPECT_LE(stepper.energy().final_J + stepper.energy().tank_J,
                (stored + stepper.energy().initial_tank_J) * (1.0 + 1e-10));
      EXPECT_NE(stepper.certificate().status, CertificateStatus::violated);
    }
  }
}

TEST_P(StepSizesTest, BetweenTheEndsOfAStepThereIsAPolynomial) {
  const System system = testing::duffing_linear_pair();
  const auto most = [&](double tolerance) {
    Stepper stepper(system, sized(GetParam(), tolerance, 0.25));
    StepperOptions fine_options = sized(3, 1e-11, 0.25);
    Stepper fine(system, fine_options);
    double largest = 0.0;
    while (stepper.time_s() < 0.5) {
      stepper.step_towards(0.5);
      const double h = stepper.step_sizes()->last_s;
      const double mid_s = stepper.time_s() - 0.4 * h;
      fine.run_until(mid_s);
      std::array<double, 3> x{};
      stepper.state_at(0, mid_s, x);
      largest = std::max(largest, std::abs(x[0] - fine.state(0)[0]));
      stepper.state_at(0, stepper.time_s(), x);
      EXPECT_EQ(x[0], stepper.state(0)[0]);
      EXPECT_THROW(stepper.state_at(0, stepper.time_s() - 2.0 * h, x), std::out_of_range);
      EXPECT_THROW(stepper.state_at(0, stepper.time_s() + 1e-6, x), std::out_of_range);
    }
    return largest;
  };
  EXPECT_LT(most(1e-4), 2e-2);
  EXPECT_LT(most(1e-6), 2e-3);
}

// What stands still or moves uniformly has no motion that an error could be compared with.

/// Masses of 1 and 2 kg with a spring between them, both at 1 m/s, far from the origin.
System uniform_motion() {
  SystemBuilder builder;
  builder.add("A",
              mass_spring_damper_chain({.masses = 1,
                                        .mass_kg = 1.0,
                                        .stiffness_N_per_m = 0.0,
                                        .coupling_stiffness_N_per_m = 50.0}),
              {.initial_state = {3.0, 1.0, 0.0}});
  builder.add("B", linear_oscillator({.mass_kg = 2.0}), {.initial_state = {3.0, 1.0}});
  builder.join(joint::Free{}, {"A.left"});
  builder.connect("A.right", "B.coupling");
  return builder.build();
}

/// A Duffing oscillator and a mass, pressed against one another by constant forces.
System preloaded() {
  // k₁q + k₃q³ = F − e with e = k₁₂δ, and the other mass holds e by its own force.
  constexpr double kQ = 0.13, kDelta = 0.2;
  const double e = 120.0 * kDelta;
  SystemBuilder builder;
  builder.add("A",
              duffing_oscillator({.mass_kg = 8,
                                  .stiffness_N_per_m = 100,
                                  .cubic_stiffness_N_per_m3 = 8000,
                                  .coupling_stiffness_N_per_m = 120}),
              {.initial_state = {kQ, 0.0, kDelta},
               .inputs = {{"force", Signal::constant(100.0 * kQ + 8000.0 * kQ * kQ * kQ - e)}}});
  builder.add("B", linear_oscillator({.mass_kg = 4}), {.inputs = {{"force", Signal::constant(e)}}});
  builder.connect("A.coupling", "B.coupling");
  return builder.build();
}

TEST_P(StepSizesTest, WhatStandsStillOrMovesUniformlyTakesTheLongestSteps) {
  for (const double tolerance : {1e-2, 1e-4, 1e-7}) {
    const System moving = uniform_motion(), still = preloaded();
    for (const System* system : {&moving, &still}) {
      Stepper stepper(*system, sized(GetParam(), tolerance, 12.5));
      stepper.run_until(100.0);
      EXPECT_LT(stepper.step_index(), 60) << tolerance;
      EXPECT_EQ(stepper.step_sizes()->largest_s, 12.5);
      EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
    }
    Stepper stepper(moving, sized(GetParam(), tolerance, 12.5));
    stepper.run_until(100.0);
    EXPECT_NEAR(stepper.state(0)[1], 1.0, 1e-9);
    EXPECT_NEAR(stepper.state(1)[0], 103.0, 1e-7);
  }
}

// The control: a push makes the same system take short steps, and the motion is right.
TEST_P(StepSizesTest, APushEndsTheLongSteps) {
  SystemBuilder builder;
  builder.add("A",
              mass_spring_damper_chain({.masses = 1,
                                        .mass_kg = 1.0,
                                        .stiffness_N_per_m = 0.0,
                                        .coupling_stiffness_N_per_m = 50.0}),
              {.initial_state = {3.0, 1.0, 0.0}});
  builder.add(
      "B", linear_oscillator({.mass_kg = 2.0}),
      {.initial_state = {3.0, 1.0},
       .inputs = {{"force", Signal::piecewise_linear({{5.0, 0.0}, {5.1, 20.0}, {5.2, 0.0}})}}});
  builder.join(joint::Free{}, {"A.left"});
  builder.connect("A.right", "B.coupling");
  const System system = builder.build();
  Stepper stepper(system, sized(GetParam(), 1e-5, 2.5));
  stepper.run_until(20.0);
  EXPECT_GT(stepper.step_index(), 200);
  // The impulse of 2 N s is shared by 3 kg.
  EXPECT_NEAR(1.0 * stepper.state(0)[1] + 2.0 * stepper.state(1)[1], 5.0, 1e-6);
}

/// 1 kg on 10 N/m, pushed by F sin 2πft from rest: q(t).
double driven(double force, double frequency, double t) {
  const double w = std::sqrt(10.0), W = 2.0 * M_PI * frequency;
  return force / (10.0 - W * W) * (std::sin(W * t) - W / w * std::sin(w * t));
}

TEST_P(StepSizesTest, ForcesMuchFasterThanTheLongestStepAreSeen) {
  for (const double frequency : {50.0, 1024.0 / 8.0}) {
    SystemBuilder builder;
    builder.add("A", linear_oscillator({.mass_kg = 1.0, .stiffness_N_per_m = 10.0}),
                {.inputs = {{"force", Signal::sine_product(100.0, {{frequency, 0.0}})}}});
    builder.join(joint::Free{}, {"A.coupling"});
    const System system = builder.build();
    for (const double tolerance : {1e-1, 1e-2}) {
      // One that is a whole number of periods would see nothing of the force.
      Stepper stepper(system, sized(GetParam(), tolerance, 1.0));
      double most = 0.0, off = 0.0;
      while (stepper.time_s() < 4.0) {
        stepper.run_until(std::min(4.0, stepper.time_s() + 0.25));
        const double truth = driven(100.0, frequency, stepper.time_s());
        most = std::max(most, std::abs(truth));
        off = std::max(off, std::abs(stepper.state(0)[0] - truth));
      }
      EXPECT_LE(stepper.step_sizes()->largest_s * frequency, 0.25);
      EXPECT_LT(off, (GetParam() == 1 && tolerance > 0.05 ? 1.0 : 0.3) * most)
          << frequency << ", " << tolerance;
    }
  }
}

// A free oscillation: the first steps are not taken on the word of two attempts that are both far off.
TEST_P(StepSizesTest, TheFirstStepIsAsAccurateAsTheOthers) {
  for (const double tolerance : {1e-1, 2e-2, 5e-3, 1e-3}) {
    SystemBuilder builder;
    builder.add("A", linear_oscillator({.mass_kg = 2.0, .stiffness_N_per_m = 5000.0}),
                {.initial_state = {1.0, -3.0}});
    builder.join(joint::Free{}, {"A.coupling"});
    const System system = builder.build();
    Stepper stepper(system, sized(GetParam(), tolerance, 0.4));
    std::array<double, 2> before = {1.0, -3.0};
    for (int n = 0; n < 12; ++n) {
      const double h = stepper.step().step_s;
      const auto truth = exact_step(2.0, 5000.0, before[0], before[1], h);
      before = {stepper.state(0)[0], stepper.state(0)[1]};
      const double energy =
          2500.0 * std::pow(before[0] - truth[0], 2) + std::pow(before[1] - truth[1], 2);
      EXPECT_LT(std::sqrt(energy / (4.0 * (2500.0 + 9.0))), 1.5 * tolerance)
          << n << ", " << tolerance << ", h " << h;
    }
  }
}

// From rest under a force that begins as a power of time: attempts see only a share of the motion that
// is to come, however short the step.
TEST_P(StepSizesTest, AForceMayBeginSlowly) {
  for (const int power : {1, 3, 6}) {
    SystemBuilder builder;
    const std::vector<Signal::Sine> sines(static_cast<std::size_t>(power), {0.2, 0.0});
    builder.add("A", linear_oscillator({.mass_kg = 2.0}),
                {.inputs = {{"force", Signal::sine_product(20.0, sines)}}});
    builder.join(joint::Free{}, {"A.coupling"});
    const System system = builder.build();
    for (const double tolerance : {1e-1, 1e-2, 1e-4}) {
      Stepper stepper(system, sized(GetParam(), tolerance, 0.625));
      ASSERT_NO_THROW(stepper.run_until(2.0)) << power << ", " << tolerance;
      EXPECT_LT(stepper.step_index(), 5000);
      // v = 10 ∫ sinᵖ, by Simpson's rule.
      double sum = 0.0;
      constexpr int kPanels = 2000;
      for (int i = 0; i <= 2 * kPanels; ++i) {
        const double weight = i == 0 || i == 2 * kPanels ? 1.0 : i % 2 == 1 ? 4.0 : 2.0;
        sum += weight * std::pow(std::sin(0.4 * M_PI * i / kPanels), power);
      }
      const double wanted = 10.0 * sum / (6.0 * kPanels) * 2.0;
      EXPECT_NEAR(stepper.state(0)[1], wanted, 20.0 * tolerance * wanted) << power;
    }
  }
}

// A knot just after the start must not decide how short the steps are for good.
TEST_P(StepSizesTest, AKnotNearTheStartIsForgotten) {
  for (const double knot_s : {1e-7, 1e-5, 1e-3}) {
    SystemBuilder builder;
    builder.add("A",
                duffing_oscillator({.mass_kg = 8,
                                    .stiffness_N_per_m = 100,
                                    .cubic_stiffness_N_per_m3 = 8000,
                                    .coupling_stiffness_N_per_m = 120}),
                {.initial_state = {0.4, 0, -0.4},
                 .inputs = {{"force", Signal::piecewise_linear({{knot_s, 0.0}, {2.0, 1.0}})}}});
    builder.add("B", linear_oscillator({.mass_kg = 4, .stiffness_N_per_m = 50}));
    builder.connect("A.coupling", "B.coupling");
    const System system = builder.build();
    for (const int budget : {3, 10, 100}) {
      StepperOptions options = sized(GetParam(), 1e-5, 0.25);
      options.method = WaveCoupling{.iterations = budget, .stages = GetParam()};
      options.method.waves().impedance_kind = ImpedanceKind::matched;
      Stepper stepper(system, options);
      stepper.run_until(1.0);
      EXPECT_LT(stepper.step_index(), GetParam() == 1 ? 6000 : 3000) << knot_s << ", " << budget;
    }
  }
}

TEST_P(StepSizesTest, WithoutABudgetStepsDoNotShrinkForTheCoupling) {
  const System system = testing::duffing_linear_pair();
  for (const int budget : {0, 2}) {
    StepperOptions options = sized(GetParam(), 1e-3, 0.25);
    options.method = WaveCoupling{.iterations = budget, .stages = GetParam()};
    options.method.waves().impedance = {0.4};
    Stepper stepper(system, options);
    stepper.run_until(5.0);
    EXPECT_LT(stepper.step_index(), 100'000) << budget;
    EXPECT_GT(stepper.iterations().not_converged, 0);
  }
}

// Knots that are close together leave a step far below what the motion needs.
TEST_P(StepSizesTest, StepsGrowAgainAfterCloseKnotsAlsoWhereTheBudgetIsTooSmall) {
  SystemBuilder builder;
  builder.add("A",
              duffing_oscillator({.mass_kg = 8,
                                  .stiffness_N_per_m = 100,
                                  .cubic_stiffness_N_per_m3 = 8000,
                                  .coupling_stiffness_N_per_m = 120}),
              {.initial_state = {0.4, 0, -0.4},
               .inputs = {{"force", Signal::piecewise_linear(
                                        {{0.3, 0.0}, {0.3 + 1e-6, 1.0}, {0.6, 1.0}})}}});
  builder.add("B", linear_oscillator({.mass_kg = 4, .stiffness_N_per_m = 50}));
  builder.connect("A.coupling", "B.coupling");
  const System system = builder.build();
  StepperOptions options = sized(GetParam(), 1e-4, 0.25);
  options.method = WaveCoupling{.iterations = 3, .stages = GetParam()};
  options.method.waves().impedance_kind = ImpedanceKind::matched;
  Stepper stepper(system, options);
  stepper.run_until(1.0);
  EXPECT_LT(stepper.step_index(), 30'000);
  EXPECT_GT(stepper.step_sizes()->last_s, 1e-5);
}

TEST(StepSizes, AStepThatCannotBeHadLeavesTheState) {
  const System system = testing::duffing_linear_pair();
  StepperOptions options = sized(1, 1e-9, 0.05);
  options.sizes->smallest_s = 0.02;
  Stepper stepper(system, options);
  const std::vector<double> before = states_of(stepper);
  try {
    stepper.run_until(1.0);
    FAIL() << "was as accurate as that";
  } catch (const StepError& error) {
    EXPECT_EQ(error.fault(), StepFault::too_inaccurate);
    EXPECT_NE(std::string(error.what()).find("times the tolerance"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(states_of(stepper), before);
  EXPECT_EQ(stepper.time_s(), 0.0);
}

TEST(StepSizes, WhatIsAskedForWronglyIsRefusedAllAtOnce) {
  SystemBuilder builder;
  const System system = testing::duffing_linear_pair();
  StepperOptions options = sized(1, 0.5, 0.05);
  options.sizes->smallest_s = 1.0;
  options.time.deadline_s = 1e-3;
  try {
    Stepper stepper(system, options);
    FAIL() << "was accepted";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.issues().size(), 3u) << error.what();
  }
  StepperOptions fixed = sized(1, 1e-6, 0.05);
  fixed.sizes.reset();
  Stepper stepper(system, fixed);
  std::array<double, 3> x{};
  EXPECT_THROW(stepper.step_towards(1.0), std::logic_error);
  EXPECT_THROW(stepper.state_at(0, 0.0, x), std::logic_error);
  EXPECT_EQ(stepper.step_sizes(), nullptr);
  Stepper chosen(system, sized(1, 1e-3, 0.05));
  chosen.run_until(0.1);
  EXPECT_THROW(chosen.step_towards(0.1), std::out_of_range);
}

TEST(StepSizes, StagesLeftOpenFollowTheTolerance) {
  const System system = testing::duffing_linear_pair();
  const auto stages_at = [&](double tolerance) {
    Stepper stepper(system, sized(0, tolerance, 0.05));
    stepper.run_until(0.1);
    return stepper.waves()->stages();
  };
  EXPECT_EQ(stages_at(2e-2), 1);
  EXPECT_EQ(stages_at(1e-3), 3);
  EXPECT_EQ(stages_at(1e-6), 3);
  StepperOptions fixed = sized(0, 1e-6, 0.05);
  fixed.sizes.reset();
  EXPECT_THROW(Stepper(system, fixed), ConfigError);
}

TEST(StepSizes, MethodsWithoutWavesHaveStepsOfOneSize) {
  const System system = testing::chain_of_blocks(2, 2);
  StepperOptions options = sized(1, 1e-6, 0.05);
  options.method = Splitting{};
  EXPECT_THROW(Stepper(system, options), ConfigError);
}

INSTANTIATE_TEST_SUITE_P(Stages, StepSizesTest, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace portwave::test_step_sizes
