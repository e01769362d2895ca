// Ranks that choose their steps have to come to the same errors: parts of every kind, stages, and inputs
// that are driven on one rank, on some or on all. Ranks that do not agree wait for each other for ever.

#include <memory>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "repeatability/networks.hpp"
#include "repeatability/run.hpp"

namespace portwave::repeatability {
namespace {

const char* name_of(LineKind kind) {
  switch (kind) {
    case LineKind::dense:
      return "dense";
    case LineKind::sparse:
      return "sparse";
    case LineKind::descriptor:
      return "descriptor";
    case LineKind::duffing:
      return "duffing";
    case LineKind::newton:
      return "newton";
    case LineKind::all:
      break;
  }
  return "all";
}

/// Chosen steps, or with substeps steps of one size.
Case case_of(LineKind kind, Drive drive, int stages, int substeps) {
  Case out;
  const int parts = kind == LineKind::all ? 5 : 12;
  out.system = std::make_shared<const System>(driven_line(kind, parts, drive, substeps, 3));
  out.options.method = CouplingMethod::automatic(1e-9);
  out.options.method.waves().stages = stages;
  out.options.step_s = 0.02;
  out.sets_inputs = drive == Drive::settable;
  if (substeps > 1) {
    out.steps = 10;
  } else {
    out.steps = 10000;
    out.options.sizes.emplace().tolerance = 1e-4;
    out.end_s = 0.12;
  }
  return out;
}

class ChosenStepsOnRanks : public ::testing::TestWithParam<LineKind> {};

TEST_P(ChosenStepsOnRanks, AreThoseOfOneProcess) {
  const bool has_substeps = GetParam() == LineKind::dense || GetParam() == LineKind::duffing ||
                            GetParam() == LineKind::newton;
  for (const int stages : {1, 2, 3}) {
    for (const Drive drive :
         {Drive::none, Drive::first, Drive::last, Drive::all, Drive::settable}) {
      for (const int substeps : {1, 3}) {
        if (substeps > 1 && !has_substeps) continue;
        const Case own = case_of(GetParam(), drive, stages, substeps);
        const Record expected = run(own, {.look_every = 1000});
        EXPECT_EQ(expected.failed, "");
        const Way way{.executor = ExecutorKind::automatic,
                      .grain = Grain::of_parts(2),
                      .ranks = 2 + (stages + static_cast<int>(drive)) % 2,
                      .look_every = 1000};
        EXPECT_EQ(difference(expected, run(own, way)), "")
            << fmt::format("{} stages, drive {}, {} substeps, ", stages, static_cast<int>(drive),
                           substeps)
            << to_string(way);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Lines, ChosenStepsOnRanks,
                         ::testing::Values(LineKind::dense, LineKind::sparse, LineKind::descriptor,
                                           LineKind::duffing, LineKind::newton, LineKind::all),
                         [](const auto& each) { return std::string(name_of(each.param)); });

/// What the errors of steps are made of shows in the steps: an input that is driven leads to others.
TEST(ChosenStepsOnRanksControl, AnInputLeadsToOtherSteps) {
  const Record without = run(case_of(LineKind::dense, Drive::none, 2, 1), {});
  const Record with = run(case_of(LineKind::dense, Drive::last, 2, 1), {});
  EXPECT_NE(difference(without, with), "");
}

}  // namespace
}  // namespace portwave::repeatability
