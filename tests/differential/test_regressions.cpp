// Scenarios in which default settings once gave wrong results, false verdicts or missed tolerances
// (tests/fixtures/regressions). expected.json holds final states, and the largest value of each
// state over the run, from a dense monolithic implicit-midpoint solver that shares no code with the
// engine.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <portwave/runtime/output/file_recorder.hpp>
#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/runtime/step/stepper.hpp>

#include "support/files/source_folder.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"

namespace portwave {
namespace {

std::filesystem::path folder_of_cases() {
  return testing::source_folder() / "tests" / "fixtures" / "regressions";
}

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const std::string& name : testing::names_in(folder_of_cases())) {
    if (name.ends_with(".json") && name != "expected.json" && !name.starts_with("lm_"))
      names.push_back(name);
  }
  return names;
}

class Regression : public ::testing::TestWithParam<std::string> {};

TEST_P(Regression, RunsRightWithDefaultSettings) {
  const Scenario scenario = load_scenario(folder_of_cases() / GetParam());
  Stepper stepper(scenario.system, scenario.options);
  const testing::TemporaryFolder folder;
  FileRecorder recorder(folder / "out", scenario.recording);
  recorder.record_initial(stepper);
  for (std::int64_t n = 0; n < scenario.steps; ++n) {
    const StepReport report = stepper.step();
    if ((n + 1) % scenario.recording.every == 0) recorder.record(stepper, report);
  }
  recorder.finish();
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  EXPECT_EQ(stepper.iterations().not_converged, 0);
  const auto expected =
      nlohmann::json::parse(testing::read_text(folder_of_cases() / "expected.json"));
  if (!expected.contains(GetParam())) return;  // decays to nothing: its file holds denormal numbers
  const testing::CsvTable table = testing::read_csv(folder / "out/trajectory.csv");
  for (const auto& [label, value] : expected[GetParam()]["final"].items()) {
    const double largest = std::max(expected[GetParam()]["largest"][label].get<double>(), 1e-4);
    EXPECT_NEAR(table.last()[table.column(label)], value.get<double>(), 1e-5 * largest) << label;
  }
}

INSTANTIATE_TEST_SUITE_P(Scenarios, Regression, ::testing::ValuesIn(cases()),
                         [](const auto& param_info) {
                           std::string name =
                               param_info.param.substr(0, param_info.param.size() - 5);
                           std::replace_if(
                               name.begin(), name.end(),
                               [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

TEST(RegressionList, HasAllFiles) { EXPECT_EQ(cases().size(), 12u); }

/// hμ > tanh(hω): the weighted norm may grow. Refused or stopped with a reason, and no energy from
/// nowhere.
TEST(RegressionLionsMercier, DoesNotRunOnWithAShiftThatIsTooLarge) {
  const std::filesystem::path file = folder_of_cases() / "lm_mu_too_large_blowup.json";
  try {
    const Scenario scenario = load_scenario(file);
    Stepper stepper(scenario.system, scenario.options);
    const double start = stepper.energy().initial_J;
    stepper.step(scenario.steps);
    EXPECT_LE(stepper.energy().max_J, 1.001 * start);
  } catch (const ConfigError& error) {
    EXPECT_FALSE(error.issues().empty());
  } catch (const StepError& error) {
    EXPECT_FALSE(std::string(error.what()).empty());
  }
}

}  // namespace
}  // namespace portwave
