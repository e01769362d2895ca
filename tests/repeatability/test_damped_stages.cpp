// Damped stages in every way that a run can be executed: the same bits. Lines of every kind of part, one to three stages.

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include "repeatability/networks.hpp"
#include "repeatability/run.hpp"

namespace portwave::repeatability {
namespace {

Case line_of(LineKind kind, const WaveCoupling& method, int stages, int substeps = 1) {
  Case out;
  out.family = "line";
  out.system = std::make_shared<const System>(driven_line(kind, 6, Drive::all, substeps, 3));
  out.options.method = method;
  out.options.method.waves().stages = stages;
  out.options.method.waves().integrator = StageKind::damped;
  out.options.step_s = 0.01;
  out.steps = 20;
  return out;
}

WaveCoupling with_budget(WaveUpdate kind, int iterations, double tolerance) {
  WaveCoupling out;
  out.kind = kind;
  out.iterations = iterations;
  out.tolerance = tolerance;
  out.impedance_kind = ImpedanceKind::matched;
  return out;
}

/// By waves that converge and that do not, with the guard, and by the interface equation.
std::vector<WaveCoupling> methods() {
  return {WaveCoupling::automatic(1e-10), with_budget(WaveUpdate::peaceman_rachford, 3, 0.0),
          with_budget(WaveUpdate::douglas_rachford, 20, 1e-6),
          with_budget(WaveUpdate::interface, 30, 1e-10)};
}

class DampedStages : public ::testing::TestWithParam<int> {};

TEST_P(DampedStages, HaveTheSameBitsInEveryWay) {
  const tbb::global_control allowed(tbb::global_control::max_allowed_parallelism, 8);
  std::vector<Way> ways;
  for (const ExecutorKind executor :
       {ExecutorKind::serial, ExecutorKind::graph, ExecutorKind::async, ExecutorKind::automatic}) {
    const bool is_serial = executor == ExecutorKind::serial;
    ways.push_back(
        {.executor = executor, .threads = is_serial ? 1 : 2, .grain = Grain::per_part()});
    ways.push_back(
        {.executor = executor, .threads = is_serial ? 1 : 4, .grain = Grain::of_parts(4)});
  }
  for (const int ranks : {2, 3}) {
    ways.push_back({.executor = ExecutorKind::automatic,
                    .grain = Grain::of_parts(4),
                    .ranks = ranks,
                    .jitter = 7U});
  }
  for (const WaveCoupling& method : methods()) {
    const Case own = line_of(LineKind::all, method, GetParam());
    const Record expected = run(own, {});
    EXPECT_EQ(expected.failed, "");
    EXPECT_GT(expected.numerical_dissipation_J, 0.0);
    for (const Way& way : ways) {
      EXPECT_EQ(difference(expected, run(own, way)), "")
          << to_string(way) << ", " << to_string(method.kind);
    }
    // Control: conserving steps have others.
    Case gauss = own;
    gauss.options.method.waves().integrator = StageKind::gauss;
    EXPECT_NE(difference(expected, run(gauss, {})), "");
  }
}

TEST_P(DampedStages, OfReplicasHaveTheBitsOfSingleRuns) {
  bool any_in_lanes = false;
  for (const LineKind kind : {LineKind::dense, LineKind::sparse, LineKind::descriptor,
                              LineKind::duffing, LineKind::newton, LineKind::all}) {
    for (const WaveCoupling& method : methods()) {
      for (const int threads : {1, 2}) {
        bool in_lanes = false;
        EXPECT_EQ(ensemble_difference(line_of(kind, method, GetParam()), threads, &in_lanes), "")
            << static_cast<int>(kind) << ", " << to_string(method.kind);
        any_in_lanes = any_in_lanes || in_lanes;
      }
    }
  }
  EXPECT_TRUE(any_in_lanes);
}

/// Parts with steps of their own within the steps.
TEST_P(DampedStages, OfSubstepsHaveTheSameBitsInEveryWay) {
  for (const LineKind kind : {LineKind::dense, LineKind::duffing, LineKind::newton}) {
    const Case own = line_of(kind, WaveCoupling::automatic(1e-10), GetParam(), 3);
    const Record expected = run(own, {});
    EXPECT_GT(expected.numerical_dissipation_J, 0.0);
    for (const ExecutorKind executor : {ExecutorKind::graph, ExecutorKind::async}) {
      EXPECT_EQ(
          difference(expected,
                     run(own, {.executor = executor, .threads = 2, .grain = Grain::per_part()})),
          "");
    }
    EXPECT_EQ(ensemble_difference(own, 2), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Stages, DampedStages, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace portwave::repeatability
