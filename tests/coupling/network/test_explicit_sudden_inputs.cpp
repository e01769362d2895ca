// Smooth inputs that change between the samples of a step: explicit methods halve the step until they know when.

#include <cstdint>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <portwave/coupling/network/kick_drift.hpp>
#include <portwave/coupling/network/taylor.hpp>
#include <portwave/coupling/system/system.hpp>
#include <portwave/subsystems/catalogue/parts.hpp>

namespace portwave::test_explicit_sudden_inputs {
namespace {

constexpr double kStep_s = 0.1, kMass_kg = 2.0, kForce_N = 3.0, kWidth = 1e-3;  // of a step
constexpr int kSteps = 8;

/// A mass, pushed by a force that rises about a time by tanh.
System pushed(double middle_s, double width_s) {
  SystemBuilder builder;
  builder.add("m", parts::mass({.mass_kg = kMass_kg}),
              {.inputs = {{"force", Signal::expression(
                                        fmt::format("{} + {}*tanh((t - {:.17g})/{:.17g})", kForce_N,
                                                    kForce_N, middle_s, width_s))}}});
  builder.join(joint::Free{}, {"m.port"});
  return builder.build();
}

template <class Method>
double speed(const System& system, const Splitting& options, std::int64_t* halved) {
  Method method(system, 0.0, kStep_s, options);
  for (int n = 0; n < kSteps; ++n) method.step(ForEach());
  *halved = method.halved_steps();
  return method.state()[1];
}

TEST(ExplicitSuddenInputs, ComeInTime) {
  const double unit =
      2.0 * kForce_N / kMass_kg * kStep_s;  // what a step late costs; steps of h/64 are ramps
  // 0.1498 and 0.2867: about a sample of kicks and drifts.
  for (const double share : {0.003, 0.1498, 0.2, 0.2867, 0.5, 0.63, 0.9, 0.997}) {
    const double middle_s = (4.0 + share) * kStep_s;
    const double exact = 2.0 * kForce_N / kMass_kg * (kSteps * kStep_s - middle_s);
    const auto expect_in_time = [&](double own, std::int64_t halved, const char* method) {
      EXPECT_NEAR(own, exact, 8e-3 * unit) << method << ", " << share;
      EXPECT_GE(halved, 1) << method << ", " << share;
    };
    const System system = pushed(middle_s, kWidth * kStep_s);
    std::int64_t halved = 0;
    for (const int order : {4, 6}) {
      const double own = speed<KickDriftMethod>(
          system, {.kind = SplittingKind::kick_drift, .order = order}, &halved);
      expect_in_time(own, halved, "kicks and drifts");
    }
    for (const int order : {8, 16}) {
      const double own =
          speed<TaylorMethod>(system, {.kind = SplittingKind::taylor, .order = order}, &halved);
      expect_in_time(own, halved, "Taylor series");
    }
  }
}

TEST(ExplicitSuddenInputs, SlowOnesCostNothing) {
  std::int64_t halved = 0;
  for (const double width : {1.0, 3.0, 30.0}) {
    const System system = pushed(4.37 * kStep_s, width * kStep_s);
    speed<TaylorMethod>(system, {.kind = SplittingKind::taylor, .order = 16}, &halved);
    EXPECT_EQ(halved, 0) << width;
    speed<KickDriftMethod>(system, {.kind = SplittingKind::kick_drift, .order = 6}, &halved);
    EXPECT_EQ(halved, 0) << width;
  }
}

}  // namespace
}  // namespace portwave::test_explicit_sudden_inputs
