// Port solves of the inner iteration are only as exact as it can use. What is committed does not
// show it, and what is certified does not suffer.

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include "portwave/coupling/reference/monolithic.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "support/systems/counting_part.hpp"
#include "support/systems/nonlinear_parts.hpp"
#include "support/systems/systems.hpp"
#include "support/trace.hpp"

namespace portwave::test_inexact_solves {
namespace {

using testing::CountingPart;
using testing::trace;

std::unique_ptr<CountingPart> tooth(int states, bool exact) {
  return std::make_unique<CountingPart>(testing::quartic_chain(states / 2), exact);
}

std::vector<double> displaced(int states, double by) {
  std::vector<double> x(static_cast<std::size_t>(states), 0.0);
  x[0] = by;
  return x;
}

/// A linear chain with nonlinear teeth at its junctions, and beside it small islands of one tooth
/// and one oscillator each.
System comb(int teeth, int islands, bool exact) {
  SystemBuilder builder;
  for (int i = 0; i <= teeth; ++i) {
    builder.add(
        "block" + std::to_string(i),
        mass_spring_damper_chain({.masses = 1,
                                  .mass_kg = 0.3,
                                  .stiffness_N_per_m = 50,
                                  .damping_Ns_per_m = 0.1,
                                  .coupling_stiffness_N_per_m = 50,
                                  .right_end = i < teeth ? ChainEnd::spring : ChainEnd::mass}),
        {.initial_state = displaced(i < teeth ? 3 : 2, i == 0 ? 0.1 : 0.0)});
  }
  for (int i = 0; i < teeth; ++i) {
    const std::string name = "tooth" + std::to_string(i);
    builder.add(name, tooth(4, exact), {.initial_state = displaced(4, 1.0 + 0.1 * i)});
    builder.join(joint::CommonEffort{}, {"block" + std::to_string(i) + ".right", name + ".push",
                                         "block" + std::to_string(i + 1) + ".left"});
  }
  builder.join(joint::Free{}, {"block0.left"});
  builder.join(joint::Free{}, {"block" + std::to_string(teeth) + ".right"});
  for (int i = 0; i < islands; ++i) {
    const std::string part = "part" + std::to_string(i), mate = "mate" + std::to_string(i);
    builder.add(part, tooth(6, exact), {.initial_state = displaced(6, 0.01 * (1 << i))});
    builder.add(mate, linear_oscillator({.mass_kg = 1.0 + i, .stiffness_N_per_m = 20.0}),
                {.initial_state = {0.1, 0.0}});
    builder.connect(part + ".push", mate + ".coupling");
  }
  return builder.build();
}

long solves_of(const System& system, long CountingPart::*count) {
  long sum = 0;
  for (const Part& part : system.parts()) {
    const auto* own = dynamic_cast<const CountingPart*>(part.component.get());
    if (own != nullptr) sum += own->*count;
  }
  return sum;
}

StepperOptions options(int iterations, double tolerance = 0.0) {
  StepperOptions o{.method = WaveCoupling{}};
  o.step_s = 0.1;
  o.method.waves().impedance = {2.0};
  o.method.waves().iterations = iterations;
  o.method.waves().tolerance = tolerance;
  o.method.waves().guard = false;  // the iteration is looked at, which here is far from its end
  return o;
}

std::vector<double> states(const Stepper& stepper) {
  std::vector<double> out;
  for (int i = 0; i < static_cast<int>(stepper.system().parts().size()); ++i) {
    const auto x = stepper.state(i);
    out.insert(out.end(), x.begin(), x.end());
  }
  return out;
}

double distance(const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
  return std::sqrt(sum);
}

std::vector<double> run(const System& system, const StepperOptions& o, int steps) {
  Stepper stepper(system, o);
  stepper.step(steps);
  return states(stepper);
}

TEST(InexactSolves, SaveMostOfTheWorkOfAnIteration) {
  const System near = comb(3, 3, false), exact = comb(3, 3, true);
  const StepperOptions o = options(20);
  for (const auto count : {&CountingPart::gradients, &CountingPart::jacobians}) {
    const long before[] = {solves_of(near, count), solves_of(exact, count)};
    run(near, o, 50);
    run(exact, o, 50);
    const double ratio = static_cast<double>(solves_of(near, count) - before[0]) /
                         static_cast<double>(solves_of(exact, count) - before[1]);
    const bool is_gradient = count == &CountingPart::gradients;
    RecordProperty(is_gradient ? "gradients" : "jacobians", std::to_string(ratio));
    EXPECT_LE(ratio, is_gradient ? 0.6 : 0.25);
  }
}

TEST(InexactSolves, AreLostInTheErrorOfTheIteration) {
  const System near = comb(3, 3, false), exact = comb(3, 3, true);
  constexpr int kSteps = 20;
  const std::vector<double> converged = run(exact, options(200), kSteps);
  double worst = 0.0;
  for (const int K : {1, 2, 3, 5, 8, 12, 20}) {
    const std::vector<double> x = run(exact, options(K), kSteps);
    const double truncated = distance(x, converged);
    const double inexact = distance(run(near, options(K), kSteps), x);
    EXPECT_LE(inexact, 1e-3 * truncated + 1e-12) << "K=" << K;
    if (K <= 2) {
      EXPECT_LE(inexact, 1e-12) << "K=" << K;
    }
    worst = std::max(worst, inexact);
  }
  EXPECT_GT(worst, 1e-12) << "nothing was inexact";
  EXPECT_LE(distance(run(near, options(200), kSteps), converged), 1e-11);
}

TEST(InexactSolves, DoNotMisleadTheTolerance) {
  const System near = comb(3, 3, false), exact = comb(3, 3, true);
  for (const bool per_part : {false, true}) {
    for (const double tolerance : {1e-2, 1e-4, 1e-6, 1e-9, 1e-12}) {
      StepperOptions o = options(200, tolerance);
      o.method.waves().tolerance_per_part = per_part;
      Stepper one(near, o), other(exact, o);
      for (int n = 0; n < 20; ++n) {
        const StepReport found = one.step(), expected = other.step();
        EXPECT_TRUE(found.converged) << "tolerance " << tolerance << " step " << n;
        EXPECT_LE(std::abs(found.iterations - expected.iterations), 1)
            << "tolerance " << tolerance << " step " << n << ": " << found.iterations << " and "
            << expected.iterations;
      }
    }
  }
}

TEST(InexactSolves, KeepTheCertificate) {
  const System system = comb(2, 2, false);
  for (const int K : {1, 4, 20}) {
    StepperOptions o = options(K);
    o.step_s = 0.01;
    o.method.waves().impedance = {0.1};  // firmly nonexpansive there
    o.certify = Certify::full;
    Stepper stepper(system, o);
    stepper.step(25);
    const Certificate& c = stepper.certificate();
    EXPECT_EQ(c.status, CertificateStatus::holds) << "K=" << K;
    EXPECT_GE(c.min_fne_margin.value(), -1e-12) << "K=" << K;
    EXPECT_LE(c.max_augmented_residual_J.value(), 1e-10) << "K=" << K;
    EXPECT_LE(c.max_fejer_residual_J.value(), 1e-10) << "K=" << K;
    EXPECT_EQ(c.steps_without_fixed_point, 0);
    EXPECT_EQ(c.steps_without_margin, 0);
  }
}

TEST(InexactSolves, ChangeNoBitWithThreadsOrGrain) {
  const tbb::global_control allowed(tbb::global_control::max_allowed_parallelism, 4);
  const System system =
      comb(40, 5, false);  // an island of 81 parts that is cut, an island group that is not
  for (const double tolerance : {0.0, 1e-5}) {
    StepperOptions o = options(12, tolerance);
    o.executor = ExecutorKind::serial;
    const std::vector<double> expected = trace(system, o, 5);
    for (const ExecutorKind executor : {ExecutorKind::async, ExecutorKind::graph}) {
      for (const Grain grain : {Grain::automatic(), Grain::per_part(), Grain::of_parts(7)}) {
        o.executor = executor;
        o.grain = grain;
        o.threads = 3;
        EXPECT_TRUE(testing::same_bits(expected, trace(system, o, 5)))
            << to_string(executor) << " " << to_string(grain) << " tolerance " << tolerance;
      }
    }
  }
}

}  // namespace
}  // namespace portwave::test_inexact_solves
