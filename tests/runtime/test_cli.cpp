// Runs the program as its users do: as a process, seen through its output and exit code.
#ifdef PORTWAVE_CLI

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <optional>
#include <stdlib.h>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <portwave/subsystems/catalogue.hpp>

#include "support/subprocess.hpp"
#include "support/temporary_folder.hpp"
#include "support/text_file.hpp"

namespace portwave {
namespace {

using Json = nlohmann::json;
using testing::names_in;
using testing::ProcessResult;
using testing::read_csv;
using testing::read_text;
using testing::SpawnOptions;
using testing::Subprocess;
using testing::TemporaryFolder;
using testing::write_text;

using Words = std::vector<std::string>;

const std::string kPair = std::string(PORTWAVE_SOURCE_DIR) + "/examples/two_oscillators.json";
const Words kNegativeDamper = {"--set", "/subsystems/1/parameters/damping_Ns_per_m=-1"};
const Words kAllowActive = {"--set", "/subsystems/1/allow_active=true"};

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words command(const Words& arguments) { return Words{PORTWAVE_CLI} + arguments; }

ProcessResult portwave_cli(const Words& arguments, const SpawnOptions& options = {}) {
  return testing::run_process(command(arguments), options);
}

std::string said(const ProcessResult& result) {
  return "exit " + std::to_string(result.exit_code) + ", signal " + std::to_string(result.signal) +
         "\nstdout: " + result.out + "\nstderr: " + result.err;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Command line ---------------------------------------------------------------------------------

TEST(CliLine, HelpAndVersionAreData) {
  for (const Words& line : {Words{"--help"}, Words{"run", "--help"}, Words{"study", "--help"},
                            Words{"study", "budget", "--help"}, Words{"list", "-h"}}) {
    const ProcessResult result = portwave_cli(line);
    EXPECT_EQ(result.exit_code, 0) << said(result);
    EXPECT_TRUE(contains(result.out, "Usage")) << said(result);
    EXPECT_EQ(result.err, "");
  }
  const ProcessResult help = portwave_cli({"--help"});
  for (const char* verb : {"run", "validate", "list", "schema", "study", "Examples:"}) {
    EXPECT_TRUE(contains(help.out, verb)) << verb;
  }
  const ProcessResult version = portwave_cli({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_TRUE(version.out.starts_with("portwave 0.") || version.out.starts_with("portwave 1."))
      << said(version);
}

TEST(CliLine, RefusesWhatItDoesNotKnow) {
  struct Case {
    Words line;
    const char* says;
  };
  for (const Case& bad : {
           Case{{}, "Usage"},
           Case{{"rnu", kPair}, "Did you mean \"run\"?"},
           Case{{"validat", kPair}, "Did you mean \"validate\"?"},
           Case{{"--quiet", "lst"}, "Did you mean \"list\"?"},
           Case{{"xyzzy"}, "Commands: run, validate, list, schema, study"},
           Case{{"study"}, "subcommand"},
           Case{{"study", "budgte", kPair}, "Did you mean \"budget\"?"},
           Case{{"run"}, "SCENARIO is required"},
           Case{{"run", kPair, "--thread", "2"}, "Did you mean \"--threads\"?"},
           Case{{"run", kPair, "--jsno"}, "Did you mean \"--json\"?"},
           Case{{"run", kPair, "another.json"}, "unexpected argument \"another.json\""},
           Case{{"run", kPair, "--threads", "0"}, "--threads"},
           Case{{"run", kPair, "--threads", "two"}, "--threads"},
           Case{{"run", kPair, "--threads", "100000"}, "--threads"},
           Case{{"run", kPair, "--threads"}, "--threads"},
           Case{{"run", kPair, "--steps", "-1"}, "--steps"},
           Case{{"run", kPair, "--steps", "1.5"}, "--steps"},
           Case{{"run", kPair, "--threads", "0x2"}, "must be an integer"},
           Case{{"run", kPair, "--threads", " 2"}, "must be an integer"},
           Case{{"run", kPair, "--threads", "two"}, "must be an integer"},
           Case{{"run", kPair, "--threads", "99999999999999999999"}, "not in 1 to 1024"},
           Case{{"run", kPair, "--steps", "0"}, "not in 1 to"},
           Case{{"run", kPair, "--steps", "1e3"}, "must be an integer"},
           Case{{"study", "budget", kPair, "--steps", "0"}, "not in 1 to"},
           Case{{"run", kPair, "--certify", "ful"}, "--certify"},
           Case{{"run", kPair, "--certify", "FULL"}, "neither energy nor full"},
           Case{{"list", ""}, "no type of part \"\""},
           Case{{"run", kPair, "--out", ""}, "--out"},
           Case{{"run", kPair, "--set", "method/iterations=3"}, "/json/pointer=value"},
           Case{{"run", kPair, "--set", "/method/iterations"}, "/json/pointer=value"},
           Case{{"study", "budget", kPair, "--budgets", "3,x"}, "--budgets"},
           Case{{"study", "budget", kPair, "--budgets", "3,x"}, "must be an integer"},
           Case{{"study", "budget", kPair, "--budgets", "3,-1"}, "--budgets"},
           Case{{"study", "budget", kPair, "--budgets", "0,"}, "empty entry"},
           Case{{"study", "budget", kPair, "--budgets", ",0"}, "empty entry"},
           Case{{"study", "budget", kPair, "--budgets", "0,,3"}, "empty entry"},
           Case{{"study", "budget", kPair, "--budgets", "3 8"}, "--budgets"},
           Case{{"schema", "extra"}, "unexpected argument \"extra\""},
       }) {
    const ProcessResult result = portwave_cli(bad.line);
    EXPECT_EQ(result.exit_code, 2) << bad.says << "\n" << said(result);
    EXPECT_TRUE(contains(result.err, bad.says)) << bad.says << "\n" << said(result);
    EXPECT_EQ(result.out, "") << bad.says;
  }
}

// run ------------------------------------------------------------------------------------------

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
  EXPECT_EQ(names_in(out), (Words{"energy.csv", "summary.json", "trajectory.csv"}));
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
  EXPECT_EQ(names_in(out), (Words{"energy.csv", "summary.json", "trajectory.csv"}));
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

TEST(CliRun, FailureWhileSteppingKeepsNoFiles) {
  const TemporaryFolder folder;
  write_text(folder / "trajectory.csv", "earlier\n");
  const ProcessResult result =
      portwave_cli(kExploding + Words{"--json", "--out", folder.path().string()});
  EXPECT_EQ(result.exit_code, 3) << said(result);
  EXPECT_EQ(result.out, "");
  for (const char* word : {"part \"", "step ", "no files were written"}) {
    EXPECT_TRUE(contains(result.err, word)) << word << "\n" << said(result);
  }
  EXPECT_EQ(names_in(folder.path()), (Words{"trajectory.csv"}));
  EXPECT_EQ(read_text(folder / "trajectory.csv"), "earlier\n");
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
  for (const char* name : {"energy.csv", "summary.json", "trajectory.csv"}) {
    write_text(folder / name, "earlier\n");
  }
}

TEST(CliRun, NamesTakenByFoldersAreToldBeforeTheRun) {
  for (const std::string name : {"summary.json", "trajectory.csv", "energy.csv"}) {
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
    for (const std::string other : {"summary.json", "trajectory.csv", "energy.csv"}) {
      if (other == name) continue;
      EXPECT_EQ(read_text(folder / other), "earlier\n") << name;
    }
    EXPECT_EQ(names_in(folder.path()).size(), 3u) << name;
  }
}

/// Children started meanwhile have a limit, which this process does not reach itself.
class LimitForChildren {
 public:
  LimitForChildren(decltype(RLIMIT_FSIZE) resource, rlim_t amount) : resource_(resource) {
    ::getrlimit(resource_, &before_);
    rlimit limit = before_;
    limit.rlim_cur = amount;
    ::setrlimit(resource_, &limit);
  }
  ~LimitForChildren() { ::setrlimit(resource_, &before_); }
  LimitForChildren(const LimitForChildren&) = delete;
  LimitForChildren& operator=(const LimitForChildren&) = delete;

 private:
  decltype(RLIMIT_FSIZE) resource_;
  rlimit before_ = {};
};

ProcessResult with_files_of_at_most(rlim_t bytes, const Words& line) {
  std::optional<Subprocess> process;
  {
    const LimitForChildren limit(RLIMIT_FSIZE, bytes);
    process.emplace(command(line));
  }
  return process->wait();
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
    EXPECT_EQ(names_in(folder.path()), (Words{"energy.csv", "summary.json", "trajectory.csv"}));
    for (const std::string& name : names_in(folder.path())) {
      EXPECT_EQ(read_text(folder / name), "earlier\n") << name << " at " << full.bytes;
    }
  }
}

// Ends from outside ----------------------------------------------------------------------------

/// A run of minutes, should nothing end it. Every thousandth step is recorded, so that it cannot
/// fill a disk.
const Words kLongRun = {"run", kPair, "--steps", "100000000", "--set", "/outputs/every=1000"};

/// A long run that has begun to record: its hidden files are there.
class RecordingRun {
 public:
  explicit RecordingRun(const std::filesystem::path& out)
      : process(command(kLongRun + Words{"--out", out.string()})) {
    const auto hidden = out / (".energy.csv." + std::to_string(process.pid()) + ".part");
    while (!std::filesystem::exists(hidden) && !process.has_ended()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  Subprocess process;
};

/// Children started meanwhile inherit what this process does about a signal.
class ChildDisposition {
 public:
  ChildDisposition(int signal, void (*handler)(int))
      : signal_(signal), before_(std::signal(signal, handler)) {}
  ~ChildDisposition() { std::signal(signal_, before_); }
  ChildDisposition(const ChildDisposition&) = delete;
  ChildDisposition& operator=(const ChildDisposition&) = delete;

 private:
  int signal_;
  void (*before_)(int);
};

TEST(CliInterrupt, OutlivesItsTerminalWhenToldTo) {
  const TemporaryFolder folder;
  const ChildDisposition nohup(SIGHUP, SIG_IGN);
  RecordingRun run(folder / "out");
  run.process.send(SIGHUP);
  run.process.send(SIGTERM);
  const ProcessResult result = run.process.wait();
  EXPECT_EQ(result.exit_code, 128 + SIGTERM) << said(result);
}

TEST(CliInterrupt, KeepsWhatWasRecorded) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const TemporaryFolder folder;
    const auto out = folder / "out";
    const ChildDisposition obeys(signal, SIG_DFL);
    RecordingRun run(out);
    run.process.send(signal);
    const ProcessResult result = run.process.wait();
    EXPECT_EQ(result.exit_code, 128 + signal) << said(result);
    EXPECT_TRUE(contains(result.err, "interrupted")) << said(result);
    ASSERT_EQ(names_in(out), (Words{"energy.csv", "summary.json", "trajectory.csv"}));
    const Json summary = Json::parse(read_text(out / "summary.json"));
    EXPECT_EQ(summary["completed"], false);
    const auto steps = summary["steps"].get<std::size_t>();
    EXPECT_EQ(read_csv(out / "energy.csv").rows.size(), steps / 1000 + 1);
    EXPECT_EQ(read_csv(out / "trajectory.csv").rows.size(), steps / 1000 + 1);
  }
}

TEST(CliInterrupt, KilledLeavesNoFileUnderItsName) {
  const TemporaryFolder folder;
  RecordingRun run(folder / "out");
  run.process.send(SIGKILL);
  const ProcessResult result = run.process.wait();
  EXPECT_EQ(result.signal, SIGKILL) << said(result);
  for (const std::string& name : names_in(folder / "out")) {
    EXPECT_TRUE(name.starts_with('.') && name.ends_with(".part")) << name;
  }
}

/// False in a sandbox without /dev/pts.
bool machine_has_pseudo_terminals() {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal < 0) return false;
  ::close(terminal);
  return true;
}

TEST(CliOutput, ShowsProgressOnATerminal) {
  if (!machine_has_pseudo_terminals()) GTEST_SKIP() << "this machine has no pseudo-terminals";
  const TemporaryFolder folder;
  RecordingRun elsewhere(folder / "out");
  Subprocess process(command(kLongRun), {.stderr_is_terminal = true});
  process.read_until_stderr_has("steps/s");
  process.send(SIGINT);
  const ProcessResult result = process.wait();
  EXPECT_EQ(result.exit_code, 128 + SIGINT) << said(result);
  EXPECT_TRUE(result.err.starts_with("\r")) << said(result);
  EXPECT_TRUE(contains(result.err, " %  step ")) << said(result);
  EXPECT_TRUE(contains(result.err, "certificate")) << said(result);

  // The same run without a terminal, begun before.
  elsewhere.process.send(SIGINT);
  const ProcessResult plain = elsewhere.process.wait();
  EXPECT_EQ(plain.exit_code, 128 + SIGINT) << said(plain);
  EXPECT_FALSE(contains(plain.err, "\r")) << said(plain);

  const ProcessResult quiet = portwave_cli({"run", kPair, "--quiet"}, {.stderr_is_terminal = true});
  EXPECT_EQ(quiet.err, "");
}

TEST(CliOutput, BrokenPipeIsNoCrash) {
  const SpawnOptions closed_pipe = {.stdout_to = SpawnOptions::Stdout::closed_pipe};
  for (const Words& line : {Words{"schema"}, Words{"list"}, Words{"list", "--json"},
                            Words{"--help"}, Words{"run", kPair, "--steps", "5", "--json"}}) {
    const ProcessResult result = portwave_cli(line, closed_pipe);
    EXPECT_EQ(result.exit_code, 0) << line[0] << "\n" << said(result);
  }
  // Control: a program that does not care is ended by the signal.
  const ProcessResult careless = testing::run_process({"/bin/echo", "text"}, closed_pipe);
  EXPECT_NE(careless.exit_code, 0);
}

TEST(CliOutput, FullDiskOnStdoutIsExitCodeThree) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const ProcessResult result = portwave_cli(
      {"schema"}, {.stdout_to = SpawnOptions::Stdout::file, .stdout_file = "/dev/full"});
  EXPECT_EQ(result.exit_code, 3) << said(result);
  EXPECT_TRUE(contains(result.err, "stdout")) << said(result);
}

// validate, list, schema -----------------------------------------------------------------------

TEST(CliValidate, AcceptsEveryExample) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(PORTWAVE_SOURCE_DIR "/examples")) {
    if (entry.path().extension() != ".json") continue;
    const ProcessResult result = portwave_cli({"validate", entry.path().string()});
    EXPECT_EQ(result.exit_code, 0) << entry.path() << "\n" << said(result);
    EXPECT_TRUE(contains(result.err, "valid")) << said(result);
    EXPECT_EQ(result.out, "");
    ++count;
  }
  EXPECT_GT(count, 0);
}

