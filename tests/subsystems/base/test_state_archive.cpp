// Bytes that are read back: the same members, or a mismatch.

#include <array>
#include <cstddef>
#include <optional>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave::test_state_archive {
namespace {

struct Flagged {
  int number = 0;
  bool flag = false;

  friend constexpr std::array<std::size_t, 1> archive_flags(const Flagged*) {
    return {offsetof(Flagged, flag)};
  }
};

struct Members {
  bool flag = true;
  Flagged flagged = {3, true};
  std::optional<double> maybe = 2.5;
  std::vector<Flagged> list = {{1, false}, {2, true}};

  void archive(StateArchive& archive) {
    archive.values(flag, flagged, maybe);
    archive.array(list);
  }
};

std::vector<std::byte> bytes_of(Members members) {
  std::vector<std::byte> bytes;
  StateArchive writer = StateArchive::writer(bytes);
  members.archive(writer);
  writer.finish();
  return bytes;
}

TEST(StateArchive, ReadsBackWhatWasWritten) {
  const std::vector<std::byte> bytes = bytes_of({});
  Members read = {false, {}, {}, std::vector<Flagged>(2)};
  StateArchive reader = StateArchive::reader(bytes);
  read.archive(reader);
  reader.finish();
  EXPECT_TRUE(read.flag);
  EXPECT_EQ(read.flagged.number, 3);
  EXPECT_TRUE(read.flagged.flag);
  EXPECT_EQ(read.maybe, 2.5);
  EXPECT_TRUE(read.list[1].flag);
}

/// A bool of another value than 0 and 1 must never be looked at.
TEST(StateArchive, RefusesFlagsThatAreNone) {
  const std::vector<std::byte> genuine = bytes_of({});
  std::set<std::size_t> refused;
  for (std::size_t i = 0; i < genuine.size(); ++i) {
    std::vector<std::byte> bytes = genuine;
    bytes[i] = std::byte{110};
    Members read;
    StateArchive reader = StateArchive::reader(bytes);
    try {
      read.archive(reader);
    } catch (const StateArchive::Mismatch&) {
      refused.insert(i);
    }
  }
  // Of the bool; of the member; behind the value of the optional; of both in the list.
  constexpr std::size_t kSecond = 1 + sizeof(Flagged),
                        kList = kSecond + sizeof(std::optional<double>);
  EXPECT_EQ(refused,
            (std::set<std::size_t>{0, 1 + offsetof(Flagged, flag), kSecond + sizeof(double),
                                   kList + offsetof(Flagged, flag),
                                   kList + sizeof(Flagged) + offsetof(Flagged, flag)}));
}

TEST(StateArchive, IsReadToItsEndOrRefused) {
  std::vector<std::byte> bytes;
  StateArchive writer = StateArchive::writer(bytes);
  double first = 1.5, second = 2.5;
  writer.value(first);
  writer.value(second);
  writer.finish();
  StateArchive whole = StateArchive::reader(bytes);
  whole.value(first);
  whole.value(second);
  EXPECT_NO_THROW(whole.finish());
  StateArchive half = StateArchive::reader(bytes);
  half.value(first);
  EXPECT_THROW(half.finish(), StateArchive::Mismatch);
}

}  // namespace
}  // namespace portwave::test_state_archive
