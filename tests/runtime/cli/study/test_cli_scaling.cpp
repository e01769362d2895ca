// portwave study scaling: structure and labels, never times.
#ifdef PORTWAVE_CLI

#include <filesystem>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/cli_process.hpp"
#include "support/temporary_folder.hpp"
#include "support/text_file.hpp"

namespace portwave::test_cli_scaling {
namespace {

using Json = nlohmann::json;
using testing::contains;
using testing::kPair;
using testing::names_in;
using testing::portwave_cli;
using testing::ProcessResult;
using testing::read_text;
using testing::said;
using testing::TemporaryFolder;
using testing::Words;
using testing::operator+;

const Words kScaling = {"study", "scaling", "--steps", "2", "--repetitions", "1"};

TEST(CliScaling, PrintsAnAlignedTable) {
  const ProcessResult result = portwave_cli(kScaling + Words{kPair, "--threads", "1,1024"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_EQ(result.err, "");
  std::istringstream in(result.out);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 1u + 2u + 32u) << said(result);
  for (const std::string& line : lines) EXPECT_EQ(line.size(), lines[0].size()) << said(result);
  for (const char* column : {"source", "parts", "threads", "step_us", "spread", "speed_up",
                             "efficiency", "predicted_us", "iterate_us", "imbalance", "executor"}) {
    EXPECT_TRUE(contains(lines[0], column)) << column;
  }
  EXPECT_TRUE(contains(lines[1], "measured")) << lines[1];
  for (std::size_t i = 2; i < lines.size(); ++i) {
    EXPECT_TRUE(contains(lines[i], "predicted")) << lines[i];
    EXPECT_FALSE(contains(lines[i], "measured")) << lines[i];
  }
}

TEST(CliScaling, WritesRowsAsJson) {
  const TemporaryFolder folder;
  const ProcessResult result =
      portwave_cli(kScaling + Words{"--generate", "chain", "--sizes", "32", "--threads", "1,2,1024",
                                    "--executor", "async", "--grain", "8", "--json", "--out",
                                    (folder / "out").string()});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_EQ(names_in(folder / "out"), (Words{"scaling.json"}));
  EXPECT_EQ(read_text(folder / "out/scaling.json"), result.out);
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["study"], "strong scaling");
  EXPECT_EQ(json["executor"], "async");
  EXPECT_EQ(json["grain"], "8");
  EXPECT_EQ(json["steps_per_repetition"], 2);
  EXPECT_EQ(json["repetitions"], 1);
  ASSERT_EQ(json["rows"].size(), 3u);
  ASSERT_EQ(json["predicted_curve"].size(), 32u);
  ASSERT_EQ(json["models"].size(), 1u);
  const int cores = json["cores"];
  for (const Json& row : json["rows"]) {
    const bool predicted = row["threads"].get<int>() > cores;
    EXPECT_EQ(row["source"], predicted ? "predicted" : "measured");
    EXPECT_EQ(row["size"], 32);
    EXPECT_EQ(row["phases"].is_null(), predicted);
    EXPECT_EQ(row["spread"].is_null(), predicted);
    EXPECT_EQ(row["fell_back_to_serial"], false);
    for (const char* key : {"step_s", "speed_up", "efficiency", "predicted_step_s", "imbalance"}) {
      EXPECT_TRUE(row[key].is_number()) << key;
    }
  }
  for (const Json& row : json["predicted_curve"]) EXPECT_EQ(row["source"], "predicted");
}

TEST(CliScaling, OneSizePerThreadCountIsWeakScaling) {
  for (const char* kind : {"chain", "ring", "grid", "star"}) {
    const ProcessResult result =
        portwave_cli(kScaling + Words{"--generate", kind, "--sizes", "6,12", "--threads", "1,2",
                                      "--json", "--set", "/method/iterations=3"});
    ASSERT_EQ(result.exit_code, 0) << said(result);
    const Json json = Json::parse(result.out);
    EXPECT_EQ(json["study"], "weak scaling");
    ASSERT_EQ(json["rows"].size(), 2u);
    EXPECT_EQ(json["rows"][0]["size"], 6);
    EXPECT_EQ(json["rows"][1]["size"], 12);
    EXPECT_EQ(json["rows"][1]["threads"], 2);
    EXPECT_EQ(json["rows"][0]["efficiency"], 1.0);
    EXPECT_EQ(json["models"][1]["iterations"], 3.0);
  }
}

TEST(CliScaling, RefusesWhatDoesNotFitTogether) {
  struct Case {
    Words line;
    Words says;
  };
  for (const Case& bad : {
           Case{{}, {"needs a scenario file, or --generate and --sizes"}},
           Case{{kPair, "--generate", "chain", "--sizes", "4"},
                {"takes the place of the scenario"}},
           Case{{kPair, "--sizes", "4"}, {"--sizes: needs --generate"}},
           Case{{"--generate", "chain"}, {"--sizes: is required with --generate"}},
           Case{{"--generate", "chain", "--sizes", "4,8", "--threads", "1,2,4"},
                {"one for each of the 3 thread counts, got 2"}},
           Case{{"--generate", "chain", "--sizes", "4,8,12", "--threads", "1,2,4"},
                {"in proportion to the threads 1,2,4: 4,8,16 would do"}},
           Case{{"--generate", "star", "--sizes", "1", "--threads", "1"}, {"a star of 1: "}},
           Case{{"--generate", "chain", "--sizes", "4,8", "--threads", "x", "--repetitions", "0"},
                {"--threads: ", "--repetitions: "}},
           Case{{kPair, "--sizes", "4", "--generate", "chain", "--threads", "1,2", "--sizes", "8"},
                {"--generate: takes the place"}},
           Case{{kPair, "--ranks", "2"}, {"unknown option \"--ranks\""}},
           Case{{"no_such.json"}, {"no_such.json"}},
           Case{{"--generate", "chain", "--sizes", "4", "--set", "/method/iterations=-1"},
                {"chain of 4 /method/iterations"}},
       }) {
    const ProcessResult result = portwave_cli(kScaling + bad.line);
    EXPECT_EQ(result.exit_code, 2) << said(result);
    for (const std::string& says : bad.says) {
      EXPECT_TRUE(contains(result.err, says)) << says << "\n" << said(result);
    }
    EXPECT_EQ(result.out, "");
  }
}

TEST(CliScaling, FindsOutFirstWhetherItCanWrite) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "scaling.json");
  const ProcessResult result =
      portwave_cli(kScaling + Words{kPair, "--out", folder.path().string()});
  EXPECT_EQ(result.exit_code, 3) << said(result);
  EXPECT_TRUE(contains(result.err, (folder / "scaling.json").string())) << said(result);
  EXPECT_EQ(result.out, "");
}

}  // namespace
}  // namespace portwave::test_cli_scaling

#endif
