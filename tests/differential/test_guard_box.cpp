// The law of the idle guard over a box: where the inner iteration met its tolerance τ, a run with
// the guard is the run without it, up to C·τ of the scale and what rounding does to the network.

#include <algorithm>
#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "differential/families.hpp"
#include "differential/judge.hpp"

namespace portwave::differential {
namespace {

struct Box {
  const char* family;
  int cases;
};

void PrintTo(const Box& box, std::ostream* out) { *out << box.family; }

class IdleGuard : public ::testing::TestWithParam<Box> {};

/// Both runs at tolerance τ; what they may differ by is measured against the reference at the same
/// τ.
void sweep(const Box& box, double tau) {
  double worst = 0.0;
  int compared = 0, acted = 0;
  for (int i = 0; i < box.cases; ++i) {
    // Seeds that the families' own tests do not use; none is an active control.
    const auto seed = static_cast<std::uint64_t>(1000 + 10 * (i / 7) + i % 7);
    const Network network = make_case(box.family, seed);
    Tolerances tolerances;
    tolerances.tau = tau;
    tolerances.floor = std::min(tolerances.floor, 10.0 * tau);
    const Expectation expectation = expect(network, tolerances);
    if (!expectation.well_posed) continue;
    const EngineRun guarded = run_engine(network, {.guard = true, .tolerance = tau});
    const EngineRun unguarded = run_engine(network, {.guard = false, .tolerance = tau});
    ASSERT_TRUE(guarded.refused.empty()) << box.family << " " << seed << ": " << guarded.refused;
    // The law says nothing of steps that missed.
    if (guarded.not_converged > 0 || unguarded.not_converged > 0) continue;
    ++compared;
    acted += guarded.guarded_steps > 0 ? 1 : 0;
    const double error = state_error(expectation, guarded.course, unguarded.course);
    worst = std::max(worst, error);
    EXPECT_LE(error, 1.0) << fmt::format(
        "{} seed {} at tolerance {:.0e}: the guard acted in {} steps, alpha {}", box.family, seed,
        tau, guarded.guarded_steps, guarded.min_alpha);
  }
  fmt::print(
      "{} at {:.0e}: {} runs, the guard acted in {}, worst difference {:.1e} of what is allowed\n",
      box.family, tau, compared, acted, worst);
  EXPECT_GE(compared, (9 * box.cases) / 10) << "too few runs met the tolerance";
}

TEST_P(IdleGuard, LeavesConvergedRunsAlone) { sweep(GetParam(), 1e-10); }
TEST_P(IdleGuard, LeavesRunsThatConvergedToRoundOffAlone) { sweep(GetParam(), 1e-13); }

INSTANTIATE_TEST_SUITE_P(Box, IdleGuard,
                         ::testing::Values(Box{"coasting", 60}, Box{"far_away", 60},
                                           Box{"elements", 60}, Box{"free_ends", 60},
                                           Box{"from_rest", 40}, Box{"large_steps", 40},
                                           Box{"units", 40}, Box{"spread", 40}),
                         [](const auto& param_info) {
                           return std::string(param_info.param.family);
                         });

}  // namespace
}  // namespace portwave::differential
