#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/runtime/output/checkpoint.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/version.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"
#include "support/systems/oscillator_pair.hpp"

namespace portwave::test_checkpoint {
namespace {

using For = CheckpointFolder::For;
using testing::names_in;
using testing::read_text;
using testing::TemporaryFolder;
using testing::write_text;

Checkpoint checkpoint_after(int steps) {
  const Scenario scenario = testing::pair_scenario();
  Stepper stepper(scenario.system, testing::pair_options(5));
  stepper.step(steps);
  Checkpoint out;
  out.run = "a pair";
  out.snapshot = stepper.snapshot();
  out.recorded = {std::byte{1}, std::byte{2}, std::byte{3}};
  return out;
}

std::string why_refused(std::vector<std::byte> bytes) {
  try {
    Checkpoint::from_bytes(bytes);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return {};
}

TEST(CheckpointBytes, KeepAll) {
  const Checkpoint given = checkpoint_after(7);
  const Checkpoint back = Checkpoint::from_bytes(given.to_bytes());
  EXPECT_EQ(back.run, "a pair");
  EXPECT_EQ(back.recorded, given.recorded);
  EXPECT_EQ(back.snapshot.step_index(), 7);
  EXPECT_EQ(back.snapshot.to_bytes(), given.snapshot.to_bytes());
}

TEST(CheckpointBytes, EveryFlippedBitIsSeen) {
  const std::vector<std::byte> bytes = checkpoint_after(3).to_bytes();
  ASSERT_EQ(why_refused(bytes), "");
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const int bit : {0, 3, 7}) {
      std::vector<std::byte> damaged = bytes;
      damaged[i] ^= std::byte{1} << bit;
      EXPECT_NE(why_refused(damaged), "") << "byte " << i << " bit " << bit;
    }
  }
}

TEST(CheckpointBytes, EveryLengthButTheWholeIsSeen) {
  const std::vector<std::byte> bytes = checkpoint_after(3).to_bytes();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(why_refused({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}), "")
        << size;
  }
  std::vector<std::byte> longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_NE(why_refused(longer), "");
}

TEST(CheckpointBytes, SayWhatTheyAre) {
  EXPECT_NE(why_refused({}).find("cut off"), std::string::npos);
  std::vector<std::byte> bytes = checkpoint_after(1).to_bytes();
  std::vector<std::byte> other = bytes;
  other[0] = std::byte{'P'};
  EXPECT_NE(why_refused(other).find("no checkpoint"), std::string::npos);
  other = bytes;
  other[24] = std::byte{9};  // the form, after the magic word
  EXPECT_NE(why_refused(other).find("form is number 9"), std::string::npos);
}

/// Reflected, of polynomial 0x04C11DB7.
std::uint32_t crc32_of(std::span<const std::byte> bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0xedb88320U : 0U);
  }
  return ~crc;
}

// Also where its checksum fits, as that of another version's does.
TEST(CheckpointBytes, OfAnotherVersionAreRefused) {
  constexpr std::size_t kChecksum = 28, kVersionAt = 32;
  const std::vector<std::byte> bytes = checkpoint_after(1).to_bytes();
  const auto with_version = [&](std::size_t place, char digit) {
    std::vector<std::byte> other = bytes;
    other[kVersionAt + place] = static_cast<std::byte>(digit);
    const std::uint32_t checksum = crc32_of(std::span(other).subspan(kVersionAt));
    std::memcpy(other.data() + kChecksum, &checksum, sizeof(checksum));
    return other;
  };
  EXPECT_EQ(why_refused(with_version(0, kVersion[0])), "");  // nothing is changed
  for (std::size_t place = 0; kVersion[place] != '\0'; ++place) {
    EXPECT_NE(why_refused(with_version(place, 'x')).find("of version"), std::string::npos) << place;
  }
}

