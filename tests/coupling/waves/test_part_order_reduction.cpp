// What is put together over parts depends on the system alone, not on where its parts lie in
// memory.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/coupling/waves/part_order_reduction.hpp"
#include "portwave/subsystems/core/step_batch.hpp"
#include "support/systems/networks.hpp"

namespace portwave::test_part_order_reduction {
namespace {

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

/// Eight interleaved sums, added pairwise: as documented, written down once more.
double interleaved(const std::vector<double>& values) {
  double p[8] = {};
  for (std::size_t i = 0; i < values.size(); ++i) p[i % 8] += values[i];
  return ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]));
}

/// The tree over chunks of 64, written down once more: whatever two branches are equally large and side
/// by side becomes one, and what is left over is added from the right.
double in_a_tree(const std::vector<double>& values) {
  struct Branch {
    double sum;
    std::size_t chunks;
  };
  std::vector<Branch> branches;
  for (std::size_t first = 0; first < values.size(); first += 64) {
    const std::size_t last = std::min(values.size(), first + 64);
    const auto begin = values.begin();
    branches.push_back({interleaved({begin + static_cast<std::ptrdiff_t>(first),
                                     begin + static_cast<std::ptrdiff_t>(last)}),
                        1});
    while (branches.size() > 1 && branches.back().chunks == branches[branches.size() - 2].chunks) {
      const Branch right = branches.back();
      branches.pop_back();
      branches.back() = {branches.back().sum + right.sum, 2 * right.chunks};
    }
  }
  while (branches.size() > 1) {
    const Branch right = branches.back();
    branches.pop_back();
    branches.back().sum += right.sum;
  }
  return branches.empty() ? 0.0 : branches.back().sum;
}

/// A value for each part, of very different sizes, so that every order of a sum rounds its own way.
std::vector<double> values_of_parts(int count) {
  std::mt19937_64 generator(11);
  std::normal_distribution<double> normal;
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& value : values) value = normal(generator) * std::exp(6.0 * normal(generator));
  return values;
}

/// Offsets for the parts: one after another from `first`, or scattered with holes.
std::vector<int> layout(int count, int first, unsigned shuffle) {
  std::vector<int> entries(static_cast<std::size_t>(count));
  std::iota(entries.begin(), entries.end(), first);
  if (shuffle == 0) return entries;
  std::shuffle(entries.begin(), entries.end(), std::mt19937_64(shuffle));
  for (int& entry : entries) entry = 2 * entry + entry / 5;
  return entries;
}

std::vector<double> by_entry(const std::vector<double>& values, const std::vector<int>& entries) {
  std::vector<double> out(
      static_cast<std::size_t>(*std::max_element(entries.begin(), entries.end())) + 1, NAN);
  for (std::size_t i = 0; i < values.size(); ++i) {
    out[static_cast<std::size_t>(entries[i])] = values[i];
  }
  return out;
}

/// Islands of one, two and more chunks, whose parts come in turn.
System islands_of_all_sizes() {
  return testing::lines_of({1, 63, 64, 65, 128, 190, 5 * 64, 7 * 64 + 3, 1000});
}

class LayoutOfParts : public ::testing::TestWithParam<unsigned> {
 protected:
  const System system = islands_of_all_sizes();
  const int count = static_cast<int>(system.parts().size());
  const std::vector<int> entries = layout(count, 3, GetParam());
  const PartOrderReduction reduction{system, entries};
  const std::vector<double> values = values_of_parts(count);
  const std::vector<double> placed = by_entry(values, entries);
};
INSTANTIATE_TEST_SUITE_P(Seeds, LayoutOfParts, ::testing::Values(0U, 1U, 2U, 3U));

TEST_P(LayoutOfParts, DoesNotMatterForSums) {
  ASSERT_EQ(reduction.island_count(), system.island_count());
  ASSERT_EQ(reduction.part_count(), count);
  for (int island = 0; island < reduction.island_count(); ++island) {
    std::vector<double> own;
    for (int part = 0; part < count; ++part) {
      if (system.island_of_part(part) == island)
        own.push_back(values[static_cast<std::size_t>(part)]);
    }
    EXPECT_TRUE(same_bits(reduction.sum(island, placed.data()), in_a_tree(own))) << island;
  }
}

TEST_P(LayoutOfParts, ChunksHoldThePartsOfAnIslandInARow) {
  int next = 0;
  for (int island = 0; island < reduction.island_count(); ++island) {
    const auto [first, last] = reduction.chunks_of(island);
    EXPECT_EQ(first, next) << "numbered island by island";
    next = last;
    std::vector<double> taken;
    for (int chunk = first; chunk < last; ++chunk) {
      const auto [shift, index, parts] = reduction.entries_of_chunk(chunk);
      EXPECT_EQ(parts == PartOrderReduction::kChunk || chunk + 1 == last, true) << island;
      for (int i = 0; i < parts; ++i) {
        const int entry = index == nullptr ? shift + i : index[i];
        taken.push_back(placed[static_cast<std::size_t>(entry)]);
      }
    }
    std::vector<double> own;
    for (const int part : reduction.parts_of(island)) {
      own.push_back(values[static_cast<std::size_t>(part)]);
    }
    EXPECT_EQ(taken, own) << island;
  }
  EXPECT_EQ(next, reduction.chunk_count());
}

