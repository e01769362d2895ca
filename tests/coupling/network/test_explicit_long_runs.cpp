// Kicks and drifts and Taylor series over many steps: the account of energy, rest under a load, and what is overdamped.

#include <algorithm>
#include <cmath>
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
      {"double well", started, -4, 4, .2, kOfWells},
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

}  // namespace
}  // namespace portwave::test_explicit_long_runs
