// What nobody says means the same in C++ and in files. (tests/c and tests/python compare C and Python with files.)

#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/runtime/step/stepper.hpp>

namespace portwave::test_defaults {
namespace {

constexpr double kStep_s = 0.01;

/// The pair, with these entries after its couplings: ", \"method\": …" or nothing.
Scenario pair(const std::string& entries,
              const std::string& time = R"({"step_s": 0.01, "end_s": 1})") {
  return parse_scenario(R"json({"name": "pair", "time": )json" + time + R"json(,
    "subsystems": [
      {"name": "A", "type": "duffing_oscillator", "initial_state": {"q1": 0.4, "delta": -0.4},
       "parameters": {"mass_kg": 8, "stiffness_N_per_m": 100, "coupling_stiffness_N_per_m": 120}},
      {"name": "B", "type": "linear_oscillator",
       "parameters": {"mass_kg": 4, "stiffness_N_per_m": 50}}],
    "couplings": [{"kind": "connection", "ports": ["A.coupling", "B.coupling"]}])json" +
                            entries + "}",
                        "pair.json", ".");
}

/// A snapshot goes only into a stepper that was given equal options.
bool mean_the_same(const Scenario& file, const StepperOptions& options) {
  Stepper first(file.system, file.options), second(file.system, options);
  first.step(3);
  try {
    second.restore(first.snapshot());
  } catch (const std::invalid_argument&) {
    return false;
  }
  return true;
}

TEST(Defaults, AFileWithoutAMethodAndOptionsWithoutOneMeanAutoWithTheGuard) {
  for (const Scenario& file : {pair(""), pair(R"(, "method": {"kind": "auto"})"),
                               pair(R"(, "method": {"guard": true, "tolerance": 1e-10})")}) {
    EXPECT_EQ(file.options.method.kind(), WaveUpdate::automatic);
    EXPECT_TRUE(file.options.method.waves().guard);
    EXPECT_TRUE(mean_the_same(file, {.step_s = kStep_s}));
    EXPECT_TRUE(mean_the_same(file, {.step_s = kStep_s, .method = CouplingMethod::automatic()}));
    EXPECT_TRUE(mean_the_same(
        file, {.step_s = kStep_s, .method = CouplingMethod::of_kind(WaveUpdate::automatic)}));
  }
}

TEST(Defaults, TheToleranceFollowsTheStagesInFilesAndInPrograms) {
  for (const int stages : {1, 2, 3}) {
    const Scenario file = pair(R"(, "method": {"stages": )" + std::to_string(stages) + "}");
    EXPECT_TRUE(mean_the_same(
        file, {.step_s = kStep_s, .method = CouplingMethod::automatic_with_stages(stages)}))
        << stages;
  }
}

TEST(Defaults, StepsThatChooseTheirSizeChooseTheirStages) {
  const Scenario file = pair(
      "", R"({"step": {"kind": "adaptive", "tolerance": 1e-4, "largest_s": 0.01}, "end_s": 1})");
  EXPECT_EQ(file.options.method.waves().stages, 0);
  EXPECT_TRUE(mean_the_same(file, {.step_s = kStep_s,
                                   .sizes = StepSizes{.tolerance = 1e-4},
                                   .method = CouplingMethod::automatic_with_stages(0)}));
}

TEST(DefaultsControl, OtherOptionsAreToldApart) {
  const Scenario file = pair("");
  CouplingMethod unguarded = CouplingMethod::automatic();
  unguarded.waves().guard = false;
  for (const CouplingMethod& other :
       {unguarded, CouplingMethod::automatic(1e-9), CouplingMethod::automatic_with_stages(2),
        CouplingMethod(WaveCoupling{})}) {
    EXPECT_FALSE(mean_the_same(file, {.step_s = kStep_s, .method = other}));
  }
}

}  // namespace
}  // namespace portwave::test_defaults
