// Runs that are killed, stopped or fail, and go on.
#ifdef PORTWAVE_CLI

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "portwave/runtime/output/checkpoint.hpp"
#include "support/files/cli_process.hpp"
#include "support/files/made_up_bytes.hpp"
#include "support/files/source_folder.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"

namespace portwave::test_cli_checkpoints {
namespace {

using Json = nlohmann::json;
using testing::command;
using testing::contains;
using testing::kPair;
using testing::names_in;
using testing::portwave_cli;
using testing::ProcessResult;
using testing::read_text;
using testing::said;
using testing::source_file;
using testing::Subprocess;
using testing::TemporaryFolder;
using testing::with_files_of_at_most;
using testing::Words;
using testing::write_text;
using testing::operator+;

using Path = std::filesystem::path;

/// The summary without what time has to do with.
Json timeless_summary(const Path& out) {
  Json summary = Json::parse(read_text(out / "summary.json"));
  for (const char* name :
       {"wall_s", "recording_wait_s", "steps_per_s", "real_time_factor", "times"}) {
    summary.erase(name);
  }
  return summary;
}

void expect_equal_results(const Path& out, const Path& expected) {
  ASSERT_EQ(names_in(out), names_in(expected));
  for (const std::string& name : names_in(out)) {
    if (name == "summary.json") continue;
    EXPECT_TRUE(read_text(out / name) == read_text(expected / name)) << name;
  }
  EXPECT_EQ(timeless_summary(out), timeless_summary(expected));
}

struct Case {
  std::string name;
  Words line;
  std::string every;

