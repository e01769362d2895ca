// The kernels of Taylor series give the same bits on every instruction set and every architecture.

#include <cstddef>
#include <cstdint>
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

/// Bands of equal or unequal values, `n` rows.
Digest run_series(int n, bool is_even, bool control) {
  Numbers numbers(static_cast<std::uint64_t>(n) + (is_even ? 1000 : 0));
  RowMatrix matrix(n, n);
  const std::vector<double> values = numbers.draw(3, -0.6, 0.6);
  for (int i = 0; i < n; ++i) {
    for (int k = -1; k <= 1; ++k) {
      const double own = numbers(-0.6, 0.6);
      if (i + k < 0 || i + k >= n) continue;
      matrix.insert(i, i + k) = is_even ? values[static_cast<std::size_t>(k + 1)] : own;
    }
  }
  const StrokeMap map(matrix);
  const StrokeKernels& kernels = stroke_kernels();
  std::vector<double> x = numbers.draw(n, -1, 1);
  if (control) testing::nudge(x[0]);
  const std::vector<double> stiffness = numbers.draw(n, 0.5, 1.5), pull = numbers.draw(n, -1, 1),
                            constant = numbers.draw(n, -1, 1);
  std::vector<double> w(x.size()), next = x, sum = x, weighted = x, after = x;
  Digest digest;
  const double* now = x.data();
  for (int k = 0; k < 5; ++k) {
    std::vector<double>& into = k % 2 == 0 ? w : next;
    kernels.series({.map = map.view(),
                    .w = now,
                    .next = into.data(),
                    .factor = 1.0 / (k + 1),
                    .sum = k % 2 == 1 ? sum.data() : nullptr,
                    .weighted = k == 1 ? weighted.data() : nullptr,
                    .weight = 0.3,
                    .next_weight = 0.2,
                    .starts = k == 1});
    now = into.data();
    digest.add_all(into);
  }
  digest.add_all(sum);
  digest.add_all(weighted);
  for (const bool is_diagonal : {false, true}) {
    const SeriesSums sums =
        kernels.series_balance({.count = n,
                                .order = 6.0,
                                .stiffness = is_diagonal ? stiffness.data() : nullptr,
                                .pull = pull.data(),
                                .middle_pull = stiffness.data(),
                                .constant = is_diagonal ? nullptr : constant.data(),
                                .x = x.data(),
                                .d = sum.data(),
                                .e = now,
                                .y = is_diagonal ? weighted.data() : nullptr});
    for (const double each :
         {sums.change, sums.size, sums.stored, sums.slope, sums.square, sums.residual}) {
      digest.add(each);
    }
    double size = 0.0;
    digest.add(kernels.series_end({.count = n,
                                   .lambda = 0.9,
                                   .x = x.data(),
                                   .d = sum.data(),
                                   .e = now,
                                   .after = after.data(),
                                   .stiffness = stiffness.data(),
                                   .constant = is_diagonal ? nullptr : constant.data()},
                                  &size));
    digest.add(size);
    digest.add_all(after);
  }
  return digest;
}

// Run in processes of its own.
const testing::DigestSuite kSeriesKernelBitsDigests("SeriesKernelBits", [] {
  for (const bool control : {false, true}) {
    for (const bool is_even : {false, true}) {
      for (const int n : {1, 5, 37, 700}) {
        run_series(n, is_even, control)
            .print(
                fmt::format("series{}_{}{}", n, is_even ? "even" : "uneven", control ? "'" : ""));
      }
    }
  }
});

constexpr std::size_t kComputations = 8;

TEST(SeriesKernels, GiveTheSameBitsOnEveryInstructionSet) {
  testing::expect_equal_digests("SeriesKernelBits", 2 * kComputations);
}

#ifdef PORTWAVE_OTHER_PROGRAM
TEST(SeriesKernels, GiveTheSameBitsOnAnotherArchitecture) {
  testing::expect_digests_of(PORTWAVE_OTHER_PROGRAM, "SeriesKernelBits", kComputations,
                             [](const std::string& /*name*/) { return true; });
}
#endif

}  // namespace
}  // namespace portwave
