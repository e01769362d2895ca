// How the program ends from outside, and where its output goes.
#ifdef PORTWAVE_CLI

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <stdlib.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/files/cli_process.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"

namespace portwave::test_cli_ends {
namespace {

using Json = nlohmann::json;
using testing::command;
using testing::contains;
using testing::kPair;
using testing::names_in;
using testing::portwave_cli;
using testing::ProcessResult;
using testing::read_csv;
using testing::read_text;
using testing::said;
using testing::SpawnOptions;
using testing::Subprocess;
using testing::TemporaryFolder;
using testing::Words;
using testing::operator+;

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
    ASSERT_EQ(names_in(out),
              (Words{"energy.csv", "network.json", "summary.json", "trajectory.csv"}));
    const Json summary = Json::parse(read_text(out / "summary.json"));
    EXPECT_EQ(summary["completed"], false);
    const auto steps = summary["steps"].get<std::size_t>();
    EXPECT_EQ(read_csv(out / "energy.csv").rows.size(), steps / 1000 + 1);
    EXPECT_EQ(read_csv(out / "trajectory.csv").rows.size(), steps / 1000 + 1);
  }
}

/// Steps that take long: the second signal ends the program within one.
TEST(CliInterrupt, TheSecondSignalLeavesNoHalfOfAFile) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const TemporaryFolder folder;
    const auto out = folder / "out";
    const ChildDisposition obeys(signal, SIG_DFL);
    Subprocess process(
        command({"run", kPair, "--set", "/method/iterations=1000000", "--set",
                 "/method/tolerance=0", "--steps", "1000000", "--out", out.string()}));
    const auto hidden = out / (".energy.csv." + std::to_string(process.pid()) + ".part");
    while (!std::filesystem::exists(hidden) && !process.has_ended()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    for (int i = 0; i < 200 && !process.has_ended(); ++i) {
      process.send(signal);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    const ProcessResult result = process.wait();
    EXPECT_TRUE(result.signal == signal || result.exit_code == 128 + signal) << said(result);
    for (const std::string& name : names_in(out)) EXPECT_FALSE(name.ends_with(".part")) << name;
  }
}

TEST(CliFolder, TwoRunsDoNotWriteToOne) {
  const TemporaryFolder folder;
  const auto out = folder / "out";
  RecordingRun first(out);
  const ProcessResult second = portwave_cli({"run", kPair, "--out", out.string()});
  EXPECT_EQ(second.exit_code, 3) << said(second);
  EXPECT_TRUE(contains(second.err, "another run writes to")) << said(second);
  first.process.send(SIGTERM);
  EXPECT_EQ(first.process.wait().exit_code, 128 + SIGTERM);
  EXPECT_EQ(names_in(out), (Words{"energy.csv", "network.json", "summary.json", "trajectory.csv"}));
  // Then it is free again.
  EXPECT_EQ(portwave_cli({"run", kPair, "--out", out.string()}).exit_code, 0);
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
  const std::string cleared = "\r\x1b[K";
  const std::string after = result.err.substr(result.err.rfind(cleared) + cleared.size());
  EXPECT_FALSE(contains(after, " %  step ")) << "the summary begins on a clear line\n"
                                             << said(result);
  EXPECT_TRUE(contains(after, "certificate")) << said(result);

  // The same run without a terminal, begun before.
  elsewhere.process.send(SIGINT);
  const ProcessResult plain = elsewhere.process.wait();
  EXPECT_EQ(plain.exit_code, 128 + SIGINT) << said(plain);
  EXPECT_FALSE(contains(plain.err, "\r")) << said(plain);

  const ProcessResult quiet = portwave_cli({"run", kPair, "--quiet"}, {.stderr_is_terminal = true});
  EXPECT_EQ(quiet.err, "");
}

/// A study of minutes, should nothing end it: its reference takes milliseconds, its runs do not.
const Words kLongStudy = {"study", "budget", kPair, "--budgets", "1000000,999999"};

TEST(CliOutput, ShowsWhatAStudyDoesOnATerminal) {
  if (!machine_has_pseudo_terminals()) GTEST_SKIP() << "this machine has no pseudo-terminals";
  Subprocess process(command(kLongStudy), {.stderr_is_terminal = true});
  process.read_until_stderr_has("running combination 1 of 2  ");
  process.send(SIGKILL);
  const ProcessResult result = process.wait();
  EXPECT_TRUE(contains(result.err, "\r\x1b[Krunning combination 1 of 2  ")) << said(result);
  EXPECT_EQ(result.out, "");
  EXPECT_FALSE(contains(result.err, "\n")) << "one line\n" << said(result);
}

TEST(CliOutput, SaysNothingOfPhasesWithoutATerminal) {
  TemporaryFolder folder;
  const std::string out = (folder / "out").string();
  for (const Words& line : {Words{"validate", kPair}, Words{"tune", kPair, "--out", out},
                            Words{"study", "budget", kPair, "--budgets", "3,8", "--out", out},
                            Words{"run", kPair, "--steps", "20"},
                            Words{"generate", "chain", "--blocks", "3", "--out", out + ".json"}}) {
    const ProcessResult plain = portwave_cli(line);
    EXPECT_EQ(plain.exit_code, 0) << said(plain);
    EXPECT_FALSE(contains(plain.err, "\r")) << said(plain);
    EXPECT_FALSE(contains(plain.err, "reading ")) << said(plain);
    EXPECT_FALSE(contains(plain.err, "combination")) << said(plain);
  }
}

TEST(CliOutput, ATerminalGetsTheSameData) {
  if (!machine_has_pseudo_terminals()) GTEST_SKIP() << "this machine has no pseudo-terminals";
  const Words study = {"study", "budget", kPair, "--budgets", "3,8"};
  const ProcessResult plain = portwave_cli(study);
  const ProcessResult live = portwave_cli(study, {.stderr_is_terminal = true});
  EXPECT_EQ(live.exit_code, 0) << said(live);
  EXPECT_EQ(live.out, plain.out);
  if (!live.err.empty()) {  // a machine that is slow enough
    EXPECT_TRUE(live.err.ends_with("\r\x1b[K")) << said(live);
  }
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

}  // namespace
}  // namespace portwave::test_cli_ends

#endif