  friend void PrintTo(const Case& own, std::ostream* out) { *out << own.name; }
};

/// Some tenths of a second each, most of it for checkpoints; but for `short`, which is often killed while it
/// gives its results their names.
std::vector<Case> cases() {
  return {
      {"fixed_steps",
       {kPair, "--steps", "20000", "--set", "/method/guard=true", "--set",
        R"(/subsystems/1/inputs={"force": {"kind": "noise", "standard_deviation": 3, "interval_s": 0.05, "seed": 5}})"},
       "40"},
      {"controller", {source_file("examples/drive_pid.json"), "--steps", "3000"}, "7"},
      {"chosen_steps_and_events",
       {source_file("examples/lossless_pair.json"), "--set",
        "/method={\"kind\": \"auto\", \"stages\": 2}", "--set",
        R"(/time={"step": {"kind": "adaptive", "tolerance": 1e-6, "largest_s": 0.1}, "end_s": 400})",
        "--set", R"(/events=[{"of": "A.q2", "name": "passes"}])", "--set",
        R"(/outputs={"every_s": 0.5})"},
       "20"},
      {"chosen_kicks_and_drifts",
       {kPair, "--set", "/method={\"kind\": \"kick-drift\", \"order\": 6}", "--set",
        R"(/time={"step": {"kind": "adaptive", "tolerance": 1e-6, "largest_s": 0.5}, "end_s": 100})",
        "--set", R"(/events=[{"of": "A.storage", "name": "passes", "level": 20}])", "--set",
        R"(/outputs={"every_s": 0.5})"},
       "10"},
      {"chosen_taylor_series",
       {kPair, "--set", "/subsystems/0/parameters/cubic_stiffness_N_per_m3=0", "--set",
        "/method={\"kind\": \"taylor\", \"order\": 8}", "--set",
        R"(/time={"step": {"kind": "adaptive", "tolerance": 1e-6, "largest_s": 0.5}, "end_s": 100})",
        "--set", R"(/events=[{"of": "A.q1", "name": "passes"}])", "--set",
        R"(/outputs={"every_s": 0.5})"},
       "10"},
      {"short", {kPair, "--steps", "500"}, "500"},
      {"by_the_clock", {kPair, "--steps", "60000"}, "0.001s"},
  };
}

class Checkpoints : public ::testing::TestWithParam<Case> {};

TEST_P(Checkpoints, RunsThatAreKilledAtAnyInstantGiveTheSameFiles) {
  const int kills_wanted = GetParam().name == "short" ? 100 : 25;
  const Words line = Words{"run"} + GetParam().line;
  const TemporaryFolder folder;
  const ProcessResult whole = portwave_cli(line + Words{"--out", (folder / "whole").string()});
  ASSERT_EQ(whole.exit_code, 0) << said(whole);

  std::mt19937 random(20);
  std::uniform_int_distribution<int> delay_us(0, 30000);
  int kills = 0;
  for (int run = 0; kills < kills_wanted; ++run) {
    const Path out = folder / ("run" + std::to_string(run));
    const Words begin = line + Words{"--out", out.string(), "--checkpoint-every", GetParam().every};
    const Words go_on = {"run", "--resume", out.string()};
    bool has_begun = false;
    for (int tries = 0;; ++tries) {
      ASSERT_LT(tries, 2000) << "it never comes to its end";
      Subprocess process(command(has_begun ? go_on : begin));
      if (kills < kills_wanted) {
        std::this_thread::sleep_for(std::chrono::microseconds(delay_us(random)));
        process.send(SIGKILL);
      }
      const ProcessResult result = process.wait();
      if (result.signal == SIGKILL) {
        ++kills;
        // Killed before its first checkpoint it is begun once more.
        has_begun = std::filesystem::exists(out / "checkpoint/last.checkpoint") ||
                    std::filesystem::exists(out / "checkpoint/before.checkpoint") ||
                    std::filesystem::exists(out / "checkpoint/complete.json");
        if (std::filesystem::exists(out / "summary.json")) break;
        continue;
      }
      ASSERT_EQ(result.exit_code, 0) << said(result);
      break;
    }
    if (std::filesystem::exists(out / "checkpoint")) {
      // Killed while the results were given their names, or while the folder was removed.
      portwave_cli(go_on);
      std::filesystem::remove_all(out / "checkpoint");
    }
    expect_equal_results(out, folder / "whole");
  }
}

INSTANTIATE_TEST_SUITE_P(Cli, Checkpoints, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

/// A run that is stopped after its first checkpoints.
class StoppedRun {
 public:
  explicit StoppedRun(int signal = SIGINT) {
    Subprocess process(command(line + Words{"--out", out().string(), "--checkpoint-every", "50"}));
    while (!std::filesystem::exists(out() / "checkpoint/before.checkpoint") &&
           !process.has_ended()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    process.send(signal);
    stopped = process.wait();
  }
  Path out() const { return folder / "out"; }
  Path last() const { return out() / "checkpoint/last.checkpoint"; }
  ProcessResult go_on() const { return portwave_cli({"run", "--resume", out().string()}); }
  void expect_whole() const {
    const Path whole = folder / "whole";
    ASSERT_EQ(portwave_cli(line + Words{"--out", whole.string()}).exit_code, 0);
    expect_equal_results(out(), whole);
  }

  TemporaryFolder folder;
  Words line = {"run", kPair, "--steps", "20000"};
  ProcessResult stopped;
};

TEST(CliCheckpoints, SignalsEndTheStepAndSayHowToGoOn) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const StoppedRun run(signal);
    EXPECT_EQ(run.stopped.exit_code, 128 + signal) << said(run.stopped);
    EXPECT_TRUE(contains(run.stopped.err, "portwave run --resume " + run.out().string()))
        << said(run.stopped);
    EXPECT_EQ(names_in(run.out()), Words{"checkpoint"});
    const ProcessResult on = run.go_on();
    EXPECT_EQ(on.exit_code, 0) << said(on);
    run.expect_whole();
    const ProcessResult again = run.go_on();
    EXPECT_EQ(again.exit_code, 3);
    EXPECT_TRUE(contains(again.err, "has ended")) << said(again);
  }
}

TEST(CliCheckpoints, ADamagedOneIsRefusedAndTheOneBeforeIsUsed) {
  const std::function<std::string(std::string)> damages[] = {
      [](std::string bytes) { return bytes.substr(0, bytes.size() / 2); },
      [](std::string bytes) {
        bytes[bytes.size() / 3] = static_cast<char>(bytes[bytes.size() / 3] ^ 4);
        return bytes;
      },
      [](std::string) { return std::string(); },
      [](std::string bytes) {  // of another version, and otherwise whole
        bytes[24] = 7;
        return bytes;
      },
  };
  for (const auto& damage : damages) {
    const StoppedRun run;
    write_text(run.last(), damage(read_text(run.last())));
    const ProcessResult on = run.go_on();
    EXPECT_EQ(on.exit_code, 0) << said(on);
    EXPECT_TRUE(contains(on.err, "last.checkpoint\" is not used: it")) << said(on);
    run.expect_whole();
  }
}

TEST(CliCheckpoints, WithoutAnyThatIsWholeItSaysSoAndLeavesAll) {
  const StoppedRun run;
  for (const char* name : {"last.checkpoint", "before.checkpoint"}) {
    write_text(run.out() / "checkpoint" / name, "x");
  }
  const std::vector<std::string> names = names_in(run.out() / "checkpoint");
  const ProcessResult on = run.go_on();
  EXPECT_EQ(on.exit_code, 3);
  EXPECT_TRUE(contains(on.err, "no checkpoint can be used")) << said(on);
  EXPECT_EQ(names_in(run.out() / "checkpoint"), names);
}

TEST(CliCheckpoints, ResultsThatWereCutAreNotGoneOnWith) {
  const StoppedRun run;
  std::filesystem::resize_file(run.out() / "checkpoint/trajectory.csv", 10);
  const ProcessResult on = run.go_on();
  EXPECT_EQ(on.exit_code, 3);
  EXPECT_TRUE(contains(on.err, "trajectory.csv\" has 10 bytes")) << said(on);
}

TEST(CliCheckpoints, ANewRunDoesNotTakeThePlaceOfOneThatIsNotFinished) {
  const StoppedRun run;
  const ProcessResult other =
      portwave_cli(run.line + Words{"--out", run.out().string(), "--checkpoint-every", "50"});
  EXPECT_EQ(other.exit_code, 3);
  EXPECT_TRUE(contains(other.err, "was not finished")) << said(other);
  const ProcessResult plain = portwave_cli(run.line + Words{"--out", run.out().string()});
  EXPECT_EQ(plain.exit_code, 3);
  EXPECT_TRUE(contains(plain.err, "was not finished")) << said(plain);
  EXPECT_EQ(run.go_on().exit_code, 0);
  run.expect_whole();
}

TEST(CliCheckpoints, AFolderOfThatNameThatIsSomebodyElsesStays) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "checkpoint");
  write_text(folder / "checkpoint" / "weights", "years of work");
  const Words line = {"run", kPair, "--quiet", "--out", folder.path().string()};
  const ProcessResult refused = portwave_cli(line + Words{"--checkpoint-every", "50"});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_TRUE(contains(refused.err, "is no folder of checkpoints")) << said(refused);
  EXPECT_EQ(names_in(folder / "checkpoint"), (std::vector<std::string>{"weights"}));
  EXPECT_EQ(portwave_cli(line).exit_code, 0);  // writes nothing there
  EXPECT_EQ(read_text(folder / "checkpoint" / "weights"), "years of work");
}

