#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "report/decimation.hpp"

namespace portwave::report::test_decimation {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Extremes {
  double smallest = std::numeric_limits<double>::infinity(), largest = -smallest;
};

Extremes extremes_of(const std::vector<double>& values) {
  Extremes out;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    out.smallest = std::min(out.smallest, value);
    out.largest = std::max(out.largest, value);
  }
  return out;
}

/// The law that a drawing is judged by: the extremes within any window of time at least two stretches
/// wide are those of the rows, up to a stretch at either end.
bool keeps_extremes(const std::vector<double>& rows, const std::vector<double>& time,
                    const std::vector<double>& drawn, double stretch) {
  const double end = static_cast<double>(rows.size());
  for (double from = 0.0; from < end; from += 7.0 * stretch) {
    const double to = from + 5.0 * stretch;
    Extremes inner, outer;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double t = static_cast<double>(i);
      if (t < from + stretch || t > to - stretch || std::isnan(rows[i])) continue;
      inner.smallest = std::min(inner.smallest, rows[i]);
      inner.largest = std::max(inner.largest, rows[i]);
    }
    for (std::size_t i = 0; i < time.size(); ++i) {
      if (time[i] < from || time[i] > to || std::isnan(drawn[i])) continue;
      outer.smallest = std::min(outer.smallest, drawn[i]);
      outer.largest = std::max(outer.largest, drawn[i]);
    }
    if (inner.smallest <= inner.largest &&
        (outer.smallest > inner.smallest || outer.largest < inner.largest)) {
      return false;
    }
  }
  return true;
}

/// A slow wave with single rows that stand out.
std::vector<double> rows_with_spikes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<double> rows(count);
  for (std::size_t i = 0; i < count; ++i) rows[i] = 1e6 + std::sin(1e-3 * static_cast<double>(i));
  for (int k = 0; k < 20; ++k) rows[random() % count] += (k % 2 == 0 ? 1.0 : -1.0) * (5.0 + k);
  return rows;
}

TEST(Decimation, KeepsTheExtremesOfEveryStretch) {
  for (const std::size_t count : {1u, 2u, 3u, 99u, 100u, 101u, 1000u, 12345u, 100000u}) {
    for (const unsigned seed : {1u, 2u, 3u}) {
      const std::vector<double> rows = rows_with_spikes(count, seed);
      Decimation points(1, 100);
      for (std::size_t i = 0; i < count; ++i) {
        points.add(static_cast<double>(i), std::vector<double>{rows[i]});
      }
      const Decimation::Lines lines = points.lines();
      const Extremes all = extremes_of(rows), drawn = extremes_of(lines.columns[0]);
      EXPECT_EQ(drawn.smallest, all.smallest) << count << " seed=" << seed;
      EXPECT_EQ(drawn.largest, all.largest) << count << " seed=" << seed;
      EXPECT_TRUE(std::ranges::is_sorted(lines.time)) << count;
      EXPECT_LE(lines.time.size(), 202u) << count;
      EXPECT_EQ(lines.time.front(), 0.0);
      EXPECT_EQ(lines.time.back(), static_cast<double>(count - 1));
      EXPECT_EQ(lines.columns[0].front(), rows.front());
      EXPECT_EQ(lines.columns[0].back(), rows.back());
      EXPECT_TRUE(keeps_extremes(rows, lines.time, lines.columns[0],
                                 static_cast<double>(points.rows_of_stretch())))
          << count << " seed=" << seed;
      EXPECT_EQ(points.rows(), count);
    }
  }
}

TEST(DecimationControl, EveryHundredthRowLosesThem) {
  const std::vector<double> rows = rows_with_spikes(100000, 1);
  std::vector<double> time, drawn;
  for (std::size_t i = 0; i < rows.size(); i += 500) {
    time.push_back(static_cast<double>(i));
    drawn.push_back(rows[i]);
  }
  EXPECT_FALSE(keeps_extremes(rows, time, drawn, 500.0));
}

TEST(Decimation, FewRowsAreDrawnAsTheyAre) {
  Decimation points(2, 100);
  std::vector<double> expected;
  for (int i = 0; i < 100; ++i) {
    points.add(0.1 * i, std::vector<double>{std::cos(i), kNaN});
    expected.push_back(std::cos(i));
  }
  const Decimation::Lines lines = points.lines();
  EXPECT_EQ(lines.columns[0], expected);
  EXPECT_EQ(lines.time.size(), 100u);
  EXPECT_TRUE(std::isnan(lines.columns[1][50]));
  EXPECT_EQ(points.rows_of_stretch(), 1u);
}

/// A saw-tooth goes up slowly and falls at once: within a stretch the smaller value comes first.
TEST(Decimation, ExtremesComeInTheirOrder) {
  Decimation points(2, 10);
  for (int i = 0; i < 1280; ++i) {
    const double phase = i % 128;
    points.add(i, std::vector<double>{phase, -phase});
  }
  ASSERT_EQ(points.rows_of_stretch(), 128u);
  const Decimation::Lines lines = points.lines();
  for (std::size_t s = 1; s + 1 < lines.time.size(); s += 2) {
    EXPECT_EQ(lines.columns[0][s], 0.0);
    EXPECT_EQ(lines.columns[0][s + 1], 127.0);
    EXPECT_EQ(lines.columns[1][s], 0.0);
    EXPECT_EQ(lines.columns[1][s + 1], -127.0);
  }
}

TEST(Decimation, WhatIsNotKnownIsNoExtreme) {
  Decimation points(1, 10);
  for (int i = 0; i < 1000; ++i) points.add(i, std::vector<double>{i == 500 ? 3.0 : kNaN});
  const Extremes drawn = extremes_of(points.lines().columns[0]);
  EXPECT_EQ(drawn.smallest, 3.0);
  EXPECT_EQ(drawn.largest, 3.0);
}

TEST(Decimation, TakesTheExtremesOfAnEnvelope) {
  Decimation points(1, 10);
  for (int i = 0; i < 8; ++i) {
    const double v = 0.0, low = -1.0 - i, high = 2.0 + i;
    points.add(i, {&v, 1}, {&low, 1}, {&high, 1});
  }
  const Extremes drawn = extremes_of(points.lines().columns[0]);
  EXPECT_EQ(drawn.smallest, -8.0);
  EXPECT_EQ(drawn.largest, 9.0);
}

}  // namespace
}  // namespace portwave::report::test_decimation
