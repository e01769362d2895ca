// Inner iterations that start from where effort and flow would have gone on: they converge to the
// same, sooner where the motion is smooth, and keep every law.

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/runtime/step/stepper.hpp"
#include "support/energy_laws.hpp"
#include "support/systems/random_networks.hpp"
#include "support/systems/systems.hpp"

namespace portwave::test_extrapolated_start {
namespace {

StepperOptions options_of(int stages, double step_s, InnerStart start) {
  StepperOptions options;
  options.start = Start::as_given;
  options.step_s = step_s;
  options.method = WaveCoupling::automatic(1e-12);
  options.method.waves().stages = stages;
  options.method.waves().start = start;
  return options;
}

std::vector<double> states_of(const Stepper& stepper) {
  std::vector<double> out;
  for (int part = 0; part < static_cast<int>(stepper.system().parts().size()); ++part) {
    out.insert(out.end(), stepper.state(part).begin(), stepper.state(part).end());
  }
  return out;
}

class ExtrapolatedStarts : public ::testing::TestWithParam<int> {};

TEST_P(ExtrapolatedStarts, ConvergeToTheSame) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    const System system = testing::random_network({}, seed);
    Stepper last(system, options_of(GetParam(), 0.02, InnerStart::last));
    Stepper ahead(system, options_of(GetParam(), 0.02, InnerStart::extrapolated));
    last.step(30);
    ahead.step(30);
    const std::vector<double> x = states_of(last), y = states_of(ahead);
    double most = 0.0, size = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      most = std::max(most, std::abs(x[i] - y[i]));
      size = std::max(size, std::abs(x[i]));
    }
    EXPECT_LT(most, 1e-9 * size) << seed;
    EXPECT_EQ(ahead.iterations().not_converged, last.iterations().not_converged);
  }
}

/// What the first evaluation of a step finds: with the waves of the last step of the order of h,
/// with their continuation of a higher one.
TEST_P(ExtrapolatedStarts, BeginCloserByAPowerOfTheStep) {
  const System system = testing::duffing_linear_pair();
  const auto first_residual = [&](double step_s, InnerStart start) {
    StepperOptions options = options_of(GetParam(), step_s, start);
    options.method.waves().kind = WaveUpdate::peaceman_rachford;
    options.method.waves().impedance_kind = ImpedanceKind::matched;
    options.method.waves().iterations = 200;
    Stepper stepper(system, options);
    stepper.step(static_cast<int>(std::lround(0.32 / step_s)));
    stepper.waves()->set_iterations(1);
    return stepper.step().residual;
  };
  const auto order = [&](InnerStart start) {
    return std::log2(first_residual(0.02, start) / first_residual(0.005, start)) / 2.0;
  };
  EXPECT_LT(first_residual(0.005, InnerStart::extrapolated),
            0.2 * first_residual(0.005, InnerStart::last));
  EXPECT_GT(order(InnerStart::extrapolated), order(InnerStart::last) + 0.7);
}

TEST_P(ExtrapolatedStarts, KeepTheLawsAtEveryBudget) {
  for (const int iterations : {0, 1, 2, 5}) {
    const System system = testing::duffing_linear_pair();
    StepperOptions options = options_of(GetParam(), 0.05, InnerStart::extrapolated);
    options.method.waves().kind = WaveUpdate::douglas_rachford;
    options.method.waves().impedance_kind = ImpedanceKind::given;
    options.method.waves().impedance = {7.0};
    options.method.waves().iterations = iterations;
    options.certify = Certify::full;
    Stepper stepper(system, options);
    testing::EnergyLaws laws(stepper);
    for (int n = 0; n < 100; ++n) {
      const StepReport report = stepper.step();
      laws.observe(stepper, report);
    }
    EXPECT_TRUE(laws.hold()) << laws.first_breach();
    EXPECT_NE(stepper.certificate().status, CertificateStatus::violated);
    if (const auto residual = stepper.certificate().max_augmented_residual_J) {
      EXPECT_LT(*residual, 1e-9);  // Theorem 1 is about any start
    }
  }
}

TEST_P(ExtrapolatedStarts, BitsDoNotDependOnWhoExecutes) {
  const System system = testing::chain_of_blocks(12, 2);
  const auto run = [&](int threads, ExecutorKind executor) {
    StepperOptions options = options_of(GetParam(), 0.05, InnerStart::extrapolated);
    options.threads = threads;
    options.executor = executor;
    Stepper stepper(system, options);
    stepper.step(20);
    return states_of(stepper);
  };
  const std::vector<double> serial = run(1, ExecutorKind::serial);
  for (const auto kind : {ExecutorKind::async, ExecutorKind::graph}) {
    EXPECT_EQ(run(3, kind), serial) << to_string(kind);
  }
}

/// What a stepper makes of a start that is left open.
InnerStart taken(const System& system, const StepperOptions& options) {
  return Stepper(system, options).method().method.waves().start;
}

TEST(AutomaticStart, IsExtrapolatedWhereItSavesEvaluations) {
  const System pair = testing::duffing_linear_pair();
  const auto left_open = [](int stages) { return options_of(stages, 0.01, InnerStart::automatic); };
  for (const int stages : {2, 3}) {
    EXPECT_EQ(taken(pair, left_open(stages)), InnerStart::extrapolated);
    const auto evaluations = [&](InnerStart start) {
      StepperOptions options = options_of(stages, 0.01, start);
      options.method.waves().tolerance = WaveCoupling::automatic_with_stages(stages).tolerance;
      Stepper stepper(pair, options);
      stepper.step(200);
      return stepper.iterations().per_step();
    };
    EXPECT_LT(evaluations(InnerStart::automatic), 0.93 * evaluations(InnerStart::last));
  }
  EXPECT_EQ(taken(pair, left_open(1)), InnerStart::last);
  EXPECT_EQ(taken(testing::chain_of_blocks(3, 2), left_open(3)), InnerStart::last) << "linear";
  // Where results depend on the start it stays.
  StepperOptions late = left_open(3);
  late.time.deadline_s = 1.0;
  EXPECT_EQ(taken(pair, late), InnerStart::last);
  StepperOptions budget = left_open(3);
  budget.method.waves().tolerance = 0.0;
  EXPECT_EQ(taken(pair, budget), InnerStart::last);
  EXPECT_EQ(taken(pair, options_of(3, 0.02, InnerStart::last)), InnerStart::last);
}

INSTANTIATE_TEST_SUITE_P(Stages, ExtrapolatedStarts, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace portwave::test_extrapolated_start
