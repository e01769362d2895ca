#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/runtime/ensemble/ensemble.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"

namespace portwave::testing::test_ensemble_failures {
namespace {

/// What becomes of the input of a pair some time.
enum class Way { none, throws, overflows };

System pair_that(Way way, double at_s, int i) {
  SystemBuilder builder;
  builder.add("A",
              duffing_oscillator({.mass_kg = 8,
                                  .stiffness_N_per_m = 100.0 + i,
                                  .cubic_stiffness_N_per_m3 = 8000,
                                  .coupling_stiffness_N_per_m = 120,
                                  .coupling_damping_Ns_per_m = 0.05}),
              {.initial_state = {0.4, 0, -0.4}});
  Signal force;
  if (way == Way::throws) {
    force = Signal::callback([at_s](double t) {
      if (t > at_s) throw std::runtime_error("the force is gone");
      return 0.5;
    });
  } else if (way == Way::overflows) {
    force = Signal::callback([at_s](double t) { return t > at_s ? 1e300 : 0.5; });
  } else {
    force = Signal::callback([](double) { return 0.5; });
  }
  builder.add("B", linear_oscillator({.mass_kg = 4, .stiffness_N_per_m = 50}),
              {.inputs = {{"force", force}}});
  builder.connect("A.coupling", "B.coupling");
  return builder.build();
}

struct Plan {
  Way way = Way::none;
  double at_s = 0.0;
};

StepperOptions options_of(const std::string& kind) {
  StepperOptions options{.method = WaveCoupling{}};
  options.step_s = 0.01;
  WaveCoupling& m = options.method.waves();
  m.iterations = 5;
  m.impedance = {0.4};
  if (kind == "tolerance" || kind == "rescue") {
    m.iterations = 30;
    m.tolerance = 1e-9;
  }
  if (kind == "rescue") m.rescue_after = 3;
  if (kind == "acceleration") m.acceleration = 3;
  if (kind == "unguarded") m.guard = false;
  if (kind == "stages") m.stages = 2;
  return options;
}

/// What a stepper of its own comes to.
struct Expected {
  std::vector<double> state;
  std::optional<StepError> error;
  double final_J = 0.0;
};

Expected alone(const Plan& plan, int i, const StepperOptions& options, int steps) {
  const System system = pair_that(plan.way, plan.at_s, i);
  Expected out;
  Stepper stepper(system, options);
  try {
    stepper.step(steps);
  } catch (const StepError& error) {
    out.error = error;
  }
  for (const int part : {0, 1}) {
    const auto own = stepper.state(part);
    out.state.insert(out.state.end(), own.begin(), own.end());
  }
  out.final_J = stepper.energy().final_J;
  return out;
}

void check(const std::vector<Plan>& plans, const std::string& kind, int chunk) {
  constexpr int kSteps = 40;
  const StepperOptions options = options_of(kind);
  const int count = static_cast<int>(plans.size());
  Ensemble ensemble(count,
                    [&](int i) {
                      const Plan& own = plans[static_cast<std::size_t>(i)];
                      return pair_that(own.way, own.at_s, i);
                    },
                    options, {.chunk = chunk});
  ASSERT_TRUE(ensemble.in_lanes());
  ensemble.step(kSteps);
  int failures = 0;
  for (int i = 0; i < count; ++i) {
    const std::string where = fmt::format("replica {}, {}, chunks of {}", i, kind, chunk);
    const Expected own = alone(plans[static_cast<std::size_t>(i)], i, options, kSteps);
    std::vector<double> state(5);
    ensemble.get_state(i, state);
    const ReplicaStatus status = ensemble.status(i);
    ASSERT_EQ(status.failed, own.error.has_value()) << where << ": " << status.error;
    EXPECT_EQ(ensemble.energy(i).final_J, own.final_J) << where;
    if (!own.error) {
      EXPECT_EQ(state, own.state) << where;
      EXPECT_EQ(status.steps, kSteps);
      continue;
    }
    ++failures;
    EXPECT_EQ(status.error, fmt::format("replica {}: {}", i, own.error->what())) << where;
    EXPECT_EQ(status.part, own.error->part());
    EXPECT_EQ(status.fault, own.error->fault());
    EXPECT_EQ(status.steps, own.error->step());
    EXPECT_TRUE(std::ranges::all_of(state, [](double x) { return std::isnan(x); })) << where;
  }
  EXPECT_EQ(ensemble.failures(), failures);
}

class EnsembleFailure : public ::testing::TestWithParam<std::string> {};

TEST_P(EnsembleFailure, StopsOneReplicaAndChangesNoBitOfTheOthers) {
  for (const Way way : {Way::throws, Way::overflows}) {
    std::vector<Plan> plans(20);
    plans[3] = {way, 0.105};
    plans[11] = {way, 0.205};
    plans[12] = {way, 0.205};  // in the same step
    for (const int chunk : {20, 8, 1}) check(plans, GetParam(), chunk);
  }
}

TEST_P(EnsembleFailure, MayTakeAll) {
  std::vector<Plan> plans(20);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    plans[i] = {i % 3 == 0 ? Way::throws : Way::overflows, 0.01 * static_cast<double>(i % 7)};
  }
  check(plans, GetParam(), 20);
}

INSTANTIATE_TEST_SUITE_P(Ensemble, EnsembleFailure,
                         ::testing::Values("budget", "tolerance", "rescue", "acceleration",
                                           "unguarded", "stages"),
                         [](const auto& test) { return test.param; });

TEST(EnsembleFailureControl, WithoutFailuresAllGoOn) { check(std::vector<Plan>(9), "budget", 9); }

TEST(EnsembleStart, ReplicasThatCannotStartAreTold) {
  const StepperOptions options = options_of("budget");
  Ensemble ensemble(
      5, [](int i) { return pair_that(Way::none, 0.0, i); }, options);
  ensemble.set_state(2, 0, std::vector<double>{1e200, 0.0, -0.4});
  ensemble.step(3);
  EXPECT_EQ(ensemble.failures(), 1);
  const ReplicaStatus status = ensemble.status(2);
  EXPECT_TRUE(status.failed);
  EXPECT_EQ(status.part, "A");
  EXPECT_EQ(status.steps, 0);
  EXPECT_NE(status.error.find("\"A\" cannot start from this state"), std::string::npos)
      << status.error;
}

TEST(EnsembleStart, RolloutHasNaNWhereAReplicaFailed) {
  constexpr int kReplicas = 6, kSteps = 10;
  const auto replica = [](int i) {
    SystemBuilder builder;
    builder.add("A", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 10.0 + i}),
                {.inputs = {{"force", Signal::settable()}}});
    builder.add("B", linear_oscillator({.mass_kg = 1.5, .stiffness_N_per_m = 20}));
    builder.connect("A.coupling", "B.coupling");
    return builder.build();
  };
  StepperOptions options = options_of("budget");
  options.start = Start::as_given;
  Ensemble ensemble(kReplicas, replica, options, {.threads = 2, .chunk = 3});
  std::vector<double> x0(kReplicas * 4, 0.1), u(kReplicas * kSteps, 1.0), x(kReplicas * kSteps * 4);
  const double nan = std::nan("");
  x0[1 * 4 + 2] = nan;
  u[4 * kSteps + 6] = nan;
  ensemble.rollout(x0, u, kSteps, x);
  for (int i = 0; i < kReplicas; ++i) {
    for (int t = 0; t < kSteps; ++t) {
      const bool gone = i == 1 || (i == 4 && t >= 6);
      EXPECT_EQ(std::isnan(x[static_cast<std::size_t>((i * kSteps + t) * 4)]), gone)
          << i << " " << t;
    }
  }
  EXPECT_EQ(ensemble.failures(), 2);
  EXPECT_EQ(ensemble.status(4).steps, 6);
  EXPECT_EQ(ensemble.status(4).error,
            "replica 4: settable input \"A.force\" is not finite in step 6: nan");
  // The next run has them all.
  u[4 * kSteps + 6] = 1.0;
  x0[1 * 4 + 2] = 0.1;
  ensemble.rollout(x0, u, kSteps, x);
  EXPECT_EQ(ensemble.failures(), 0);
  EXPECT_TRUE(std::ranges::all_of(x, [](double value) { return std::isfinite(value); }));
}

TEST(EnsembleThreads, CallbacksAreCalledByTheCallingThreadOnly) {
  Ensemble ensemble(40, [](int i) { return pair_that(Way::none, 0.0, i); }, options_of("budget"),
                    {.threads = 4, .chunk = 8});
  EXPECT_EQ(ensemble.threads(), 1);
}

}  // namespace
}  // namespace portwave::testing::test_ensemble_failures
