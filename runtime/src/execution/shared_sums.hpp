#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "portwave/coupling/waves/island_sums.hpp"
#include "portwave/coupling/waves/part_order_reduction.hpp"
#include "portwave/subsystems/base/aligned.hpp"

namespace portwave {

/// Doubles of an array that each rank gives to the others.
struct Places {
  struct Run {
    std::size_t begin, count;
  };
  struct OfRank {
    std::vector<Run> runs;
    std::size_t doubles = 0;
    void add(std::size_t begin, std::size_t count);
  };
  std::vector<OfRank> ranks;
};

/// The sums over islands (PartOrderReduction) where every rank has looked at its own parts. Of the tree
/// of an island a rank forms the branches that are all its own, and gives their values instead of what
/// these are formed from. Of a chunk that several ranks have parts of, their entries are given. From
/// both everyone forms the rest of the tree: the same sums, bit by bit, as of one process.
class SharedSums {
 public:
  /// Sums and maxima of a branch, at most.
  static constexpr int kMostValues = 16;

  /// `rank_of_entry`: RankCut::kEvery for parts that all ranks look at. `islands`: those that matter.
  SharedSums(const PartOrderReduction& parts, std::span<const int> rank_of_entry,
             std::span<const int> islands, int ranks, int rank);

  /// Entries of terms that are given one by one.
  const Places& entries() const { return entries_; }
  /// Values of branches, `width` of each, in the array that `form` gives.
  const Places& branches(int width);
  /// What a rank gives of sums with so many terms and values.
  std::int64_t bytes_of(int rank, int terms, int values) const;
  /// This rank's own branches. Good until the next `form` with the same `place`; each sum that is shared
  /// at the same time has a place of its own.
  double* form(const IslandSums& sums, int place);
  /// Branches and entries are here.
  void take(IslandSums& sums, int place);

 private:
  static constexpr int kMixed = -2;
  /// Of the tree of an island, in the order of evaluation.
  struct Act {
    enum Kind { branch, own, add };
    Kind kind;
    int first, last;  ///< of `branch` its number, of `own` the chunks
  };
  struct Branch {
    int first, last;  ///< chunks
  };
  using Values = std::array<double, kMostValues>;

  void find_owners(const PartOrderReduction& parts, std::span<const int> rank_of_entry);
  void plan(int first, int last, std::vector<std::vector<Branch>>& by_rank);
  void add_entries(const PartOrderReduction& parts, int chunk, std::span<const int> rank_of_entry);
  static void evaluate(const IslandSums& sums, int first, int last, double* values);

  int rank_;
  std::vector<int> owner_, same_until_;  // by chunk
  std::vector<Branch> branches_;         // rank by rank
  std::vector<int> first_branch_;        // by rank
  std::vector<Act> acts_;                // island by island
  struct Island {
    int number, first_act, last_act;
  };
  std::vector<Island> islands_;
  Places entries_;
  std::map<int, Places> places_;  // by width
  std::vector<AlignedVector> values_;
  std::vector<Values> stack_;
};

}  // namespace portwave
