#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <span>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "output/files/row_writer.hpp"

namespace portwave::test_row_writer {
namespace {

/// Fills rows of lengths 1 to 7 with the numbers from `first` on.
double fill(RowWriter& writer, double first, int rows) {
  for (int i = 0; i < rows; ++i) {
    for (double& number : writer.row(1 + static_cast<std::size_t>(i % 7))) number = first++;
  }
  return first;
}

TEST(RowWriter, WritesAllInOrder) {
  std::vector<double> written;
  RowWriter writer(7, [&](std::span<const double> rows) {
    written.insert(written.end(), rows.begin(), rows.end());
  });
  double next = fill(writer, 0.0, 100000);
  writer.drain();
  ASSERT_EQ(static_cast<double>(written.size()), next);
  next = fill(writer, next, 1000);
  writer.drain();
  ASSERT_EQ(static_cast<double>(written.size()), next);
  for (std::size_t i = 0; i < written.size(); ++i) {
    ASSERT_EQ(written[i], static_cast<double>(i));
  }
}

TEST(RowWriter, TakesRowsThatAreLongerThanABlockWasToBe) {
  std::size_t count = 0;
  RowWriter writer(1000003, [&](std::span<const double> rows) { count += rows.size(); });
  for (int i = 0; i < 9; ++i) writer.row(1000003)[1000002] = 1.0;
  writer.drain();
  EXPECT_EQ(count, 9U * 1000003U);
}

TEST(RowWriter, MakesTheRunWaitAndLosesNothingWhereItCannotKeepUp) {
  // Whatever is written waits until the run has filled all the blocks that there are, so that it
  // has to wait for one.
  std::mutex mutex;
  std::condition_variable changed;
  bool filled = false;
  std::size_t count = 0;
  RowWriter writer(1, [&](std::span<const double> rows) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return filled; });
    count += rows.size();
  });
  constexpr int kRows = 1000000;
  for (int i = 0; i < kRows; ++i) {
    if (i == 3 * (1 << 15)) {
      const std::lock_guard lock(mutex);
      EXPECT_EQ(writer.waits(), 0);
      filled = true;
      changed.notify_all();
    }
    writer.row(1)[0] = i;
  }
  writer.drain();
  EXPECT_EQ(count, static_cast<std::size_t>(kRows));
  EXPECT_GE(writer.waited_s(), 0.0);
}

TEST(RowWriter, AFailureReachesTheThreadThatSteps) {
  int blocks = 0;
  RowWriter writer(1, [&](std::span<const double>) {
    if (++blocks == 2) throw std::runtime_error("the disk is full");
  });
  EXPECT_THROW(
      {
        for (int i = 0; i < 100 * (1 << 15); ++i) writer.row(1)[0] = i;
      },
      std::runtime_error);
  EXPECT_THROW(writer.drain(), std::runtime_error);
  EXPECT_EQ(blocks, 2);
}

TEST(RowWriter, EndsWithWhatIsNotWritten) {
  int rows = 0;
  {
    RowWriter writer(1, [&](std::span<const double>) { ++rows; });
    writer.row(1)[0] = 1.0;
  }
  EXPECT_EQ(rows, 0);
}

}  // namespace
}  // namespace portwave::test_row_writer
