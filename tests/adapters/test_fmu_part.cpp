// FMUs as power parts: the FMUs are made of a small model in C (tests/fixtures/fmu).

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Dense>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "adapters/fmi/fmu_program.hpp"
#include "adapters/fmu_pair.hpp"
#include "portwave/coupling/impedance/tuning.hpp"
#include "portwave/runtime/adapters/fmu.hpp"
#include "portwave/runtime/output/summary.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/conformance/conformance.hpp"

namespace portwave::test_fmu_part {
namespace {

using testing::FmuFolder;
using testing::FmuPair;
using testing::FmuRecipe;

using testing::failure_of;
using testing::options;
using testing::part_options;
using testing::takes_force;
using testing::takes_speed;

constexpr double kStep = testing::kFmuStep;
using Pair = testing::FmuPair;

TEST(FmuPart, TwoCoupledAreTheWhole) {
  for (const int mass_version : {2, 3}) {
    for (const int spring_version : {2, 3}) {
      FmuFolder folder;
      Pair pair;
      pair.mass_version = mass_version;
      pair.spring_version = spring_version;
      const System system = pair.build(folder);
      Stepper stepper(system, options(kStep, 30, 1e-11));
      stepper.step(500);
      EXPECT_EQ(stepper.iterations().not_converged, 0);
      const double expected = pair.whole(kStep, 500);
      // States: the outputs v, x, steps and calls of the mass.
      EXPECT_NEAR(stepper.state(0)[1], expected, 1e-9) << mass_version << " " << spring_version;
      EXPECT_NEAR(stepper.state(1)[1], expected, 1e-9);
    }
  }
}

TEST(FmuPartControl, AnotherStiffnessIsAnotherMotion) {
  FmuFolder folder;
  Pair pair;
  const System system = pair.build(folder);
  Stepper stepper(system, options(kStep, 30, 1e-11));
  stepper.step(500);
  pair.k *= 1.0 + 1e-5;
  EXPECT_GT(std::abs(stepper.state(0)[1] - pair.whole(kStep, 500)), 1e-8);
}

TEST(FmuPart, TakesOneStepForAnEvaluationAndOneForTheCommit) {
  FmuFolder folder;
  const System system = Pair{}.build(folder);
  Stepper stepper(system, options(kStep, 1, 0.0));
  stepper.step(100);  // until it trusts its model
  // States: the outputs v, x, steps and calls. The steps are a state of the program and are taken back with it.
  const double steps = stepper.state(0)[2], calls = stepper.state(0)[3];
  stepper.step(100);
  EXPECT_EQ(stepper.state(0)[2] - steps, 100.0);
  EXPECT_EQ(stepper.state(0)[3] - calls, 202.0);  // step 128 is taken again, after another one
  EXPECT_NEAR(stepper.state(0)[1], Pair{}.whole(kStep, 200), 1e-3);
}

/// Coupled by samples, the stiff pair diverges at this step; by waves it is stable at any.
TEST(FmuPart, StaysStableWhereSamplesDiverge) {
  for (const double h : {0.01, 0.1, 1.0}) {
    FmuFolder folder;
    Pair pair{.m = 1.0, .c = 0.0, .k = 1e5, .d = 10.0};
    const System system = pair.build(folder, h);
    for (const int iterations : {1, 8}) {
      Stepper stepper(system, options(h, iterations, 0.0));
      double most = 0.0;
      for (int n = 0; n < 200; ++n) {
        stepper.step();
        most = std::max(most, std::abs(stepper.state(0)[1]));
      }
      EXPECT_LE(most, 3.0 * pair.x) << "h " << h << ", K " << iterations;
    }
  }
}

/// The same FMUs, by Jacobi exchange of samples: each steps with what the other said a step ago.
TEST(FmuPartControl, SamplesDivergeThere) {
  FmuFolder folder;
  const Pair pair{.m = 1.0, .c = 0.0, .k = 1e5, .d = 10.0};
  const auto open = [&](const char* library) {
    return fmi::Fmu::open(
        folder.add(std::string(library) + ".fmu", FmuRecipe{.version = 2, .library = library}));
  };
  const auto start = [](const std::shared_ptr<const fmi::Fmu>& fmu,
                        std::vector<std::pair<const char*, double>> given) {
    std::vector<fmi::StartValue> values;
    for (const auto& [name, value] : given)
      values.push_back({fmu->description().find(name), value});
    return fmi::start_instance(fmu, "own", values, 0.0);
  };
  const auto mass_fmu = open("mass"), spring_fmu = open("spring");
  const auto mass = start(mass_fmu, {{"mass", pair.m}, {"d", pair.c}, {"start.x", pair.x}});
  const auto spring = start(spring_fmu, {{"k", pair.k}, {"d", pair.d}, {"start.x", pair.x}});
  const auto variables = [](const std::shared_ptr<const fmi::Fmu>& own, const char* name) {
    const fmi::Variable* const one[] = {own->description().find(name)};
    return fmi::VariableList(one);
  };
  const auto force_in = variables(mass_fmu, "F"), speed_out = variables(mass_fmu, "v");
  const auto speed_in = variables(spring_fmu, "v"), force_out = variables(spring_fmu, "F");
  double speed = 0.0, most = 0.0;
  for (int n = 0; n < 200 && most < 1e6; ++n) {
    double force = 0.0;
    mass->get(speed_out, &speed);
    spring->get(force_out, &force);
    const double pull = -force;
    mass->set(force_in, &pull);
    spring->set(speed_in, &speed);
    mass->step(n * kStep, kStep);
    spring->step(n * kStep, kStep);
    most = std::max(most, std::abs(speed));
  }
  EXPECT_GE(most, 1e6);
}

/// Impedances are found from 1 on, however far they are: with start values of a size to it, and of an FMU that answers
/// nothing at all, such as a contact that is open.
TEST(FmuPart, IsMatchedInUnitsOfAnySize) {
  for (const double unit : {1e-9, 1.0, 1e9, 0.0}) {
    FmuFolder folder;
    FmuPair pair;
    pair.k *= unit, pair.d *= unit;
    if (unit > 0.0) pair.m *= unit, pair.c *= unit;
    const System system = pair.build(folder);
    StepperOptions o = options(kStep, 60, 1e-11);
    o.method.waves().tank.initial_J = 1e3 * std::max(unit, 1.0);
    Stepper stepper(system, o);
    stepper.step(200);
    EXPECT_NEAR(stepper.state(0)[1], pair.whole(kStep, 200), 1e-9) << unit;
    EXPECT_LE(stepper.iterations().mean(), 5.0) << unit;
  }
}

/// A part with direct feedthrough against the same physics in sight.
TEST(FmuPart, WithFeedthroughConvergesToTheWhole) {
  FmuFolder folder;
  const auto file =
      folder.add("mass_spring.fmu", FmuRecipe{.version = 3, .library = "mass_spring"});
  const double m = 2.0, k = 80.0, d = 30.0, M = 1.0, K = 40.0;
  SystemBuilder builder;
  builder.add("fmu",
              make_fmu_part(part_options(file, takes_force(),
                                         {{"mass", m}, {"k", k}, {"d", d}, {"start.x", 0.1}}))
                  .component);
  builder.add("seen", linear_oscillator({.mass_kg = M, .stiffness_N_per_m = K}),
              {.initial_state = {0.0, 0.0}});
  builder.join(joint::CommonFlow{}, {"fmu.port", "seen.coupling"});
  const System system = builder.build();
  Stepper stepper(system, options(kStep, 60, 1e-11));
  stepper.step(300);
  EXPECT_EQ(stepper.iterations().not_converged, 0);

  // Midpoint of the whole: m v̇ = −k x + F, port speed w = v + F/d; M V̇ = −K q − F with V = w (its port takes
  // the force e = −F acting against it: the joint lets both move together).
  Eigen::Matrix4d A = Eigen::Matrix4d::Zero();  // x, v, q, V
  A(0, 1) = 1.0;
  A(1, 0) = -k / m;
  A(2, 3) = 1.0;
  A(3, 2) = -K / M;
  // F = d (V − v)
  A(1, 1) -= d / m;
  A(1, 3) += d / m;
  A(3, 1) += d / M;
  A(3, 3) -= d / M;
  // An oscillator's port counts speed into it, against that of the mass: V is minus its speed.
  const Eigen::Matrix4d one = Eigen::Matrix4d::Identity();
  const Eigen::Matrix4d step = (one - 0.5 * kStep * A).inverse() * (one + 0.5 * kStep * A);
  Eigen::Vector4d state(0.1, 0.0, 0.0, 0.0);
  for (int n = 0; n < 300; ++n) state = step * state;
  EXPECT_NEAR(std::abs(stepper.state(1)[0]), std::abs(state[2]), 1e-8);
}

TEST(FmuPart, IsTunedAsIfItsEquationsWereKnown) {
  FmuFolder folder;
  const auto file = folder.add("mass.fmu", FmuRecipe{.version = 2});
  const double m = 3.0, c = 0.4;
  const FmuPart part = make_fmu_part(part_options(file, takes_force(), {{"mass", m}, {"d", c}}));
  const std::vector<double> x = part.component->default_state();
  const auto response = probed_response(*part.component, kStep, x.data());
  ASSERT_TRUE(response.has_value());
  EXPECT_NEAR((*response)(0, 0), 1.0 / (2.0 * m / kStep + c), 1e-9);
}

TEST(FmuPart, ConvertsUnits) {
  FmuFolder folder;
  Pair pair;
  pair.units = "kilo";
  const System system = pair.build(folder);
  Stepper stepper(system, options(kStep, 30, 1e-11));
  stepper.step(500);
  EXPECT_NEAR(stepper.state(0)[1], 1e3 * pair.whole(kStep, 500), 1e-6);  // in its own unit
  EXPECT_EQ(system.parts()[0].component->signature().ports[0].domain, Domain::translation);
}

TEST(FmuPart, IsMeteredAndItsVerdictIsConditional) {
  FmuFolder folder;
  const System system = Pair{}.build(folder);
  const StepperOptions o = options(kStep, 8, 0.0);
  Stepper stepper(system, o);
  stepper.step(200);
  const std::string text = summary_text(summarize("pair", o, stepper, 1.0));
  EXPECT_NE(text.find("conditional"), std::string::npos) << text;
  // The mass has lost energy through its port, as much as the spring has got.
  EXPECT_NE(stepper.energy().metered_J, 0.0);
}

TEST(FmuPart, TakesStepsBack) {
  FmuFolder folder;
  for (const int version : {2, 3}) {
    const auto file =
        folder.add(fmt::format("mass_{}.fmu", version), FmuRecipe{.version = version});
    const FmuPart part =
        make_fmu_part(part_options(file, takes_force(), {{"start.x", 0.1}, {"start.v", 1.0}}));
    EXPECT_TRUE(part.component->capabilities().repeatable);
    const LawReport report = check_rollback(*part.component);
    EXPECT_TRUE(report.holds) << report.worst << ": " << report.detail;
  }
}

TEST(FmuPart, SaysHowFarItsStepsRepeat) {
  FmuFolder folder;
  const auto file = folder.add("jitters.fmu", FmuRecipe{.version = 2, .library = "jitters"});
  const FmuPart part = make_fmu_part(part_options(file, takes_force(), {{"start.v", 1.0}}));
  EXPECT_FALSE(part.component->capabilities().repeatable);
  ASSERT_EQ(part.notes.size(), 1U);
  EXPECT_NE(part.notes[0].find("repeated differ by "), std::string::npos) << part.notes[0];
  // It runs, and the tolerance is met that its steps allow.
  Pair pair;
  pair.mass_library = "jitters";
  const System system = pair.build(folder);
  Stepper stepper(system, options(kStep, 30, 1e-6));
  stepper.step(200);
  EXPECT_NEAR(stepper.state(0)[1], pair.whole(kStep, 200), 1e-6);
}

TEST(FmuPart, TakesTexts) {
  for (const int version : {2, 3}) {
    FmuFolder folder;
    const auto file = folder.add("mass.fmu", FmuRecipe{.version = version});
    FmuPartOptions o = part_options(file, takes_force(), {{"label", "seven!!"}});
    o.outputs = {"d"};
    EXPECT_EQ(make_fmu_part(o).component->default_state()[0], 7.0);
    o.start = {{"label", 3.0}};
    EXPECT_NE(failure_of([&] { make_fmu_part(o); }).find("\"label\" takes a text"),
              std::string::npos);
    o.start = {{"mass", "heavy"}};
    EXPECT_NE(failure_of([&] { make_fmu_part(o); }).find("\"mass\" takes a number"),
              std::string::npos);
  }
}

TEST(FmuPart, TellsWhatItCanGive) {
  FmuFolder folder;
  const auto mass = folder.add("mass.fmu", FmuRecipe{.version = 2});
  const auto spring = folder.add("spring.fmu", FmuRecipe{.version = 2, .library = "spring"});
  // m v²/2 and k x²/2, the latter for steps that are long against d/k
  const FmuPart a = make_fmu_part(
      part_options(mass, takes_force(), {{"mass", 3.0}, {"d", 0.0}, {"start.v", 2.0}}));
  EXPECT_NEAR(a.available_J, 6.0, 1e-3);
  const FmuPart b = make_fmu_part(
      part_options(spring, takes_speed(), {{"k", 500.0}, {"d", 1e-6}, {"start.x", 0.2}}));
  EXPECT_NEAR(b.available_J, 10.0, 1e-2);
  const FmuPart at_rest = make_fmu_part(part_options(mass, takes_force(), {{"d", 0.0}}));
  EXPECT_EQ(at_rest.available_J, 0.0);
}

TEST(FmuPart, BeginsAtTheTimeOfTheRun) {
  FmuFolder folder;
  const auto file = folder.add("mass.fmu", FmuRecipe{.version = 3});
  FmuPartOptions o = part_options(file, takes_force(), {});
  o.start_s = 5.0;
  o.outputs = {"time", "x"};
  const FmuPart part = make_fmu_part(o);
  EXPECT_EQ(part.component->default_state()[0], 5.0);
  SystemBuilder builder;
  builder.add("mass", part.component);
  builder.add("seen", linear_oscillator({.mass_kg = 1.0, .stiffness_N_per_m = 1.0}));
  builder.join(joint::CommonFlow{}, {"mass.port", "seen.coupling"});
  const System system = builder.build();
  StepperOptions run = options(kStep, 4, 0.0);
  run.start_s = 5.0;
  Stepper stepper(system, run);
  stepper.step(10);
  EXPECT_NEAR(stepper.state(0)[0], 5.1, 1e-12);
}

TEST(FmuPart, ThatMayBeInstantiatedOnceServesAllBatches) {
  FmuFolder folder;
  const auto file = folder.add("once.fmu", FmuRecipe{.version = 2, .is_only_once = true});
  const FmuPartOptions o = part_options(file, takes_force(), {});
  {
    const FmuPart part = make_fmu_part(o);
    const std::vector<double> x = part.component->default_state();
    EXPECT_TRUE(probed_response(*part.component, kStep, x.data()).has_value());
    EXPECT_NE(failure_of([&] { make_fmu_part(o); }).find("may be instantiated once per process"),
              std::string::npos);
  }
  EXPECT_EQ(failure_of([&] { make_fmu_part(o); }), "");
}

// Faults leave the last committed state.

class FmuFault : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(FmuFault, EndsTheStepAndLeavesTheLastState) {
  const auto [library, words] = GetParam();
  for (const int version : {2, 3}) {
    FmuFolder folder;
    Pair pair;
    pair.mass_version = version;
    pair.mass_library = library;
    const System system = pair.build(folder);
    Stepper stepper(system, options(kStep, 4, 0.0));
    std::string text;
    double last = stepper.state(0)[1];
    std::int64_t steps = 0;
    text = failure_of([&] {
      for (; steps < 50; ++steps) {
        stepper.step();
        last = stepper.state(0)[1];
      }
    });
    EXPECT_GE(steps, 5);
    EXPECT_LT(steps, 8);
    EXPECT_NE(text.find("\"mass\""), std::string::npos) << text;
    EXPECT_NE(text.find(words), std::string::npos) << text;
    EXPECT_EQ(stepper.state(0)[1], last);
    EXPECT_EQ(stepper.step_index(), steps);
    EXPECT_NEAR(last, pair.whole(kStep, static_cast<int>(steps)), 1e-3);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Statuses, FmuFault,
    ::testing::Values(std::pair("discards", "; a shorter \"step_s\" may help)"),
                      std::pair("fails", "returned error; it says: the oil has run out"),
                      std::pair("is_fatal", "returned fatal; it says: the oil has run out"),
                      std::pair("not_a_number",
                                "the FMU \"mass.fmu\": its answer \"v\" is not finite after a "
                                "step from 0.06 s over 0.01 s, with F = ")),
    [](const auto& own) { return std::string(own.param.first); });

}  // namespace
}  // namespace portwave::test_fmu_part
