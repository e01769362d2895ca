// The program rank_study: structure and labels, never times.
#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <portwave/runtime/report/report.hpp>

#include "support/files/cli_process.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"

namespace portwave {
namespace {

using Json = nlohmann::json;
using testing::contains;
using testing::kPair;
using testing::ProcessResult;
using testing::read_text;
using testing::said;
using testing::source_file;
using testing::TemporaryFolder;
using testing::Words;
using testing::operator+;

const Words kScaling = {"scaling", "--steps", "2", "--repetitions", "1"};

ProcessResult rank_study(const Words& arguments) {
  return testing::run_process(Words{PORTWAVE_RANK_STUDY} + arguments);
}

TEST(RankStudyLine, PredictsWhatIsNotStarted) {
  const TemporaryFolder folder;
  const ProcessResult result = rank_study(
      kScaling + Words{"--generate", "chain", "--sizes", "32", "--ranks", "1,2,8", "--threads",
                       "1,2", "--certify", "none", "--json", "--out", (folder / "out").string()});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_TRUE(contains(result.err, "1 rank was started")) << said(result);
  EXPECT_EQ(read_text(folder / "out/scaling.json"), result.out);
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["study"], "strong scaling over ranks");
  EXPECT_EQ(json["network"], "assumed");
  EXPECT_EQ(json["latency_s"], 2e-6);
  ASSERT_EQ(json["rows"].size(), 6u);
  for (const Json& row : json["rows"]) {
    EXPECT_EQ(row["source"], row["ranks"] == 1 ? "measured" : "predicted");
    EXPECT_EQ(row["size"], 32);
    double sum = 0.0;
    for (const char* term : {"work_s", "imbalance_s", "common_s", "messages_s", "gathers_s"}) {
      sum += row["prediction"][term].get<double>();
    }
    EXPECT_NEAR(sum, row["prediction"]["total_s"].get<double>(), 1e-9 * sum);
  }
  EXPECT_EQ(json["predicted_curve"].back()["ranks"], 32);
  EXPECT_EQ(json["protocols"].back()["protocol"], "tolerance, ledger");
}

TEST(RankStudyLine, DrawsProcessesAndWritesTheirRows) {
  const TemporaryFolder folder;
  const Words given =
      kScaling + Words{"--generate", "chain", "--sizes", "32",
                       "--ranks",    "1,2,8", "--csv",   (folder / "rows.csv").string()};
  const ProcessResult result = rank_study(given + Words{"--plot", (folder / "a.svg").string()});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  const std::string rows = read_text(folder / "rows.csv"), figure = read_text(folder / "a.svg");
  EXPECT_EQ(std::ranges::count(rows, '\n'), 4) << rows;
  EXPECT_TRUE(rows.starts_with("source,size,ranks,threads,")) << rows;
  EXPECT_TRUE(contains(rows, ",prediction_work_s,")) << rows;
  EXPECT_TRUE(contains(figure, "processes")) << figure;
  EXPECT_FALSE(contains(figure, "threads")) << figure;
  const ProcessResult refused =
      rank_study(given + Words{"--threads", "1,2", "--plot", (folder / "missing/b.svg").string()});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(contains(refused.err, "must be one number for --plot")) << said(refused);
  EXPECT_TRUE(contains(refused.err, "there is no folder")) << said(refused);
}

TEST(RankStudyLine, PrintsWhatPredictionsRestOn) {
  const ProcessResult result =
      rank_study(kScaling + Words{"--generate", "chain", "--sizes", "8,16", "--ranks", "1,2",
                                  "--latency-us", "5", "--bandwidth-GBs", "1"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  for (const char* says : {"gathers_us", "5 us and 1 GB/s between any two ranks (given)",
                           "fixed budget, ledger", "Every rank holds the whole system"}) {
    EXPECT_TRUE(contains(result.out, says)) << says << "\n" << said(result);
  }
}

TEST(RankStudyLine, RefusesWhatDoesNotFitTogether) {
  struct Case {
    Words line;
    Words says;
  };
  for (const Case& bad :
       {Case{{"scaling"}, {"rank_study: ", "needs a scenario file, or --generate and --sizes"}},
        Case{{"scaling", kPair, "--ranks", "0"}, {"0 is not in 1 to 10000"}},
        Case{{"scaling", kPair, "--ranks", "2", "--executor", "graph"},
             {"unknown option \"--executor\"", "See \"rank_study scaling --help\"."}},
        Case{{"scaling", "--generate", "chain", "--sizes", "4,9", "--ranks", "1,2", "--threads",
              "1,2"},
             {"in proportion to the ranks 1,2: 4,8 would do", "--threads: must be one number"}},
        Case{{"partition"}, {"SCENARIO is required"}},
        Case{{"partition", kPair, "--latency-us", "-1"}, {"--latency-us"}},
        Case{{"partition", "no_such.json"}, {"no_such.json"}},
        Case{{"run", kPair}, {"Commands: scaling, partition."}}}) {
    const ProcessResult result = rank_study(bad.line);
    EXPECT_EQ(result.exit_code, 2) << said(result);
    for (const std::string& says : bad.says) {
      EXPECT_TRUE(contains(result.err, says)) << says << "\n" << said(result);
    }
    EXPECT_EQ(result.out, "");
  }
}

TEST(RankStudyLine, ShowsHowAScenarioIsDealtOut) {
  const std::string chain = source_file("examples/chain_64.json");
  const ProcessResult table = rank_study({"partition", chain, "--ranks", "4", "--show", "3"});
  ASSERT_EQ(table.exit_code, 0) << said(table);
  for (const char* says : {"on 4 ranks of 1 thread", "predicted", "neighbours", "1 more rank"}) {
    EXPECT_TRUE(contains(table.out, says)) << says << "\n" << said(table);
  }
  const ProcessResult plan =
      rank_study({"partition", chain, "--ranks", "4", "--latency-us", "3", "--json"});
  ASSERT_EQ(plan.exit_code, 0) << said(plan);
  const Json json = Json::parse(plan.out);
  EXPECT_EQ(json["ranks"].size(), 4u);
  EXPECT_NEAR(json["latency_s"].get<double>(), 3e-6, 1e-12);
}

TEST(RankStudyLine, DrawsAPage) {
  if (!has_report()) GTEST_SKIP() << "built without uPlot";
  const TemporaryFolder folder;
  const ProcessResult result =
      rank_study(kScaling + Words{source_file("examples/chain_64.json"), "--ranks", "1,2", "--out",
                                  (folder / "out").string(), "--report"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_TRUE(contains(result.err, "report.html")) << said(result);
  const std::string page = read_text(folder / "out" / "report.html");
  for (const char* says : {"rank_study scaling", "Time per step by ranks", "Efficiency"}) {
    EXPECT_TRUE(contains(page, says)) << says;
  }
}

}  // namespace
}  // namespace portwave
