// portwave run
#ifdef PORTWAVE_CLI

#include <chrono>
#include <optional>
#include <sys/resource.h>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/files/cli_process.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"

namespace portwave::test_cli_run {
namespace {

using Json = nlohmann::json;
using testing::command;
using testing::contains;
using testing::kAllowActive;
using testing::kNegativeDamper;
using testing::kPair;
using testing::LimitForChildren;
using testing::names_in;
using testing::portwave_cli;
using testing::ProcessResult;
using testing::read_csv;
using testing::read_text;
using testing::said;
using testing::Subprocess;
using testing::TemporaryFolder;
using testing::with_files_of_at_most;
using testing::Words;
using testing::write_text;
using testing::operator+;

TEST(CliRun, TalksOnStderrOnly) {
  const ProcessResult result = portwave_cli({"run", kPair, "--steps", "20"});
  EXPECT_EQ(result.exit_code, 0) << said(result);
  EXPECT_EQ(result.out, "");
  for (const char* word :
       {"20 steps", "energy", "certificate", "holds", "iterations", "steps/s", "real time"}) {
    EXPECT_TRUE(contains(result.err, word)) << word << "\n" << said(result);
  }
  EXPECT_FALSE(contains(result.err, "\r")) << "progress is for terminals";

  const ProcessResult quiet = portwave_cli({"run", kPair, "--steps", "20", "--quiet"});
  EXPECT_EQ(quiet.exit_code, 0);
  EXPECT_EQ(quiet.out + quiet.err, "");
}

TEST(CliRun, WritesTheSummaryAsJson) {
  for (const std::string certify : {"energy", "full"}) {
    const ProcessResult result =
        portwave_cli({"run", kPair, "--steps", "20", "--json", "--certify", certify});
    ASSERT_EQ(result.exit_code, 0) << said(result);
    const Json json = Json::parse(result.out);
    for (const char* key :
         {"scenario", "steps", "step_s", "method", "method_options", "iterations", "energy",
          "certificate", "wall_s", "steps_per_s", "threads", "real_time_factor", "version"}) {
      EXPECT_TRUE(json.contains(key)) << key;
    }
    EXPECT_EQ(json["steps"], 20);
    EXPECT_EQ(json["certificate"]["min_fne_margin"].is_number(), certify == "full");
    EXPECT_EQ(json["certificate"]["max_augmented_residual_J"].is_number(), certify == "full");
  }
}

TEST(CliRun, WritesCompleteFiles) {
  const TemporaryFolder folder;
  const auto out = folder / "new/out";
  const ProcessResult result =
      portwave_cli({"run", kPair, "--steps", "30", "--out", out.string(), "--json"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_EQ(names_in(out), (Words{"energy.csv", "network.json", "summary.json", "trajectory.csv"}));
  EXPECT_EQ(read_text(out / "summary.json"), result.out);

  const Json summary = Json::parse(result.out);
  const auto energy = read_csv(out / "energy.csv");
  ASSERT_EQ(energy.rows.size(), 31u);
  EXPECT_EQ(energy.rows.front()[energy.column("stored_J")],
            summary["energy"]["initial_J"].get<double>());
  EXPECT_EQ(energy.last()[energy.column("stored_J")], summary["energy"]["final_J"].get<double>());
  const auto trajectory = read_csv(out / "trajectory.csv");
  EXPECT_EQ(trajectory.names.front(), "time_s");
  EXPECT_GE(trajectory.names.size(), 2u);
  ASSERT_EQ(trajectory.rows.size(), 31u);
  EXPECT_DOUBLE_EQ(trajectory.last().front(), 30 * summary["step_s"].get<double>());
}

TEST(CliRun, EventsAreWrittenAndMayEndTheRun) {
  const TemporaryFolder folder;
  const auto out = folder.path() / "out";
  const Words run = {"run", kPair, "--out", out.string()};
  // The position of A starts at .1 and comes to .05 first.
  const ProcessResult result =
      portwave_cli(run + Words{"--json", "--set",
                               R"(/events=[{"name": "half", "of": "A.q1", "level": 0.05,
                                            "end_run": true}, {"of": "A.q1", "level": 9}])"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_TRUE(contains(result.err, "(ended by \"half\")")) << said(result);
  EXPECT_TRUE(contains(result.err, "half: 1 falling; the last at")) << said(result);
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["ended_by"], "half");
  EXPECT_EQ(json["completed"], true);
  ASSERT_EQ(json["events"].size(), 2U);
  EXPECT_EQ(json["events"][0]["falling"], 1);
  EXPECT_EQ(json["events"][1]["last_s"], nullptr);
  const std::string events = read_text(out / "events.csv");
  EXPECT_EQ(events.substr(0, 26), "time_s,event,direction\n" + events.substr(23, 3));
  EXPECT_TRUE(contains(events, ",half,falling\n")) << events;
  EXPECT_GT(json["events"][0]["last_s"],
            json["time_s"].get<double>() - json["step_s"].get<double>());
  EXPECT_LE(json["events"][0]["last_s"], json["time_s"]);
  // Where nothing is watched, none are left of a run before.
  ASSERT_EQ(portwave_cli(run + Words{"--steps", "5"}).exit_code, 0);
  EXPECT_EQ(names_in(out), (std::vector<std::string>{"energy.csv", "network.json", "summary.json",
                                                     "trajectory.csv"}));
}

TEST(CliRun, ThreadsDoNotChangeAByte) {
  const TemporaryFolder folder;
  const auto run = [&](const std::string& name, const Words& more) {
    const ProcessResult result = portwave_cli(
        Words{"run", kPair, "--steps", "100", "--quiet", "--out", (folder / name).string()} + more);
    EXPECT_EQ(result.exit_code, 0) << said(result);
  };
  run("one", {});
  run("two", {"--threads", "2"});
  run("other", {"--set", "/method/iterations=3"});
  for (const char* file : {"/trajectory.csv", "/energy.csv"}) {
    const std::string one = read_text(folder.path() / ("one" + std::string(file)));
    EXPECT_TRUE(one == read_text(folder.path() / ("two" + std::string(file)))) << file;
    EXPECT_FALSE(one == read_text(folder.path() / ("other" + std::string(file)))) << file;
  }
}

TEST(CliRun, GrainAndExecutorDoNotChangeAByte) {
  const TemporaryFolder folder;
  const auto run = [&](const std::string& name, const Words& more) {
    const ProcessResult result = portwave_cli(Words{"run", kPair, "--steps", "100", "--quiet",
                                                    "--json", "--out", (folder / name).string()} +
                                              more);
    EXPECT_EQ(result.exit_code, 0) << said(result);
    return Json::parse(result.out)["execution"];
  };
  run("plain", {});
  const auto plain = read_text(folder / "plain/trajectory.csv");
  for (const std::string executor : {"auto", "serial", "async", "graph"}) {
    for (const std::string grain : {"auto", "part", "1"}) {
      const std::string name = executor + "_" + grain;
      const Json execution =
          run(name, {"--executor", executor, "--grain", grain, "--threads", "2"});
      EXPECT_EQ(execution["executor"], executor) << name;
      EXPECT_EQ(execution["grain"], grain) << name;
      EXPECT_TRUE(plain == read_text(folder / (name + "/trajectory.csv"))) << name;
      EXPECT_TRUE(read_text(folder / "plain/energy.csv") ==
                  read_text(folder / (name + "/energy.csv")))
          << name;
      const auto described = execution["description"].get<std::string>();
      EXPECT_TRUE(executor == "auto" || described.starts_with(executor)) << described;
    }
  }
}

TEST(CliRun, ADeadlineIsReported) {
  // So long that no step can miss it.
  const ProcessResult result =
      portwave_cli({"run", kPair, "--steps", "20", "--json", "--deadline-us", "1e12"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  const Json json = Json::parse(result.out);
  const Json& budget = json["time_budget"];
  EXPECT_DOUBLE_EQ(budget["deadline_s"].get<double>(), 1e6);
  EXPECT_TRUE(budget["pace"].is_null());
  EXPECT_EQ(budget["steps"], 20);
  EXPECT_EQ(budget["misses"], 0);
  EXPECT_EQ(budget["unexplained_misses"], 0);
  EXPECT_LE(budget["worst_slack_s"].get<double>(), budget["slack_p99_s"].get<double>());
  EXPECT_EQ(json["iterations"]["stop_reasons"]["deadline"], 0);
  EXPECT_TRUE(json["times"]["iterate_s"].is_number());
  for (const char* word : {"deadline", "0 of 20 steps missed it", "depend on the clock", "slack",
                           "phases", "execution"}) {
    EXPECT_TRUE(contains(result.err, word)) << word << "\n" << said(result);
  }
  // Control: so short that every step must.
  const ProcessResult hopeless =
      portwave_cli({"run", kPair, "--steps", "20", "--json", "--deadline-us", "0.001"});
  ASSERT_EQ(hopeless.exit_code, 0) << said(hopeless);
  const Json late = Json::parse(hopeless.out);
  EXPECT_EQ(late["time_budget"]["misses"], 20);
  EXPECT_EQ(late["iterations"]["stop_reasons"]["deadline"], 20);
  EXPECT_TRUE(contains(hopeless.err, "20 of 20 steps missed it")) << said(hopeless);
}

TEST(CliRun, APaceIsReported) {
  // A step every 10 us: it ends soon, whether in time or not.
  const ProcessResult result =
      portwave_cli({"run", kPair, "--steps", "20", "--json", "--pace", "1000"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["time_budget"]["pace"], 1000.0);
  EXPECT_TRUE(json["time_budget"]["deadline_s"].is_null());
  EXPECT_TRUE(contains(result.err, "pace 1000 (a step every 10 us)")) << said(result);
}

TEST(CliRun, WithoutATimeBudgetNothingIsSaidOfTime) {
  const ProcessResult result = portwave_cli({"run", kPair, "--steps", "20", "--json"});
  const Json json = Json::parse(result.out);
  EXPECT_TRUE(json["time_budget"].is_null());
  EXPECT_TRUE(json["times"].is_null());
  for (const char* word : {"deadline", "phases", "slack", "clock"}) {
    EXPECT_FALSE(contains(result.err, word)) << word << "\n" << said(result);
  }
}

TEST(CliRun, AnUncertifiedRunClaimsNothing) {
  const ProcessResult result =
      portwave_cli({"run", kPair, "--steps", "20", "--json", "--certify", "none"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  const Json json = Json::parse(result.out);
  EXPECT_TRUE(json["energy"].is_null());
  EXPECT_EQ(json["certificate"]["status"], "not_checked");
  EXPECT_TRUE(json["certificate"]["max_passivity_residual_J"].is_null());
  EXPECT_FALSE(contains(result.err, "holds")) << said(result);
  EXPECT_TRUE(contains(result.err, "not checked")) << said(result);
  // Nothing is checked, so nothing is found: the part that makes energy goes unnoticed.
  const ProcessResult active = portwave_cli(
      Words{"run", kPair, "--steps", "50", "--certify", "none"} + kNegativeDamper + kAllowActive);
  EXPECT_EQ(active.exit_code, 0) << said(active);
}

TEST(CliRun, SettingsReplaceTheScenarios) {
  const ProcessResult result =
      portwave_cli({"run", kPair, "--steps", "5", "--json", "--set", "/method/iterations=3",
                    "--set=/time/step_s=0.002", "--set", "/name=a=b"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["method_options"]["iterations"], 3);
  EXPECT_EQ(json["iterations"]["max"], 3);
  EXPECT_EQ(json["step_s"], 0.002);
  EXPECT_EQ(json["steps"], 5);
  EXPECT_EQ(json["scenario"], "a=b");
}

TEST(CliRun, NamesCannotCommandTheTerminal) {
  const ProcessResult result =
      portwave_cli({"run", kPair, "--steps", "2", "--set", R"(/name="a\u001b[31mb\nc\u009b")"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_TRUE(contains(result.err, R"(a\u001b[31mb\nc\u009b: 2 steps)")) << said(result);
  EXPECT_FALSE(contains(result.err, "\x1b")) << "raw escape";
  EXPECT_FALSE(contains(result.err, "\xC2\x9B")) << "raw 8-bit escape";
}

TEST(CliRun, HasTheThreadsThatWereAskedFor) {
  for (const Words& verb : {Words{"run", kPair, "--steps", "5", "--quiet"},
                            Words{"study", "budget", kPair, "--steps", "5", "--budgets", "1"}}) {
    const ProcessResult result = portwave_cli(verb + Words{"--threads", "64"});
    EXPECT_EQ(result.exit_code, 0) << said(result);
    EXPECT_EQ(result.err, "") << "oneTBB warned";
  }
}

TEST(CliRun, RefusesBadScenariosAndWritesNothing) {
  const TemporaryFolder folder;
  write_text(folder / "cut.json", read_text(kPair).substr(0, 100));
  const auto out = (folder / "out").string();
  struct Case {
    Words scenario;
    const char* says;
  };
  for (const Case& bad : {
           Case{{(folder / "missing.json").string()}, "missing.json"},
           Case{{folder.path().string()}, folder.path().c_str()},
           Case{{(folder / "cut.json").string()}, "cut.json"},
           Case{Words{kPair} + kNegativeDamper, "/subsystems/1/parameters/damping_Ns_per_m"},
           Case{{kPair, "--set", "/subsystems/0/type=\"duffing_oscilator\""},
                "Did you mean \"duffing_oscillator\"?"},
           Case{{kPair, "--set", "/time/step_s=0"}, "/time/step_s"},
           Case{{kPair, "--set", "/method/iterations=-1"}, "/method/iterations"},
           Case{{kPair, "--set", "/no/such/place=1"}, "/no"},
       }) {
    for (const char* verb : {"run", "validate"}) {
      Words line = Words{verb} + bad.scenario;
      if (line[0] == "run") line = line + Words{"--json", "--out", out};
      const ProcessResult result = portwave_cli(line);
      EXPECT_EQ(result.exit_code, 2) << bad.says << "\n" << said(result);
      EXPECT_TRUE(contains(result.err, bad.says)) << bad.says << "\n" << said(result);
      EXPECT_EQ(result.out, "") << bad.says;
    }
    EXPECT_EQ(names_in(folder.path()), (Words{"cut.json"})) << bad.says;
  }
}

TEST(CliRun, ViolatedCertificateIsExitCodeOneWithFiles) {
  const TemporaryFolder folder;
  const auto out = folder / "out";
  const ProcessResult result =
      portwave_cli(Words{"run", kPair, "--steps", "50", "--json", "--out", out.string()} +
                   kNegativeDamper + kAllowActive);
  EXPECT_EQ(result.exit_code, 1) << said(result);
  EXPECT_EQ(names_in(out), (Words{"energy.csv", "network.json", "summary.json", "trajectory.csv"}));
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["certificate"]["status"], "violated");
  EXPECT_EQ(json["certificate"]["worst_passivity_part"], "B");
  EXPECT_GT(json["certificate"]["max_passivity_residual_J"].get<double>(), 0.0);
  EXPECT_TRUE(contains(result.err, "violated")) << said(result);

  // Control: the permission alone violates nothing.
  const ProcessResult passive =
      portwave_cli(Words{"run", kPair, "--steps", "50", "--quiet"} + kAllowActive);
  EXPECT_EQ(passive.exit_code, 0) << said(passive);
}

/// A run that leaves the range of doubles within a few hundred steps.
const Words kExploding =
    Words{"run",    kPair,   "--steps",
          "100000", "--set", "/subsystems/1/parameters/damping_Ns_per_m=-700"} +
    kAllowActive;

TEST(CliRun, FailureWhileSteppingKeepsWhatWasRecorded) {
  const TemporaryFolder folder;
  write_text(folder / "trajectory.csv", "earlier\n");
  const ProcessResult result =
      portwave_cli(kExploding + Words{"--json", "--out", folder.path().string()});
  EXPECT_EQ(result.exit_code, 3) << said(result);
  for (const char* word : {"part \"", "step ", "what was recorded is in"}) {
    EXPECT_TRUE(contains(result.err, word)) << word << "\n" << said(result);
  }
  ASSERT_EQ(names_in(folder.path()),
            (Words{"energy.csv", "network.json", "summary.json", "trajectory.csv"}));
  const Json summary = Json::parse(read_text(folder / "summary.json"));
  EXPECT_EQ(Json::parse(result.out), summary);
  EXPECT_EQ(summary["completed"], false);
  EXPECT_TRUE(contains(summary["failure"].get<std::string>(), "part \"")) << summary["failure"];
  // A row for each step that was committed, and the first.
  const auto steps = summary["steps"].get<std::size_t>();
  EXPECT_GT(steps, 10U);
  EXPECT_LT(steps, 100000U);
  EXPECT_EQ(read_csv(folder / "trajectory.csv").rows.size(), steps + 1);
}

TEST(CliRun, WithFewerThreadsThanAskedForItGoesOn) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need more of the address space";
#endif
  // A thread needs an address range of a stack: there is room for a few.
  std::optional<Subprocess> process;
  {
    const LimitForChildren stack(RLIMIT_STACK, rlim_t{1} << 30);
    const LimitForChildren space(RLIMIT_AS, rlim_t{5} << 30);
    process.emplace(command({"run", kPair, "--threads", "64", "--steps", "50"}));
  }
  const ProcessResult result = process->wait();
  EXPECT_EQ(result.exit_code, 0) << said(result);
  EXPECT_TRUE(contains(result.err, "64 threads were requested, and ")) << said(result);
  const ProcessResult enough = portwave_cli({"run", kPair, "--threads", "4", "--steps", "50"});
  EXPECT_FALSE(contains(enough.err, "were requested")) << said(enough);
}

TEST(CliRun, FolderThatCannotBeWrittenIsExitCodeThree) {
  const TemporaryFolder folder;
  write_text(folder / "file", "");
  for (const std::string name : {"file", "file/out"}) {
    const auto out = (folder / name).string();
    for (const Words& verb : {Words{"run"}, Words{"study", "budget"}}) {
      const ProcessResult result =
          portwave_cli(verb + Words{kPair, "--steps", "5", "--json", "--out", out});
      EXPECT_EQ(result.exit_code, 3) << said(result);
      EXPECT_TRUE(contains(result.err, out)) << said(result);
      EXPECT_EQ(result.out, "");
    }
  }
  EXPECT_EQ(names_in(folder.path()), (Words{"file"}));
}

/// What a run of before left: a set of files that belong together.
void write_earlier_results(const std::filesystem::path& folder) {
  for (const char* name : {"energy.csv", "network.json", "summary.json", "trajectory.csv"}) {
    write_text(folder / name, "earlier\n");
  }
}

TEST(CliRun, NamesTakenByFoldersAreToldBeforeTheRun) {
  for (const std::string name : {"summary.json", "network.json", "trajectory.csv", "energy.csv"}) {
    const TemporaryFolder folder;
    write_earlier_results(folder.path());
    std::filesystem::remove(folder / name);
    std::filesystem::create_directory(folder / name);
    // Minutes, should it begin.
    Subprocess process(command({"run", kPair, "--steps", "100000000", "--set",
                                "/outputs/every=1000", "--out", folder.path().string()}));
    for (int i = 0; i < 1000 && !process.has_ended(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ASSERT_TRUE(process.has_ended()) << name;
    const ProcessResult result = process.wait();
    EXPECT_EQ(result.exit_code, 3) << said(result);
    EXPECT_TRUE(contains(result.err, (folder / name).string())) << said(result);
    EXPECT_TRUE(contains(result.err, "Is a directory")) << said(result);
    for (const std::string other :
         {"summary.json", "network.json", "trajectory.csv", "energy.csv"}) {
      if (other == name) continue;
      EXPECT_EQ(read_text(folder / other), "earlier\n") << name;
    }
    EXPECT_EQ(names_in(folder.path()).size(), 4u) << name;
  }
}

TEST(CliRun, FilesThatMayNotGrowAreExitCodeThree) {
  // The limits fall on the tables and on the summary.
  struct Case {
    rlim_t bytes;
    const char* steps;
  };
  for (const Case& full : {Case{100'000, "3000"}, Case{600, "1"}}) {
    const TemporaryFolder folder;
    write_earlier_results(folder.path());
    const ProcessResult result = with_files_of_at_most(
        full.bytes, {"run", kPair, "--steps", full.steps, "--out", folder.path().string()});
    EXPECT_EQ(result.exit_code, 3) << said(result);
    EXPECT_TRUE(contains(result.err, "File too large")) << said(result);
    EXPECT_EQ(names_in(folder.path()),
              (Words{"energy.csv", "network.json", "summary.json", "trajectory.csv"}));
    for (const std::string& name : names_in(folder.path())) {
      EXPECT_EQ(read_text(folder / name), "earlier\n") << name << " at " << full.bytes;
    }
  }
}

}  // namespace
}  // namespace portwave::test_cli_run

#endif
