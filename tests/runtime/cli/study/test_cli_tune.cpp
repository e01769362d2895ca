// portwave tune, portwave study rate
#ifdef PORTWAVE_CLI

#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/files/cli_process.hpp"
#include "support/files/source_folder.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"

namespace portwave::test_cli_tune {
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

const std::string kChain = testing::source_file("examples/chain_64.json");

TEST(CliTune, SaysWhatEveryRulePromises) {
  const ProcessResult result = portwave_cli({"tune", kPair});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_EQ(result.err, "");
  for (const char* part :
       {"published_douglas_rachford: 2 subsystems, 2 scalar ports, steps of 0.01 s", "uniform ",
        "fne ", "matched ", "leaf ", "adapted ", "A.coupling", "B.coupling", "choice     ",
        "reason     "}) {
    EXPECT_TRUE(contains(result.out, part)) << part << "\n" << said(result);
  }
}

TEST(CliTune, WritesTheReportAsJson) {
  const TemporaryFolder folder;
  const ProcessResult result =
      portwave_cli({"tune", kPair, "--json", "--out", (folder / "out").string()});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_EQ(names_in(folder / "out"), Words{"tune.json"});
  EXPECT_EQ(read_text(folder / "out/tune.json"), result.out);
  const Json report = Json::parse(result.out);
  EXPECT_EQ(report["ports"].size(), 2u);
  EXPECT_EQ(report["rules"].size(), 6u);
  EXPECT_EQ(report["rules"][0]["impedance"], "uniform");
  EXPECT_TRUE(report["choice"]["rate"]["converges"].get<bool>()) << result.out;
  EXPECT_EQ(portwave_cli({"tune", kPair, "--json"}).out, result.out);
}

TEST(CliTune, ShowsAsManyPortsAsAsked) {
  const auto lines_with_ports = [](const std::string& text) {
    std::istringstream in(text);
    int count = 0;
    for (std::string line; std::getline(in, line);) count += line.starts_with("block_") ? 1 : 0;
    return count;
  };
  // The ends of the chain have no waves.
  const ProcessResult some = portwave_cli({"tune", kChain, "--ports", "3"});
  ASSERT_EQ(some.exit_code, 0) << said(some);
  EXPECT_EQ(lines_with_ports(some.out), 3) << said(some);
  EXPECT_TRUE(contains(some.out, " more ports (--ports 126")) << said(some);
  const ProcessResult all = portwave_cli({"tune", kChain, "--ports", "1000"});
  EXPECT_EQ(lines_with_ports(all.out), 126) << said(all);
  EXPECT_FALSE(contains(all.out, " more port")) << said(all);
}

TEST(CliTune, TakesTheImpedancesAskedFor) {
  const ProcessResult result = portwave_cli({"tune", kPair, "--json", "--impedance", "uniform"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  const Json report = Json::parse(result.out);
  EXPECT_EQ(report["ports"][0]["impedance"], 0.4);
  EXPECT_EQ(report["ports"][1]["impedance"], 0.4);
  const ProcessResult none = portwave_cli({"tune", kPair, "--impedance", "per_port"});
  EXPECT_EQ(none.exit_code, 2) << said(none);
  EXPECT_TRUE(contains(none.err, "there are no values for the impedances \"per_port\""))
      << said(none);
  const ProcessResult unknown = portwave_cli({"tune", kPair, "--impedance", "leaves"});
  EXPECT_EQ(unknown.exit_code, 2) << said(unknown);
  EXPECT_TRUE(contains(unknown.err, "--impedance: \"leaves\" is not one of")) << said(unknown);
}

TEST(CliRate, ComparesPromiseAndDeed) {
  const TemporaryFolder folder;
  const ProcessResult result = portwave_cli(
      {"study", "rate", kPair, "--steps", "3", "--json", "--out", (folder / "out").string()});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_EQ(read_text(folder / "out/rate.json"), result.out);
  const Json rows = Json::parse(result.out);
  ASSERT_EQ(rows.size(), 12u);
  for (const Json& row : rows) {
    EXPECT_TRUE(row["predicted"]["contraction"].is_number()) << row;
    EXPECT_EQ(row["observed"]["steps"], 3) << row;
  }
  const ProcessResult table = portwave_cli({"study", "rate", kPair, "--steps", "3"});
  EXPECT_EQ(table.exit_code, 0) << said(table);
  EXPECT_TRUE(contains(table.out, "uniform    douglas-rachford")) << said(table);
}

}  // namespace
}  // namespace portwave::test_cli_tune

#endif
