// Smooth pulses of inputs, far shorter than the steps that are chosen for everything else.

#include <cmath>
#include <numbers>
#include <string>

#include <gtest/gtest.h>

#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/catalogue/parts.hpp"
#include "step/sizes/input_pulses.hpp"

namespace portwave::test_input_pulses {
namespace {

System pushed_mass(const std::string& force_N) {
  SystemBuilder builder;
  builder.add("m", parts::mass({.mass_kg = 1.0}).build(),
              {.inputs = {{"force", Signal::expression(force_N)}}});
  builder.join(joint::Free{}, {"m.port"});
  return builder.build();
}

StepperOptions chosen(int stages, double largest_s) {
  StepperOptions options;
  options.step_s = largest_s;
  options.method = WaveCoupling::automatic();
  options.method.waves().stages = stages;
  options.sizes = StepSizes{.tolerance = 1e-6};
  return options;
}

class InputPulsesTest : public ::testing::TestWithParam<int> {};

/// A pulse of Gauss's shape with width w moves a mass of 1 kg by √π w times its height.
TEST_P(InputPulsesTest, OfAMicrosecondAreMetByStepsOfTenSeconds) {
  const double impulse = std::sqrt(std::numbers::pi);
  struct Case {
    std::string force_N;
    double speed;
  };
  for (const Case& own :
       {Case{"0.1*t + 1e6*exp(-((t - 50.3)/1e-6)^2)", 500.0 + impulse},
        Case{"1e6*exp(-((t - 50.3)/1e-6)^2)", impulse},
        Case{"1e3*exp(-((t - 99.1)/1e-3)^2)", impulse},
        Case{"1e6*exp(-((t - 20.1)/1e-6)^2) - 2e6*exp(-((t - 70.7)/1e-6)^2)", -impulse}}) {
    const System system = pushed_mass(own.force_N);
    Stepper stepper(system, chosen(GetParam(), 10.0));
    stepper.run_until(100.0);
    EXPECT_NEAR(stepper.state(0)[1], own.speed, 1e-4 + 1e-6 * std::abs(own.speed)) << own.force_N;
    EXPECT_LT(stepper.step_index(), GetParam() == 1 ? 20'000 : 3000) << own.force_N;
    EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  }
}

/// One stage sees half a pulse, from its peak on, less well.
TEST_P(InputPulsesTest, AreMetWhereTheirPeakIsTheEndOfAStep) {
  const System system = pushed_mass("0.1*t + 1e6*exp(-((t - 50)/1e-6)^2)");
  Stepper stepper(system, chosen(GetParam(), 10.0));
  stepper.run_until(100.0);
  EXPECT_NEAR(stepper.state(0)[1], 500.0 + std::sqrt(std::numbers::pi),
              GetParam() == 1 ? 2e-3 : 6e-4);
}

/// The flanks of a pulse, of which the ends of steps see little and their stages nothing, are not passed over either.
TEST_P(InputPulsesTest, AreMetWithTheirFlanks) {
  SystemBuilder builder;
  builder.add(
      "m", parts::mass({.mass_kg = 3.0, .damping_Ns_per_m = 0.5}).build(),
      {.inputs = {{"force", Signal::expression("2*sin(0.7*t) + 4e4*exp(-((t-7.31)/2e-4)^2)")}}});
  builder.add("k", parts::spring({.stiffness_N_per_m = 5.0}));
  builder.connect("k.right", "m.port");
  builder.join(joint::Fixed{}, {"k.left"});
  const System system = builder.build();
  Stepper stepper(system, chosen(GetParam(), 1.0));
  stepper.run_until(7.5);
  // By DOP853 with steps of 5 us about the pulse.
  EXPECT_NEAR(stepper.state(0)[1], 4.818539673, GetParam() == 1 ? 1e-3 : 2e-5);
}

INSTANTIATE_TEST_SUITE_P(Stages, InputPulsesTest, ::testing::Values(1, 2, 3));

TEST(InputPulses, AreThoseThatStagesDoNotSee) {
  const auto hides = [](const std::string& force_N, double begin_s, double step_s, int stages) {
    const System system = pushed_mass(force_N);
    InputPulses pulses(system, gauss_stages(stages));
    return pulses.within(begin_s, step_s);
  };
  for (int stages = 1; stages <= 3; ++stages) {
    EXPECT_TRUE(hides("exp(-((t - 5.3)/1e-6)^2)", 0.0, 10.0, stages));
    EXPECT_TRUE(hides("2 - exp(-((t - 5.3)/1e-6)^2)", 0.0, 10.0, stages));
    EXPECT_TRUE(hides("0.01*t + exp(-((t - 5.3)/1e-6)^2)", 0.0, 10.0, stages));
    EXPECT_FALSE(hides("exp(-((t - 5.3)/1e-6)^2)", 0.0, 5.2, stages));
    EXPECT_FALSE(hides("1 + 0.001*exp(-((t - 5.3)/1e-6)^2)", 0.0, 10.0, stages));  // small
    // Where the peak is an end of the step, and over before the next stage.
    EXPECT_TRUE(hides("exp(-((t - 10)/1e-6)^2)", 0.0, 10.0, stages));
    EXPECT_TRUE(hides("cos(3*t) + 1000*exp(-((t - 2)/1e-4)^2)", 1.75, 0.25, stages));
    EXPECT_TRUE(hides("cos(3*t) - 1000*exp(-((t - 2)/1e-4)^2)", 2.0, 0.25, stages));
    EXPECT_FALSE(hides("exp(-((t - 10)/30)^2)", 0.0, 10.0, stages));
    EXPECT_FALSE(hides("if(t < 10, 0, 1)", 0.0, 10.0, stages));  // which ends the step
    EXPECT_FALSE(hides("if(t < 10, 0, if(t < 10.001, 1000, 0))", 10.0, 1.0, stages));
    EXPECT_FALSE(hides("if(abs(t - 10) < 1e-3, 1000, 0)", 0.0, 10.0, stages));
    EXPECT_FALSE(hides("sin(t)", 0.0, 1.5707963, stages));
    EXPECT_FALSE(hides("3", 0.0, 10.0, stages));
    EXPECT_FALSE(hides("sin(t)", 1.5, 0.1, stages));  // at its crest
    EXPECT_FALSE(hides("sin(t)", 0.0, 3.0, stages));  // which the estimate judges
    EXPECT_FALSE(hides("t*exp(-t)*cos(3*t)", 0.5, 0.01, stages));
  }
}

}  // namespace
}  // namespace portwave::test_input_pulses
