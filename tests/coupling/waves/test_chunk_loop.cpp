// Loops over chunks that are shared with others: each chunk once, the same bits, and what is thrown is
// thrown to whoever asked.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/coupling/waves/chunk_loop.hpp"
#include "portwave/coupling/waves/extended_sums.hpp"
#include "portwave/subsystems/base/for_each.hpp"
#include "support/systems/networks.hpp"

namespace portwave::test_chunk_loop {
namespace {

/// From the last to the first, as no thread alone would; counts its calls.
class Backwards final : public ForEach {
 public:
  mutable int calls = 0;

 private:
  void run(int count, void (*call)(const void* body, int i), const void* body) const override {
    ++calls;
    for (int i = count - 1; i >= 0; --i) call(body, i);
  }
};

/// Islands of one, two and more chunks; the largest alone is worth sharing.
struct Islands {
  System system = testing::lines_of({1, 63, 64, 65, 190, 1100});
  std::vector<int> entries = [this] {
    std::vector<int> out(system.parts().size());
    std::iota(out.begin(), out.end(), 0);
    return out;
  }();
  PartOrderReduction parts{system, entries};
  std::vector<int> all = [this] {
    std::vector<int> out(static_cast<std::size_t>(parts.island_count()));
    std::iota(out.begin(), out.end(), 0);
    return out;
  }();
  int largest = system.island_of_part(static_cast<int>(system.parts().size()) - 1);
};

TEST(ChunkLoop, VisitsEachChunkOnceAtItsPlace) {
  const Islands islands;
  for (const int threads : {1, 2, 3, 7}) {
    ChunkLoop loop(islands.parts);
    const Backwards helpers;
    loop.share_with(&helpers, threads);
    std::vector<int> at(static_cast<std::size_t>(islands.parts.chunk_count()), -1),
        visits(at.size(), 0);
    loop.visit_chunks(islands.all, [&](std::size_t k, int chunk) {
      at[k] = chunk;
      ++visits[k];
    });
    std::vector<int> in_order(at.size());
    std::iota(in_order.begin(), in_order.end(), 0);
    EXPECT_EQ(at, in_order);
    EXPECT_EQ(std::ranges::count(visits, 1), islands.parts.chunk_count());
    EXPECT_EQ(helpers.calls, threads == 1 ? 0 : 1);
  }
}

TEST(ChunkLoop, SharesWhatIsWorthIt) {
  const Islands islands;
  const auto nothing = [](std::size_t, int) {};
  ChunkLoop loop(islands.parts);
  const Backwards helpers;
  loop.share_with(&helpers, 2);
  loop.visit_chunks(std::span(islands.all).first(4), nothing);
  EXPECT_EQ(helpers.calls, 0) << "193 parts";
  loop.visit_chunks(std::span(&islands.largest, 1), nothing);
  EXPECT_EQ(helpers.calls, 1) << "1100 parts";
  loop.share_with(nullptr, 2);
  loop.visit_chunks(std::span(&islands.largest, 1), nothing);
  EXPECT_EQ(helpers.calls, 1) << "nobody helps any more";
}

TEST(ChunkLoop, RunsInOrderWhereThatIsAskedFor) {
  const Islands islands;
  ChunkLoop loop(islands.parts);
  const Backwards helpers;
  loop.share_with(&helpers, 4);
  std::vector<int> visited;
  loop.run_in_order(islands.all, [&](std::size_t, int chunk) { visited.push_back(chunk); });
  EXPECT_EQ(std::ssize(visited), islands.parts.chunk_count());
  EXPECT_TRUE(std::ranges::is_sorted(visited));
  EXPECT_EQ(helpers.calls, 0);
}

TEST(ChunkLoop, ThrowsWhatAVisitThrows) {
  const Islands islands;
  ChunkLoop loop(islands.parts);
  const Backwards helpers;
  loop.share_with(&helpers, 3);
  const int failing = islands.parts.chunks_of(islands.largest).first + 2;
  int visits = 0;
  const auto visit = [&](std::size_t, int chunk) {
    if (chunk == failing) throw std::domain_error("the first part that fails");
    if (chunk > failing + 8) throw std::range_error("one after it, that fails earlier");
    ++visits;
  };
  EXPECT_THROW(loop.visit_chunks(islands.all, visit), std::domain_error);
  EXPECT_GT(visits, 0);
  // It is as good as new.
  visits = 0;
  loop.visit_chunks(islands.all, [&](std::size_t, int) { ++visits; });
  EXPECT_EQ(visits, islands.parts.chunk_count());
}

/// Terms of very different sizes, so that every order of a sum rounds its own way.
long double term(int part) {
  return std::sin(1.0L + part) * std::exp(8.0L * std::cos(3.0L * part));
}

TEST(ExtendedSums, HaveTheSameBitsWhoeverHelps) {
  const Islands islands;
  const auto most = islands.all.size();
  const auto add = [](ExtendedSums::Terms& sum, int part) {
    sum[0] += term(part);
    sum[1] += term(part) * term(part);
  };
  ExtendedSums alone(islands.system, islands.parts, most, nullptr);
  alone.find(islands.all, add);
  const Backwards helpers;
  ExtendedSums shared(islands.system, islands.parts, most, nullptr);
  shared.share_with(&helpers, 3);
  shared.find(islands.all, add);
  ASSERT_EQ(helpers.calls, 1);
  for (std::size_t i = 0; i < most; ++i) {
    long double plain = 0.0L, magnitude = 0.0L;
    for (const int part : islands.parts.parts_of(islands.all[i])) {
      plain += term(part);
      magnitude += std::abs(term(part));
    }
    EXPECT_NEAR(static_cast<double>(alone.of(i)[0] - plain), 0.0,
                1e-18 * static_cast<double>(magnitude) * 1200.0);
    EXPECT_EQ(alone.of(i), shared.of(i)) << i;
    EXPECT_EQ(shared.of(i)[2], 0.0L);
  }
}

TEST(ExtendedSums, AskPartsInOrderWhereThatCounts) {
  const Islands islands;
  const Backwards helpers;
  ExtendedSums sums(islands.system, islands.parts, 1, nullptr);
  sums.share_with(&helpers, 3);
  std::vector<int> asked;
  const auto note = [&](ExtendedSums::Terms& sum, int part) {
    asked.push_back(part);
    sum[0] += term(part);
  };
  const ExtendedSums::Terms in_order = sums.find_in_order(islands.largest, note);
  const auto parts = islands.parts.parts_of(islands.largest);
  EXPECT_EQ(asked, std::vector<int>(parts.begin(), parts.end()));
  asked.clear();
  EXPECT_EQ(sums.find(islands.largest, note), in_order);
  EXPECT_EQ(asked.size(), parts.size());
  EXPECT_NE(asked, std::vector<int>(parts.begin(), parts.end())) << "the helpers go backwards";
}

}  // namespace
}  // namespace portwave::test_chunk_loop
