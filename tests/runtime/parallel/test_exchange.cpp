// Parameters that change between steps: what goes on is what a stepper that was made with them
// does from there, and the account stays closed.

#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <portwave/coupling/reference/gauss_reference.hpp>
#include <portwave/coupling/system/derived_systems.hpp>
#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/runtime/step/stepper.hpp>
#include <portwave/subsystems/catalogue/oscillators.hpp>

#include "support/systems/example_scenarios.hpp"
#include "support/systems/systems.hpp"

namespace portwave::test_exchange {
namespace {

std::unique_ptr<Subsystem> duffing(double cubic) {
  return duffing_oscillator({.mass_kg = 8,
                             .stiffness_N_per_m = 100,
                             .cubic_stiffness_N_per_m3 = cubic,
                             .coupling_stiffness_N_per_m = 120,
                             .coupling_damping_Ns_per_m = 0.05});
}
std::unique_ptr<Subsystem> oscillator(double mass) {
  return linear_oscillator({.mass_kg = mass, .stiffness_N_per_m = 50});
}

/// Three pairs, of which the batches hold lanes that do not change, too.
System pairs(double cubic, double mass) {
  SystemBuilder builder;
  for (int i = 0; i < 3; ++i) {
    const auto a = fmt::format("A{}", i), b = fmt::format("B{}", i);
    builder.add(a, duffing(i == 1 ? cubic : 8000.0), {.initial_state = {0.4, 0.0, -0.4}});
    builder.add(b, oscillator(i == 1 ? mass : 4.0), {.initial_state = {0.1 * i, 0.0}});
    builder.connect(a + ".coupling", b + ".coupling");
  }
  return builder.build();
}
constexpr int kA = 2, kB = 3;  // of the second pair

std::vector<double> states_of(const Stepper& stepper) {
  std::vector<double> out;
  for (int i = 0; i < static_cast<int>(stepper.system().parts().size()); ++i) {
    const auto own = stepper.state(i);
    out.insert(out.end(), own.begin(), own.end());
  }
  return out;
}

double stored(const Stepper& stepper) {
  double sum = 0.0;
  for (int i = 0; i < static_cast<int>(stepper.system().parts().size()); ++i) {
    sum += stepper.storage(i);
  }
  return sum;
}

struct Setting {
  std::string name;
  std::function<void(StepperOptions&)> change;
  double closeness = 1e-9;  ///< to a fresh stepper
};

std::vector<Setting> settings() {
  const auto waves = [](auto change) {
    return [change](StepperOptions& options) { change(options.method.waves()); };
  };
  return {
      {"tolerance", waves([](WaveCoupling& m) { m = WaveCoupling::automatic(1e-11); })},
      {"stages", waves([](WaveCoupling& m) {
         m = WaveCoupling::automatic(1e-11);
         m.stages = 3;
       })},
      {"interface", waves([](WaveCoupling& m) {
         m = WaveCoupling::automatic(1e-11);
         m.kind = WaveUpdate::interface;
       })},
      {"extrapolated", waves([](WaveCoupling& m) {
         m = WaveCoupling::automatic(1e-11);
         m.start = InnerStart::extrapolated;
       })},
      {"adaptive",
       [](StepperOptions& options) {
         options.sizes = StepSizes{.tolerance = 1e-9};
         options.step_s = 0.08;
         options.method = WaveCoupling::automatic(1e-11);
         options.method.waves().stages = 3;
       },
       1e-6},
      {"threads",
       [](StepperOptions& options) {
         options.method = WaveCoupling::automatic(1e-11);
         options.threads = 2;
         options.executor = ExecutorKind::async;
         options.certify = Certify::full;
       }},
  };
}

StepperOptions options_of(const Setting& setting) {
  StepperOptions options{.method = WaveCoupling{}};
  options.start = Start::as_given;
  options.step_s = 0.01;
  setting.change(options);
  return options;
}

class ExchangeLaw : public ::testing::TestWithParam<Setting> {};

TEST_P(ExchangeLaw, WhatGoesOnIsTheSystemWithTheOtherParts) {
  const StepperOptions options = options_of(GetParam());
  Stepper stepper(pairs(8000.0, 4.0), options);
  stepper.run_until(0.4);
  const double before = stored(stepper), supplied = stepper.energy().supplied_J;
  stepper.set_component(kB, oscillator(2.5));
  stepper.set_component(kA, duffing(2000.0));
  const double jump = stored(stepper) - before;
  EXPECT_GT(std::abs(jump), 0.01);
  EXPECT_NEAR(stepper.energy().supplied_J - supplied, jump, 1e-12 * before);
  EXPECT_NEAR(stepper.energy().final_J, stored(stepper), 1e-12 * before);

  const std::vector<double> there = states_of(stepper);
  const System other = pairs(2000.0, 2.5);
  const System* const one[] = {&other};
  const System fresh_system = gathered_system(one, there.data());
  Stepper fresh(fresh_system, options);
  stepper.run_until(0.8);
  fresh.run_until(0.4);
  const std::vector<double> ours = states_of(stepper), theirs = states_of(fresh);
  double difference = 0.0, moved = 0.0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    difference = std::max(difference, std::abs(ours[i] - theirs[i]));
    moved = std::max(moved, std::abs(ours[i] - there[i]));
  }
  EXPECT_GT(moved, 0.1);
  EXPECT_LE(difference, GetParam().closeness * moved);
  // The account, from states alone.
  EXPECT_NEAR(stepper.energy().final_J, stored(stepper), 1e-11 * before);
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
}

TEST_P(ExchangeLaw, TheSameComponentAgainChangesNothingThatCouldBeSeen) {
  const StepperOptions options = options_of(GetParam());
  Stepper with(pairs(8000.0, 4.0), options), without(pairs(8000.0, 4.0), options);
  with.run_until(0.4);
  without.run_until(0.4);
  with.set_component(kA, duffing(8000.0));
  EXPECT_EQ(states_of(with), states_of(without));
  EXPECT_EQ(with.energy().supplied_J, without.energy().supplied_J);
  with.run_until(0.5);
  without.run_until(0.5);
  const std::vector<double> a = states_of(with), b = states_of(without);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], GetParam().closeness);
}

