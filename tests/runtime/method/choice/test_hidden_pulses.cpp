// Methods without waves, in steps of one size: smooth pulses of inputs between the places that a step looks at.

#include <cmath>
#include <numbers>
#include <string>

#include <gtest/gtest.h>

#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/parts.hpp"

namespace portwave::test_hidden_pulses {
namespace {

struct Case {
  const char* name;
  Splitting method;
  bool sees_much;  ///< in a step
};
const Case kCases[] = {
    {"kick-drift, order 4", {.kind = SplittingKind::kick_drift, .order = 4}, true},
    {"kick-drift, order 6", {.kind = SplittingKind::kick_drift, .order = 6}, true},
    {"taylor", {.kind = SplittingKind::taylor, .order = 8}, true},
    {"strang", {.kind = SplittingKind::strang}, false}};

/// A mass of 1 kg on a spring of 5 N/m, for 4 s in steps of .1 s.
Stepper run(const Case& own, const std::string& force_N, Certify certify = Certify::energy) {
  SystemBuilder builder;
  builder.add("m", parts::mass({.mass_kg = 1.0}).build(),
              {.inputs = {{"force", Signal::expression(force_N)}}});
  builder.add("k", parts::spring({.stiffness_N_per_m = 5.0}));
  builder.connect("k.right", "m.port");
  builder.join(joint::Fixed{}, {"k.left"});
  StepperOptions options;
  options.step_s = 0.1;
  options.method = own.method;
  options.certify = certify;
  Stepper stepper(builder.build(), options);
  stepper.step(40);
  return stepper;
}

TEST(HiddenPulses, AreToldByMethodsWithoutWaves) {
  for (const Case& own : kCases) {
    // Within a step, and at the end of one.
    for (const std::string peak_s : {"2.03", "2"}) {
      const Stepper stepper = run(own, "cos(3*t) + 1000*exp(-((t - " + peak_s + ")/1e-4)^2)");
      const auto found = stepper.resolution();
      ASSERT_TRUE(found.has_value()) << own.name << ", " << peak_s;
      EXPECT_EQ(found->kind, Resolution::Kind::undersampled) << own.name;
      EXPECT_EQ(found->step, peak_s == "2" ? 19 : 20) << own.name;
      EXPECT_EQ(found->part, 0);
    }
  }
}

TEST(HiddenPulses, AreNotWhatStepsSee) {
  for (const Case& own : kCases) {
    EXPECT_FALSE(run(own, "cos(3*t)").resolution().has_value()) << own.name;
    EXPECT_FALSE(run(own, "if(t < 2, 0, 1)").resolution().has_value()) << own.name;
    // Half of it in a third of a step.
    const std::string wide = "10*exp(-((t - 2.03)/0.02)^2)";
    EXPECT_EQ(run(own, wide).resolution().has_value(), !own.sees_much) << own.name;
    if (!own.sees_much) continue;
    const double impulse = 10.0 * 0.02 * std::sqrt(std::numbers::pi);
    const double expected = impulse * std::cos(std::sqrt(5.0) * (4.0 - 2.03));
    EXPECT_NEAR(run(own, wide).state(0)[1], expected, 0.01 * impulse) << own.name;
  }
}

TEST(HiddenPulses, AreNotLookedForWithoutAnAccount) {
  const std::string pulse = "cos(3*t) + 1000*exp(-((t - 2.03)/1e-4)^2)";
  EXPECT_FALSE(run(kCases[0], pulse, Certify::none).resolution().has_value());
}

}  // namespace
}  // namespace portwave::test_hidden_pulses
