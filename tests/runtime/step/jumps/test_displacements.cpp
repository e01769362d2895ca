// Flow sources that follow a displacement: a road under a spring, a shaft that is turned, a plate that is
// charged.

#include <cmath>
#include <memory>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"

namespace portwave::test_displacements {
namespace {

StepperOptions steps_of(double step_s, int stages, Start start = Start::consistent) {
  StepperOptions options;
  options.step_s = step_s;
  options.start = start;
  options.method = CouplingMethod::automatic(1e-13);
  options.method.waves().stages = stages;
  return options;
}

/// A mass of 2 kg on a spring of 50 N/m and a damper, over a road.
constexpr double kMass_kg = 2.0, kStiffness_N_per_m = 50.0;

System over_a_road(Signal flow, double damping_Ns_per_m = 0.0) {
  SystemBuilder builder;
  SystemBuilder::PartOptions options;
  options.inputs["flow"] = std::move(flow);
  builder.add("road", make_part("flow_source", {{"domain", std::string("translation")}}), options);
  builder.add("spring", make_part("spring_damper", {{"stiffness_N_per_m", kStiffness_N_per_m},
                                                    {"damping_Ns_per_m", damping_Ns_per_m}}));
  builder.add("mass", make_part("mass", {{"mass_kg", kMass_kg}}));
  builder.join(joint::Connection{}, {"road.port", "spring.left"});
  builder.join(joint::Connection{}, {"spring.right", "mass.port"});
  return builder.build();
}

double position(const Stepper& stepper) { return stepper.state("mass")[0]; }
double elongation(const Stepper& stepper) { return stepper.state("spring")[0]; }

// The elongation is the position of the mass less that of the road: it tells where the road is.
TEST(Displacements, AreFollowedToRoundingAtTheEndOfEveryStep) {
  const std::vector<Signal> roads = {
      Signal::expression("0.05*sin(2*pi*t)"), Signal::expression("0.05*abs(sin(7*t))"),
      Signal::expression("0.05*(t > 0.333)"),
      Signal::piecewise_linear({{0.1, 0.0}, {0.25, 0.08}, {0.4, 0.08}, {0.4, -0.01}, {0.9, 0.02}})};
  for (const Signal& road : roads) {
    for (const int stages : {1, 2, 3}) {
      Stepper stepper(over_a_road(Signal::rate_of(road), 3.0),
                      steps_of(0.01, stages, Start::as_given));
      const double start = road(0.0);
      for (int n = 1; n <= 100; ++n) {
        stepper.step();
        // The end of a step is before what jumps there.
        EXPECT_NEAR(position(stepper) - elongation(stepper), road(0.01 * n - 1e-12) - start, 1e-11)
            << stages << " stages, step " << n;
      }
      EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
    }
  }
}

TEST(DisplacementsControl, ASampledVelocityDriftsAway) {
  const auto velocity = [](double t) {
    return 0.35 * std::cos(7.0 * t) * (std::sin(7.0 * t) < 0.0 ? -1.0 : 1.0);
  };
  Stepper stepper(over_a_road(Signal::callback(velocity), 3.0), steps_of(0.01, 1));
  for (int n = 0; n < 100; ++n) stepper.step();
  const double missed = position(stepper) - elongation(stepper) - 0.05 * std::abs(std::sin(7.0));
  EXPECT_GT(std::abs(missed), 1e-9);
}

// A road that jumps by 5 cm: the mass then swings about its new height, x = 0.05 (1 − cos ω(t − t₀)).
TEST(Displacements, AMassOnASpringRollsOverAStep) {
  const double omega = std::sqrt(kStiffness_N_per_m / kMass_kg);
  for (const int stages : {1, 2, 3}) {
    double before = 0.0;
    for (const double h : {0.01, 0.005}) {
      Stepper stepper(over_a_road(Signal::rate_of(Signal::expression("0.05*(t >= 0.5)"))),
                      steps_of(h, stages));
      double largest = 0.0;
      for (int n = 1; n <= static_cast<int>(std::lround(2.0 / h)); ++n) {
        stepper.step();
        const double t = n * h;
        const double truth = t > 0.5 + 1e-9 ? 0.05 * (1.0 - std::cos(omega * (t - 0.5))) : 0.0;
        largest = std::max(largest, std::abs(position(stepper) - truth));
      }
      // The step in which it jumps spreads that over its length: of a swing of 5 cm ω²h²/2 or less.
      EXPECT_LE(largest, 0.05 * omega * h * (stages == 1 ? 0.7 : 0.6)) << stages << " " << h;
      if (before > 0.0) {
        EXPECT_LE(largest, 0.6 * before) << stages;
      }
      before = largest;
      // It has lifted the spring by as much energy as the swing has: ½k·0.05².
      const EnergyTotals e = stepper.energy();
      EXPECT_NEAR(e.final_J, e.supplied_J, 1e-12);
      EXPECT_NEAR(e.supplied_J, 0.5 * kStiffness_N_per_m * 0.0025, 0.01 * 0.0625) << stages;
    }
  }
}

// A displacement that jumps has no bounded rate, and no shorter step makes its error less: one step takes it.
TEST(Displacements, StepsThatChooseTheirSizeTakeAJumpInOneOfThem) {
  const double omega = std::sqrt(kStiffness_N_per_m / kMass_kg), jump_m = 0.05;
  const Signal roads[] = {
      Signal::expression("0.05*(t >= 0.5)"),
      Signal::piecewise_linear({{0.0, 0.0}, {0.5, 0.0}, {0.5, jump_m}, {9.0, jump_m}})};
  for (const Signal& road : roads) {
    for (const auto& [tolerance, stages] :
         {std::pair(1e-3, 1), {1e-6, 1}, {1e-3, 3}, {1e-6, 3}, {1e-8, 3}}) {
      StepperOptions options = steps_of(0.1, stages);
      options.sizes = StepSizes{.tolerance = tolerance};
      Stepper stepper(over_a_road(Signal::rate_of(road)), options);
      const double allowed = (stages == 1 ? 50.0 : 10.0) * tolerance + 1e-8;
      while (stepper.step_if_before(2.0)) {
        if (stepper.time_s() <= 0.5) continue;
        const double there = 1.0 - std::cos(omega * (stepper.time_s() - 0.5));
        EXPECT_NEAR(position(stepper) - elongation(stepper), jump_m, 1e-12);
        EXPECT_NEAR(position(stepper) / jump_m, there, allowed)
            << tolerance << ", " << stages << " at " << stepper.time_s();
      }
      // The road lifts one end of the spring, which stores ½ k s².
      EXPECT_NEAR(stepper.energy().supplied_J, 0.5 * kStiffness_N_per_m * jump_m * jump_m, 1e-9);
      EXPECT_LT(stepper.step_index(), stages == 1 ? 20'000 : 3000);
    }
  }
  StepperOptions options = steps_of(0.1, 3);
  options.sizes = StepSizes{.tolerance = 1e-6};
  Stepper smooth(over_a_road(Signal::rate_of(Signal::expression("0.05*sin(5*t)")), 2.0), options);
  while (smooth.step_if_before(2.0)) {
    EXPECT_NEAR(position(smooth) - elongation(smooth), 0.05 * std::sin(5.0 * smooth.time_s()),
                1e-13);
  }
}

// Late in a run, where times have few digits, and beside a kink; and from the first instant on.
TEST(Displacements, StepsThatChooseTheirSizeTakeAJumpOnlyOnce) {
  for (const double start_s : {0.0, 0.3, 1e6}) {
    StepperOptions options = steps_of(0.1, 3);
    options.sizes = StepSizes{.tolerance = 1e-6};
    options.start_s = start_s;
    const Signal road = Signal::piecewise_linear({{start_s, 0.0},
                                                  {start_s + 0.25, 0.0},
                                                  {start_s + 0.25, 0.05},
                                                  {start_s + 0.25 + 0x1p-20, 0.05},
                                                  {start_s + 0.5, 0.02}});
    Stepper stepper(over_a_road(Signal::rate_of(road)), options);
    while (stepper.step_if_before(start_s + 1.0)) {
      // A row at the jump has the states before it.
      if (stepper.time_s() == start_s + 0.25) continue;
      const double there = road(stepper.time_s());
      EXPECT_NEAR(position(stepper) - elongation(stepper), there, 1e-9) << stepper.time_s();
    }
  }
}

// The watch on motion that steps of one size do not resolve takes the rate of such a step for no motion.
TEST(Displacements, AJumpIsNoMotionThatStepsDoNotResolve) {
  for (const double jump_s : {0.5, 0.5033}) {
    for (const int stages : {1, 2, 3}) {
      for (const double step_s : {0.002, 0.01, 0.04}) {
        Stepper stepper(
            over_a_road(Signal::rate_of(Signal::expression(fmt::format("0.05*(t >= {})", jump_s)))),
            steps_of(step_s, stages));
        while (stepper.step_if_before(2.0)) {
        }
        EXPECT_EQ(stepper.resolution()->kind, Resolution::Kind::resolved)
            << jump_s << ", " << stages << ", " << step_s;
      }
    }
  }
}

TEST(DisplacementsControl, AVelocityThatJumpsWithinAStepIsTold) {
  const Signal pulse = Signal::expression("if(abs(t - 0.5033) < 0.0004, 60, 0)");
  Stepper stepper(over_a_road(pulse), steps_of(0.002, 1));
  while (stepper.step_if_before(2.0)) {
  }
  EXPECT_EQ(stepper.resolution()->kind, Resolution::Kind::jumps);
}

// Of a damper c a step of length h makes the heat c s²/h of a jump by s: there is no answer that steps approach.
TEST(Displacements, AJumpThatADamperTakesUpIsRefusedWithTheRemedies) {
  for (const double jump_s : {0.5, 0.5033}) {
    const Signal road = Signal::expression(fmt::format("0.05*(t >= {})", jump_s));
    for (const bool chooses : {false, true}) {
      StepperOptions options = steps_of(0.01, chooses ? 3 : 1);
      if (chooses) options.sizes = StepSizes{.tolerance = 1e-6};
      Stepper stepper(over_a_road(Signal::rate_of(road), 3.0), options);
      try {
        while (stepper.step_if_before(1.0)) {
        }
        FAIL() << "nothing was refused";
      } catch (const StepError& error) {
        const std::string what = error.what();
        EXPECT_NE(what.find("the displacement of road.flow jumps from 0 to 0.05"),
                  std::string::npos)
            << what;
        EXPECT_NE(what.find("a damper takes it up"), std::string::npos) << what;
        EXPECT_NEAR(stepper.time_s(), chooses ? jump_s : 0.5, 1e-9);
      }
    }
    Stepper spring(over_a_road(Signal::rate_of(road)), steps_of(0.01, 1));
    spring.step(100);
    EXPECT_EQ(spring.starts_at_odds().count, 0);
  }
}

TEST(DisplacementsControl, WhatADamperMakesOfAJumpGrowsAsStepsGetShorter) {
  std::vector<double> heat_J;
  for (const double h : {0.01, 0.005}) {
    Stepper stepper(over_a_road(Signal::rate_of(Signal::expression("0.05*(t >= 0.5033)")), 3.0),
                    steps_of(h, 1, Start::as_given));
    while (stepper.step_if_before(0.52)) {
    }
    heat_J.push_back(stepper.energy().dissipated_J);
    EXPECT_EQ(stepper.starts_at_odds().count, 1);
    EXPECT_NE(stepper.starts_at_odds().first.find("a damper takes it up"), std::string::npos);
  }
  EXPECT_NEAR(heat_J[0], 3.0 * 0.05 * 0.05 / 0.01, 0.1 * heat_J[0]);
  EXPECT_GT(heat_J[1], 1.8 * heat_J[0]);
}

System rigid(Signal flow) {
  SystemBuilder builder;
  SystemBuilder::PartOptions options;
  options.inputs["flow"] = std::move(flow);
  builder.add("hand", make_part("flow_source", {{"domain", std::string("translation")}}), options);
  builder.add("mass", make_part("mass", {{"mass_kg", kMass_kg}}));
  builder.join(joint::CommonFlow{}, {"hand.port", "mass.port"});
  return builder.build();
}

TEST(Displacements, AMassThatIsMovedRigidlyFollowsThem) {
  for (const int stages : {1, 2}) {
    Stepper stepper(rigid(Signal::rate_of(Signal::expression("0.1*(1 - cos(3*t))"))),
                    steps_of(0.01, stages));
    for (int n = 1; n <= 100; ++n) {
      stepper.step();
      EXPECT_NEAR(position(stepper), 0.1 * (1.0 - std::cos(0.03 * n)), 1e-13) << n;
    }
  }
}

// A kink is a jump of the speed: an impulse acts, and the position is followed all the same.
TEST(Displacements, AKinkOfARigidOneIsAnImpulse) {
  for (const double kink_s : {0.5, 0.503, 0.508}) {
    Stepper stepper(
        rigid(Signal::rate_of(Signal::piecewise_linear({{0.0, 0.0}, {kink_s, 0.0}, {9.0, 17.0}}))),
        steps_of(0.01, 1));
    const double speed = 17.0 / (9.0 - kink_s);
    for (int n = 1; n <= 100; ++n) {
      stepper.step();
      EXPECT_NEAR(position(stepper), std::max(0.0, speed * (0.01 * n - kink_s)), 1e-10) << n;
    }
    EXPECT_NEAR(stepper.state("mass")[1], speed, 1e-8);
    EXPECT_EQ(stepper.impulses().count, 1) << kink_s;
  }
}

// A road that rises by 1 cm within 3.3 ms, and falls again: both kinks lie in one step of 10 ms, or in two.
TEST(Displacements, BothKinksOfARigidOneAreImpulses) {
  for (const double rise_s : {0.5, 0.5012, 0.5089}) {
    const double fall_s = rise_s + 0.3, speed = 0.01 / 0.0033;
    const Signal road = Signal::piecewise_linear(
        {{rise_s, 0.0}, {rise_s + 0.0033, 0.01}, {fall_s, 0.01}, {fall_s + 0.0033, 0.0}});
    for (const int stages : {1, 2, 3}) {
      Stepper stepper(rigid(Signal::rate_of(road)), steps_of(0.01, stages));
      for (int n = 1; n <= 100; ++n) {
        stepper.step();
        EXPECT_NEAR(position(stepper), road(0.01 * n), 1e-10) << rise_s << " " << n;
        const double before = road(0.01 * n - 1e-7), rate = (road(0.01 * n) - before) / 1e-7;
        EXPECT_NEAR(stepper.state("mass")[1], rate, 1e-5) << rise_s << " " << n;
      }
      // Both ways Mv² is supplied at the first kink, and half of it lost at each.
      EXPECT_EQ(stepper.impulses().count, 4) << rise_s;
      const double once_J = kMass_kg * speed * speed;
      EXPECT_NEAR(stepper.energy().supplied_J, 2.0 * once_J, 1e-6 * once_J) << rise_s;
      EXPECT_NEAR(stepper.energy().impact_J, 2.0 * once_J, 1e-6 * once_J) << rise_s;
    }
  }
}

TEST(Displacements, ARigidOneThatJumpsIsRefusedWithTheRemedies) {
  for (const double jump_s : {0.0, 0.5, 0.503}) {
    const Signal jumps = Signal::piecewise_linear({{jump_s, 0.0}, {jump_s, 0.05}});
    Stepper stepper(rigid(Signal::rate_of(jumps)), steps_of(0.01, 1));
    try {
      for (int n = 0; n < 100; ++n) stepper.step();
      FAIL() << "nothing was refused";
    } catch (const StepError& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("hand.flow jumps from 0 to 0.05"), std::string::npos) << what;
      EXPECT_NE(what.find("spring"), std::string::npos) << what;
      EXPECT_EQ(stepper.step_index(), static_cast<int>(std::floor(jump_s / 0.01 + 1e-9)));
    }
    Stepper told(rigid(Signal::rate_of(jumps)), steps_of(0.01, 1, Start::as_given));
    for (int n = 0; n < 100; ++n) told.step();
    EXPECT_EQ(told.starts_at_odds().count, 1);
    EXPECT_NEAR(position(told), 0.05, 1e-13);
  }
}

}  // namespace
}  // namespace portwave::test_displacements
