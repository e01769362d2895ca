// portwave study scaling: structure and labels, never times.
#ifdef PORTWAVE_CLI

#include <algorithm>
#include <filesystem>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/files/cli_process.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"

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

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream in(line + ",");
  for (std::string field; std::getline(in, field, ',');) fields.push_back(field);
  return fields;
}

/// Every column of a table is a key of the rows, with the same values.
void expect_columns_of(const std::string& csv, const Json& rows) {
  std::istringstream in(csv);
  std::string line;
  std::getline(in, line);
  const std::vector<std::string> columns = fields_of(line);
  EXPECT_GT(columns.size(), 15u) << line;
  for (const Json& row : rows) {
    ASSERT_TRUE(std::getline(in, line));
    const std::vector<std::string> fields = fields_of(line);
    ASSERT_EQ(fields.size(), columns.size()) << line;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      ASSERT_TRUE(row.contains(columns[i])) << columns[i];
      const Json& value = row[columns[i]];
      if (value.is_number()) {
        EXPECT_EQ(std::stod(fields[i]), value.get<double>()) << columns[i];
      } else if (!value.is_boolean()) {
        EXPECT_EQ(fields[i], value.is_null() ? "" : value.get<std::string>()) << columns[i];
      }
    }
  }
  EXPECT_FALSE(std::getline(in, line)) << line;
}

