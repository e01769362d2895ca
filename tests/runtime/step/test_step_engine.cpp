// What both kinds of engine have in common: step sizes are arguments, time is state; and what only
// one of them has is a view.

#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "step/step_engine.hpp"
#include "support/guard_of.hpp"
#include "support/systems/linear_networks.hpp"
#include "support/trace.hpp"

namespace portwave::test_step_engine {
namespace {

constexpr double kStep_s = 0.01;

StepperOptions options_of(MethodKind kind) {
  StepperOptions options;
  options.start = Start::as_given;
  options.step_s = kStep_s;
  options.method = CouplingMethod::of_kind(kind);
  if (auto* const waves = options.method.as<WaveCoupling>()) waves->iterations = 5;
  if (auto* const dynamic = options.method.as<DynamicIteration>()) dynamic->iterations = 60;
  return options;
}

std::unique_ptr<StepEngine> engine_of(const System& system, MethodKind kind) {
  const StepperOptions options = options_of(kind);
  auto alone = std::make_unique<Together>();
  return CouplingMethod::of_kind(kind).couples_by_waves()
             ? make_wave_engine(system, options, std::move(alone))
             : make_network_engine(system, options, std::move(alone));
}

class BothEngines : public ::testing::TestWithParam<MethodKind> {};
INSTANTIATE_TEST_SUITE_P(Methods, BothEngines,
                         ::testing::Values(WaveUpdate::douglas_rachford, SplittingKind::strang,
                                           IterationKind::jacobi));

TEST_P(BothEngines, TakeStepsOfOtherSizesOrRefuseThem) {
  const System system = testing::two_masses();
  const auto engine = engine_of(system, GetParam());
  EXPECT_EQ(engine->step_s(), kStep_s);
  engine->step_by(kStep_s);
  const std::vector<double> before(engine->state(1).begin(), engine->state(1).end());
  for (const double bad : {0.0, -kStep_s, std::nan("")}) {
    EXPECT_ANY_THROW(engine->step_by(bad)) << bad;
  }
  if (engine->waves() == nullptr) {
    EXPECT_THROW(engine->step_by(0.5 * kStep_s), std::logic_error);
    EXPECT_THROW(engine->step_by(std::nextafter(kStep_s, 1.0)), std::logic_error);
  }
  EXPECT_EQ(engine->clock().steps(), 1) << "nothing has happened";
  EXPECT_TRUE(testing::same_bits(before, {engine->state(1).begin(), engine->state(1).end()}));
  engine->step_by(kStep_s);  // control: the right one goes on
  EXPECT_EQ(engine->clock().steps(), 2);
  if (engine->waves() == nullptr) return;
  engine->step_by(0.5 * kStep_s);
  EXPECT_EQ(engine->clock().steps(), 3);
  EXPECT_DOUBLE_EQ(engine->clock().time_s(), 2.5 * kStep_s);
}

TEST_P(BothEngines, CountTimeByProducts) {
  const System system = testing::two_masses();
  Stepper stepper(system, options_of(GetParam()));
  for (int n = 0; n <= 1000; ++n) {
    ASSERT_EQ(stepper.time_s(), n * kStep_s);
    ASSERT_EQ(stepper.step_index(), n);
    stepper.step();
  }
}

TEST_P(BothEngines, HaveWavesOrNot) {
  const System system = testing::two_masses();
  const auto engine = engine_of(system, GetParam());
  EXPECT_EQ(engine->waves() != nullptr, CouplingMethod::of_kind(GetParam()).couples_by_waves());
  EXPECT_EQ(engine->method().method.kind(), GetParam());
}

/// A pair of which one is pushed by a force that notes when it is asked for.
System pushed_pair(std::vector<double>& asked, const int& failures) {
  SystemBuilder builder;
  builder.add("A", linear_oscillator({.mass_kg = 2, .stiffness_N_per_m = 8}),
              {.initial_state = {}, .inputs = {{"force", Signal::callback([&](double t) {
                                                  asked.push_back(t);
                                                  if (failures > 0) throw std::runtime_error("no");
                                                  return std::sin(t);
                                                })}}});
  builder.add("B", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 3}));
  builder.connect("A.coupling", "B.coupling");
  return builder.build();
}

/// In the middle of the step that is made, also where that step has failed before.
TEST(WaveEngine, SamplesInputsByItsClock) {
  std::vector<double> asked;
  int failures = 0;
  const System system = pushed_pair(asked, failures);
  Stepper stepper(system, options_of(WaveUpdate::douglas_rachford));
  for (int n = 0; n < 500; ++n) {
    failures = n == 100 ? 1 : 0;
    asked.clear();
    if (failures > 0) {
      EXPECT_THROW(stepper.step(), StepError);
      EXPECT_EQ(stepper.time_s(), n * kStep_s);
      failures = 0;
    }
    stepper.step();
    ASSERT_FALSE(asked.empty());
    for (const double t : asked) ASSERT_EQ(t, n * kStep_s + 0.5 * kStep_s) << "step " << n;
  }
}

TEST(WaveView, ShowsTheGuardOnlyWhereThereIsOne) {
  const System system = testing::two_masses();
  StepperOptions options = options_of(WaveUpdate::douglas_rachford);
  options.method.waves().guard = false;
  Stepper without(system, options);
  ASSERT_NE(without.waves(), nullptr);
  EXPECT_EQ(without.waves()->guard(), nullptr);
  EXPECT_TRUE(without.waves()->guard_uses().empty());
  options.method.waves().guard = true;
  Stepper with(system, options);
  ASSERT_NE(with.waves()->guard(), nullptr);
  EXPECT_EQ(with.waves()->guard()->steps, 0);
}

TEST(WaveView, StaysWhenTheStepperMoves) {
  const System system = testing::two_masses();
  Stepper stepper(system, options_of(WaveUpdate::douglas_rachford));
  stepper.step(3);
  const WaveView* const view = stepper.waves();
  const double outgoing = view->outgoing(0);
  EXPECT_NE(outgoing, 0.0);
  const Stepper moved = std::move(stepper);
  EXPECT_EQ(moved.waves(), view);
  EXPECT_EQ(view->outgoing(0), outgoing);
}

TEST(WaveView, TakesAnotherBudget) {
  const System system = testing::two_masses();
  Stepper stepper(system, options_of(WaveUpdate::douglas_rachford));
  EXPECT_EQ(stepper.step().iterations, 5);
  stepper.waves()->set_iterations(2);
  EXPECT_EQ(stepper.step().iterations, 2);
  EXPECT_EQ(stepper.waves()->iterations_of_island(0), 2);
  EXPECT_THROW(stepper.waves()->set_iterations(-1), ConfigError);
  EXPECT_EQ(stepper.step().iterations, 2);
}

}  // namespace
}  // namespace portwave::test_step_engine
