// The reference for steps with stages, against figures of an independent integrator and against the
// matrix exponential.

#include <cmath>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/coupling/network/condensed.hpp"
#include "portwave/coupling/reference/gauss_reference.hpp"
#include "portwave/coupling/reference/monolithic.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "support/systems/linear_networks.hpp"
#include "support/systems/nonlinear_parts.hpp"
#include "support/systems/systems.hpp"
#include "support/systems/whole_system.hpp"

namespace portwave::test_gauss_reference {
namespace {

using testing::duffing_linear_pair;

/// Positions of the two masses at t = 10 s by two integrators at tolerance 1e-13 that share no code
/// with this project.
constexpr double kExact[] = {-0.2774531015, 0.0905967774};

double error_at_10_s(int stages, int steps) {
  const System system = duffing_linear_pair();
  GaussReference reference(system, 10.0 / steps, stages);
  for (int n = 0; n < steps; ++n) reference.step();
  return std::hypot(reference.state(0)[0] - kExact[0], reference.state(1)[0] - kExact[1]);
}

TEST(GaussReference, HasTheKnownErrorsOnTheDuffingPair) {
  struct Known {
    int stages;
    int steps;
    double error;
    double tolerance;  // relative: what the figures are rounded to
  };
  for (const Known& known : {Known{1, 500, 8.90e-2, 2e-3}, Known{1, 1000, 5.29e-2, 2e-3},
                             Known{2, 250, 8.0824e-3, 2e-4}, Known{2, 500, 5.3723e-4, 2e-4},
                             Known{2, 1000, 3.4016e-5, 2e-4}, Known{3, 250, 8.2001e-5, 2e-4},
                             Known{3, 500, 1.3533e-6, 5e-4}, Known{3, 1000, 2.1436e-8, 1e-2}}) {
    EXPECT_NEAR(error_at_10_s(known.stages, known.steps) / known.error, 1.0, known.tolerance)
        << known.stages << " stages, " << known.steps << " steps";
  }
}

/// Pairs of chains, 2-norm of the error of all states at t = 2 s.
TEST(GaussReference, HasTheKnownErrorsOnTheLinearChains) {
  struct Known {
    int stages;
    int power;  // h = 2^−power s
    double error, tolerance;
  };
  const auto expect_known = [](const System& system, const Known& known, const char* chains) {
    const CondensedSystem condensed(system);
    const Eigen::VectorXd exact = testing::exact_state(condensed, 2.0);
    GaussReference reference(system, std::exp2(-known.power), known.stages);
    for (int n = 0; n < 2 << known.power; ++n) reference.step();
    double square = 0.0;
    for (int part = 0; part < 2; ++part) {
      for (std::size_t i = 0; i < reference.state(part).size(); ++i) {
        const int first = condensed.blocks()[at(condensed.block_of_part(part))].first;
        square += std::pow(reference.state(part)[i] - exact[first + static_cast<int>(i)], 2);
      }
    }
    EXPECT_NEAR(std::sqrt(square) / known.error, 1.0, known.tolerance)
        << chains << ", " << known.stages << " stages, h = 2^-" << known.power;
  };
  for (const Known& known : {Known{2, 7, 2.0424e-5, 1e-3}, Known{2, 9, 7.9944e-8, 1e-3},
                             Known{2, 11, 3.1230e-10, 1e-3}, Known{3, 7, 5.4145e-9, 1e-3}}) {
    expect_known(testing::single_rate_chains(), known, "single rate");
  }
  for (const Known& known : {Known{2, 9, 2.2996e-6, 1e-3}, Known{2, 11, 8.9900e-9, 1e-3}}) {
    expect_known(testing::multirate_chains(), known, "multirate");
  }
}

TEST(GaussReference, OfOneStageIsTheMeanValueDiscreteGradient) {
  const System system = duffing_linear_pair();
  GaussReference gauss(system, 0.01, 1);
  MonolithicReference mean_value(system, 0.01);
  for (int n = 0; n < 200; ++n) {
    gauss.step();
    mean_value.step();
  }
  for (int part = 0; part < 2; ++part) {
    for (std::size_t i = 0; i < gauss.state(part).size(); ++i) {
      EXPECT_NEAR(gauss.state(part)[i], mean_value.state(part)[i], 1e-11);
    }
  }
  EXPECT_NEAR(gauss.effort()[0], mean_value.effort()[0], 1e-9);
  EXPECT_NEAR(gauss.flow()[0], mean_value.flow()[0], 1e-10);
}

// The table of the engine against the conditions that define it: Σⱼ aᵢⱼcⱼᵐ⁻¹ = cᵢᵐ/m, Σ bᵢcᵢᵐ⁻¹ = 1/m up to 2s, and bᵢaᵢⱼ + bⱼaⱼᵢ = bᵢbⱼ.
TEST(StageRule, FulfilTheConditionsOfCollocation) {
  for (int stages = 1; stages <= kMostStages; ++stages) {
    const StageRule& rule = gauss_stages(stages);
    const auto s = static_cast<std::size_t>(stages);
    for (int m = 1; m <= 2 * stages; ++m) {
      double sum = 0.0;
      for (std::size_t i = 0; i < s; ++i) sum += rule.b[i] * std::pow(rule.c[i], m - 1);
      EXPECT_NEAR(sum, 1.0 / m, 1e-15);
    }
    double beyond = 0.0;  // the control: order 2s + 1 is not reached
    for (std::size_t i = 0; i < s; ++i) beyond += rule.b[i] * std::pow(rule.c[i], 2 * stages);
    EXPECT_GT(std::abs(beyond - 1.0 / (2 * stages + 1)), 1e-4);
    for (std::size_t i = 0; i < s; ++i) {
      for (int m = 1; m <= stages; ++m) {
        double sum = 0.0;
        for (std::size_t j = 0; j < s; ++j) sum += rule.A[i][j] * std::pow(rule.c[j], m - 1);
        EXPECT_NEAR(sum, std::pow(rule.c[i], m) / m, 1e-15);
      }
      for (std::size_t j = 0; j < s; ++j) {
        EXPECT_NEAR(rule.b[i] * rule.A[i][j] + rule.b[j] * rule.A[j][i], rule.b[i] * rule.b[j],
                    1e-16);
        EXPECT_NEAR(rule.integral(static_cast<int>(j), rule.c[i]), rule.A[i][j], 1e-15);
      }
    }
  }
}

TEST(GaussReference, OfOneStageIsTheMidpointOfDescriptorParts) {
  const System system = testing::circuit();
  GaussReference gauss(system, 1e-3, 1);
  MonolithicReference midpoint(system, 1e-3);
  for (int n = 0; n < 200; ++n) {
    gauss.step();
    midpoint.step();
  }
  for (int part = 0; part < 2; ++part) {
    for (std::size_t i = 0; i < gauss.state(part).size(); ++i) {
      EXPECT_NEAR(gauss.state(part)[i], midpoint.state(part)[i], 1e-12) << part << " " << i;
    }
  }
  EXPECT_NEAR(gauss.effort()[0], midpoint.effort()[0], 1e-12);
}

// A capacitor and a node without one: C v′ = g(w − v), g w = g v + u, and u = −r w by what closes the
// port, so that v decays at a rate known by hand. What E does not see is of order s.
TEST(GaussReference, HasTwiceAsMuchOrderOnDescriptorParts) {
  constexpr double kC = 0.5, kG = 1.5, kR = 0.8;
  DescriptorForm form{SparseMatrix(2, 2), SparseMatrix(2, 2), SparseMatrix(2, 2),
                      SparseMatrix(2, 2), SparseMatrix(2, 1)};
  form.E.insert(0, 0) = kC;
  form.R.insert(0, 0) = form.R.insert(1, 1) = kG;
  form.R.insert(0, 1) = form.R.insert(1, 0) = -kG;
  form.Q.setIdentity();
  form.B.insert(1, 0) = 1.0;
  SystemBuilder builder;
  builder.add("node",
              std::make_unique<DescriptorPortHamiltonian>(
                  Signature{"node",
                            {{"v", "V"}, {"w", "V"}},
                            {{"end", Causality::flow_in, Domain::electrical, 1}},
                            {}},
                  form),
              {.initial_state = {1.0, 0.0}});
  builder.join(joint::Resistive{1.0 / kR}, {"node.end"});
  const System system = builder.build();
  const double w_per_v = kG / (kG + kR), rate = kG * (1.0 - w_per_v) / kC;
  for (const int stages : {1, 2, 3}) {
    const auto errors = [&](int steps) {
      GaussReference reference(system, 1.0 / steps, stages);
      for (int n = 0; n < steps; ++n) reference.step();
      const double v = std::exp(-rate);
      return std::pair(std::abs(reference.state(0)[0] - v),
                       std::abs(reference.state(0)[1] - w_per_v * v));
    };
    const auto coarse = errors(8), fine = errors(16);
    EXPECT_NEAR(std::log2(coarse.first / fine.first), 2.0 * stages, 0.05);
    EXPECT_NEAR(std::log2(coarse.second / fine.second), stages, 0.15);
  }
}

TEST(GaussReference, RefusesWhatItCannotDo) {
  const System system = duffing_linear_pair();
  EXPECT_THROW(GaussReference(system, 0.0, 2), ConfigError);
  EXPECT_THROW(GaussReference(system, 0.01, 4), ConfigError);
}

}  // namespace
}  // namespace portwave::test_gauss_reference
