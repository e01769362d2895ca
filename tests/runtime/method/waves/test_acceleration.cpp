// Accelerated inner iterations of whole systems: what they gain, and that they come to the same.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/coupling/reference/monolithic.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "support/systems/coupled_systems.hpp"
#include "support/systems/networks.hpp"
#include "support/trace.hpp"

namespace portwave::test_acceleration {
namespace {

struct Hard {
  std::string name;
  System (*make)();
  ImpedanceKind impedance;
};

/// Systems whose plain iteration is slow with these impedances.
std::vector<Hard> hard_systems() {
  return {{"star_on_hub", [] { return testing::star_on_hub(6, 10.0); }, ImpedanceKind::matched},
          {"grid", [] { return testing::duffing_grid(3, 3); }, ImpedanceKind::fne},
          {"tree", [] { return testing::random_mass_tree(12, 3.0, 5); }, ImpedanceKind::fne}};
}

StepperOptions options(const Hard& hard, WaveUpdate kind, int memory) {
  StepperOptions o{.method = WaveCoupling{}};
  o.start = Start::as_given;
  o.method.waves().kind = kind;
  o.method.waves().impedance_kind = hard.impedance;
  o.method.waves().iterations = 3000;
  o.method.waves().tolerance = 1e-10;
  o.method.waves().acceleration = memory;
  o.method.waves().retune_factor = 0.0;
  return o;
}

TEST(Acceleration, ReachesTheMonolithicStepInFewerEvaluations) {
  for (const Hard& hard : hard_systems()) {
    const System system = hard.make();
    for (const WaveUpdate kind : {WaveUpdate::douglas_rachford, WaveUpdate::peaceman_rachford}) {
      StepperOptions o = options(hard, kind, 0);
      if (kind == WaveUpdate::peaceman_rachford) o.method.waves().relaxation = 0.5;
      Stepper plain(system, o);
      o.method.waves().acceleration = 10;
      Stepper fast(system, o);
      MonolithicReference reference(system, o.step_s);
      double worst = 0.0;
      for (int n = 0; n < 10; ++n) {
        const StepReport p = plain.step(), f = fast.step();
        EXPECT_TRUE(f.converged) << hard.name;
        EXPECT_LE(f.iterations, p.iterations + 2) << hard.name << " step " << n;
        reference.step();
        for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
          for (std::size_t k = 0; k < fast.state(i).size(); ++k) {
            worst = std::max(worst, std::abs(fast.state(i)[k] - reference.state(i)[k]));
          }
        }
      }
      EXPECT_LT(worst, 1e-7) << hard.name << " " << to_string(kind);
      EXPECT_LT(2 * fast.iterations().total, plain.iterations().total)
          << hard.name << " " << to_string(kind) << ": " << fast.iterations().total << " of "
          << plain.iterations().total;
    }
  }
}

// One island's iterates at budget K are never much worse than the plain ones two evaluations
// before.
TEST(Acceleration, SpendsTheBudgetNoWorseThanThePlainIterationTwoEvaluationsBefore) {
  for (const Hard& hard : hard_systems()) {
    const System system = hard.make();
    for (const WaveUpdate kind : {WaveUpdate::douglas_rachford, WaveUpdate::peaceman_rachford}) {
      for (int K = 3; K <= 30; K += 3) {
        StepperOptions o = options(hard, kind, 0);
        o.method.waves().tolerance = 1e-300;  // looks at the residual, never met
        o.method.waves().iterations = K - 2;
        Stepper plain(system, o);
        o.method.waves().iterations = K;
        o.method.waves().acceleration = 5;
        Stepper fast(system, o);
        EXPECT_LE(fast.step().residual, 1.0001 * plain.step().residual + 1e-15)
            << hard.name << " " << to_string(kind) << " K=" << K;
      }
    }
  }
}

TEST(Acceleration, WithoutBudgetOrMemoryItIsThePlainStep) {
  const System system = testing::star_on_hub(4, 10.0);
  for (const int K : {0, 1, 2}) {
    StepperOptions o{.method = WaveCoupling{}};
    o.start = Start::as_given;
    o.method.waves().kind = WaveUpdate::peaceman_rachford;
    o.method.waves().iterations = K;
    o.method.waves().impedance = {0.1};
    Stepper plain(system, o);
    o.method.waves().acceleration = 5;
    Stepper fast(system, o);
    plain.step(20);
    fast.step(20);
    std::vector<double> a, b;
    testing::append_interface(plain, a);
    testing::append_interface(fast, b);
    EXPECT_TRUE(testing::same_bits(a, b)) << "K=" << K;  // a second gap is needed for a combination
  }
}

TEST(Acceleration, ANonFiniteInputFailsTheStepAndLeavesTheState) {
  for (const int threads : {1, 2}) {
    std::atomic<bool> spoiled = false;
    SystemBuilder builder;
    builder.add("A",
                duffing_oscillator({.mass_kg = 1,
                                    .stiffness_N_per_m = 20,
                                    .cubic_stiffness_N_per_m3 = 400,
                                    .coupling_stiffness_N_per_m = 10}),
                {.initial_state = {0.3, 0.2, 0.05}});
    builder.add("B", linear_oscillator({.mass_kg = 2, .stiffness_N_per_m = 8}),
                {.initial_state = {}, .inputs = {{"force", Signal::callback([&spoiled](double) {
                                                    return spoiled ? NAN : 1.0;
                                                  })}}});
    builder.connect("A.coupling", "B.coupling");
    const System system = builder.build();
    StepperOptions o{.method = WaveCoupling{}};
    o.start = Start::as_given;
    o.method.waves().impedance = {0.1};
    o.method.waves().iterations = 8;
    o.method.waves().acceleration = 4;
    o.threads = threads;
    o.grain = Grain::per_part();
    if (threads > 1) o.executor = ExecutorKind::async;
    Stepper stepper(system, o), untouched(system, o);
    stepper.step(3);
    untouched.step(3);
    std::vector<double> before, after, expected;
    testing::append_interface(stepper, before);
    spoiled = true;
    EXPECT_THROW(stepper.step(), StepError);
    testing::append_interface(stepper, after);
    EXPECT_TRUE(testing::same_bits(before, after));
    spoiled = false;
    stepper.step(3);
    untouched.step(3);
    after.clear();
    testing::append_interface(stepper, after);
    testing::append_interface(untouched, expected);
    EXPECT_TRUE(testing::same_bits(expected, after)) << threads << " threads";
  }
}

}  // namespace
}  // namespace portwave::test_acceleration
