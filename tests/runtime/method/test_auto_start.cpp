// Where the iterations of `auto` start, if a scenario does not say it.

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/runtime/step/stepper.hpp>

#include "support/example_scenarios.hpp"

namespace portwave::test_auto_start {
namespace {

using testing::example;

const Override kChosen = {"/time",
                          R"({"step": {"kind": "adaptive", "tolerance": 1e-6}, "end_s": 10})"};

Override method(const std::string& more) { return {"/method", R"({"kind": "auto")" + more + "}"}; }

InnerStart start_of(const Scenario& scenario) { return scenario.options.method.waves().start; }

TEST(AutoStart, IsExtrapolatedWithSeveralStagesOfNonlinearParts) {
  for (const char* const stages : {R"(, "stages": 2)", R"(, "stages": 3)"}) {
    EXPECT_EQ(start_of(example("two_oscillators", {method(stages)})), InnerStart::extrapolated);
    EXPECT_EQ(start_of(example("msd_singlerate", {method(stages)})), InnerStart::last) << "linear";
    EXPECT_EQ(start_of(example("two_oscillators",
                               {method(stages + std::string(R"(, "start": "last")"))})),
              InnerStart::last);
    EXPECT_EQ(
        start_of(example("two_oscillators",
                         {{"/method", std::string(R"({"kind": "interface")") + stages + "}"}})),
        InnerStart::last)
        << "not auto";
  }
  EXPECT_EQ(start_of(example("two_oscillators", {method("")})), InnerStart::last) << "one stage";
  EXPECT_EQ(start_of(example("two_oscillators", {method(""), kChosen})), InnerStart::extrapolated);
  EXPECT_EQ(start_of(example("two_oscillators", {method(R"(, "stages": 1)"), kChosen})),
            InnerStart::last);
}

TEST(AutoStart, SavesEvaluationsAndEndsInTheSameStates) {
  for (const bool chosen : {false, true}) {
    const std::string stages = chosen ? "" : R"(, "stages": 3)";
    const auto done = [&](const std::string& more) {
      std::vector<Override> overrides = {method(stages + more)};
      if (chosen) overrides.push_back(kChosen);
      const Scenario scenario = example("two_oscillators", overrides);
      Stepper stepper(scenario.system, scenario.options);
      stepper.run_until(10.0);
      std::vector<double> out = {static_cast<double>(stepper.iterations().total)};
      for (int part = 0; part < 2; ++part) {
        for (const double value : stepper.state(part)) out.push_back(value);
      }
      return out;
    };
    const std::vector<double> own = done(""), last = done(R"(, "start": "last")");
    EXPECT_LT(own[0], 0.85 * last[0]);
    for (std::size_t i = 1; i < own.size(); ++i) {
      EXPECT_NEAR(own[i], last[i], chosen ? 1e-6 : 1e-9) << i;
      EXPECT_TRUE(std::isfinite(own[i]));
    }
  }
}

}  // namespace
}  // namespace portwave::test_auto_start