INSTANTIATE_TEST_SUITE_P(Exchange, ExchangeLaw, ::testing::ValuesIn(settings()),
                         [](const auto& test) { return test.param.name; });

TEST(Exchange, ABookOfStepsClosesOverIt) {
  StepperOptions options{.method = WaveCoupling{}};
  options.start = Start::as_given;
  options.step_s = 0.01;
  options.method.waves().iterations = 3;
  Stepper stepper(pairs(8000.0, 4.0), options);
  double supplied = 0.0, changed = 0.0;
  const double start = stored(stepper);
  for (int n = 0; n < 60; ++n) {
    if (n % 7 == 3) stepper.set_component(kA, duffing(1000.0 * (1 + n % 5)));
    const StepReport report = stepper.step();
    supplied += report.energy.supplied_J;
    changed += report.energy.changed_J;
    EXPECT_NEAR(report.energy.stored_J, stored(stepper), 1e-11 * start);
  }
  EXPECT_NEAR(start + changed, stored(stepper), 1e-11 * start);
  EXPECT_NEAR(supplied, stepper.energy().supplied_J, 1e-11 * start);
  EXPECT_GT(std::abs(supplied), 0.01 * start);
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
}

TEST(Exchange, ImpedancesAreChosenAnewForPartsThatAreQuiteDifferent) {
  StepperOptions options{.method = WaveCoupling{}};
  options.start = Start::as_given;
  options.step_s = 0.01;
  options.method.waves().kind = WaveUpdate::douglas_rachford;
  options.method.waves().impedance_kind = ImpedanceKind::matched;
  options.method.waves().tolerance = 1e-9;
  options.method.waves().iterations = 400;
  SystemBuilder builder;
  builder.add("A", oscillator(4.0), {.initial_state = {0.4, 0.0}});
  builder.add("B", duffing(8000.0));
  builder.connect("A.coupling", "B.coupling");
  Stepper stepper(builder.build(), options);
  stepper.step(10);
  stepper.set_component(0, oscillator(4e-4));
  const int far = stepper.step().iterations;
  stepper.waves()->tune_again();
  stepper.step();
  EXPECT_LT(stepper.step().iterations, far);
}