TEST(CheckpointFolderFiles, TheLastAndTheOneBeforeAreThere) {
  const TemporaryFolder results;
  std::vector<std::string> refused;
  {
    CheckpointFolder folder(results.path(), For::a_new_run);
    for (const int steps : {1, 2, 3}) folder.save(checkpoint_after(steps));
  }
  EXPECT_EQ(CheckpointFolder(results.path(), For::going_on).load(refused).snapshot.step_index(), 3);
  EXPECT_TRUE(refused.empty());

  const auto last = results / "checkpoint/last.checkpoint";
  write_text(last, read_text(last).substr(0, 200));
  {
    CheckpointFolder folder(results.path(), For::going_on);
    EXPECT_EQ(folder.load(refused).snapshot.step_index(), 2);
    ASSERT_EQ(refused.size(), 1U);
    EXPECT_NE(refused[0].find("last.checkpoint\" is not used: it is cut off"), std::string::npos)
        << refused[0];
    // What is not whole never takes the place of what is.
    folder.save(checkpoint_after(5));
  }
  refused.clear();
  write_text(last, "");
  EXPECT_EQ(CheckpointFolder(results.path(), For::going_on).load(refused).snapshot.step_index(), 2);

  write_text(results / "checkpoint/before.checkpoint", "nothing");
  refused.clear();
  CheckpointFolder folder(results.path(), For::going_on);
  try {
    folder.load(refused);
    FAIL() << "two that are not whole";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("before.checkpoint"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("last.checkpoint"), std::string::npos);
  }
}

TEST(CheckpointFolderFiles, OneThatIsAlmostWrittenIsNotMissed) {
  const TemporaryFolder results;
  std::vector<std::string> refused;
  {
    CheckpointFolder folder(results.path(), For::a_new_run);
    folder.save(checkpoint_after(1));
    folder.save(checkpoint_after(2));
  }
  // Between the two renames of `save` there is no last one.
  std::filesystem::remove(results / "checkpoint/last.checkpoint");
  EXPECT_EQ(CheckpointFolder(results.path(), For::going_on).load(refused).snapshot.step_index(), 1);
}

TEST(CheckpointFolderFiles, OneProcessAtATimeAndNoRunIsLost) {
  const TemporaryFolder results;
  {
    CheckpointFolder folder(results.path(), For::a_new_run);
    EXPECT_THROW(CheckpointFolder(results.path(), For::a_new_run), std::runtime_error);
    EXPECT_THROW(CheckpointFolder(results.path(), For::going_on), std::runtime_error);
  }
  // Without a checkpoint there is nothing to keep.
  EXPECT_EQ(names_in(results.path()), std::vector<std::string>{});
  EXPECT_THROW(CheckpointFolder(results.path(), For::going_on), std::runtime_error);
  {
    CheckpointFolder folder(results.path(), For::a_new_run);
    folder.save(checkpoint_after(1));
  }
  EXPECT_THROW(CheckpointFolder(results.path(), For::a_new_run), std::runtime_error);
}

TEST(CheckpointFolderFiles, PublishingIsBroughtToItsEnd) {
  for (int moved = 0; moved <= 2; ++moved) {
    const TemporaryFolder results;
    write_text(results / "old.csv", "old");
    write_text(results / "b.csv", "of the run before");
    {
      CheckpointFolder folder(results.path(), For::a_new_run);
      folder.save(checkpoint_after(1));
    }
    // As a process leaves it that stops in `publish` after so many files.
    const char* const names[] = {"a.csv", "b.csv"};
    for (int i = 0; i < 2; ++i) {
      write_text(i < moved ? results / names[i] : results / "checkpoint" / names[i], names[i]);
    }
    write_text(
        results / "checkpoint/complete.json",
        R"({"publish": ["a.csv", "b.csv"], "remove": ["old.csv", "b.csv"], "outcome": "well"})");
    std::string outcome;
    EXPECT_TRUE(CheckpointFolder(results.path(), For::going_on).finish(outcome));
    EXPECT_EQ(outcome, "well");
    EXPECT_EQ(names_in(results.path()), (std::vector<std::string>{"a.csv", "b.csv"})) << moved;
    EXPECT_EQ(read_text(results / "b.csv"), "b.csv");
  }
}

}  // namespace
}  // namespace portwave::test_checkpoint
