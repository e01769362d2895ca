// Passes through dense blocks of columns give the same bits on every instruction set and every architecture.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/factor_kernels.hpp"
#include "kernels/numbers.hpp"
#include "support/instruction_sets.hpp"

namespace portwave {
namespace {

using testing::Digest;
using testing::Numbers;

/// Blocks of widths 1, `width` and 2·width + 1, each with rows of all that follows and of a boundary of 11.
Digest run_factors(int width, bool control) {
  constexpr int kOuter = 11;
  Numbers numbers(static_cast<std::uint64_t>(width));
  std::vector<FactorBlock> blocks;
  std::vector<int> rows;
  const int inner = 3 * width + 2, size = inner + kOuter;
  std::size_t values = 0;
  for (const int own : {1, width, 2 * width + 1}) {
    FactorBlock block;
    block.first = blocks.empty() ? 0 : blocks.back().last;
    block.last = block.first + own;
    block.below = rows.size();
    for (int row = block.last; row < size; row += 1 + numbers.below(2)) rows.push_back(row);
    block.below_count = static_cast<int>(rows.size() - block.below);
    block.values = values;
    values += static_cast<std::size_t>(own) * static_cast<std::size_t>(own + block.below_count);
    blocks.push_back(block);
  }
  const std::vector<double> entries = numbers.draw(static_cast<int>(values), -0.3, 0.3);
  const std::vector<double> inverse = numbers.draw(inner, 0.5, 1.5);
  std::vector<double> w = numbers.draw(size, -1, 1), scratch(static_cast<std::size_t>(size));
  if (control) testing::nudge(w[0]);
  const factor_columns::Kernels& kernels = factor_columns::kernels();
  const factor_columns::Factors factors{blocks.data(), blocks.size(), rows.data(), entries.data(),
                                        inverse.data()};
  Digest digest;
  kernels.reduce(factors, w.data(), scratch.data());
  digest.add_all(w);
  kernels.expand(factors, w.data(), scratch.data());
  digest.add_all(w);
  // A dense matrix of as many rows as the last block is wide, and its first columns alone.
  const int n = 2 * width + 1;
  const std::vector<double> dense = numbers.draw(n * n, -0.3, 0.3);
  std::vector<double> y = numbers.draw(n, -1, 1);
  for (const int columns : {n, width}) {
    kernels.multiply(dense.data(), columns, n, w.data(), y.data());
    digest.add_all(y);
  }
  kernels.solve({dense.data(), n}, inverse.data(), y.data());
  digest.add_all(y);
  // A definite one, factorised as a whole and in its first columns, and what these leave of the rest.
  std::vector<double> definite = numbers.draw(n * n, -1, 1);
  for (int i = 0; i < n; ++i) definite[static_cast<std::size_t>(i * n + i)] += 2.0 * n;
  if (control) testing::nudge(definite[0]);
  std::vector<double> of_diagonal(static_cast<std::size_t>(n));
  for (const int columns : {n, width, 1}) {
    std::vector<double> L = definite, rest = numbers.draw((n - columns) * (n - columns), -1, 1);
    digest.add(kernels.factorise({L.data(), n, columns}, false, of_diagonal.data()));
    kernels.subtract_square({L.data(), n, columns}, rest.data());
    digest.add_all(of_diagonal);
    for (int j = 0; j < columns; ++j) {
      for (int i = j; i < n; ++i) digest.add(L[static_cast<std::size_t>(j * n + i)]);
    }
    for (int j = 0; j < n - columns; ++j) {
      for (int i = j; i < n - columns; ++i) {
        digest.add(rest[static_cast<std::size_t>(j * (n - columns) + i)]);
      }
    }
  }
  return digest;
}

// Run in processes of its own.
const testing::DigestSuite kFactorKernelBitsDigests("FactorKernelBits", [] {
  for (const bool control : {false, true}) {
    for (const int width : {1, 3, 4, 8, 21, 64}) {
      run_factors(width, control).print(fmt::format("factors{}{}", width, control ? "'" : ""));
    }
  }
});

constexpr std::size_t kComputations = 6;

TEST(FactorKernels, GiveTheSameBitsOnEveryInstructionSet) {
  testing::expect_equal_digests("FactorKernelBits", 2 * kComputations);
}

#ifdef PORTWAVE_OTHER_PROGRAM
TEST(FactorKernels, GiveTheSameBitsOnAnotherArchitecture) {
  testing::expect_digests_of(PORTWAVE_OTHER_PROGRAM, "FactorKernelBits", kComputations,
                             [](const std::string& /*name*/) { return true; });
}
#endif

}  // namespace
}  // namespace portwave