/// Whoever has the entries from one to another has these chunks, and no others that are in one piece.
TEST_P(LayoutOfParts, FindsTheChunksThatAreWholeInARange) {
  std::mt19937 generator(GetParam());
  const int end = static_cast<int>(placed.size());
  int found = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const int a = static_cast<int>(generator() % placed.size());
    const int b = trial < 5 ? end : static_cast<int>(generator() % placed.size());
    const int first = trial < 5 ? 0 : std::min(a, b), last = std::max(a, b);
    std::vector<int> expected, visited;
    for (int chunk = 0; chunk < reduction.chunk_count(); ++chunk) {
      const auto [shift, index, parts] = reduction.entries_of_chunk(chunk);
      if (index == nullptr && shift >= first && shift + parts <= last) expected.push_back(chunk);
    }
    reduction.for_chunks_within(first, last, [&](int chunk) { visited.push_back(chunk); });
    std::ranges::sort(visited);
    ASSERT_EQ(visited, expected) << first << " to " << last;
    found += static_cast<int>(visited.size());
  }
  EXPECT_GT(found, 0);
}

TEST_P(LayoutOfParts, PartsComeInTheOrderOfTheirNumbers) {
  std::vector<int> all;
  for (int island = 0; island < reduction.island_count(); ++island) {
    const auto parts = reduction.parts_of(island);
    EXPECT_TRUE(std::is_sorted(parts.begin(), parts.end())) << island;
    const auto offsets = reduction.entries_of(island);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      EXPECT_EQ(system.island_of_part(parts[i]), island);
      EXPECT_EQ(offsets[i], entries[static_cast<std::size_t>(parts[i])]);
    }
    const auto taken = reduction.fold(island, std::vector<int>(),
                                      [](std::vector<int>& v, int part) { v.push_back(part); });
    EXPECT_TRUE(std::equal(parts.begin(), parts.end(), taken.begin(), taken.end()));
    all.insert(all.end(), parts.begin(), parts.end());
  }
  std::sort(all.begin(), all.end());
  const auto taken =
      reduction.fold_all(std::vector<int>(), [](std::vector<int>& v, int p) { v.push_back(p); });
  EXPECT_EQ(taken, all) << "every part once";
  EXPECT_EQ(reduction.first_part([](int part) { return part >= 5; }), 5);
  EXPECT_EQ(reduction.first_part([](int) { return false; }), -1);
}

/// Control: these values do tell the order of a sum.
TEST(PartOrderReductionControl, AnotherOrderGivesAnotherSum) {
  std::vector<double> values = values_of_parts(1000);
  const double sum = in_a_tree(values);
  EXPECT_FALSE(same_bits(interleaved(values), sum));
  std::reverse(values.begin(), values.end());
  EXPECT_FALSE(same_bits(in_a_tree(values), sum));
}

struct Failure {
  int iteration;
  PhaseStatus status;
};

/// Whatever fails, in whatever order and grouping it is heard of: the earliest iteration, and of
/// that the lowest part.
TEST(PartOrderReduction, TheFirstFailureDoesNotDependOnWhoReportsFirst) {
  std::vector<Failure> failures = {
      {4, {2, StepFault::not_finite, "late"}}, {-1, {}},
      {3, {7, StepFault::threw, "seven"}},     {3, {5, StepFault::not_converged, "five"}},
      {3, {9, StepFault::threw, "nine"}},      {-1, {}}};
  std::mt19937_64 generator(5);
  for (int trial = 0; trial < 200; ++trial) {
    std::shuffle(failures.begin(), failures.end(), generator);
    // In two groups, as two machines would.
    Failure groups[2] = {{-1, {}}, {-1, {}}};
    const std::size_t cut = generator() % (failures.size() + 1);
    for (std::size_t i = 0; i < failures.size(); ++i) {
      Failure& group = groups[i < cut ? 0 : 1];
      PartOrderReduction::take_failure(group.iteration, group.status, failures[i].iteration,
                                       failures[i].status);
    }
    PartOrderReduction::take_failure(groups[0].iteration, groups[0].status, groups[1].iteration,
                                     groups[1].status);
    ASSERT_EQ(groups[0].iteration, 3);
    ASSERT_EQ(groups[0].status.part, 5);
    ASSERT_EQ(groups[0].status.detail, "five");
  }
}

TEST(PartOrderReduction, NoFailureIsNone) {
  Failure none{-1, {}};
  PartOrderReduction::take_failure(none.iteration, none.status, -1, {});
  EXPECT_EQ(none.iteration, -1);
  EXPECT_TRUE(none.status.ok());
}

}  // namespace
}  // namespace portwave::test_part_order_reduction
