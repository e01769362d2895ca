// What a checkpoint says of its recorders, made up: it is refused with the files as they were, or the
// recording goes on from it.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/runtime/output/checkpoint.hpp"
#include "portwave/runtime/output/file_recorder.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/subsystems/base/state_archive.hpp"
#include "support/files/made_up_bytes.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"
#include "support/systems/example_scenarios.hpp"

namespace portwave::test_made_up_checkpoints {
namespace {

using For = CheckpointFolder::For;
using Path = std::filesystem::path;
using testing::Bytes;
using testing::change_one;
using testing::Choices;
using testing::example;
using testing::read_text;
using testing::TemporaryFolder;

struct Case {
  std::string name;
  std::vector<Override> overrides;
  bool needs_hdf5 = false;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::vector<Case> cases() {
  const Override event = {"/events", R"([{"name": "middle", "of": "A.q1", "level": 0.39}])"};
  const Override adaptive = {"/time",
                             R"({"step": {"kind": "adaptive", "tolerance": 1e-5}, "end_s": 10})"};
  return {{"the_last_seconds_with_events",
           {event, {"/outputs", R"({"observe": ["A.q1"], "last_s": 10})"}}},
          {"envelope_and_energies",
           {{"/outputs",
             R"({"observe": ["A.q1", "B.q2"], "every": 4, "envelope": true, "energies": true})"}}},
          {"grid_of_times",
           {adaptive,
            {"/method", R"({"kind": "auto"})"},
            {"/outputs", R"({"observe": ["A.q1"], "every_s": 0.01})"}}},
          {"per_rank",
           {{"/outputs",
             R"({"observe": ["A.q1", "B.q2"], "every": 3, "envelope": true, "per_rank": true,
                 "format": "hdf5"})"}},
           true}};
}

std::map<std::string, std::string> files_in(const Path& folder) {
  std::map<std::string, std::string> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    out[std::filesystem::relative(entry.path(), folder).string()] = read_text(entry.path());
  }
  return out;
}

class MadeUpCheckpoints : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (GetParam().needs_hdf5 && !has_hdf5()) GTEST_SKIP() << "built without HDF5";
  }
};

/// A run in which something was recorded, and its only checkpoint.
struct StoppedRun {
  explicit StoppedRun(const Case& own)
      : scenario(example("published_douglas_rachford", own.overrides)),
        stepper(scenario.system, scenario.options) {
    CheckpointFolder results(folder / "results", For::a_new_run);
    FileRecorder recorder(results, scenario.recording);
    recorder.record_initial(stepper);
    for (int i = 0; i < 30; ++i) {
      const StepReport report = stepper.step();
      recorder.record(stepper, report);
      events.insert(events.end(), stepper.events().begin(), stepper.events().end());
    }
    Checkpoint checkpoint{"a pair", stepper.snapshot(), {}};
    StateArchive writer = StateArchive::writer(checkpoint.recorded);
    recorder.archive(stepper, writer);
    writer.finish();
    results.save(checkpoint);
    recorded = checkpoint.recorded;
    start = checkpoint.snapshot;
  }

  TemporaryFolder folder;
  Scenario scenario;
  Stepper stepper;
  std::vector<Event> events;
  Bytes recorded;
  Snapshot start;
};

/// Goes on in a copy of the results. Whether that was accepted.
bool goes_on(StoppedRun& run, const Path& copy, const Bytes& recorded) {
  std::filesystem::copy(run.folder / "results", copy, std::filesystem::copy_options::recursive);
  const std::map<std::string, std::string> before = files_in(copy);
  {
    CheckpointFolder results(copy, For::going_on);
    FileRecorder recorder(results, run.scenario.recording);
    run.stepper.restore(run.start);
    try {
      StateArchive reader = StateArchive::reader(recorded);
      recorder.archive(run.stepper, reader);
      reader.finish();
      for (int i = 0; i < 20; ++i) {
        const StepReport report = run.stepper.step();
        recorder.record(run.stepper, report);
      }
      // Which puts files on the disk, and takes long: what is kept until then is written there.
      if (run.scenario.recording.last_s > 0.0) recorder.finish("{}");
      return true;
    } catch (const StateArchive::Mismatch& error) {
      EXPECT_NE(std::string(error.what()), "");
    } catch (const std::runtime_error& error) {  // the file is not so long
      EXPECT_NE(std::string(error.what()), "");
    }
  }
  std::map<std::string, std::string> after = files_in(copy);
  std::erase_if(after,
                [&](const auto& file) { return !before.contains(file.first); });  // begun anew
  EXPECT_TRUE(after == before);
  return false;
}

TEST_P(MadeUpCheckpoints, AreRefusedWithTheFilesAsTheyWereOrGoneOnWith) {
  StoppedRun run(GetParam());
  ASSERT_TRUE(goes_on(run, run.folder / "genuine", run.recorded));
  int accepted = 0, refused = 0;
  const int mutants = run.scenario.recording.last_s > 0.0 ? 40 : 120;
  for (int seed = 0; seed < mutants; ++seed) {
    Choices choices(static_cast<std::uint64_t>(seed));
    Bytes recorded = run.recorded;
    change_one(recorded, choices);
    const Path copy = run.folder / "copy";
    ++(goes_on(run, copy, recorded) ? accepted : refused);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    std::filesystem::remove_all(copy);
  }
  EXPECT_GT(accepted, 0);
  EXPECT_GT(refused, 5);
}

INSTANTIATE_TEST_SUITE_P(Recorders, MadeUpCheckpoints, ::testing::ValuesIn(cases()),
                         [](const auto& own) { return own.param.name; });

double number_at(const Bytes& bytes, std::size_t at) {
  double number = 0.0;
  std::memcpy(&number, bytes.data() + at, sizeof(number));
  return number;
}

// Numbers that stand for texts of a table were looked up as they came.
TEST(MadeUpCheckpoint, WithTextsThatThereAreNotIsRefused) {
  StoppedRun run(cases().front());
  ASSERT_FALSE(run.events.empty());
  int rows = 0;  // of the table of events: a time, and the number of a text twice
  for (std::size_t at = 0; at + 3 * sizeof(double) <= run.recorded.size(); ++at) {
    const Event& event = run.events.front();
    const double text = 2.0 * event.watch + (event.rising ? 1.0 : 0.0);
    if (number_at(run.recorded, at) != event.time_s || number_at(run.recorded, at + 8) != text ||
        number_at(run.recorded, at + 16) != text) {
      continue;
    }
    ++rows;
    for (const double many : {1e9, -1.0, 2.0, std::numeric_limits<double>::quiet_NaN()}) {
      Bytes recorded = run.recorded;
      std::memcpy(recorded.data() + at + 8, &many, sizeof(many));
      const Path copy = run.folder / "copy";
      EXPECT_FALSE(goes_on(run, copy, recorded)) << many;
      std::filesystem::remove_all(copy);
    }
  }
  EXPECT_EQ(rows, 1);
}

}  // namespace
}  // namespace portwave::test_made_up_checkpoints