TEST(CliValidate, AppliesSettings) {
  const ProcessResult refused = portwave_cli(Words{"validate", kPair} + kNegativeDamper);
  EXPECT_EQ(refused.exit_code, 2) << said(refused);
  const ProcessResult allowed =
      portwave_cli(Words{"validate", kPair} + kNegativeDamper + kAllowActive);
  EXPECT_EQ(allowed.exit_code, 0) << said(allowed);
}

TEST(CliList, ShowsEveryTypeInFull) {
  const ProcessResult all = portwave_cli({"list"});
  EXPECT_EQ(all.exit_code, 0) << said(all);
  for (const PartType& type : catalogue()) {
    EXPECT_TRUE(contains(all.out, type.name)) << type.name;
    const ProcessResult one = portwave_cli({"list", type.name});
    EXPECT_EQ(one.exit_code, 0) << said(one);
    EXPECT_EQ(one.err, "");
    for (const ParameterInfo& parameter : type.parameters) {
      EXPECT_TRUE(contains(one.out, parameter.name)) << type.name << " " << parameter.name;
    }
    const auto part = make_part(type.name, type.example);
    for (const Port& port : part->signature().ports) EXPECT_TRUE(contains(one.out, port.name));
    for (const auto& state : part->signature().states) EXPECT_TRUE(contains(one.out, state.name));
  }
}

