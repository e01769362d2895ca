// Kicks and drifts and Taylor series on the random networks: what their account says must be so of the states. At every
// step size, as they have no iteration that could fall short.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "differential/account.hpp"
#include "differential/engine_run.hpp"
#include "differential/families.hpp"
#include "differential/parts.hpp"
#include "portwave/coupling/method/splitting.hpp"

namespace portwave::differential {
namespace {

/// H of all parts by their matrices, and the sum of the sizes of its terms.
struct Stored {
  long double joules = 0.0L;
  double terms = 0.0;
};
Stored stored_in(const Network& network, const LongVector& x) {
  Stored all;
  Eigen::Index first = 0;
  for (const PartData& part : network.parts) {
    const LongVector own = x.segment(first, part.states());
    const Vector size = own.cwiseAbs().cast<double>();
    all.joules += stored_energy(part, own);
    all.terms += 0.5 * size.dot(part.Q.cwiseAbs() * size);
    first += part.states();
  }
  return all;
}

/// H + T against H₀ + T₀ + supply − dissipation, step by step; empty: they agree.
std::string broken_account(const Network& network, const EngineRun& run) {
  constexpr double kRounding = 1e-12;
  const Stored start = stored_in(network, run.course.x.front());
  double supplied = 0.0, dissipated = 0.0, through = 0.0, scale = start.terms;
  for (std::size_t n = 0; n < run.supplied.size(); ++n) {
    supplied += run.supplied[n];
    dissipated += run.dissipated[n];
    through += std::abs(run.supplied[n]) + run.dissipated[n];
    const Stored now = stored_in(network, run.course.x[n + 1]);
    scale = std::max(scale, now.terms);
    const double allowed = kRounding * static_cast<double>(n + 1) * (scale + through) + 1e-300;
    if (run.dissipated[n] < 0.0)
      return fmt::format("step {} dissipates {} J", n, run.dissipated[n]);
    const auto off = static_cast<double>(now.joules - start.joules) - supplied + dissipated;
    if (!(std::abs(off) <= allowed)) {
      return fmt::format("after step {} the account is off by {:.3e} J, {:.3e} allowed", n, off,
                         allowed);
    }
  }
  return {};
}

struct Draw {
  int taken = 0, refused = 0, failed = 0, driven = 0;
  std::string told;
};

void draw(const std::string& family, SplittingKind kind, Draw& out) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Network network = make_case(family, seed);
    if (network.active) continue;  // no dissipation of theirs is of one sign
    network.steps = std::min(network.steps, 60);
    const EngineRun run = run_engine(network, {.without_waves = Splitting{.kind = kind}});
    if (!run.refused.empty()) {
      ++out.refused;
      continue;
    }
    ++out.taken;
    out.failed += run.failed.empty() ? 0 : 1;
    for (const double joules : run.supplied) {
      if (joules == 0.0) continue;
      ++out.driven;
      break;
    }
    const std::string broken = broken_account(network, run);
    if (!broken.empty() && out.told.size() < 4000) {
      out.told += fmt::format("{} {}, h {:.3e} s: {}\n", family, seed, network.step_s, broken);
    }
  }
}

class ExplicitSteps : public ::testing::TestWithParam<SplittingKind> {};

TEST_P(ExplicitSteps, TellTheEnergyOfTheirStates) {
  Draw all;
  for (const std::string& family : families()) {
    if (family != "descriptors" && family != "large_trees") draw(family, GetParam(), all);
  }
  fmt::print("{}: {} networks, {} of them driven, {} refused, {} ended by a step that failed\n",
             to_string(GetParam()), all.taken, all.driven, all.refused, all.failed);
  EXPECT_EQ(all.told, "");
  EXPECT_GE(all.taken, 40);
  EXPECT_GE(all.driven, GetParam() == SplittingKind::taylor ? 20 : 2);
}

/// Where both take a network, and steps resolve it, two methods that share no arithmetic end in the same states.
TEST(ExplicitStepsTogether, EndInTheSameStates) {
  int compared = 0;
  double worst = 0.0;
  for (const char* const family : {"coasting", "far_away", "elements", "grids"}) {
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      Network network = make_case(family, seed);
      if (network.active) continue;
      network.steps = std::min(network.steps, 40);
      double fastest = 0.0;
      for (const PartData& part : network.parts) fastest = std::max(fastest, fastest_rate(part));
      network.step_s = std::min(network.step_s, 0.05 / std::max(fastest, 1.0));
      const auto end = [&](SplittingKind kind) {
        return run_engine(network, {.without_waves = Splitting{.kind = kind}});
      };
      const EngineRun kicks = end(SplittingKind::kick_drift), series = end(SplittingKind::taylor);
      if (!kicks.refused.empty() || !series.refused.empty()) continue;
      if (!kicks.failed.empty() || !series.failed.empty()) continue;
      ++compared;
      const LongVector off = kicks.course.x.back() - series.course.x.back();
      double scale = 0.0;
      for (const LongVector& x : series.course.x) {
        scale = std::max(scale, static_cast<double>(x.cwiseAbs().maxCoeff()));
      }
      const double share = static_cast<double>(off.cwiseAbs().maxCoeff()) / std::max(scale, 1e-300);
      worst = std::max(worst, share);
      EXPECT_LE(share, 1e-8) << family << " " << seed;
    }
  }
  fmt::print("{} networks, off by at most {:.1e}\n", compared, worst);
  EXPECT_GE(compared, 10);
}

/// What is withheld of the dissipation shows.
TEST(ExplicitStepsControl, AFalseAccountIsNoticed) {
  int noticed = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Network network = make_case("trees", seed);
    if (network.active) continue;
    EngineRun run =
        run_engine(network, {.without_waves = Splitting{.kind = SplittingKind::taylor}});
    if (!run.refused.empty() || run.dissipated.empty()) continue;
    for (double& joules : run.dissipated) joules *= 1.0 - 1e-6;
    noticed += broken_account(network, run).empty() ? 0 : 1;
  }
  EXPECT_GE(noticed, 3);
}

INSTANTIATE_TEST_SUITE_P(Methods, ExplicitSteps,
                         ::testing::Values(SplittingKind::kick_drift, SplittingKind::taylor),
                         [](const auto& each) {
                           return each.param == SplittingKind::taylor ? "taylor" : "kick_drift";
                         });

}  // namespace
}  // namespace portwave::differential
