// Kicks and drifts and Taylor series over many steps: the account of energy, rest under a load, and what is overdamped.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/coupling/energy/compensated_sum.hpp>
#include <portwave/coupling/network/kick_drift.hpp>
#include <portwave/coupling/network/taylor.hpp>
#include <portwave/subsystems/catalogue/oscillators.hpp>
#include <portwave/subsystems/catalogue/parts.hpp>

#include "support/systems/separable_networks.hpp"

namespace portwave::test_explicit_long_runs {
namespace {

constexpr SplittingKind kKinds[] = {SplittingKind::kick_drift, SplittingKind::taylor};

std::unique_ptr<ExplicitMethod> make(SplittingKind kind, const System& system, double step_s,
                                     int order = 0) {
  if (kind == SplittingKind::taylor) {
    return std::make_unique<TaylorMethod>(system, 0.0, step_s,
                                          Splitting{.kind = kind, .order = order > 0 ? order : 8});
  }
  return std::make_unique<KickDriftMethod>(system, 0.0, step_s,
                                           Splitting{.kind = kind, .order = order > 0 ? order : 6});
}

struct Setup {
  double damping = 0.0, unit = 1.0;
  double push = 0.0, steady = 0.0;  ///< amplitude and mean of the force, in units of length
  double place = 0.0, speed = 0.0;
};

/// A mass on a spring, which with `cubic` has a law of its own: with a negative one it is a double well.
System mass_on_a_spring(const Setup& setup, double stiffness, double cubic) {
  SystemBuilder builder;
  SystemBuilder::PartOptions options{
      .initial_state = {setup.unit * setup.place, setup.unit * setup.speed}};
  if (setup.push != 0.0 || setup.steady != 0.0) {
    options.inputs["force"] = Signal::sine_product(setup.push * setup.unit, {{.frequency_Hz = 0.4}},
                                                   setup.steady * setup.unit);
  }
  if (cubic == 0.0) {
    builder.add(
        "a",
        linear_oscillator(
            {.mass_kg = 1.0, .stiffness_N_per_m = stiffness, .damping_Ns_per_m = setup.damping}),
        options);
    builder.join(joint::Free{}, {"a.coupling"});
    return builder.build();
  }
  options.inputs.clear();
  builder.add("a",
              parts::port_hamiltonian(
                  {.states = {{"q", "m"}, {"p", "kg m/s"}},
                   .ports = {{"end", Causality::effort_in, Domain::translation, 1}},
                   .constants = {{"k", stiffness}, {"c", cubic / (setup.unit * setup.unit)}},
                   .energy = "k*q^2/2 + c*q^4/4 + p^2/2",
                   .J = {{0, 1}, {-1, 0}},
                   .R = {{0, 0}, {0, setup.damping}},
                   .G = {{0}, {1}}})
                  .build(),
              options);
  if (setup.push == 0.0 && setup.steady == 0.0) {
    builder.join(joint::Free{}, {"a.end"});
  } else {
    SystemBuilder::PartOptions force;
    force.inputs["effort"] = Signal::sine_product(setup.push * setup.unit, {{.frequency_Hz = 0.4}},
                                                  setup.steady * setup.unit);
    builder.add("f", parts::effort_source({.domain = "translation"}), force);
    builder.connect("f.port", "a.end");
  }
  return builder.build();
}

struct Laws {
  double worst = 0.0;  ///< of H + T − H₀ − supply + dissipation, beside the energies moved
};

/// `misbooked`: a share of the energies that are moved is left out.
Laws laws_of(ExplicitMethod& method, int steps, double misbooked = 0.0) {
  const double start_J = method.storage(0);
  CompensatedSum supplied, dissipated;
  Laws laws;
  double scale_J = std::abs(start_J);
  for (int n = 0; n < steps; ++n) {
    const StepLedger energy = method.step(ForEach()).energy;
    supplied.add((1.0 - misbooked) * energy.supplied_J);
    dissipated.add((1.0 - misbooked) * energy.dissipated_J);
    EXPECT_GE(energy.dissipated_J, 0.0);
    scale_J = std::max({scale_J, std::abs(supplied.value()), dissipated.value()});
    CompensatedSum off(energy.stored_J);
    for (const double own : {energy.tank_J, -start_J, -supplied.value(), dissipated.value()}) {
      off.add(own);
    }
    laws.worst = std::max(laws.worst, std::abs(off.value()) / scale_J);
  }
  return laws;
}

struct Case {
  std::string name;
  Setup setup;
  double stiffness, cubic;
  double step_s;
  int steps;
};

std::vector<Case> cases() {
  constexpr int kMany = 50000, kOfWells = 10000;
  const Setup started{.damping = 1e-4, .place = 1.4};
  return {
      {"a million steps of a spring",
       {.damping = 1e-5, .place = 1.0, .speed = 0.3},
       4,
       0,
       .3,
       1000000},
      {"a million steps of a double well", started, -4, 4, .2, 1000000},
      {"double well, steps too long", started, -4, 4, .6, kOfWells / 10},
      {"double well, driven", {.damping = 0.1, .push = 1.5, .place = 1.0}, -4, 4, .2, kOfWells},
      {"overdamped", {.damping = 30.0, .push = 2.0, .place = 1.0}, 4, 0, .05, kMany},
      {"overdamped well", {.damping = 30.0, .push = 2.0, .place = 1.0}, -4, 4, .02, kOfWells},
      {"from rest", {.damping = 0.01, .push = 1.0}, 4, 0, .3, kMany},
      {"well from rest", {.damping = 0.01, .push = 1.0}, -4, 4, .2, kOfWells},
      {"tiny units", {.damping = 0.01, .unit = 1e-9, .push = 1.0, .place = 1.0}, 4, 0, .3, kMany},
      {"huge units", {.damping = 0.01, .unit = 1e9, .push = 1.0, .place = 1.0}, 4, 0, .3, kMany},
      {"well in tiny units", {.damping = 0.01, .unit = 1e-9, .place = 1.4}, -4, 4, .2, kOfWells},
      {"well in huge units", {.damping = 0.01, .unit = 1e9, .place = 1.4}, -4, 4, .2, kOfWells},
      {"far from the origin",
       {.damping = 0.01, .push = 1.0, .place = 1e6, .speed = 300.0},
       0,
       0,
       .3,
       kMany},
  };
}

// The law is exact at every step, whatever its size; a billionth of what is dissipated or supplied would be seen.
TEST(ExplicitLongRuns, KeepTheAccountOverManySteps) {
  for (const Case& each : cases()) {
    const System system = mass_on_a_spring(each.setup, each.stiffness, each.cubic);
    for (const SplittingKind kind : kKinds) {
      if (kind == SplittingKind::taylor && each.cubic != 0.0) continue;
      const std::unique_ptr<ExplicitMethod> method = make(kind, system, each.step_s);
      const Laws laws = laws_of(*method, each.steps);
      EXPECT_LE(laws.worst, 1e-14) << each.name << ", " << to_string(MethodKind(kind));
      const std::unique_ptr<ExplicitMethod> again = make(kind, system, each.step_s);
      EXPECT_GT(laws_of(*again, each.steps / 10, 1e-9).worst, 1e-12)
          << each.name << ", " << to_string(MethodKind(kind)) << ", control";
    }
  }
}

// Where nothing moves the tank holds what the roundings of steps add up to, a part in 10¹⁶ of the energy each, and
// gives it back little by little when there is motion again.
TEST(ExplicitLongRuns, StandStillUnderALoadForAsLongAsTheyAreAsked) {
  SystemBuilder builder;
  builder.add("a",
              duffing_oscillator({.mass_kg = 1.3,
                                  .stiffness_N_per_m = 4.1,
                                  .damping_Ns_per_m = 0.9,
                                  .coupling_stiffness_N_per_m = 17.0}),
              {.initial_state = {0.7, 0.1, 0.03}, .inputs = {{"force", Signal::constant(3.1)}}});
  builder.add(
      "b", linear_oscillator({.mass_kg = 2.7, .stiffness_N_per_m = 0.3, .damping_Ns_per_m = 1.1}),
      {.initial_state = {0.67, 0.0}, .inputs = {{"force", Signal::constant(-9.7)}}});
  builder.connect("a.coupling", "b.coupling");
  const System system = builder.build();
  double largest = 0.0;
  for (const SplittingKind kind : kKinds) {
    for (const double step_s : {0.01, 0.1}) {
      const std::unique_ptr<ExplicitMethod> method = make(kind, system, step_s);
      const double start_J = method->storage(0) + method->storage(1);
      double supplied_J = 0.0, dissipated_J = 0.0;
      StepLedger energy;
      constexpr int kSteps = 40000;
      for (int n = 0; n < kSteps; ++n) {
        energy = method->step(ForEach()).energy;
        supplied_J += energy.supplied_J;
        dissipated_J += energy.dissipated_J;
      }
      EXPECT_LE(std::abs(energy.tank_J), 1e-15 * kSteps * energy.stored_J);
      EXPECT_NEAR(energy.stored_J + energy.tank_J - start_J, supplied_J - dissipated_J, 1e-10);
      EXPECT_EQ(method->remarks(), "") << "no step is halved";
      const auto x = method->state();
      EXPECT_NEAR(4.1 * x[0] + 0.3 * x[3], 3.1 - 9.7, 1e-6) << "statics";
      largest = std::max(largest, std::abs(energy.tank_J) / energy.stored_J);
    }
  }
  EXPECT_GT(largest, 1e-12) << "control: what steps leave adds up";
}

// On the slow motion of an overdamped part the energy hardly changes along the direction of the balance.
TEST(ExplicitLongRuns, OverdampedPartsKeepTheOrder) {
  for (const double damping : {6.0, 10.0, 30.0}) {
    const System system =
        mass_on_a_spring({.damping = damping, .place = 0.5, .speed = 0.2}, 4.0, 0.0);
    const auto error = [&](int order, int steps) {
      const std::unique_ptr<ExplicitMethod> method =
          make(SplittingKind::kick_drift, system, 5.0 / steps, order);
      for (int n = 0; n < steps; ++n) method->step(ForEach());
      const double root = std::sqrt(0.25 * damping * damping - 4.0);
      const double fast = -0.5 * damping - root, slow = -0.5 * damping + root;
      const double a = (0.2 - slow * 0.5) / (fast - slow);
      const double exact = a * std::exp(5.0 * fast) + (0.5 - a) * std::exp(5.0 * slow);
      return std::abs(method->state()[0] / exact - 1.0);
    };
    const double coarse = error(4, 200), fine = error(4, 400);
    EXPECT_NEAR(std::log2(coarse / fine), 4.0, 0.7) << damping;
    EXPECT_LT(fine, 1e-7) << damping;
    EXPECT_LT(error(6, 200), 2e-8) << damping;
    EXPECT_LT(error(6, 400), 1e-9) << damping;
    EXPECT_LT(error(6, 800), 1e-10) << damping;
    EXPECT_GT(error(4, 50), 1e-7) << "control";
  }
}

/// An oscillator whose light end, on a damper of its own or one that it shares with the oscillator, is pushed. `damping`:
/// of the end alone, or of both against one another [1/s].
System with_a_damped_end(double damping, bool is_shared) {
  SystemBuilder builder;
  const double end_kg = is_shared ? .05 : .01;
  SystemBuilder::PartOptions push;
  push.inputs["force"] = Signal::sine_product(3.0, {{.frequency_Hz = 1.0 / M_PI}});
  builder.add("ground", parts::spring({.stiffness_N_per_m = 40.0}));
  builder.add("a", parts::mass({.mass_kg = 1.0, .ports = 2}), {.initial_state = {0.0, 1.0}});
  if (is_shared) {
    builder.add("s", parts::spring_damper({.stiffness_N_per_m = 30.0,
                                           .damping_Ns_per_m = damping * end_kg / (1.0 + end_kg)}));
    builder.add("end", parts::mass({.mass_kg = end_kg, .ports = 2}), push);
    builder.add("outer", parts::spring({.stiffness_N_per_m = 20.0}));
    builder.connect("end.port_2", "outer.left");
    builder.join(joint::Fixed{}, {"outer.right"});
  } else {
    builder.add("s", parts::spring({.stiffness_N_per_m = 30.0}));
    builder.add("end",
                parts::mass({.mass_kg = end_kg, .damping_Ns_per_m = damping * end_kg, .ports = 1}),
                push);
  }
  builder.join(joint::Fixed{}, {"ground.left"});
  builder.connect("ground.right", "a.port_1");
  builder.connect("a.port_2", "s.left");
  builder.connect("s.right", is_shared ? "end.port_1" : "end.port");
  return builder.build();
}

/// Displacement and velocity of both masses after 6 s.
using Ends = std::array<double, 4>;
Ends ends_of(ExplicitMethod& method, int steps) {
  for (int n = 0; n < steps; ++n) method.step(ForEach());
  const auto x = method.state();
  return {x[1], x[2], x[4], x[5]};
}
double difference(const Ends& a, const Ends& b) {
  double worst = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

// The balance of energy says nothing of parts that are damped within a fraction of a step: the oscillator was 3 to 40 %
// off. Ends by SciPy's Radau at 1e-12, with h times the damping 60.
TEST(ExplicitLongRuns, WhatIsDampedWithinAStepTakesShorterOnes) {
  constexpr int kSteps = 120;
  constexpr double kStep_s = 6.0 / kSteps, kDamping = 60.0 / kStep_s;
  const Ends of_own = {-0.0507729855112, 0.0363902508881, -0.104641326521, 0.000100622194963};
  const Ends of_shared = {0.0609487536152, 0.245697028484, 0.046006655883, 0.213378080925};
  for (const bool is_shared : {false, true}) {
    const System system = with_a_damped_end(kDamping, is_shared);
    const Ends& exact = is_shared ? of_shared : of_own;
    for (const int order : {4, 6}) {
      const auto method = make(SplittingKind::kick_drift, system, kStep_s, order);
      const Ends done = ends_of(*method, kSteps);
      EXPECT_LE(difference(done, exact), 2e-3) << order << is_shared;
      EXPECT_EQ(method->halved_steps(), kSteps);
      // Steps of half the size are halved to the same ones: what is to show the error halves once more.
      const auto half = make(SplittingKind::kick_drift, system, 0.5 * kStep_s, order);
      EXPECT_LE(difference(ends_of(*half, 2 * kSteps), done), 1e-9) << "control";
      const auto finer = make(SplittingKind::kick_drift, system, 0.5 * kStep_s, order);
      finer->halve_once_more();
      EXPECT_GT(difference(ends_of(*finer, 2 * kSteps), done), 0.5 * difference(done, exact));
    }
    // Of a Taylor series, too, what it leaves out of a light end does not show in energies.
    const auto series = make(SplittingKind::taylor, system, kStep_s, 16);
    EXPECT_LE(difference(ends_of(*series, kSteps), exact), 1e-10) << is_shared;
    const System slowly = with_a_damped_end(2.0, is_shared);
    const auto slow = make(SplittingKind::kick_drift, slowly, kStep_s);
    ends_of(*slow, kSteps);
    EXPECT_EQ(slow->halved_steps(), 0);
  }
}

TEST(ExplicitLongRuns, WhatIsDampedFarWithinAStepIsRefusedByName) {
  const System system = with_a_damped_end(1e6, false);
  const auto method = make(SplittingKind::kick_drift, system, 0.05);
  try {
    method->step(ForEach());
    FAIL() << "a step of h‖𝒟‖ = 50 000 was taken";
  } catch (const NetworkFault& fault) {
    EXPECT_NE(std::string(fault.what()).find("that of \"end\""), std::string::npos) << fault.what();
  }
  EXPECT_NE(method->description().find("\"end\""), std::string::npos) << method->description();
}

}  // namespace
}  // namespace portwave::test_explicit_long_runs