TEST(CliList, WritesTheCatalogueAsJson) {
  const ProcessResult all = portwave_cli({"list", "--json"});
  ASSERT_EQ(all.exit_code, 0) << said(all);
  EXPECT_EQ(all.err, "");
  const Json json = Json::parse(all.out);
  ASSERT_EQ(json.size(), catalogue().size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    const PartType& type = catalogue()[i];
    EXPECT_EQ(json[i]["type"], type.name);
    EXPECT_EQ(json[i]["equations"], type.equations);
    ASSERT_EQ(json[i]["parameters"].size(), type.parameters.size());
    for (std::size_t p = 0; p < type.parameters.size(); ++p) {
      const Json& parameter = json[i]["parameters"][p];
      EXPECT_EQ(parameter["name"], type.parameters[p].name);
      EXPECT_EQ(parameter["unit"], type.parameters[p].unit);
      EXPECT_EQ(parameter["required"], !type.parameters[p].default_value.has_value());
    }
    for (const char* key : {"ports", "states", "inputs", "summary", "example"}) {
      EXPECT_TRUE(json[i].contains(key)) << type.name << " " << key;
    }
    const ProcessResult one = portwave_cli({"list", type.name, "--json"});
    EXPECT_EQ(Json::parse(one.out), json[i]) << type.name;
  }
}