TEST(CliScaling, PrintsAnAlignedTable) {
  const ProcessResult result = portwave_cli(kScaling + Words{kPair, "--threads", "1,1024"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_EQ(result.err, "");
  std::istringstream in(result.out);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line) && !line.empty();) lines.push_back(line);
  ASSERT_EQ(lines.size(), 1u + 2u + 32u) << said(result);
  for (const std::string& line : lines) EXPECT_EQ(line.size(), lines[0].size()) << said(result);
  for (const char* column : {"source", "parts", "threads", "step_us", "spread", "speed_up",
                             "efficiency", "weak_eff", "parts_steps/s", "J/step", "predicted_us",
                             "pred/meas", "iterate_us", "imbalance", "executor"}) {
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
  EXPECT_EQ(names_in(folder / "out"), (Words{"scaling.csv", "scaling.json"}));
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

TEST(CliScaling, MeasuresAllSizesThreadsAndExecutorsInOneCall) {
  const TemporaryFolder folder;
  const ProcessResult result = portwave_cli(
      kScaling + Words{"--generate", "chain", "--sizes", "8,16", "--threads", "1,2,1024",
                       "--executors", "serial,async", "--json", "--out", (folder / "out").string(),
                       "--csv", (folder / "rows.csv").string(), "--plot",
                       (folder / "figure.pdf").string()});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["study"], "strong scaling");
  EXPECT_EQ(json["executor"], "serial,async");
  ASSERT_EQ(json["rows"].size(), 2u * 2u * 3u);
  std::size_t i = 0;
  for (const int size : {8, 16}) {
    for (const char* executor : {"serial", "async"}) {
      for (const int threads : {1, 2, 1024}) {
        const Json& row = json["rows"][i++];
        EXPECT_EQ(row["size"], size);
        EXPECT_EQ(row["executor"], executor);
        EXPECT_EQ(row["threads"], threads);
        EXPECT_NEAR(row["parts_steps_per_s"].get<double>() * row["step_s"].get<double>(), size,
                    1e-9 * size);
        const bool measured = row["source"] == "measured";
        ASSERT_EQ(row["predicted_over_measured"].is_number(), measured);
        if (measured) {
          EXPECT_DOUBLE_EQ(row["predicted_over_measured"].get<double>(),
                           row["predicted_step_s"].get<double>() / row["step_s"].get<double>());
        }
        // Weak: 16 parts on two threads beside 8 on one.
        EXPECT_EQ(row["weak_efficiency"].is_number(), threads == 1 || (size == 16 && threads == 2));
      }
    }
  }
  EXPECT_EQ(json["models"].size(), 4u);
  EXPECT_TRUE(json["energy"].is_string());
  EXPECT_GT(json["peak_flop_per_s"].get<double>(), 0.0);
  ASSERT_FALSE(json["kernels"].empty());
  EXPECT_TRUE(std::ranges::any_of(json["kernels"], [](const Json& kernel) {
    return kernel["flop"] == 12.0;  // two ports: 2·4 + 2·2
  }));
  const std::string csv = read_text(folder / "rows.csv");
  EXPECT_EQ(csv, read_text(folder / "out/scaling.csv"));
  expect_columns_of(csv, json["rows"]);
  EXPECT_TRUE(read_text(folder / "figure.pdf").starts_with("%PDF-"));
}

TEST(CliScaling, MeasuresAScenarioInSeveralSizes) {
  const ProcessResult result = portwave_cli(
      kScaling + Words{testing::source_file("examples/ring_of_cells.json"), "--size-of",
                       "/parameters/sectors", "--sizes", "2,4", "--threads", "1,2", "--json"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  const Json json = Json::parse(result.out);
  ASSERT_EQ(json["rows"].size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(json["rows"][i]["size"], i < 2 ? 32 : 64) << i;
  EXPECT_TRUE(json["rows"][3]["weak_efficiency"].is_number());
}

TEST(CliScaling, OneSizeGrowsWithTheThreads) {
  const ProcessResult result =
      portwave_cli(kScaling + Words{"--generate", "chain", "--sizes", "6", "--threads", "1,2",
                                    "--weak", "--json"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  const Json json = Json::parse(result.out);
  ASSERT_EQ(json["rows"].size(), 2u);
  EXPECT_EQ(json["rows"][1]["size"], 12);
  EXPECT_EQ(json["rows"][1]["weak_efficiency"], json["rows"][1]["efficiency"]);
}

TEST(CliScaling, OneSizePerThreadCountIsWeakScaling) {
  for (const char* kind : {"chain", "ring", "grid", "star"}) {
    const ProcessResult result =
        portwave_cli(kScaling + Words{"--generate", kind, "--sizes", "6,12", "--threads", "1,2",
                                      "--weak", "--json", "--set", "/method/iterations=3"});
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
           Case{{kPair, "--sizes", "4"}, {"--sizes: needs --generate, or --size-of"}},
           Case{{kPair, "--size-of", "/time/step_s"}, {"--sizes: is required with --size-of"}},
           Case{{"--generate", "chain", "--sizes", "4", "--size-of", "/parameters/n"},
                {"--size-of: is for scenario files"}},
           Case{{"--generate", "chain"}, {"--sizes: is required with --generate"}},
           Case{{"--generate", "chain", "--sizes", "4,8", "--threads", "1,2,4", "--weak"},
                {"one for each of the 3 thread counts, got 2"}},
           Case{{"--generate", "chain", "--sizes", "4,8,12", "--threads", "1,2,4", "--weak"},
                {"in proportion to the threads 1,2,4: 4,8,16 would do"}},
           Case{{"--generate", "star", "--sizes", "1", "--threads", "1"}, {"a star of 1: "}},
           Case{{"--generate", "chain", "--sizes", "4,8", "--threads", "x", "--repetitions", "0"},
                {"--threads: ", "--repetitions: "}},
           Case{{kPair, "--sizes", "4", "--generate", "chain", "--threads", "1,2", "--sizes", "8"},
                {"--generate: takes the place"}},
           Case{{kPair, "--weak"}, {"--weak: needs --generate or --size-of"}},
           Case{{kPair, "--plot", "figure.png", "--executors", "async,fast", "--threads", "0"},
                {"--plot: \"figure.png\" does not end with .pdf or .svg",
                 "--executors: ", "--threads: "}},
           Case{{kPair, "--csv", "/no/such/rows.csv", "--plot", "/no/such/figure.svg", "--sizes",
                 "4"},
                {"--csv: there is no folder /no/such", "--plot: there is no folder",
                 "--sizes: needs --generate"}},
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
