// Ranks that each know some parts form the same sums as one that knows all, bit by bit, and give one another
// no more than they must.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "execution/rank_cut.hpp"
#include "execution/shared_sums.hpp"
#include "support/networks.hpp"

namespace portwave {
namespace {

/// Two sums and a maximum of three numbers by entry, of which it has some: the others are NaN.
class Numbers final : public IslandSums {
 public:
  Numbers(const PartOrderReduction& parts, const std::vector<std::vector<double>>& all,
          const std::function<bool(int)>& knows)
      : parts_(parts), own_(all), taken(static_cast<std::size_t>(parts.island_count())) {
    for (std::vector<double>& numbers : own_) {
      for (std::size_t e = 0; e < numbers.size(); ++e) {
        if (!knows(static_cast<int>(e))) numbers[e] = NAN;
      }
      terms_.emplace_back(numbers);
    }
  }
  int sums() const override { return 2; }
  int maxima() const override { return 1; }
  std::span<const std::span<double>> terms() override { return terms_; }
  void form(int chunk, double* values) const override {
    values[0] = parts_.sum_of_chunk(chunk, own_[0].data());
    values[1] = parts_.sum_of_chunk(chunk, own_[1].data());
    const auto [shift, index, count] = parts_.entries_of_chunk(chunk);
    values[2] = -INFINITY;
    for (int i = 0; i < count; ++i) {
      const auto entry = static_cast<std::size_t>(index == nullptr ? shift + i : index[i]);
      values[2] = larger_or_nan(values[2], own_[2][entry]);
    }
  }
  void take(int island, const double* values) override {
    taken[static_cast<std::size_t>(island)].assign(values, values + 3);
  }

 private:
  const PartOrderReduction& parts_;
  std::vector<std::vector<double>> own_;
  std::vector<std::span<double>> terms_;

 public:
  std::vector<std::vector<double>> taken;
};

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

/// Whose the parts are.
using Owners = std::vector<int>;

Owners in_a_row(int parts, int ranks) {
  Owners owners;
  for (int part = 0; part < parts; ++part) owners.push_back(part * ranks / parts);
  return owners;
}
Owners at_random(int parts, int ranks, unsigned seed, int together) {
  std::mt19937 generator(seed);
  Owners owners;
  for (int part = 0; part < parts; ++part) {
    owners.push_back(part % together == 0
                         ? static_cast<int>(generator() % static_cast<unsigned>(ranks))
                         : owners.back());
  }
  return owners;
}

class SharedSumsOfRanks {
 public:
  SharedSumsOfRanks(const std::vector<int>& sizes, unsigned shuffle)
      : system(testing::lines_of(sizes)),
        entries(system.parts().size()),
        reduction((std::iota(entries.begin(), entries.end(), 5),
                   shuffle == 0
                       ? void()
                       : std::shuffle(entries.begin(), entries.end(), std::mt19937(shuffle)),
                   PartOrderReduction(system, entries))) {
    std::mt19937_64 generator(3);
    std::normal_distribution<double> normal;
    numbers.assign(3, std::vector<double>(entries.size() + 5, NAN));
    for (std::vector<double>& own : numbers) {
      for (const int entry : entries) {
        own[static_cast<std::size_t>(entry)] =
            normal(generator) * std::exp(6.0 * normal(generator));
      }
    }
  }

  /// What each rank has in the end. `spoil`: what is given on the way, number by number.
  std::vector<Numbers> shared(
      const Owners& owners, int ranks, const std::function<void(double&)>& spoil = [](double&) {}) {
    std::vector<int> rank_of_entry(numbers[0].size(), RankCut::kEvery);
    for (std::size_t part = 0; part < owners.size(); ++part) {
      rank_of_entry[static_cast<std::size_t>(entries[part])] = owners[part];
    }
    std::vector<int> islands(static_cast<std::size_t>(system.island_count()));
    std::iota(islands.begin(), islands.end(), 0);
    std::vector<Numbers> all;
    std::vector<SharedSums> plans;
    std::vector<double*> branches;
    all.reserve(static_cast<std::size_t>(ranks));
    plans.reserve(all.capacity());
    for (int rank = 0; rank < ranks; ++rank) {
      all.emplace_back(reduction, numbers, [&](int entry) {
        const int owner = rank_of_entry[static_cast<std::size_t>(entry)];
        return owner == rank || owner == RankCut::kEvery;
      });
      plans.emplace_back(reduction, rank_of_entry, islands, ranks, rank);
      branches.push_back(plans.back().form(all.back(), 0));
    }
    given = 0;
    for (std::size_t from = 0; from < plans.size(); ++from) {
      const auto give = [&](const Places& places, const double* source, const auto& target) {
        for (const Places::Run& run : places.ranks[from].runs) {
          for (std::size_t i = run.begin; i < run.begin + run.count; ++i) {
            double number = source[i];
            spoil(number);
            for (std::size_t to = 0; to < plans.size(); ++to) {
              if (to != from) target(to)[i] = number;
            }
            given += 8;
          }
        }
      };
      for (std::size_t t = 0; t < 3; ++t) {
        give(plans[from].entries(), all[from].terms()[t].data(),
             [&](std::size_t to) { return all[to].terms()[t].data(); });
      }
      give(plans[from].branches(3), branches[from], [&](std::size_t to) { return branches[to]; });
      planned = plans[from].bytes_of(static_cast<int>(from), 3, 3) + (from == 0 ? 0 : planned);
    }
    for (std::size_t rank = 0; rank < plans.size(); ++rank) plans[rank].take(all[rank], 0);
    return all;
  }

