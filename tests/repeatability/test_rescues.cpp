// Islands that are rescued take the interface update for at least 64 steps. What is decided then, and
// when it ends, is the same in every way of running them; so runs are longer than that.

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include "repeatability/networks.hpp"
#include "repeatability/run.hpp"
#include "repeatability/sweep.hpp"

namespace portwave::repeatability {
namespace {

/// Longer than the first time that an island is held.
constexpr int kSteps = 150;

struct RescuingMethod {
  std::string name;
  CouplingMethod method = WaveCoupling{};
};

void PrintTo(const RescuingMethod& method, std::ostream* out) { *out << method.name; }

std::vector<RescuingMethod> rescuing_methods() {
  std::vector<RescuingMethod> all = {{"auto", CouplingMethod::automatic()}};
  for (const WaveUpdate kind : {WaveUpdate::peaceman_rachford, WaveUpdate::douglas_rachford}) {
    CouplingMethod method = WaveCoupling{};
    WaveCoupling& m = method.waves();
    m.kind = kind;
    m.impedance = {30.0};
    m.iterations = 40;
    m.tolerance = 1e-8;
    m.rescue_after = 6;
    all.push_back(
        {kind == WaveUpdate::peaceman_rachford ? "peaceman_rachford" : "douglas_rachford", method});
  }
  return all;
}

Case case_of(const RescuingMethod& method) {
  Case out;
  out.system = std::make_shared<const System>(struck_grid(8, 8, 6));
  out.options.step_s = 0.01;
  out.options.method = method.method;
  out.steps = kSteps;
  return out;
}

class Rescues : public ::testing::TestWithParam<RescuingMethod> {
 private:
  tbb::global_control allowed_{tbb::global_control::max_allowed_parallelism, 8};
};

TEST_P(Rescues, LeadToTheSameBitsOnEveryExecutor) {
  const Case own = case_of(GetParam());
  const Record expected = run(own, {});
  EXPECT_EQ(expected.failed, "");
  EXPECT_GT(expected.rescues, 1);
  EXPECT_LT(expected.rescues, 10) << "an island is held for some time";
  for (const ExecutorKind executor :
       {ExecutorKind::async, ExecutorKind::graph, ExecutorKind::automatic}) {
    for (const int threads : {1, 2, 4}) {
      const Way way{.executor = executor, .threads = threads, .grain = Grain::of_parts(16)};
      EXPECT_EQ(difference(expected, run(own, way)), "") << to_string(way);
    }
  }
}

TEST_P(Rescues, LeadToTheSameBitsOnRanks) {
  const Case own = case_of(GetParam());
  for (const int look_every : {1, 1000}) {
    const Record expected = run(own, {.look_every = look_every});
    EXPECT_GT(expected.rescues, 1);
    for (const int ranks : {2, 3}) {
      const Way way{.executor = ExecutorKind::automatic,
                    .threads = ranks - 1,
                    .grain = Grain::of_parts(16),
                    .ranks = ranks,
                    .look_every = look_every};
      EXPECT_EQ(difference(expected, run(own, way)), "") << to_string(way);
    }
  }
}

/// Impedances of one replica are set again; the others keep their interface equations, as a stepper of each does.
TEST(Replicas, KeepTheirInterfaceEquationsBesideOneThatIsRetuned) {
  Coverage coverage;
  EXPECT_EQ(try_case("struck", 20261512, {.ways = 0, .rank_ways = 0}, coverage), "");
  EXPECT_EQ(coverage.in_lanes, 1);
}

/// One that comes later goes other ways: the comparison would see it.
TEST(RescuesControl, AnotherRescueShows) {
  Case own = case_of(rescuing_methods().back());
  const Record expected = run(own, {});
  ++own.options.method.waves().rescue_after;
  EXPECT_NE(difference(expected, run(own, {})), "");
}

INSTANTIATE_TEST_SUITE_P(Methods, Rescues, ::testing::ValuesIn(rescuing_methods()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace portwave::repeatability
