// Events of energies, efforts and flows within the long steps of kicks and drifts, and of Taylor series.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numbers>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/runtime/step/stepper.hpp>
#include <portwave/subsystems/catalogue/oscillators.hpp>

#include "support/systems/separable_networks.hpp"

namespace portwave::test_explicit_events {
namespace {

struct Case {
  SplittingKind kind;
  int order;
};
constexpr Case kAll[] = {{SplittingKind::kick_drift, 4},
                         {SplittingKind::kick_drift, 6},
                         {SplittingKind::taylor, 8},
                         {SplittingKind::taylor, 16}};

std::string name_of(const Case& own) {
  return std::string(to_string(MethodKind(own.kind))) + " of order " + std::to_string(own.order);
}

StepperOptions options_of(const Case& own, double step_s) {
  StepperOptions options;
  options.step_s = step_s;
  options.method = Splitting{.kind = own.kind, .order = own.order};
  return options;
}

/// ω = 3 rad/s from q = 0.5 m at rest: without a force q = cos(3t)/2 and v = −3 sin(3t)/2.
System alone(const Signal& force) {
  SystemBuilder builder;
  builder.add("a", linear_oscillator({.mass_kg = 1.0, .stiffness_N_per_m = 9.0}),
              {.initial_state = {0.5, 0.0}, .inputs = {{"force", force}}});
  builder.join(joint::Free{}, {"a.coupling"});
  return builder.build();
}

Watch watch_of(Sensor of, double level, Watch::Direction direction = Watch::Direction::both) {
  Watch watch;
  watch.name = "event";
  watch.of = of;
  watch.level = level;
  watch.direction = direction;
  return watch;
}

std::vector<double> event_times(const System& system, StepperOptions options, const Watch& watch,
                                double end_s, std::int64_t* steps = nullptr) {
  options.watches.push_back(watch);
  Stepper stepper(system, options);
  std::vector<double> times_s;
  while (stepper.step_if_before(end_s)) {
    for (const Event& event : stepper.events()) times_s.push_back(event.time_s);
  }
  if (steps != nullptr) *steps = stepper.step_index();
  return times_s;
}

double worst_of(const std::vector<double>& times_s, const std::vector<double>& expected_s) {
  if (times_s.size() != expected_s.size()) return 1e9;
  double worst = 0.0;
  for (std::size_t i = 0; i < times_s.size(); ++i) {
    worst = std::max(worst, std::abs(times_s[i] - expected_s[i]));
  }
  return worst;
}

/// Times in [0, end) at which the flow v = −3 sin(3t)/2 of the port passes 0.6 m/s, up or down.
std::vector<double> passages_of_velocity(double sign, double end_s) {
  std::vector<double> out;
  const double angle = std::asin(0.4);
  for (int turn = 0; turn < 100; ++turn) {
    const double base = 2.0 * std::numbers::pi * turn + (sign < 0.0 ? std::numbers::pi : 0.0);
    for (const double own : {base + angle, base + std::numbers::pi - angle}) {
      if (own / 3.0 < end_s) out.push_back(own / 3.0);
    }
  }
  std::ranges::sort(out);
  return out;
}

TEST(ExplicitEvents, OfAnEnergyAreTimedAsWellAsTheMotion) {
  // At 9 N it swings about 1 m: q = 1 − cos(3t)/2.
  const System system = alone(Signal::constant(9.0));
  const auto energy = [](double t) {
    const double q = 1.0 - 0.5 * std::cos(3.0 * t), v = 1.5 * std::sin(3.0 * t);
    return 4.5 * q * q + 0.5 * v * v;
  };
  // H = 4.5 (1 − cos + cos²/4) + 1.125 sin² = 5.625 − 4.5 cos(3t): passes 4.5 where cos = 1/4.
  const double angle = std::acos(0.25);
  std::vector<double> expected_s;
  for (int turn = 0; turn < 5; ++turn) {
    for (const double own :
         {2.0 * std::numbers::pi * turn + angle, 2.0 * std::numbers::pi * (turn + 1) - angle}) {
      if (own / 3.0 < 8.0) expected_s.push_back(own / 3.0);
    }
  }
  EXPECT_NEAR(energy(expected_s[1]), 4.5, 1e-12);
  const Watch watch = watch_of({Sensor::Kind::storage, 0, 0}, 4.5);
  for (const Case& own : kAll) {
    double last = 1.0;
    for (const double tolerance : {1e-4, 1e-6, 1e-8}) {
      StepperOptions options = options_of(own, 1.0);
      options.sizes = StepSizes{.tolerance = tolerance};
      std::int64_t steps = 0;
      const double worst = worst_of(event_times(system, options, watch, 8.0, &steps), expected_s);
      EXPECT_LT(worst, 3.0 * tolerance) << name_of(own) << ", " << tolerance;
      EXPECT_LT(steps, 600) << name_of(own) << ", " << tolerance;
      last = worst;
    }
    EXPECT_LT(last, 3e-8);
    // Control: on a straight line in steps as long as those the curvature of H alone is off by (h·3)²/8 of it.
    const double h = 0.1;
    EXPECT_GT(h * h / 8.0 * 9.0 * 4.5 / (4.5 * 3.0), 1e-3);
  }
}

TEST(ExplicitEvents, OfAFlowAreTimedAsWellAsTheMotion) {
  const System system = alone(Signal::constant(0.0));
  Stepper probe(system, options_of(kAll[1], 0.01));
  probe.step();
  const double sign = probe.flow(0) < 0.0 ? -1.0 : 1.0;
  const std::vector<double> expected_s = passages_of_velocity(sign, 8.0);
  const Watch watch = watch_of({Sensor::Kind::flow, -1, 0}, 0.6);
  for (const Case& own : kAll) {
    for (const double tolerance : {1e-4, 1e-6, 1e-8}) {
      StepperOptions options = options_of(own, 1.0);
      options.sizes = StepSizes{.tolerance = tolerance};
      EXPECT_LT(worst_of(event_times(system, options, watch, 8.0), expected_s), 3.0 * tolerance)
          << name_of(own) << ", " << tolerance;
    }
  }
}

// Steps of one size, too: by the polynomial through both ends, or the series itself.
TEST(ExplicitEvents, OfEqualStepsHaveTheOrderOfThePolynomial) {
  const System system = alone(Signal::constant(0.0));
  Stepper probe(system, options_of(kAll[1], 0.01));
  probe.step();
  const std::vector<double> expected_s =
      passages_of_velocity(probe.flow(0) < 0.0 ? -1.0 : 1.0, 8.0);
  const Watch watch = watch_of({Sensor::Kind::flow, -1, 0}, 0.6);
  const auto worst = [&](const Case& own, double step_s) {
    return worst_of(event_times(system, options_of(own, step_s), watch, 8.0), expected_s);
  };
  const double coarse = worst(kAll[1], 0.1), fine = worst(kAll[1], 0.05);
  EXPECT_GT(std::log2(coarse / fine), 4.5);
  EXPECT_LT(fine, 1e-7);
  EXPECT_LT(worst(kAll[3], 0.25), 1e-12) << "Taylor series have no other polynomial";
  EXPECT_GT(worst({SplittingKind::taylor, 4}, 0.25), 1e-7) << "control";
}

TEST(ExplicitEvents, AreOfTheOrderWithNonlinearSprings) {
  const System system = testing::separable_pair();
  const Watch watch = watch_of({Sensor::Kind::storage, 0, 0}, 62.0);
  StepperOptions fine = options_of(kAll[1], 1.0);
  fine.sizes = StepSizes{.tolerance = 1e-12};
  const std::vector<double> expected_s = event_times(system, fine, watch, 5.0);
  ASSERT_GE(expected_s.size(), 6U);
  for (const Case& own : {kAll[0], kAll[1]}) {
    for (const double tolerance : {1e-4, 1e-6, 1e-8}) {
      StepperOptions options = options_of(own, 1.0);
      options.sizes = StepSizes{.tolerance = tolerance};
      EXPECT_LT(worst_of(event_times(system, options, watch, 5.0), expected_s), 10.0 * tolerance)
          << name_of(own) << ", " << tolerance;
    }
  }
}

}  // namespace
}  // namespace portwave::test_explicit_events
