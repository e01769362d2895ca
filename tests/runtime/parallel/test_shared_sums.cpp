// Ranks that each know some parts form the same sums as one that knows all, bit by bit, and give one another
// no more than they must.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/runtime/ranks/thread_ranks.hpp"
#include "ranks/rank_cut.hpp"
#include "ranks/shared_sums.hpp"
#include "support/systems/networks.hpp"

namespace portwave::test_shared_sums {
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

using Spoil = std::function<void(int rank, double&)>;

/// Ranks of which what is sent passes somebody.
class Spoiler final : public Ranks {
 public:
  Spoiler(Ranks& inner, const Spoil& spoil) : inner_(inner), spoil_(spoil) {}
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  void gather(std::span<const std::byte> own, std::span<const std::size_t> bytes,
              std::span<std::byte> all) override {
    inner_.gather(own, bytes, all);
  }
  void broadcast(std::span<std::byte> bytes) override { inner_.broadcast(bytes); }
  std::unique_ptr<NeighbourMessages> connect(std::span<const Neighbour> neighbours, int slots,
                                             Carries carries) override {
    return std::make_unique<Messages>(*this, inner_.connect(neighbours, slots, carries),
                                      neighbours.size());
  }
  std::shared_ptr<Ranks> first(int count) override { return inner_.first(count); }
  void rest() override { inner_.rest(); }
  RankTraffic traffic() const override { return inner_.traffic(); }

 private:
  class Messages final : public NeighbourMessages {
   public:
    Messages(Spoiler& ranks, std::unique_ptr<NeighbourMessages> inner, std::size_t neighbours)
        : ranks_(ranks), inner_(std::move(inner)), neighbours_(neighbours) {}
    std::span<double> outgoing(int i, std::uint64_t number) override {
      return out_ = inner_->outgoing(i, number);
    }
    void send(std::uint64_t number) override {
      if (neighbours_ > 0 && ranks_.spoil_ != nullptr) {
        for (double& value : out_) ranks_.spoil_(ranks_.rank(), value);
      }
      inner_->send(number);
    }
    void receive(std::uint64_t number) override { inner_->receive(number); }
    bool arrived(int i, std::uint64_t number, std::uint64_t now) override {
      return inner_->arrived(i, number, now);
    }
    std::span<const double> incoming(int i, std::uint64_t number) override {
      return inner_->incoming(i, number);
    }
    void release(std::uint64_t number) override { inner_->release(number); }
    void release(int i, std::uint64_t number) override { inner_->release(i, number); }

   private:
    Spoiler& ranks_;
    std::unique_ptr<NeighbourMessages> inner_;
    std::size_t neighbours_;
    std::span<double> out_;
  };

  Ranks& inner_;
  const Spoil& spoil_;
};

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

  /// What each rank has in the end, by threads that tell one another. `spoil`: what is sent, by rank, and
  /// number by number.
  std::vector<Numbers> shared(const Owners& owners, int ranks, const Spoil& spoil = nullptr) {
    std::vector<int> rank_of_entry(numbers[0].size(), RankCut::kEvery);
    for (std::size_t part = 0; part < owners.size(); ++part) {
      rank_of_entry[static_cast<std::size_t>(entries[part])] = owners[part];
    }
    std::vector<int> islands(static_cast<std::size_t>(system.island_count()));
    std::iota(islands.begin(), islands.end(), 0);
    std::vector<Numbers> all;
    for (int rank = 0; rank < ranks; ++rank) {
      all.emplace_back(reduction, numbers, [&](int entry) {
        const int owner = rank_of_entry[static_cast<std::size_t>(entry)];
        return owner == rank || owner == RankCut::kEvery;
      });
    }
    notes.assign(static_cast<std::size_t>(ranks), {});
    traffic.assign(static_cast<std::size_t>(ranks), {});
    std::vector<std::size_t> sizes;
    for (int r = 0; r < ranks; ++r) sizes.push_back(static_cast<std::size_t>(r) % 5);
    run_thread_ranks(ranks, [&](const std::shared_ptr<Ranks>& own) {
      const auto r = static_cast<std::size_t>(own->rank());
      SharedSums sums(reduction, rank_of_entry, islands, ranks, own->rank());
      Spoiler spoiler(*own, spoil);
      // Twice, with other notes: nothing of the first time is left.
      for (const int time : {1, 2}) {
        std::vector<std::byte>& own_notes = notes[r];
        own_notes.assign(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}), std::byte{0});
        const auto begin =
            std::accumulate(sizes.begin(), sizes.begin() + own->rank(), std::size_t{0});
        for (std::size_t i = 0; i < sizes[r]; ++i) {
          own_notes[begin + i] = static_cast<std::byte>(time * 100 + own->rank());
        }
        IslandSums* const one[] = {&all[r]};
        sums.exchange(spoiler, one, own_notes, sizes);
      }
      traffic[r] = own->traffic();
    });
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
  std::vector<std::vector<std::byte>> notes;  // by rank: of all
  std::vector<RankTraffic> traffic;
};

