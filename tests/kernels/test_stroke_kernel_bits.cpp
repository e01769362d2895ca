// Kicks and drifts of rows in segments give the bits of rows one by one, on every instruction set and every
// architecture.

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/numbers.hpp"
#include "kernels/stroke_kernels.hpp"
#include "network/explicit/kick_drift/stroke_map.hpp"
#include "support/instruction_sets.hpp"

namespace portwave {
namespace {

using testing::Digest;
using testing::Numbers;

/// Nodes in rows of `columns`, each on springs and dampers to its neighbours, with gaps between the rows.
struct Net {
  static constexpr int kRows = 6, kGap = 3;

  explicit Net(int columns)
      : stride((columns + kGap + 7) / 8 * 8),
        n(kRows * stride + 8),
        springs(n, n),
        dampers(n, n),
        real(static_cast<std::size_t>(n), 0) {
    const auto is_node = [&](int i, int j) { return i >= 0 && i < kRows && j >= 0 && j < columns; };
    for (int i = 0; i < kRows; ++i) {
      for (int j = 0; j < columns; ++j) {
        const int row = i * stride + j;
        real[static_cast<std::size_t>(row)] = 1;
        double neighbours = 0.0;
        for (const auto& [k, l] : {std::pair{-1, 0}, {0, -1}, {0, 1}, {1, 0}}) {
          if (!is_node(i + k, j + l)) continue;
          springs.coeffRef(row, row + k * stride + l) = 0.37;
          dampers.coeffRef(row, row + k * stride + l) = -0.11;
          neighbours += 1.0;
        }
        springs.coeffRef(row, row) = -0.37 * neighbours - 0.2;
        dampers.coeffRef(row, row) = 0.11 * neighbours;
      }
    }
    cubic.assign(static_cast<std::size_t>(n), 0.7);
    stiffness.assign(static_cast<std::size_t>(n), -0.2);
  }

  int stride, n;
  RowMatrix springs, dampers;
  std::vector<char> real;
  AlignedVector cubic;
  std::vector<double> stiffness;
};

struct Result {
  std::vector<double> u, strokes, w, force, twice;
  double lost = 0.0;
};

Result step(const Net& net, bool in_segments, bool control) {
  const auto size = static_cast<std::size_t>(net.n);
  Numbers numbers(size);
  Result r{.u = numbers.draw(net.n, -1, 1), .strokes = {}, .w = {}, .force = {}, .twice = {}};
  std::vector<double> c = numbers.draw(net.n, -1, 1), base = numbers.draw(net.n, -1, 1);
  r.strokes = numbers.draw(net.n, -1, 1);
  for (std::size_t i = 0; i < size; ++i) {
    if (net.real[i] == 0) r.u[i] = c[i] = base[i] = r.strokes[i] = 0.0;
  }
  if (control) testing::nudge(r.strokes[1]);
  r.w.assign(size, 0.0);
  r.force = r.twice = r.w;
  for (std::vector<double>* x : {&c, &base, &r.u, &r.strokes, &r.w}) x->resize(size + 8, 0.0);
  const std::vector<double> mass(size, 8.0);
  const std::vector<int> blocks = {0, 3 * net.stride};
  const StrokeMap::KickRows rows{.real = net.real,
                                 .damped = net.real,
                                 .cubic = net.cubic,
                                 .blocks = blocks,
                                 .has_room = in_segments};
  const StrokeMap force(net.springs, net.dampers, rows);
  const StrokeMap mixed = StrokeMap::mixed(net.dampers, net.stiffness, rows);
  StrokeMap losses = StrokeMap::of_rows(net.dampers, net.real, blocks, in_segments);
  losses.mark_even({mass});
  const auto is_segmented = [](const StrokeMap& map) {
    const StrokeRuns runs = map.view();
    return std::any_of(runs.runs, runs.runs + runs.count,
                       [](const StrokeRun& run) { return run.segments > 0; });
  };
  for (const StrokeMap* map : {&force, &mixed, static_cast<const StrokeMap*>(&losses)}) {
    if (is_segmented(*map) != in_segments) return {};
  }
  const StrokeKernels& kernels = stroke_kernels();
  KickTask kick{.map = force.view(),
                .c = c.data(),
                .strokes = r.strokes.data(),
                .base = base.data(),
                .u = r.u.data(),
                .force = r.force.data(),
                .tau = 0.1,
                .has_room = true};
  kernels.kick(kick);
  r.lost = kernels.stroke({.map = losses.view(),
                           .u = r.u.data(),
                           .w = r.w.data(),
                           .strokes = r.strokes.data(),
                           .mass = mass.data(),
                           .tau = 0.2,
                           .mix = 0.3,
                           .has_room = true});
  kick.w = r.w.data();
  kernels.kick(kick);
  kernels.mixed_kick({.map = mixed.view(),
                      .c = c.data(),
                      .strokes = r.strokes.data(),
                      .base = base.data(),
                      .z = r.w.data(),
                      .u = r.u.data(),
                      .tau = 0.1,
                      .has_room = true});
  kernels.apply(losses.view(), r.u.data(), r.twice.data());
  kernels.add(losses.view(), r.strokes.data(), 0.5, r.twice.data());
  return r;
}

TEST(StrokeSegments, GiveTheBitsOfRowsOneByOne) {
  for (const int columns : {29, 37, 100}) {
    const Net net(columns);
    const Result whole = step(net, true, false), single = step(net, false, false);
    ASSERT_FALSE(whole.u.empty()) << columns
                                  << " columns: segments where there should be none, or none";
    ASSERT_FALSE(single.u.empty()) << columns;
    EXPECT_EQ(whole.u, single.u) << columns;
    EXPECT_EQ(whole.strokes, single.strokes) << columns;
    EXPECT_EQ(whole.w, single.w) << columns;
    EXPECT_EQ(whole.force, single.force) << columns;
    EXPECT_EQ(whole.twice, single.twice) << columns;
    EXPECT_NEAR(whole.lost, single.lost, 1e-13 * std::abs(single.lost)) << columns;
    EXPECT_NE(whole.u, step(net, true, true).u) << "control";
  }
}

// Run in processes of its own.
const testing::DigestSuite kStrokeKernelBitsDigests("StrokeKernelBits", [] {
  for (const bool control : {false, true}) {
    for (const int columns : {29, 100}) {
      const Result r = step(Net(columns), true, control);
      Digest digest;
      for (const std::vector<double>* x : {&r.u, &r.strokes, &r.w, &r.force, &r.twice}) {
        digest.add_all(*x);
      }
      digest.add(r.lost);
      digest.print(fmt::format("strokes{}{}", columns, control ? "'" : ""));
    }
  }
});

constexpr std::size_t kComputations = 2;

TEST(StrokeKernels, GiveTheSameBitsOnEveryInstructionSet) {
  testing::expect_equal_digests("StrokeKernelBits", 2 * kComputations);
}

#ifdef PORTWAVE_OTHER_PROGRAM
TEST(StrokeKernels, GiveTheSameBitsOnAnotherArchitecture) {
  testing::expect_digests_of(PORTWAVE_OTHER_PROGRAM, "StrokeKernelBits", kComputations,
                             [](const std::string& /*name*/) { return true; });
}
#endif

}  // namespace
}  // namespace portwave