TEST(CliList, TellsWhichTypeIsMeant) {
  for (const Words& line :
       {Words{"list", "duffing_oscilator"}, Words{"list", "--json", "duffing_oscilator"}}) {
    const ProcessResult result = portwave_cli(line);
    EXPECT_EQ(result.exit_code, 2) << said(result);
    EXPECT_TRUE(contains(result.err, "Did you mean \"duffing_oscillator\"?")) << said(result);
    EXPECT_EQ(result.out, "");
  }
}

TEST(CliSchema, IsJson) {
  const ProcessResult result = portwave_cli({"schema"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_TRUE(Json::parse(result.out).contains("$schema"));
  EXPECT_EQ(result.err, "");
}

// study ----------------------------------------------------------------------------------------

TEST(CliStudy, PrintsAnAlignedTable) {
  const ProcessResult result = portwave_cli({"study", "budget", kPair, "--budgets", "0,3,20"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_EQ(result.err, "");
  std::istringstream in(result.out);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 4u) << said(result);
  for (const std::string& line : lines) EXPECT_EQ(line.size(), lines[0].size()) << said(result);
  // Source: arXiv 2603.16424 benchmark, independently recomputed.
  EXPECT_TRUE(contains(lines[1], " 0.369612 ")) << said(result);
  EXPECT_TRUE(contains(lines[2], " 0.795971 ")) << said(result);
  EXPECT_TRUE(contains(lines[3], " 8.45320e-05 ")) << said(result);
}

TEST(CliStudy, WritesRowsAsJson) {
  const TemporaryFolder folder;
  const Words line = {"study",   "budget", kPair,    "--budgets", "0,3",
                      "--steps", "50",     "--json", "--out",     (folder / "out").string()};
  const ProcessResult result = portwave_cli(line);
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_EQ(names_in(folder / "out"), (Words{"study.json"}));
  EXPECT_EQ(read_text(folder / "out/study.json"), result.out);
  const Json rows = Json::parse(result.out);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1]["status"], "holds");
  for (const char* key : {"iterations", "rms", "max", "final", "max_passivity_residual_J",
                          "max_augmented_residual_J", "min_fne_margin", "max_energy_ratio"}) {
    EXPECT_TRUE(rows[1][key].is_number()) << key;
  }
  EXPECT_EQ(rows[0]["iterations"], 0);
  EXPECT_EQ(rows[1]["iterations"], 3);

  const ProcessResult threaded = portwave_cli(line + Words{"--threads", "2"});
  EXPECT_EQ(threaded.out, result.out);
}

TEST(CliStudy, ViolatedCertificateIsExitCodeOneWithRows) {
  const TemporaryFolder folder;
  const Words active = {
      "study", "budget", kPair, "--budgets", "3,8", "--set", "/subsystems/0/allow_active=true"};
  const Words negative = {"--set", "/subsystems/0/parameters/coupling_damping_Ns_per_m=-0.05"};
  const ProcessResult table = portwave_cli(active + negative);
  EXPECT_EQ(table.exit_code, 1) << said(table);
  EXPECT_TRUE(contains(table.out, " violated\n")) << said(table);

  const Words as_file = {"--json", "--out", folder.path().string()};
  const ProcessResult json = portwave_cli(active + negative + as_file);
  EXPECT_EQ(json.exit_code, 1) << said(json);
  EXPECT_EQ(Json::parse(read_text(folder / "study.json"))[0]["status"], "violated");

  // Control: the permission alone violates nothing.
  const ProcessResult passive = portwave_cli(active);
  EXPECT_EQ(passive.exit_code, 0) << said(passive);
  EXPECT_FALSE(contains(passive.out, "violated")) << said(passive);
}

TEST(CliStudy, RunsEachBudgetOnceInTheOrderGiven) {
  const ProcessResult result = portwave_cli({"study", "budget", kPair, "--steps", "5", "--json",
                                             "--budgets", "8,3,8", "--budgets", "0,3"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  std::vector<int> budgets;
  for (const Json& row : Json::parse(result.out)) budgets.push_back(row["iterations"]);
  EXPECT_EQ(budgets, (std::vector<int>{8, 3, 0}));
}

TEST(CliStudy, FindsOutFirstWhetherItCanWrite) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "study.json");
  // So many rows that it could not compute them first.
  std::string many = "0";
  for (int i = 1; i < 1000; ++i) many += "," + std::to_string(i);
  Subprocess process(command({"study", "budget", kPair, "--steps", "100000", "--budgets", many,
                              "--out", folder.path().string()}));
  for (int i = 0; i < 1000 && !process.has_ended(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_TRUE(process.has_ended());
  const ProcessResult result = process.wait();
  EXPECT_EQ(result.exit_code, 3) << said(result);
  EXPECT_TRUE(contains(result.err, (folder / "study.json").string())) << said(result);
}

TEST(CliStudy, PrintsTheTableWhenTheFileFails) {
  const TemporaryFolder folder;
  const ProcessResult result =
      with_files_of_at_most(100, {"study", "budget", kPair, "--steps", "5", "--budgets", "0,3",
                                  "--out", (folder / "out").string()});
  EXPECT_EQ(result.exit_code, 3) << said(result);
  EXPECT_TRUE(contains(result.err, "study.json")) << said(result);
  EXPECT_TRUE(contains(result.err, "File too large")) << said(result);
  EXPECT_TRUE(contains(result.out, "fne_margin")) << said(result);
  EXPECT_EQ(names_in(folder.path()), Words{});
}

TEST(CliStudy, TellsHowManySamplesDoNotFit) {
  for (const std::string steps : {"8999999999999999", "1000000000000"}) {
    const ProcessResult result = portwave_cli({"study", "budget", kPair, "--steps", steps});
    EXPECT_EQ(result.exit_code, 3) << said(result);
    for (const std::string& word : {std::string("not enough memory"), std::string("samples"),
                                    std::to_string(std::stoll(steps) + 1)}) {
      EXPECT_TRUE(contains(result.err, word)) << word << "\n" << said(result);
    }
    EXPECT_EQ(result.out, "");
  }
}

TEST(CliStudy, ComparesStatesOnly) {
  const TemporaryFolder folder;
  const ProcessResult result =
      portwave_cli({"study", "budget", kPair, "--out", (folder / "out").string(), "--set",
                    "/outputs/observe=[\"A.q1\", \"A.coupling.effort\"]"});
  EXPECT_EQ(result.exit_code, 2) << said(result);
  EXPECT_TRUE(contains(result.err, "study budget compares states")) << said(result);
  EXPECT_TRUE(contains(result.err, "A.coupling.effort")) << said(result);
  EXPECT_EQ(names_in(folder.path()), Words{});
}

}  // namespace
}  // namespace portwave

#endif
