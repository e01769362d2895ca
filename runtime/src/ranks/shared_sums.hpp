#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "portwave/coupling/system/system_slice.hpp"
#include "portwave/coupling/waves/island_sums.hpp"
#include "portwave/coupling/waves/part_order_reduction.hpp"
#include "portwave/runtime/ranks/ranks.hpp"
#include "portwave/subsystems/base/aligned.hpp"

namespace portwave {

/// The sums over islands (PartOrderReduction) where every rank has looked at its own parts. Of the tree
/// of an island a rank forms the branches that are all its own; of a chunk that others have parts of as
/// well it has entries. In rounds of doubling, groups of ranks tell one another what they have of both,
/// and form what they then have all of; after the last round everyone has the same sums, bit by bit, as
/// one process.
///
/// How much a rank sends in a round grows with the logarithm of the number of parts, where its parts are
/// in a row. docs/decisions/0056-sums-as-trees.md
class SharedSums {
 public:
  /// Sums and maxima of a branch, at most.
  static constexpr int kMostValues = 16;

  /// `rank_of_entry`: RankCut::kEvery for parts that all ranks look at. `islands`: those that matter.
  SharedSums(const PartOrderReduction& parts, std::span<const int> rank_of_entry,
             std::span<const int> islands, int ranks, int rank);
  /// Where every rank has a slice; `parts`: of this one.
  SharedSums(const PartOrderReduction& parts, const SystemSlice& slice,
             std::span<const int> islands, int ranks);

  /// Makes the sums of all ranks known to `sums`, and beside them a note of each rank to all: `notes[r]`
  /// are the bytes of that of rank r, one after another in `all`, of which this rank has its own. All
  /// ranks call it, with as many sums and notes of the same sizes every time.
  void exchange(Ranks& ranks, std::span<IslandSums* const> sums, std::span<std::byte> all,
                std::span<const std::size_t> notes);
  /// The same in two, with the same arguments. What this rank has to tell first is then under way, and
  /// until `finish` neither notes nor what the sums are formed from may change.
  void begin(Ranks& ranks, std::span<IslandSums* const> sums, std::span<std::byte> all,
             std::span<const std::size_t> notes);
  void finish(std::span<IslandSums* const> sums, std::span<std::byte> all);

  /// Rounds of so many ranks.
  static int rounds_of(int ranks);
  /// What each rank has of so many terms and values by itself, in bytes: it sends as much in the first
  /// round, and as a rule about as much in those after.
  static std::vector<std::int64_t> bytes_of_ranks(const PartOrderReduction& parts,
                                                  std::span<const int> rank_of_entry,
                                                  std::span<const int> islands, int ranks,
                                                  int terms, int values);

 private:
  static constexpr int kMixed = -2, kNobody = -1;
  using Values = std::array<double, kMostValues>;

  /// What a group of ranks has together.
  struct Branch {
    int first, last;  ///< chunks
    friend bool operator<(const Branch& a, const Branch& b) {
      return std::pair(a.first, a.last) < std::pair(b.first, b.last);
    }
  };
  struct Known {
    std::vector<Branch> branches;
    std::vector<int> entries;           ///< of chunks that other groups have parts of
    int first_rank = 0, last_rank = 0;  ///< in whose notes
  };
  /// Who is in which group, and who has which chunks.
  struct Groups {
    std::vector<int> of_rank;
    std::vector<int> of_chunk, same_until;
  };
  /// How a branch of the round after comes about: acts on a stack.
  struct Act {
    enum Kind { own, other, chunk, add };
    Kind kind;
    int number;
  };
  struct Round {
    int partner = -1;  ///< −1: others have one
    Known sent, received;
    std::vector<Act> acts;
    std::vector<int>
        first_act;  ///< of the branches of the round after; empty: they are those before
    std::unique_ptr<NeighbourMessages> messages;
  };
  struct OfSum {
    AlignedVector own, other, next;  ///< values of branches
  };
  class Chunks;
  class ChunksOfEntries;
  class ChunksOfSlices;
  class Planner;

  static bool has_partner(const Round& round) { return round.partner >= 0; }
  void plan(const Chunks& chunks, std::span<const int> islands, int ranks, int rank);

  static void evaluate(const IslandSums& sums, int first, int last, double* values);
  void connect(Ranks& ranks, std::span<IslandSums* const> sums, std::span<const std::size_t> notes);
  void send(Round& round, std::span<IslandSums* const> sums, std::span<const std::byte> all);
  void receive(Round& round, std::span<IslandSums* const> sums, std::span<std::byte> all);
  void merge(const Round& round, const IslandSums& sums, OfSum& values);

  std::vector<Branch> first_;  // that this rank has from the start
  std::vector<Round> rounds_;
  std::vector<int> shared_;                        // islands, one branch each after the last round
  std::vector<std::pair<int, Branch>> everyones_;  // islands that every rank has, and their trees
  std::vector<OfSum> values_;
  std::vector<std::size_t> begin_of_note_;  // by rank, and the end
  std::uint64_t number_ = 0;
};

}  // namespace portwave
