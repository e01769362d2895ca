// portwave fmu
#ifdef PORTWAVE_CLI

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "support/cli_process.hpp"
#include "support/source_folder.hpp"
#include "support/temporary_folder.hpp"
#include "support/text_file.hpp"

namespace portwave::test_cli_fmu {
namespace {

using testing::contains;
using testing::kPair;
using testing::portwave_cli;
using testing::ProcessResult;
using testing::said;
using testing::TemporaryFolder;
using testing::Words;

class CliFmu : public ::testing::Test {
 protected:
  void SetUp() override {
    const ProcessResult result = portwave_cli({"fmu", kPair, "--out", file_});
    if (contains(result.err, "built without FMI")) GTEST_SKIP() << "built without FMI";
    ASSERT_EQ(result.exit_code, 0) << said(result);
    EXPECT_TRUE(contains(result.err,
                         "written to " + file_ + ": FMI 2.0, 0 inputs, 2 outputs, 0 parameters"))
        << said(result);
    EXPECT_EQ(result.out, "");
  }

  TemporaryFolder folder_;
  const std::string file_ = (folder_ / "pair.fmu").string();
};

TEST_F(CliFmu, TellsAllThatIsWrongWithNames) {
  const std::string before = testing::read_text(file_);
  const ProcessResult result =
      portwave_cli({"fmu", kPair, "--out", file_, "--inputs", "B.forse,A.force", "--outputs",
                    "A.q1,B.q7", "--parameters", "A.mass"});
  EXPECT_EQ(result.exit_code, 2) << said(result);
  EXPECT_TRUE(contains(
      result.err,
      "portwave: --inputs: the scenario has no input \"B.forse\". Did you mean \"B.force\"?"))
      << said(result);
  EXPECT_TRUE(contains(result.err, "portwave: --outputs: subsystem \"B\" has nothing named \"q7\""))
      << said(result);
  EXPECT_TRUE(
      contains(result.err, "portwave: --parameters: duffing_oscillator has no parameter \"mass\""))
      << said(result);
  EXPECT_EQ(testing::read_text(file_), before);
}

TEST_F(CliFmu, TellsAllThatIsWrongWithTheLine) {
  const ProcessResult result = portwave_cli(
      {"fmu", kPair, "--fmi", "4", "--inputs", "A.force,,B.force", "--name", "", "--port", "A.x"});
  EXPECT_EQ(result.exit_code, 2) << said(result);
  for (const char* says : {"--fmi: \"4\" is not one of 2, 3", "--inputs: has an empty entry",
                           "--name: is empty", "Did you mean \"--ports\"?"}) {
    EXPECT_TRUE(contains(result.err, says)) << says << "\n" << said(result);
  }
  const ProcessResult nowhere = portwave_cli({"fmu", kPair});
  EXPECT_EQ(nowhere.exit_code, 2) << said(nowhere);
  EXPECT_TRUE(contains(nowhere.err, "--out is required")) << said(nowhere);
}

TEST_F(CliFmu, KeepsTheScenario) {
  const std::string scenario = (folder_ / "pair.json").string();
  std::filesystem::copy_file(kPair, scenario);
  const ProcessResult result = portwave_cli({"fmu", scenario, "--out", scenario});
  EXPECT_EQ(result.exit_code, 2) << said(result);
  EXPECT_EQ(testing::read_text(scenario), testing::read_text(kPair));
}

TEST_F(CliFmu, TakesOverridesAndANameOfItsOwn) {
  const std::string other = (folder_ / "other.fmu").string();
  const ProcessResult result =
      portwave_cli({"fmu", kPair, "--out", other, "--fmi", "3", "--name", "my pair", "--set",
                    "/time/step_s=0.005", "--parameters", "A.mass_kg", "--inputs", "B.force"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_TRUE(contains(result.err, "FMI 3.0, 1 input, 2 outputs, 1 parameter\n")) << said(result);
  // Names of members stand in a zip archive as they are.
  EXPECT_TRUE(contains(testing::read_text(other), "binaries/x86_64-linux/my_pair.so") ||
              contains(testing::read_text(other), "binaries/aarch64-linux/my_pair.so"));
}

}  // namespace
}  // namespace portwave::test_cli_fmu

#endif
