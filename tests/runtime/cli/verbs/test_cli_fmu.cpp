// portwave fmu
#ifdef PORTWAVE_CLI

#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/files/cli_process.hpp"
#include "support/files/source_folder.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"

namespace portwave::test_cli_fmu {
namespace {

using Json = nlohmann::ordered_json;
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
  EXPECT_TRUE(contains(result.err, "(duffing_oscillator): has no parameter \"mass\""))
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

/// FMUs of a mass that another program may push: two that differ by their masses alone.
class TwoFmus : public ::testing::Test {
 protected:
  void SetUp() override {
    const Json mass = {
        {"name", "one"},
        {"time", {{"step_s", 0.001}, {"end_s", 1}}},
        {"subsystems",
         Json::array({{{"name", "m"}, {"type", "mass"}, {"parameters", {{"mass_kg", 1}}}}})},
        {"couplings", {{{"kind", "free"}, {"ports", {"m.port"}}}}}};
    testing::write_text(folder_ / "m.json", mass.dump());
    for (const char* kg : {"1", "2"}) {
      const ProcessResult result =
          portwave_cli({"fmu", (folder_ / "m.json").string(), "--out",
                        (folder_ / (std::string(kg) + ".fmu")).string(), "--ports", "m.port",
                        "--set", std::string("/subsystems/0/parameters/mass_kg=") + kg});
      if (contains(result.err, "built without FMI")) GTEST_SKIP() << "built without FMI";
      ASSERT_EQ(result.exit_code, 0) << said(result);
    }
  }

  /// The FMU of a mass of so many kg as a part.
  static Json part(const std::string& name, const std::string& kg) {
    const Json port = {
        {"name", "end"}, {"effort", "m.port.effort"}, {"flow", "m.port.flow"}, {"input", "effort"}};
    return {{"name", name}, {"type", "fmu"}, {"path", kg + ".fmu"}, {"ports", Json::array({port})}};
  }
  /// A free scenario of such parts.
  std::string scenario_of(const Json& parts, double step_s) const {
    Json couplings = Json::array();
    for (const Json& own : parts) {
      couplings.push_back({{"kind", "free"}, {"ports", {own["name"].get<std::string>() + ".end"}}});
    }
    const Json scenario = {{"name", "two"},
                           {"time", {{"step_s", step_s}, {"end_s", 100 * step_s}}},
                           {"subsystems", parts},
                           {"couplings", couplings}};
    const std::string file = (folder_ / "two.json").string();
    testing::write_text(file, scenario.dump());
    return file;
  }

  TemporaryFolder folder_;
};

TEST_F(TwoFmus, AreCheckedEachByItself) {
  const std::string file = scenario_of(Json::array({part("a", "1"), part("b", "2")}), 0.001);
  const ProcessResult result = portwave_cli({"check", file, "--allow-plugins"});
  EXPECT_EQ(result.exit_code, 0) << said(result);
  EXPECT_TRUE(contains(result.out, "a (fmu)\n")) << said(result);
  EXPECT_TRUE(contains(result.out, "b (fmu)\n")) << said(result);
  EXPECT_FALSE(contains(result.out, "equal to it")) << said(result);
}

/// A part that falls off its energy stops the run, with an FMU beside it and without one.
TEST_F(TwoFmus, AreNotToldToChooseStepsThatTheyRefuse) {
  const Json port = {{"name", "end"}, {"causality", "effort_in"}, {"domain", "translation"}};
  const Json falls = {{"name", "falls"},
                      {"type", "port_hamiltonian"},
                      {"parameters",
                       {{"states", {{"x", "m"}, {"p", "kg m/s"}}},
                        {"energy", "p^2/2 - x^4"},
                        {"J", {{0, 1}, {-1, 0}}},
                        {"G", {{0}, {1}}},
                        {"ports", Json::array({port})}}},
                      {"initial_state", {{"x", 1}}}};
  for (const bool has_fmu : {false, true}) {
    Json parts = Json::array({falls});
    if (has_fmu) parts.push_back(part("a", "1"));
    const ProcessResult result = portwave_cli({"run", scenario_of(parts, 0.1), "--allow-plugins"});
    EXPECT_EQ(result.exit_code, 3) << said(result);
    EXPECT_TRUE(contains(result.err, "Shorter steps may help")) << said(result);
    EXPECT_EQ(contains(result.err, "adaptive") || contains(result.out, "adaptive"), !has_fmu)
        << said(result);
  }
}

}  // namespace
}  // namespace portwave::test_cli_fmu

#endif
