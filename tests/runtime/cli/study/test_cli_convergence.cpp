// portwave study order, portwave study iteration
#ifdef PORTWAVE_CLI

#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/files/cli_process.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"
#include "support/systems/example_scenarios.hpp"

namespace portwave::test_cli_convergence {
namespace {

using Json = nlohmann::json;
using testing::contains;
using testing::example_file;
using testing::kPair;
using testing::names_in;
using testing::portwave_cli;
using testing::ProcessResult;
using testing::read_text;
using testing::said;
using testing::TemporaryFolder;
using testing::Words;
using testing::operator+;

const Words kOrder = {"study", "order", example_file("msd_singlerate"), "--repeat", "1"};
const Words kTwoSteps = {"--steps", "0.0078125,0.001953125"};
const Words kIteration = {"study", "iteration", example_file("two_masses")};
const Words kShortJacobi = {"study",           "iteration", example_file("jacobi_failure"), "--set",
                            "/time/end_s=0.5", "--set",     "/method/window_steps=5000"};

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(CliStudyOrder, PrintsTheTableAndTheCosts) {
  const ProcessResult result = portwave_cli(kOrder + kTwoSteps);
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_EQ(result.err, "");
  const std::vector<std::string> lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 11u) << said(result);
  for (std::size_t i = 1; i < 7; ++i) EXPECT_EQ(lines[i].size(), lines[0].size()) << lines[i];
  EXPECT_TRUE(contains(lines[1], "midpoint (dense)")) << said(result);
  EXPECT_TRUE(contains(lines[1], " 0.0346782 ")) << said(result);
  EXPECT_TRUE(contains(lines[6], "strang")) << said(result);
  EXPECT_TRUE(contains(lines[6], " 0.00207239 ")) << said(result);
  EXPECT_TRUE(contains(lines[8], "101 states to 2 s; errors against the matrix exponential"));
  EXPECT_TRUE(contains(lines[9], "strang costs 0.49")) << said(result);
  EXPECT_TRUE(contains(lines[9], "of midpoint (dense) in operations and ")) << said(result);
  EXPECT_TRUE(contains(lines[10], "of midpoint (sparse) in operations and ")) << said(result);
}

TEST(CliStudyOrder, WritesJsonAndCsv) {
  const TemporaryFolder folder;
  const ProcessResult result = portwave_cli(
      kOrder + kTwoSteps +
      Words{"--methods", "midpoint,strang", "--json", "--out", (folder / "out").string()});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_EQ(names_in(folder / "out"), (Words{"order.csv", "study.json"}));
  EXPECT_EQ(read_text(folder / "out/study.json"), result.out);
  const Json study = Json::parse(result.out);
  EXPECT_EQ(study["study"], "order");
  EXPECT_EQ(study["states"], 101);
  ASSERT_EQ(study["rows"].size(), 6u);
  EXPECT_TRUE(study["rows"][0]["order"].is_null());
  EXPECT_NEAR(study["rows"][1]["order"].get<double>(), 2.0, 0.05);
  EXPECT_TRUE(study["rows"][0]["operations_sparse"].is_null());
  for (const char* key :
       {"error", "operations", "operations_sparse", "time_s", "time_per_step_s"}) {
    EXPECT_TRUE(study["rows"][5][key].is_number()) << key;
  }
  EXPECT_EQ(study["equal_error"].size(), 2u);
  const std::vector<std::string> table = lines_of(read_text(folder / "out/order.csv"));
  ASSERT_EQ(table.size(), 7u);
  for (const std::string& line : table) EXPECT_EQ(std::count(line.begin(), line.end(), ','), 8);
  EXPECT_TRUE(table[6].starts_with("strang,0.001953125,1024,")) << table[6];
}

TEST(CliStudyOrder, AStepSizeThatAMethodRefusesIsARowAndExitCodeThree) {
  // With mu = 2 there is no weight for steps of half a second.
  for (const char* steps : {"0.25,0.5,0.125", "0.5,0.25,0.125"}) {
    const ProcessResult result =
        portwave_cli({"study", "order", example_file("two_masses"), "--repeat", "2", "--steps",
                      steps, "--methods", "lions-mercier,strang", "--json", "--set",
                      R"(/method={"kind":"lions-mercier","mu":2,"iterations":60})"});
    EXPECT_EQ(result.exit_code, 3) << said(result);
    EXPECT_TRUE(contains(result.err, "portwave: lions-mercier, step 0.5 s: ")) << said(result);
    EXPECT_TRUE(contains(result.err, "mu")) << said(result);
    const Json rows = Json::parse(result.out)["rows"];
    ASSERT_EQ(rows.size(), 12u);
    for (const Json& row : rows) {
      const bool is_refused = row["method"] == "lions-mercier" && row["step_s"] == 0.5;
      EXPECT_EQ(row["failure"].is_null(), !is_refused) << row.dump();
      EXPECT_EQ(row["error"].is_null(), is_refused) << row.dump();
      EXPECT_EQ(row["time_s"].is_null(), is_refused) << row.dump();
    }
  }
  // Control: without any step size that fits there is nothing to compare.
  const ProcessResult none = portwave_cli(
      {"study", "order", example_file("two_masses"), "--steps", "0.5,1", "--methods",
       "lions-mercier", "--set", R"(/method={"kind":"lions-mercier","mu":2,"iterations":60})"});
  EXPECT_EQ(none.exit_code, 2) << said(none);
  EXPECT_TRUE(contains(none.err, "/method/mu: ")) << said(none);
}

TEST(CliStudyOrder, RefusesWhatItCannotCompare) {
  struct Case {
    Words line;
    const char* says;
  };
  for (const Case& bad : {
           Case{kOrder, "--steps is required"},
           Case{kOrder + Words{"--steps", "0.3"},
                "a step of 0.3 s does not divide the end time, 2 s"},
           Case{kOrder + Words{"--steps", "0.5,,0.25"}, "write numbers with a comma between them"},
           Case{kOrder + Words{"--steps", "0"}, "--steps: 0 is not in 1e-12 to"},
           Case{kOrder + Words{"--steps", "small"}, "must be a number"},
           Case{kOrder + Words{"--steps", "0.5", "--methods", "strnag"},
                "Did you mean \"strang\"?"},
           Case{kOrder + Words{"--steps", "0.5", "--methods", "impulse"}, "/method/"},
       }) {
    const ProcessResult result = portwave_cli(bad.line);
    EXPECT_EQ(result.exit_code, 2) << said(result);
    EXPECT_TRUE(contains(result.err, bad.says)) << bad.says << "\n" << said(result);
    EXPECT_EQ(result.out, "");
  }
}

TEST(CliStudyIteration, PrintsWhatIsKnownAndWhatIsSeen) {
  const ProcessResult result = portwave_cli(kIteration + Words{"--iterations", "12"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_EQ(result.err, "");
  for (const char* part : {"lions-mercier with midpoint, windows of 500 steps (5 s), 5 states",
                           "lambda 1.5, mu 2, omega 2.2, alpha 0.5, metric identity",
                           "predicted rate q 0.97541; q* 0.94374 at lambda* 0.218715; |K| 4.57215",
                           "the weighted norm of the error in z never rises", "x converges: yes",
                           "window 0: largest ratio of an error to the one before it 0."}) {
    EXPECT_TRUE(contains(result.out, part)) << part << "\n" << said(result);
  }
  EXPECT_EQ(lines_of(result.out).size(), 6u + 1u + 13u + 2u) << said(result);
}

TEST(CliStudyIteration, WritesJsonAndCsv) {
  const TemporaryFolder folder;
  const ProcessResult result = portwave_cli(
      kIteration + Words{"--iterations", "3", "--windows", "all", "--set",
                         "/method/window_steps=100", "--json", "--out", (folder / "out").string()});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_EQ(names_in(folder / "out"), (Words{"iteration.csv", "study.json"}));
  EXPECT_EQ(read_text(folder / "out/study.json"), result.out);
  const Json study = Json::parse(result.out);
  EXPECT_EQ(study["study"], "iteration");
  EXPECT_EQ(study["method"], "lions-mercier");
  EXPECT_EQ(study["windows"].size(), 5u);
  EXPECT_EQ(study["windows"][4]["start_s"], 4.0);
  EXPECT_TRUE(study["predicted"]["monotone"].get<bool>());
  EXPECT_TRUE(study["windows"][0]["rows"][0]["ratio"].is_null());
  EXPECT_TRUE(study["windows"][0]["rows"][3]["z_weighted"].is_number());
  const std::vector<std::string> table = lines_of(read_text(folder / "out/iteration.csv"));
  ASSERT_EQ(table.size(), 1u + 5u * 4u);
  for (const std::string& line : table) EXPECT_EQ(std::count(line.begin(), line.end(), ','), 7);
  EXPECT_TRUE(table[20].starts_with("4,3,")) << table[20];
}

TEST(CliStudyIteration, ShowsJacobisErrors) {
  const ProcessResult result =
      portwave_cli(kShortJacobi + Words{"--iterations", "8", "--start-error", "1,0.01", "--json"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  const Json study = Json::parse(result.out);
  EXPECT_TRUE(study["predicted"].is_null());
  EXPECT_TRUE(study["lambda"].is_null());
  const Json& rows = study["windows"][0]["rows"];
  EXPECT_NEAR(rows[6]["x_largest"].get<double>(), 24.85, 0.005);
  EXPECT_TRUE(rows[6]["z_error"].is_null());
  // Without a start error the start is the constant waveform.
  const ProcessResult constant = portwave_cli(kShortJacobi + Words{"--iterations", "0", "--json"});
  ASSERT_EQ(constant.exit_code, 0) << said(constant);
  EXPECT_NE(Json::parse(constant.out)["windows"][0]["rows"][0], rows[0]);
}

TEST(CliStudyIteration, AWaveformThatIsNotFiniteIsExitCodeThreeWithRows) {
  const ProcessResult result =
      portwave_cli({"study", "iteration", example_file("jacobi_failure"), "--iterations", "400",
                    "--set", "/couplings/0/gain=[[0, -150], [150, 0]]", "--set",
                    "/time/step_s=0.01", "--set", "/method/window_steps=1000"});
  EXPECT_EQ(result.exit_code, 3) << said(result);
  EXPECT_TRUE(contains(result.err, "portwave: window 0: ")) << said(result);
  EXPECT_TRUE(contains(result.out, "beyond single precision (3.4028e38) from iteration"))
      << said(result);
}

TEST(CliStudyIteration, RefusesWhatItCannotFollow) {
  struct Case {
    Words line;
    const char* says;
  };
  for (const Case& bad : {
           Case{{"study", "iteration", kPair},
                "/method/kind: is \"douglas-rachford\"; study iteration follows"},
           Case{{"study", "iteration", example_file("msd_singlerate")}, "is \"strang\""},
           Case{kIteration + Words{"--start-error", "1,0.01"}, "is \"lions-mercier\", whose start"},
           Case{kShortJacobi + Words{"--start-error", "1"}, "is not two numbers, D and tau"},
           Case{kShortJacobi + Words{"--start-error", "1,x"}, "must be a number"},
           Case{kIteration + Words{"--windows", "0"}, "--windows: 0 is not in 1 to"},
           Case{kIteration + Words{"--windows", "every"}, "--windows"},
           Case{kIteration + Words{"--iterations", "-1"}, "--iterations"},
       }) {
    const ProcessResult result = portwave_cli(bad.line);
    EXPECT_EQ(result.exit_code, 2) << said(result);
    EXPECT_TRUE(contains(result.err, bad.says)) << bad.says << "\n" << said(result);
    EXPECT_EQ(result.out, "");
  }
}

}  // namespace
}  // namespace portwave::test_cli_convergence

#endif
