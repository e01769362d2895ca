// Random networks against the reference, family by family. What fails is replayed with
//   portwave_differential_soak --family NAME --seed SEED --cases 1 [--dump FILE]

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "differential/families.hpp"
#include "differential/judge.hpp"

namespace portwave::differential {
namespace {

/// Cases of a family in a run of the suite; those that cost more have fewer.
int cases_of(const std::string& family) {
  if (family == "large_trees" || family == "grids") return 20;
  if (family == "long_runs") return 60;
  return 140;
}

class Family : public ::testing::TestWithParam<std::string> {};

TEST_P(Family, FollowsTheReferenceAndItsOwnLaws) {
  const std::string& family = GetParam();
  int skipped = 0, conditional = 0, wrong = 0, active = 0;
  std::string told;
  std::int64_t steps = 0, few = 0;
  int most = 0;
  for (int seed = 0; seed < cases_of(family); ++seed) {
    const Network network = make_case(family, static_cast<std::uint64_t>(seed));
    const Result result = run_case(network);
    if (result.skipped) {
      ++skipped;
      fmt::print("{} {} skipped: {}\n", family, seed, result.why_skipped);
      continue;
    }
    active += result.visibly_active ? 1 : 0;
    if (!network.active) {
      for (const int k : result.run.evaluations) {
        ++steps;
        few += k <= 4 ? 1 : 0;
        most = std::max(most, k);
      }
    }
    bool is_wrong = false;
    for (const Finding& finding : result.findings) {
      if (finding.defect == Defect::conditional) {
        ++conditional;
        continue;
      }
      is_wrong = true;
      if (wrong < 5) {
        told += fmt::format(
            "{}: {}\n{} parts, {} states, {} ports, {} steps{}; {}\n"
            "replay: portwave_differential_soak --family {} --seed {} --cases 1 --dump case.json\n",
            to_string(finding.defect), finding.text, network.parts.size(), network.states(),
            network.ports(), network.steps, network.active ? ", one part active" : "",
            result.run.method, family, seed);
      }
    }
    wrong += is_wrong ? 1 : 0;
  }
  fmt::print(
      "{}: {} cases, {} visibly active, {} skipped, {} conditional; {:.1f} % of {} steps with at "
      "most 4 evaluations, {} at most\n",
      family, cases_of(family), active, skipped, conditional,
      steps > 0 ? 100.0 * static_cast<double>(few) / static_cast<double>(steps) : 100.0, steps,
      most);
  EXPECT_EQ(wrong, 0) << family << "\n" << told;
  // A generator whose networks are ill-posed tests nothing; nor does one without controls.
  EXPECT_LE(skipped, 1 + cases_of(family) / 33) << family;
  EXPECT_LE(conditional, cases_of(family) / 50) << family;
  EXPECT_GE(active, cases_of(family) / 20) << family;
}

INSTANTIATE_TEST_SUITE_P(Random, Family, ::testing::ValuesIn(families()),
                         [](const auto& param_info) { return param_info.param; });

}  // namespace
}  // namespace portwave::differential