/// What the notes of so many ranks are in the end.
std::vector<std::byte> notes_of(int ranks) {
  std::vector<std::byte> notes;
  for (int r = 0; r < ranks; ++r) {
    notes.insert(notes.end(), static_cast<std::size_t>(r % 5), static_cast<std::byte>(200 + r));
  }
  return notes;
}

const std::vector<int> kSizes = {1, 40, 64, 65, 500, 3 * 64, 1111};

TEST(SharedSums, AreThoseOfOneThatKnowsAll) {
  for (const unsigned shuffle : {0U, 4U}) {
    SharedSumsOfRanks sums(kSizes, shuffle);
    const int parts = static_cast<int>(sums.entries.size());
    for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 13, 16}) {
      std::vector<Owners> dealt = {in_a_row(parts, ranks)};
      for (const int together : {1, 8, 64, 200}) {
        dealt.push_back(at_random(parts, ranks, 7, together));
      }
      for (const Owners& owners : dealt) {
        EXPECT_EQ(sums.different(sums.shared(owners, ranks)), 0) << ranks;
        for (const auto& notes : sums.notes) EXPECT_EQ(notes, notes_of(ranks)) << ranks;
      }
    }
  }
}

/// One message in every round; two more rounds for what is beyond a power of two.
TEST(SharedSums, TakeAsManyRoundsAsDoublings) {
  const int rounds[] = {0, 1, 3, 2, 4, 4, 4, 3, 5};
  SharedSumsOfRanks sums(kSizes, 0);
  const int parts = static_cast<int>(sums.entries.size());
  for (int ranks = 1; ranks <= 9; ++ranks) {
    EXPECT_EQ(SharedSums::rounds_of(ranks), rounds[ranks - 1]) << ranks;
    sums.shared(in_a_row(parts, ranks), ranks);
    std::int64_t most = 0;
    for (const RankTraffic& own : sums.traffic) most = std::max(most, own.sum_messages);
    EXPECT_EQ(most, 2 * rounds[ranks - 1]) << ranks;
  }
}

/// What all ranks step nobody gives.
TEST(SharedSums, OfWhatEveryoneKnowsNothingIsGiven) {
  SharedSumsOfRanks sums(kSizes, 0);
  Owners owners(sums.entries.size(), RankCut::kEvery);
  EXPECT_EQ(sums.different(sums.shared(owners, 2)), 0);
  for (const RankTraffic& own : sums.traffic) EXPECT_LE(own.sum_bytes, 2 * 8) << "notes";
  std::vector<int> rank_of_entry(sums.numbers[0].size(), RankCut::kEvery);
  const int island[] = {6};
  for (const std::int64_t bytes :
       SharedSums::bytes_of_ranks(sums.reduction, rank_of_entry, island, 2, 3, 3)) {
    EXPECT_EQ(bytes, 0);
  }
}

/// Parts in a row: two branches for each power of two, and one chunk at each border, in every round.
TEST(SharedSums, OfPartsInARowGrowWithTheLogarithm) {
  constexpr int kParts = 100'000, kRanks = 8, kRounds = 3;
  SharedSumsOfRanks sums({kParts}, 0);
  EXPECT_EQ(sums.different(sums.shared(in_a_row(kParts, kRanks), kRanks)), 0);
  const int branches = 2 * static_cast<int>(std::ceil(std::log2(kParts / 64.0)));
  for (const RankTraffic& own : sums.traffic) {
    EXPECT_LE(own.sum_bytes, 2 * kRounds * (8 * 3 * (branches + 2 * 63) + 40));
  }
}

/// Controls: any number that is changed on its way is noticed.
TEST(SharedSumsControl, WrongNumbersAreNoticed) {
  SharedSumsOfRanks sums({1111}, 0);
  const Owners owners = in_a_row(1111, 3);
  for (int rank = 0; rank < 3; ++rank) {
    std::atomic<int> numbers = 0;
    sums.shared(owners, 3, [&](int from, double&) { numbers += from == rank ? 1 : 0; });
    ASSERT_GT(numbers.load(), 3) << rank;
    int noticed = 0;
    for (int wrong = 0; wrong < numbers; ++wrong) {
      std::atomic<int> number = 0;
      const auto all = sums.shared(owners, 3, [&](int from, double& value) {
        if (from == rank && number++ == wrong) value = 1e30;
      });
      bool is_noticed = sums.different(all) > 0;
      for (const auto& notes : sums.notes) is_noticed = is_noticed || notes != notes_of(3);
      noticed += is_noticed ? 1 : 0;
    }
    EXPECT_EQ(noticed, numbers / 2) << "what is sent twice is noticed the second time";
  }
}

}  // namespace
}  // namespace portwave::test_shared_sums
