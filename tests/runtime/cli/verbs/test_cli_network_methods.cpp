// The program with methods that couple without waves.
#ifdef PORTWAVE_CLI

#include <algorithm>
#include <cmath>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/files/cli_process.hpp"
#include "support/files/source_folder.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"

namespace portwave::test_cli_network_methods {
namespace {

using Json = nlohmann::json;
using testing::contains;
using testing::names_in;
using testing::portwave_cli;
using testing::ProcessResult;
using testing::read_csv;
using testing::said;
using testing::TemporaryFolder;
using testing::Words;
using testing::operator+;

const std::string kChain = testing::source_file("examples/chain_64.json");
const Words kStrang = {"--set", R"(/method={"kind":"strang"})"};

Words with_method(const std::string& method) { return {"--set", "/method=" + method}; }

TEST(CliNetworkMethods, RunTheSameScenarioWithOnlyTheMethodChanged) {
  const TemporaryFolder folder;
  for (const std::string method :
       {R"({"kind":"strang"})", R"({"kind":"impulse","fast":["block_01"],"factor":3})",
        R"({"kind":"lions-mercier","iterations":5})", R"({"kind":"jacobi"})",
        R"({"kind":"gauss-seidel","window_steps":2,"tolerance":1e-9})"}) {
    const std::string out = (folder / "out").string();
    const ProcessResult result = portwave_cli(
        Words{"run", kChain, "--steps", "20", "--json", "--out", out} + with_method(method));
    ASSERT_EQ(result.exit_code, 0) << said(result);
    const Json asked = Json::parse(method), json = Json::parse(result.out);
    EXPECT_EQ(json["method"], asked["kind"]);
    EXPECT_FALSE(json["method_description"].get<std::string>().empty());
    for (const char* none : {"guard", "tuning", "choice"}) {
      EXPECT_TRUE(json[none].is_null()) << none << ", " << method;
    }
    EXPECT_EQ(json["iterations"].is_null(),
              contains(method, "strang") || contains(method, "impulse"));
    EXPECT_NE(json["certificate"]["status"], "violated") << method;
    EXPECT_FALSE(contains(result.err, "impedance ")) << said(result);
    EXPECT_TRUE(contains(result.err, json["method_description"])) << said(result);
    EXPECT_EQ(names_in(folder / "out"),
              (Words{"energy.csv", "network.json", "summary.json", "trajectory.csv"}));
    const auto energy = read_csv(folder / "out/energy.csv");
    EXPECT_EQ(energy.rows.size(), 11U) << "the start and every second of 20 steps";
    const auto column = std::find(energy.names.begin(), energy.names.end(), "iterations");
    ASSERT_NE(column, energy.names.end());
    double iterations = 0.0;
    for (const std::vector<double>& row : energy.rows) {
      iterations += row[static_cast<std::size_t>(column - energy.names.begin())];
    }
    if (!json["iterations"].is_null()) {
      EXPECT_EQ(iterations, json["iterations"]["total"].get<double>()) << method;
    }
  }
}

TEST(CliNetworkMethods, ThreadsChangeNothingButTime) {
  const auto run = [](const Words& more) {
    const ProcessResult result =
        portwave_cli(Words{"run", kChain, "--steps", "30", "--json"} + kStrang + more);
    EXPECT_EQ(result.exit_code, 0) << said(result);
    Json json = Json::parse(result.out);
    for (const char* key : {"threads", "execution", "wall_s", "recording_wait_s", "steps_per_s",
                            "real_time_factor"}) {
      json.erase(key);
    }
    return json;
  };
  const Json serial = run({});
  for (const char* executor : {"auto", "serial", "async", "graph"}) {
    EXPECT_EQ(run({"--threads", "2", "--executor", executor}), serial) << executor;
  }
}

TEST(CliNetworkMethods, SaysWhatDoesNotGoWithThem) {
  const ProcessResult leftovers = portwave_cli({"run", kChain, "--set", "/method/kind=strang"});
  EXPECT_EQ(leftovers.exit_code, 2);
  EXPECT_TRUE(contains(leftovers.err, R"(--set '/method={"kind":"strang"}')")) << said(leftovers);

  const ProcessResult deadline =
      portwave_cli(Words{"run", kChain, "--deadline-us", "100"} + kStrang);
  EXPECT_EQ(deadline.exit_code, 2);
  EXPECT_TRUE(contains(deadline.err, "/deadline_s: the method \"strang\"")) << said(deadline);

  const ProcessResult nonlinear = portwave_cli(Words{"validate", testing::kPair} + kStrang);
  EXPECT_EQ(nonlinear.exit_code, 2);
  EXPECT_TRUE(contains(nonlinear.err, "/subsystems/0")) << said(nonlinear);

  for (const Words& verb : {Words{"tune"}, Words{"study", "rate"}}) {
    const ProcessResult result = portwave_cli(verb + Words{kChain} + kStrang);
    EXPECT_EQ(result.exit_code, 2) << said(result);
    EXPECT_TRUE(contains(result.err, "/method/kind: the method \"strang\" couples without waves"))
        << said(result);
  }
  const ProcessResult budget = portwave_cli(Words{"study", "budget", kChain} + kStrang);
  EXPECT_EQ(budget.exit_code, 2);
  EXPECT_TRUE(contains(budget.err, "the method \"strang\" does not iterate")) << said(budget);
}

// What a run would refuse, a look at the file refuses, in the same words.
TEST(CliNetworkMethods, ValidateRefusesWhatRunRefuses) {
  struct Case {
    std::string file, method;
  };
  const std::string masses = testing::source_file("examples/two_masses.json");
  for (const Case& bad : {Case{testing::kPair, R"({"kind":"strang"})"},
                          Case{testing::kPair, R"({"kind":"impulse","fast":["A"]})"},
                          Case{testing::kPair, R"({"kind":"lions-mercier"})"},
                          Case{testing::kPair, R"({"kind":"jacobi","tolerance":1e-6})"},
                          Case{testing::kPair, R"({"kind":"gauss-seidel"})"},
                          Case{masses, R"({"kind":"lions-mercier","mu":200})"},
                          Case{masses, R"({"kind":"impulse","fast":["left","right"]})"}}) {
    const ProcessResult run = portwave_cli(Words{"run", bad.file} + with_method(bad.method));
    const ProcessResult look = portwave_cli(Words{"validate", bad.file} + with_method(bad.method));
    EXPECT_EQ(run.exit_code, 2) << bad.method << said(run);
    EXPECT_EQ(look.exit_code, 2) << bad.method << said(look);
    EXPECT_EQ(look.err, run.err) << bad.method;
    EXPECT_TRUE(contains(look.err, "error")) << said(look);
  }
  const ProcessResult good = portwave_cli(Words{"validate", kChain} + kStrang);
  EXPECT_EQ(good.exit_code, 0) << "control: " << said(good);
}

TEST(CliNetworkMethods, StudyBudgetComparesDynamicIterations) {
  const ProcessResult result = portwave_cli({"study", "budget", kChain, "--steps", "5", "--budgets",
                                             "2,60", "--methods", "auto,jacobi", "--json"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  const Json rows = Json::parse(result.out);
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[2]["method"], "jacobi");
  EXPECT_EQ(rows[2]["impedance"], "none");
  EXPECT_EQ(rows[2]["guard"], false);
  EXPECT_LT(rows[3]["max"].get<double>(), 1e-12);
  EXPECT_GT(rows[2]["max"].get<double>(), rows[3]["max"].get<double>());

  const ProcessResult own =
      portwave_cli(Words{"study", "budget", kChain, "--steps", "5", "--budgets", "3,60", "--json"} +
                   with_method(R"({"kind":"gauss-seidel"})"));
  ASSERT_EQ(own.exit_code, 0) << said(own);
  EXPECT_EQ(Json::parse(own.out).size(), 2U);

  const ProcessResult values =
      portwave_cli(Words{"study", "budget", kChain, "--methods", "douglas-rachford"} +
                   with_method(R"({"kind":"jacobi"})"));
  EXPECT_EQ(values.exit_code, 2);
  EXPECT_TRUE(contains(values.err, "gives no impedances")) << said(values);
}

TEST(CliNetworkMethods, StudyScalingRuns) {
  for (const char* method : {R"({"kind":"strang"})", R"({"kind":"jacobi","iterations":4})"}) {
    const ProcessResult result =
        portwave_cli(Words{"study", "scaling", kChain, "--threads", "1,2,1000", "--repetitions",
                           "1", "--steps", "4", "--executor", "async", "--json"} +
                     with_method(method));
    ASSERT_EQ(result.exit_code, 0) << said(result);
    const Json rows = Json::parse(result.out)["rows"];
    ASSERT_EQ(rows.size(), 3U);
    EXPECT_EQ(rows[2]["source"], "predicted");
    EXPECT_TRUE(rows[2]["step_s"].is_number());
    // How large depends on what this machine measures: a chain as short as this may lose by threads.
    EXPECT_GT(rows[2]["speed_up"].get<double>(), 0.0);
    EXPECT_LE(rows[2]["speed_up"].get<double>(), 64.0) << "there are no more blocks than that";
  }
}

// Errors of steps that a stiff damper makes short have one sign, and add up over a long run.
TEST(CliNetworkMethods, TellWhereChosenStepsAddUpToMoreThanTheTolerance) {
  const auto run = [](const char* damping, const char* end_s) {
    return portwave_cli(
        Words{"run", testing::kPair, "--set",
              "/subsystems/0/parameters/coupling_damping_Ns_per_m=" + std::string(damping), "--set",
              R"(/time={"step": {"kind": "adaptive", "tolerance": 1e-6}, "end_s": )" +
                  std::string(end_s) + "}"} +
        with_method(R"({"kind":"kick-drift"})"));
  };
  const ProcessResult stiff = run("3000", "100"), soft = run("0.05", "5");
  EXPECT_EQ(stiff.exit_code, 0) << said(stiff);
  EXPECT_TRUE(contains(stiff.err, "times the tolerance: errors of steps add up")) << said(stiff);
  EXPECT_TRUE(contains(stiff.err, "--set /time/step/tolerance=")) << said(stiff);
  EXPECT_FALSE(contains(soft.err, "times the tolerance")) << said(soft) << "control";
}

}  // namespace
}  // namespace portwave::test_cli_network_methods

#endif
