// What is promised of checkpoints when the machine stops: what reaches the disk, and in which order.

#include <algorithm>
#include <cstddef>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/runtime/output/checkpoint.hpp>
#include <portwave/runtime/output/file_recorder.hpp>
#include <portwave/subsystems/base/state_archive.hpp>

#include "durability/disk_trace.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/systems/oscillator_pair.hpp"

namespace portwave {
namespace {

using For = CheckpointFolder::For;
using testing::begin_disk_trace;
using testing::DiskCall;
using testing::end_disk_trace;
using Names = std::vector<std::string>;

/// Where a call is in a trace; its length where it is not.
std::size_t place_of(const std::vector<DiskCall>& calls, DiskCall::Kind kind,
                     const std::filesystem::path& path) {
  const auto found = std::find_if(calls.begin(), calls.end(), [&](const DiskCall& call) {
    return call.kind == kind && call.path == path;
  });
  return static_cast<std::size_t>(found - calls.begin());
}

class Durability : public ::testing::Test {
 protected:
  Durability() : stepper_(scenario_.system, testing::pair_options(5)) {}

  Checkpoint checkpoint() {
    Checkpoint out;
    out.run = "a pair";
    stepper_.snapshot(out.snapshot);
    return out;
  }

  testing::TemporaryFolder temporary_;
  // Links in its path would make names differ from those of descriptors.
  std::filesystem::path results_ = std::filesystem::canonical(temporary_.path()) / "run";
  Scenario scenario_ = testing::pair_scenario();
  Stepper stepper_;
};

TEST_F(Durability, ACheckpointIsOnTheDiskBeforeItHasItsNameAndItsNameBeforeSaveReturns) {
  CheckpointFolder folder(results_, For::a_new_run);
  for (int i = 0; i < 3; ++i) {
    stepper_.step(3);
    const Checkpoint made = checkpoint();
    begin_disk_trace();
    folder.save(made);
    const std::vector<DiskCall> calls = end_disk_trace();
    EXPECT_EQ(renamed_unsynced(calls), Names());
    EXPECT_EQ(left_unsynced(calls), Names());
    EXPECT_EQ(names_left_unsynced(calls), Names());
    const std::filesystem::path at = results_ / "checkpoint";
    const std::size_t named = place_of(calls, DiskCall::Kind::rename, at / "next.checkpoint");
    EXPECT_LT(named, calls.size());
    // The one before is kept first: between the two names there is always a whole one.
    if (i > 0) {
      EXPECT_LT(place_of(calls, DiskCall::Kind::rename, at / "last.checkpoint"), named);
    }
  }
}

TEST_F(Durability, TheFirstCheckpointPutsItsFolderOnTheDisk) {
  CheckpointFolder folder(results_, For::a_new_run);
  const Checkpoint made = checkpoint();
  begin_disk_trace();
  folder.save(made);
  const std::vector<DiskCall> calls = end_disk_trace();
  EXPECT_LT(place_of(calls, DiskCall::Kind::sync, results_), calls.size());
}

TEST_F(Durability, ResultsAreOnTheDiskWithTheirCheckpointAndBeforeTheyHaveTheirNames) {
  CheckpointFolder folder(results_, For::a_new_run);
  FileRecorder recorder(folder, scenario_.recording);
  recorder.record_initial(stepper_);
  begin_disk_trace();
  for (int i = 0; i < 50; ++i) recorder.record(stepper_, stepper_.step());
  Checkpoint made = checkpoint();
  StateArchive writer = StateArchive::writer(made.recorded);
  recorder.archive(stepper_, writer);
  writer.finish();
  std::vector<DiskCall> calls = end_disk_trace();
  EXPECT_GT(std::count_if(calls.begin(), calls.end(),
                          [](const DiskCall& call) { return call.kind == DiskCall::Kind::write; }),
            1);
  EXPECT_EQ(left_unsynced(calls), Names());
  folder.save(made);

  begin_disk_trace();
  for (int i = 0; i < 50; ++i) recorder.record(stepper_, stepper_.step());
  recorder.finish(std::string("{}"));
  calls = end_disk_trace();
  EXPECT_EQ(renamed_unsynced(calls), Names());
  // Checkpoints go when the results are where they belong, on the disk too.
  const std::filesystem::path last = results_ / "checkpoint" / "last.checkpoint";
  const std::size_t gone = place_of(calls, DiskCall::Kind::unlink, last);
  ASSERT_LT(gone, calls.size());
  calls.resize(gone);
  EXPECT_EQ(names_left_unsynced(calls), Names());
  EXPECT_LT(place_of(calls, DiskCall::Kind::rename, results_ / "checkpoint" / "energy.csv"), gone);
}

TEST_F(Durability, WhatADiskHasNoRoomForTakesNone) {
  const std::filesystem::path next = results_ / "checkpoint" / "next.checkpoint";
  CheckpointFolder folder(results_, For::a_new_run);
  stepper_.step(3);
  folder.save(checkpoint());
  stepper_.step(4);
  const Checkpoint later = checkpoint();
  for (const long room : {0L, 1L, 100L, 700L}) {
    testing::limit_disk(room);
    EXPECT_THROW(folder.save(later), std::runtime_error) << room;
    testing::limit_disk(-1);
    EXPECT_FALSE(std::filesystem::exists(next)) << room;
    std::vector<std::string> refused;
    EXPECT_EQ(folder.load(refused).snapshot.step_index(), 3) << room;
  }
  folder.save(later);
  std::vector<std::string> refused;
  EXPECT_EQ(folder.load(refused).snapshot.step_index(), 7);
}

// A program that forgets to sync is seen.
TEST_F(Durability, ControlSeesWhatIsNotSynced) {
  std::filesystem::create_directories(results_);
  begin_disk_trace();
  const std::filesystem::path path = results_ / "a";
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  ASSERT_EQ(::write(file, "text", 4), 4);
  ::close(file);
  ASSERT_EQ(::rename(path.c_str(), (results_ / "b").c_str()), 0);
  const std::vector<DiskCall> calls = end_disk_trace();
  EXPECT_EQ(renamed_unsynced(calls), Names{path.string()});
  EXPECT_EQ(names_left_unsynced(calls), Names{results_.string()});
}

}  // namespace
}  // namespace portwave