TEST(Exchange, RefusesWhatDoesNotFitAndLeavesEverything) {
  const System borrowed = pairs(8000.0, 4.0);
  StepperOptions options{.method = WaveCoupling{}};
  options.start = Start::as_given;
  Stepper of_others(borrowed, options);
  EXPECT_THROW(of_others.set_component(kA, duffing(1.0)), std::logic_error);

  Stepper stepper(pairs(8000.0, 4.0), options), other(pairs(8000.0, 4.0), options);
  stepper.step(3);
  other.step(3);
  const auto said = [&](int part, std::shared_ptr<const Component> component) -> std::string {
    try {
      stepper.set_component(part, std::move(component));
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(said(6, duffing(1.0)), "there is no part 6 of 6");
  EXPECT_EQ(said(kA, oscillator(1.0)),
            "the component cannot take the place of part \"A1\": it is of type linear_oscillator, "
            "and the part of type duffing_oscillator");
  EXPECT_EQ(said(kA, nullptr), "the component cannot take the place of part \"A1\": there is none");
  stepper.step(3);
  other.step(3);
  EXPECT_EQ(states_of(stepper), states_of(other));
}

TEST(Exchange, SnapshotsHoldTheParts) {
  StepperOptions options{.method = WaveCoupling{}};
  options.start = Start::as_given;
  Stepper stepper(pairs(8000.0, 4.0), options);
  stepper.step(3);
  const Snapshot before = stepper.snapshot();
  const std::shared_ptr<const Component> first = stepper.system().parts()[kA].component;
  stepper.set_component(kA, duffing(500.0));
  const Snapshot after = stepper.snapshot();
  stepper.step(5);
  const std::vector<double> there = states_of(stepper);
  Stepper clone = stepper.clone();
  EXPECT_EQ(states_of(clone), there);
  clone.restore(after);
  clone.step(5);
  EXPECT_EQ(states_of(clone), there);
  stepper.restore(before);
  EXPECT_EQ(stepper.step_index(), 3);
  EXPECT_EQ(stepper.system().parts()[kA].component, first);
  // Parts made by hand cannot be made from bytes.
  Stepper fresh(pairs(8000.0, 4.0), options);
  EXPECT_THROW(fresh.restore(Snapshot::from_bytes(after.to_bytes())), std::invalid_argument);
  fresh.restore(after);
  fresh.step(5);
  EXPECT_EQ(states_of(fresh), there);
}

TEST(SetParameter, ChangesANumberOfAPartByName) {
  Scenario scenario = testing::example("published_douglas_rachford");
  StepperOptions options = scenario.options;
  Stepper stepper(std::move(scenario.system), options);
  stepper.step(10);
  EXPECT_EQ(parameter(stepper, scenario, "B.mass_kg"), 4.0);
  set_parameter(stepper, scenario, "B.mass_kg", 2.0);
  set_parameter(stepper, scenario, "B.stiffness_N_per_m", 70.0);
  EXPECT_EQ(parameter(stepper, scenario, "B.mass_kg"), 2.0);
  EXPECT_EQ(parameter(stepper, scenario, "B.stiffness_N_per_m"), 70.0);
  const auto state = stepper.state(1);
  EXPECT_NEAR(stepper.storage(1),
              0.5 * 70.0 * state[0] * state[0] + 0.5 * 2.0 * state[1] * state[1],
              1e-12 * stepper.storage(1));
  EXPECT_THROW(set_parameter(stepper, scenario, "B.mass", 2.0), std::out_of_range);
  EXPECT_THROW(set_parameter(stepper, scenario, "C.mass_kg", 2.0), std::out_of_range);
  EXPECT_THROW(set_parameter(stepper, scenario, "mass_kg", 2.0), std::out_of_range);
  EXPECT_THROW(set_parameter(stepper, scenario, "B.mass_kg", -2.0), ConfigError);
  EXPECT_THROW(set_parameter(stepper, scenario, "B.mass_kg[0]", 2.0), std::invalid_argument);
  EXPECT_EQ(parameter(stepper, scenario, "B.mass_kg"), 2.0);
  for (int i = 0; i < 3000; ++i) set_parameter(stepper, scenario, "B.mass_kg", 2.0 + 1e-4 * i);
  stepper.step(10);
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
}

// Integers and choices that are not the defaults stay what they are.
TEST(SetParameter, LeavesTheOthersOfThePart) {
  const auto read = [](double mass_kg) {
    return parse_scenario(fmt::format(R"({{"name": "block", "time": {{"step_s": 0.01, "end_s": 1}},
      "method": {{"kind": "douglas-rachford", "impedance": {{"kind": "uniform", "value": 3}},
        "iterations": 10}},
      "subsystems": [{{"name": "A", "type": "mass_spring_damper_chain", "initial_state": {{"v1": 1}},
        "parameters": {{"masses": 3, "mass_kg": {}, "stiffness_N_per_m": 40,
          "damping_Ns_per_m": 0.2, "left_end": "spring", "right_end": "mass"}}}}],
      "couplings": [{{"kind": "free", "ports": ["A.left"]}}, {{"kind": "free", "ports": ["A.right"]}}]}})",
                                      mass_kg),
                          "block.json", ".");
  };
  Scenario scenario = read(0.7);
  const Scenario expected = read(0.3), unchanged = read(0.7);
  Stepper stepper(std::move(scenario.system), scenario.options);
  EXPECT_EQ(parameter(stepper, scenario, "A.masses"), 3.0);
  EXPECT_THROW(parameter(stepper, scenario, "A.left_end"), std::invalid_argument);
  set_parameter(stepper, scenario, "A.mass_kg", 0.3);
  Stepper other(expected.system, expected.options);
  stepper.step(20);
  other.step(20);
  EXPECT_EQ(states_of(stepper), states_of(other));
  EXPECT_THROW(set_parameter(stepper, scenario, "A.masses", 2.5), std::invalid_argument);
  Stepper before(unchanged.system, unchanged.options);
  before.step(20);
  EXPECT_NE(states_of(stepper), states_of(before));
}

}  // namespace
}  // namespace portwave::test_exchange