TEST(CliCheckpoints, AFullDiskLeavesTheLastOne) {
  const TemporaryFolder folder;
  const Path out = folder / "out";
  const Words line = {"run", kPair, "--steps", "20000"};
  const ProcessResult full = with_files_of_at_most(
      200000, line + Words{"--out", out.string(), "--checkpoint-every", "50"});
  EXPECT_EQ(full.exit_code, 3) << said(full);
  EXPECT_TRUE(contains(full.err, "cannot write")) << said(full);
  EXPECT_TRUE(contains(full.err, "portwave run --resume")) << said(full);
  const ProcessResult on = portwave_cli({"run", "--resume", out.string()});
  EXPECT_EQ(on.exit_code, 0) << said(on);
  ASSERT_EQ(portwave_cli(line + Words{"--out", (folder / "whole").string()}).exit_code, 0);
  expect_equal_results(out, folder / "whole");
}

TEST(CliCheckpoints, FilesOfTheScenarioMustBeWhatTheyWere) {
  const TemporaryFolder folder;
  const Path scenario = folder / "scenario.json";
  write_text(folder / "push.csv", "0,1\n10,2\n");
  Json json = Json::parse(read_text(kPair));
  json["subsystems"][0]["inputs"]["force"] = {{"kind", "table"}, {"file", "push.csv"}};
  write_text(scenario, json.dump());
  const Path out = folder / "out";
  const Words line = {"run", scenario.string(), "--steps", "20000"};
  Subprocess process(command(line + Words{"--out", out.string(), "--checkpoint-every", "50"}));
  while (!std::filesystem::exists(out / "checkpoint/before.checkpoint") && !process.has_ended()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  process.send(SIGTERM);
  const ProcessResult stopped = process.wait();
  ASSERT_EQ(stopped.exit_code, 128 + SIGTERM);
  EXPECT_TRUE(contains(stopped.err, "--resume " + out.string() + " --allow-outside-files"))
      << said(stopped);

  // The folder that the scenario was in is not one that the checkpoint can allow to be read.
  const ProcessResult refused = portwave_cli({"run", "--resume", out.string()});
  EXPECT_EQ(refused.exit_code, 2) << said(refused);
  EXPECT_TRUE(contains(refused.err, "outside of the folder of the results")) << said(refused);
  EXPECT_TRUE(contains(refused.err, "--allow-outside-files")) << said(refused);

  const Words go_on = {"run", "--resume", out.string(), "--allow-outside-files"};
  write_text(folder / "push.csv", "0,1\n10,3\n");
  const ProcessResult changed = portwave_cli(go_on);
  EXPECT_EQ(changed.exit_code, 3) << said(changed);
  EXPECT_TRUE(contains(changed.err, "push.csv\" has changed since it began")) << said(changed);

  // The scenario itself is in the checkpoint.
  write_text(folder / "push.csv", "0,1\n10,2\n");
  const ProcessResult whole = portwave_cli(line + Words{"--out", (folder / "whole").string()});
  ASSERT_EQ(whole.exit_code, 0) << said(whole);
  std::filesystem::remove(scenario);
  EXPECT_EQ(portwave_cli(go_on).exit_code, 0);
  expect_equal_results(out, folder / "whole");
}

TEST(CliCheckpoints, WhatDoesNotGoTogetherIsRefused) {
  const ProcessResult both =
      portwave_cli({"run", kPair, "--resume", "out", "--threads", "2", "--checkpoint-every", "9x"});
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_TRUE(contains(both.err, "not with")) << said(both);
  EXPECT_TRUE(contains(both.err, "9x")) << said(both);
  const ProcessResult nowhere = portwave_cli({"run", kPair, "--checkpoint-every", "9"});
  EXPECT_EQ(nowhere.exit_code, 2);
  EXPECT_TRUE(contains(nowhere.err, "needs --out")) << said(nowhere);
  EXPECT_EQ(portwave_cli({"run", "--resume", "/nowhere"}).exit_code, 3);
}

// Checkpoints that somebody has made up, with checksums that are right.

Checkpoint read_checkpoint(const Path& file) {
  const std::string bytes = read_text(file);
  return Checkpoint::from_bytes(std::as_bytes(std::span(bytes)));
}

void write_checkpoint(const Path& file, const Checkpoint& checkpoint) {
  const std::vector<std::byte> bytes = checkpoint.to_bytes();
  write_text(file, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

std::map<std::string, std::string> files_of(const StoppedRun& run) {
  std::map<std::string, std::string> out;
  for (const std::string& name : names_in(run.out() / "checkpoint")) {
    out[name] = read_text(run.out() / "checkpoint" / name);
  }
  return out;
}

/// What the stopped run comes to with its checkpoint changed; then that is put right. Its files have to be
/// as they were: it can be resumed.
ProcessResult gone_on_with(const StoppedRun& run, const std::function<void(Checkpoint&)>& change) {
  const std::map<std::string, std::string> before = files_of(run);
  Checkpoint checkpoint = read_checkpoint(run.last());
  change(checkpoint);
  write_checkpoint(run.last(), checkpoint);
  const ProcessResult result = portwave_cli({"run", "--resume", run.out().string()});
  write_text(run.last(), before.at("last.checkpoint"));
  EXPECT_TRUE(files_of(run) == before);
  return result;
}

std::function<void(Checkpoint&)> with_record(const std::string& pointer, const Json& value) {
  return [=](Checkpoint& checkpoint) {
    Json record = Json::parse(checkpoint.run);
    record[Json::json_pointer(pointer)] = value;
    checkpoint.run = record.dump();
  };
}

TEST(CliCheckpoints, TellingOfARunThatNobodyBeginsAreRefused) {
  const StoppedRun run;
  const std::pair<const char*, Json> changes[] = {
      {"/arguments/threads", 0},
      {"/arguments/threads", 1e300},
      {"/arguments/certify", 7},
      {"/arguments/grain", {9, 0}},
      {"/arguments/grain", {2, -4}},
      {"/arguments/steps", -1},
      {"/arguments/steps", 0},
      {"/arguments/checkpoint_steps", -5},
      {"/arguments/deadline_s", -1.0},
      {"/arguments/pace", 1e300},
      {"/arguments/executor", "none"},
      {"/arguments/threads", "many"},
      {"/text", 7},
      {"/files", {{"a"}}},
      {"/arguments/plugins", 3},
  };
  for (const auto& [pointer, value] : changes) {
    const ProcessResult result = gone_on_with(run, with_record(pointer, value));
    EXPECT_EQ(result.exit_code, 3) << pointer << ' ' << value << '\n' << said(result);
    EXPECT_TRUE(contains(result.err, "portwave: the checkpoint") ||
                contains(result.err, "there is no executor"))
        << said(result);
  }
}

TEST(CliCheckpoints, WhatTheyPermitIsNotAllowed) {
  const StoppedRun run;
  const TemporaryFolder elsewhere;
  write_text(elsewhere / "secret.csv", "0,1\n10,2\n");
  Json scenario = Json::parse(read_text(kPair));
  scenario["subsystems"][0]["inputs"]["force"] = {{"kind", "table"}, {"file", "secret.csv"}};
  // That it says so itself, and that it says it was there.
  const ProcessResult files = gone_on_with(run, [&](Checkpoint& checkpoint) {
    Json record = Json::parse(checkpoint.run);
    record["text"] = scenario.dump();
    record["folder"] = elsewhere.path().string();
    record["arguments"]["allow_outside_files"] = true;
    checkpoint.run = record.dump();
  });
  EXPECT_EQ(files.exit_code, 2) << said(files);
  EXPECT_TRUE(contains(files.err, "outside of the folder of the results")) << said(files);
  // A link in the folder of the results leads out of it.
  std::filesystem::create_symlink(elsewhere / "secret.csv", run.out() / "secret.csv");
  const ProcessResult link = gone_on_with(run, [&](Checkpoint& checkpoint) {
    Json record = Json::parse(checkpoint.run);
    record["text"] = scenario.dump();
    record["folder"] = run.out().string();
    checkpoint.run = record.dump();
  });
  EXPECT_EQ(link.exit_code, 2) << said(link);
  EXPECT_TRUE(contains(link.err, "outside of the folder of the results")) << said(link);
}

TEST(CliCheckpoints, OfStatesThatNoRunComesToAreRefused) {
  const StoppedRun run;
  const std::function<void(Checkpoint&)> changes[] = {
      [](Checkpoint& own) { own.recorded.pop_back(); },
      [](Checkpoint& own) { std::ranges::fill(own.recorded, std::byte{0xff}); },
      [](Checkpoint& own) {
        testing::SnapshotBytes bytes(own.snapshot);
        testing::Bytes state = bytes.state();
        std::ranges::fill(state, std::byte{0xff});
        bytes.set_state(state);
        own.snapshot = Snapshot::from_bytes(bytes.sealed());
      },
      // Of another system than the state.
      with_record("/arguments/overrides",
                  Json::array({Json::array({"/subsystems/0/parameters/mass_kg", "9"})}))};
  for (const auto& change : changes) {
    const ProcessResult result = gone_on_with(run, change);
    EXPECT_EQ(result.exit_code, 3) << said(result);
    EXPECT_TRUE(contains(result.err, "cannot continue from the checkpoint") ||
                contains(result.err, "when the checkpoint was made"))
        << said(result);
  }
  EXPECT_EQ(run.go_on().exit_code, 0);
  run.expect_whole();
}

// The list of what is to be moved is a file as well, and so is the folder that it lies in.
TEST(CliCheckpoints, ListsThatLeadOutOfTheResultsAreRefused) {
  const TemporaryFolder folder;
  const Path out = folder / "out", victim = folder / "victim.txt";
  for (const auto& [remove, publish] :
       {std::pair<std::string, std::string>{"../victim.txt", "a.csv"},
        {victim.string(), "a.csv"},
        {"a.csv", "../victim.txt"},
        {"..", "a.csv"}}) {
    std::filesystem::create_directories(out / "checkpoint");
    write_text(victim, "years of work");
    write_text(out / "checkpoint/a.csv", "1");
    write_text(out / "checkpoint/complete.json",
               Json{{"remove", {remove}}, {"publish", {publish}}, {"outcome", "{}"}}.dump());
    const ProcessResult result = portwave_cli({"run", "--resume", out.string()});
    EXPECT_EQ(result.exit_code, 3) << said(result);
    EXPECT_TRUE(contains(result.err, "is no name of a result")) << said(result);
    EXPECT_EQ(read_text(victim), "years of work");
  }
  // One without names, and an outcome that is none.
  write_text(out / "checkpoint/complete.json",
             R"({"remove": [], "publish": ["a.csv"], "outcome": "{}"})");
  const ProcessResult result = portwave_cli({"run", "--resume", out.string()});
  EXPECT_EQ(result.exit_code, 3) << said(result);
  EXPECT_TRUE(contains(result.err, "is no summary of a run")) << said(result);
}

TEST(CliCheckpoints, AFolderThatIsALinkIsRefused) {
  const StoppedRun run;
  const Path elsewhere = run.folder / "elsewhere";
  std::filesystem::rename(run.out() / "checkpoint", elsewhere);
  std::filesystem::create_directory_symlink(elsewhere, run.out() / "checkpoint");
  const ProcessResult on = run.go_on();
  EXPECT_EQ(on.exit_code, 3) << said(on);
  EXPECT_TRUE(contains(on.err, "is a link")) << said(on);
}

}  // namespace
}  // namespace portwave::test_cli_checkpoints

#endif
