// Stages of linear parts with many states: as those of the same chain cut into short parts, which
// have dense step maps; their order, their energy, and how large they may be.

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/chain.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "support/energy_laws.hpp"

namespace portwave::test_large_stages {
namespace {

using testing::EnergyLaws;

StepperOptions options_of(int stages, double step_s, double tolerance = 1e-13) {
  StepperOptions options;
  options.step_s = step_s;
  options.method = WaveCoupling::automatic(tolerance);
  options.method.waves().stages = stages;
  return options;
}

/// A chain of equal masses and springs, free at its ends, in parts of `per_part` masses; a bump in
/// the middle swings out to both sides.
System chain(int masses, int per_part, double damping = 0.0) {
  SystemBuilder builder;
  for (int first = 0; first < masses; first += per_part) {
    const int count = std::min(per_part, masses - first);
    const bool last = first + count == masses;
    std::vector<double> x;
    for (int i = first; i < first + count; ++i) {
      x.push_back(std::exp(-std::pow((i - 0.5 * masses) / 6.0, 2)));
      x.push_back(0.0);
    }
    if (!last) {
      const auto at = [&](int i) { return std::exp(-std::pow((i - 0.5 * masses) / 6.0, 2)); };
      x.push_back(at(first + count) - at(first + count - 1));
    }
    const std::string name = "part" + std::to_string(first);
    builder.add(name,
                mass_spring_damper_chain({.masses = count,
                                          .mass_kg = 0.5,
                                          .stiffness_N_per_m = 3.0,
                                          .damping_Ns_per_m = damping,
                                          .coupling_stiffness_N_per_m = 3.0,
                                          .right_end = last ? ChainEnd::mass : ChainEnd::spring}),
                {.initial_state = x});
    if (first > 0) {
      builder.connect("part" + std::to_string(first - per_part) + ".right", name + ".left");
    }
    if (first == 0) builder.join(joint::Free{}, {name + ".left"});
    if (last) builder.join(joint::Free{}, {name + ".right"});
  }
  return builder.build();
}

/// Positions and velocities, mass by mass.
std::vector<double> masses_of(const Stepper& stepper) {
  std::vector<double> out;
  for (int part = 0; part < static_cast<int>(stepper.system().parts().size()); ++part) {
    const std::span<const double> x = stepper.state(part);
    out.insert(out.end(), x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2 * 2));
  }
  return out;
}

double distance(const std::vector<double>& x, const std::vector<double>& y) {
  double square = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) square += std::pow(x[i] - y[i], 2);
  return std::sqrt(square);
}

class LargeStages : public ::testing::TestWithParam<int> {};

TEST_P(LargeStages, TakeTheStepsOfDenseParts) {
  const System whole = chain(100, 100, 0.05), cut = chain(100, 25, 0.05);
  const auto* const part =
      dynamic_cast<const LinearPortHamiltonian*>(whole.parts()[0].component.get());
  ASSERT_TRUE(part != nullptr && part->uses_sparse_step_maps());
  Stepper large(whole, options_of(GetParam(), 0.1)), small(cut, options_of(GetParam(), 0.1));
  large.step(150);
  small.step(150);
  EXPECT_LT(distance(masses_of(large), masses_of(small)), 1e-11);
  EXPECT_EQ(large.certificate().status, CertificateStatus::holds);
}

TEST_P(LargeStages, HaveTwiceAsMuchOrder) {
  const auto run = [&](int steps) {
    const System system = chain(60, 60, 0.05);
    Stepper stepper(system, options_of(GetParam(), 4.0 / steps));
    stepper.step(steps);
    return masses_of(stepper);
  };
  const std::vector<double> coarse = run(20), fine = run(40), finest = run(80);
  EXPECT_NEAR(std::log2(distance(coarse, fine) / distance(fine, finest)), 2.0 * GetParam(),
              GetParam() == 3 ? 0.15 : 0.1);
}

TEST_P(LargeStages, KeepTheEnergyOfFiveThousandStates) {
  const System system = chain(2500, 2500);
  Stepper stepper(system, options_of(GetParam(), 0.2));
  EnergyLaws laws(stepper);
  const double before = stepper.storage(0);
  for (int n = 0; n < 100; ++n) laws.observe(stepper, stepper.step());
  EXPECT_NEAR(stepper.storage(0), before, 1e-13 * before);
  EXPECT_TRUE(laws.hold()) << laws.first_breach();
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  // Moved it has: the bump is two of half the height.
  EXPECT_LT(stepper.state(0)[2500], 0.6);
}

// At budgets that leave an error, beside parts of other kinds.
TEST_P(LargeStages, KeepTheLawsAtEveryBudget) {
  const System system = chain(300, 100);
  for (const int budget : {0, 1, 3}) {
    for (const double impedance : {0.02, 1.0, 30.0}) {
      StepperOptions options;
      options.step_s = 0.2;
      options.method = WaveCoupling{.iterations = budget, .stages = GetParam()};
      options.method.waves().impedance = {impedance};
      Stepper stepper(system, options);
      EnergyLaws laws(stepper);
      for (int n = 0; n < 60; ++n) laws.observe(stepper, stepper.step());
      EXPECT_TRUE(laws.hold()) << laws.first_breach() << ", K = " << budget;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Counts, LargeStages, ::testing::Values(2, 3));

}  // namespace
}  // namespace portwave::test_large_stages