  /// Ranks whose sums are not those of one that knows all.
  int different(const std::vector<Numbers>& ranks) const {
    int count = 0;
    for (const Numbers& rank : ranks) {
      bool is_same = true;
      for (int island = 0; island < system.island_count(); ++island) {
        const std::vector<double>& taken = rank.taken[static_cast<std::size_t>(island)];
        double largest = -INFINITY;
        for (const int entry : reduction.entries_of(island)) {
          largest = std::max(largest, numbers[2][static_cast<std::size_t>(entry)]);
        }
        is_same = is_same && taken.size() == 3 &&
                  same_bits(taken[0], reduction.sum(island, numbers[0].data())) &&
                  same_bits(taken[1], reduction.sum(island, numbers[1].data())) &&
                  taken[2] == largest;
      }
      count += is_same ? 0 : 1;
    }
    return count;
  }

  System system;
  std::vector<int> entries;  // by part
  PartOrderReduction reduction;
  std::vector<std::vector<double>> numbers;
  std::int64_t given = 0, planned = 0;  // bytes
};

const std::vector<int> kSizes = {1, 40, 64, 65, 500, 3 * 64, 1111};

TEST(SharedSums, AreThoseOfOneThatKnowsAll) {
  for (const unsigned shuffle : {0U, 4U}) {
    SharedSumsOfRanks sums(kSizes, shuffle);
    const int parts = static_cast<int>(sums.entries.size());
    for (const int ranks : {1, 2, 3, 5, 16}) {
      EXPECT_EQ(sums.different(sums.shared(in_a_row(parts, ranks), ranks)), 0) << ranks;
      EXPECT_EQ(sums.given, sums.planned) << "what is said to be given is not what is";
      for (const int together : {1, 8, 64, 200}) {
        const Owners owners = at_random(parts, ranks, 7, together);
        EXPECT_EQ(sums.different(sums.shared(owners, ranks)), 0) << ranks << ", " << together;
        EXPECT_EQ(sums.given, sums.planned);
      }
    }
  }
}

/// What all ranks step nobody gives.
TEST(SharedSums, OfWhatEveryoneKnowsNothingIsGiven) {
  SharedSumsOfRanks sums(kSizes, 0);
  Owners owners(sums.entries.size(), RankCut::kEvery);
  EXPECT_EQ(sums.different(sums.shared(owners, 3)), 0);
  EXPECT_EQ(sums.given, 0);
  // The last island is shared.
  std::fill(owners.end() - 1111, owners.end() - 600, 0);
  std::fill(owners.end() - 600, owners.end(), 2);
  EXPECT_EQ(sums.different(sums.shared(owners, 3)), 0);
  EXPECT_GT(sums.given, 0);
}

/// Parts in a row: two branches for each power of two, and one chunk at each border.
TEST(SharedSums, OfPartsInARowGrowWithTheLogarithm) {
  constexpr int kParts = 100'000, kRanks = 4;
  SharedSumsOfRanks sums({kParts}, 0);
  EXPECT_EQ(sums.different(sums.shared(in_a_row(kParts, kRanks), kRanks)), 0);
  const int branches = 2 * static_cast<int>(std::ceil(std::log2(kParts / 64.0)));
  EXPECT_LE(sums.given, kRanks * 8 * 3 * (branches + 2 * 63));
}

/// Controls: a number that is changed on its way, and another order of the sum, are noticed.
TEST(SharedSumsControl, WrongNumbersAreNoticed) {
  SharedSumsOfRanks sums({1111}, 0);
  const Owners owners = in_a_row(1111, 2);
  int numbers = 0;
  sums.shared(owners, 2, [&](double&) { ++numbers; });
  ASSERT_GT(numbers, 64);
  int noticed = 0;
  for (int wrong = 0; wrong < numbers; ++wrong) {
    int number = 0;
    const auto all = sums.shared(owners, 2, [&](double& value) {
      if (number++ == wrong) value = 1e30;
    });
    noticed += sums.different(all) > 0 ? 1 : 0;
  }
  EXPECT_EQ(noticed, numbers);
}

}  // namespace
}  // namespace portwave
