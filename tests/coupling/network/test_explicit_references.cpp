// The large systems of the benchmark, as a prototype that shares no code with the engine had them.

#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <portwave/coupling/network/kick_drift.hpp>
#include <portwave/coupling/network/taylor.hpp>
#include <portwave/coupling/system/system.hpp>
#include <portwave/subsystems/catalogue/chain.hpp>

#include "support/systems/separable_networks.hpp"

namespace portwave::test_explicit_references {
namespace {

/// Blocks of five masses in a row, the middle one of each displaced by 0.05 to 0.1 m.
System plucked_chain(int blocks) {
  SystemBuilder builder;
  const auto name = [](int block) { return fmt::format("block{}", block); };
  for (int b = 0; b < blocks; ++b) {
    const bool is_last = b + 1 == blocks;
    std::vector<double> state(is_last ? 10 : 11,
                              0.0);  // (q, v) by mass, the spring to the next one
    const double share = (b + 1) * std::sqrt(2.0);
    state[4] = 0.05 + 0.05 * (share - std::floor(share));
    builder.add(
        name(b),
        mass_spring_damper_chain({.masses = 5,
                                  .mass_kg = 0.3,
                                  .stiffness_N_per_m = 50.0,
                                  .damping_Ns_per_m = 0.1,
                                  .coupling_stiffness_N_per_m = 50.0,
                                  .right_end = is_last ? ChainEnd::mass : ChainEnd::spring}),
        {.initial_state = state});
    if (b > 0) builder.connect(name(b - 1) + ".right", name(b) + ".left");
  }
  builder.join(joint::Free{}, {name(0) + ".left"});
  builder.join(joint::Free{}, {name(blocks - 1) + ".right"});
  return builder.build();
}

struct Outcome {
  Eigen::VectorXd state;
  double dissipated_J = 0.0;
};

template <class Method>
Outcome outcome(const System& system, const Splitting& options, int steps) {
  constexpr double kEnd_s = 2.0;
  Method method(system, 0.0, kEnd_s / steps, options);
  Outcome out;
  for (int n = 0; n < steps; ++n) out.dissipated_J += method.step(ForEach()).energy.dissipated_J;
  out.state = Eigen::Map<const Eigen::VectorXd>(method.state().data(),
                                                static_cast<Eigen::Index>(method.state().size()));
  return out;
}

// Source: a Taylor series of order 25 in 64 binary digits and 200 steps, whose H(0) − H(2 s) this is. (A prototype in
// double has 146.0948504816.)
TEST(ExplicitReferences, TheChainOfEqualBlocksDissipatesWhatItShould) {
  const System chain = plucked_chain(1024);
  const auto dissipated_J = [&chain](int order, int steps) {
    return outcome<TaylorMethod>(chain, {.kind = SplittingKind::taylor, .order = order}, steps)
        .dissipated_J;
  };
  constexpr double kExact_J = 146.094850476913166;
  EXPECT_NEAR(dissipated_J(16, 40), kExact_J, 2e-11);
  EXPECT_NEAR(dissipated_J(24, 11), kExact_J, 1e-8);
  EXPECT_GT(std::abs(dissipated_J(24, 7) - kExact_J), 1e-8) << "control";
}

// Source: the dissipation by DOP853 of SciPy; errors by a program written for the grid, against extrapolation to order 12.
// (That program has 5392.9094257 J.)
TEST(ExplicitReferences, TheGridOfTenThousandNodesHasItsErrors) {
  const System grid = testing::separable_grid(100, .05);
  const auto run = [&grid](int steps) {
    return outcome<KickDriftMethod>(grid, {.kind = SplittingKind::kick_drift, .order = 6}, steps);
  };
  const Outcome exact = run(240);
  EXPECT_NEAR(exact.dissipated_J, 5392.90942629, 3e-8);
  constexpr std::array<std::pair<int, double>, 3> kPrinted = {
      {{18, 5.0e-5}, {33, 9.6e-7}, {66, 9.9e-9}}};
  for (const auto& [steps, printed] : kPrinted) {
    const Outcome done = run(steps);
    double error = 0.0, size = 0.0;
    for (int node = 0; node < 10'000; ++node) {
      for (int k = 0; k < 2; ++k) {  // position and velocity
        const double own = exact.state[4 * node + k];
        error += std::pow(done.state[4 * node + k] - own, 2);
        size += own * own;
      }
    }
    EXPECT_NEAR(std::sqrt(error / size), printed, 0.02 * printed) << steps;
  }
}

}  // namespace
}  // namespace portwave::test_explicit_references
