#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/runtime/parallel/partition.hpp"
#include "portwave/runtime/ranks/ranks.hpp"
#include "ranks/rank_cut.hpp"

namespace portwave {

/// Which rank steps which tasks of a partition, and where what it writes lies in the arrays of a
/// step. Every rank has the arrays of the whole system and writes its share of them; what of the
/// others is needed is shared when it is needed, as it is: sums and decisions are then made by every
/// rank from the same numbers, in the order of the parts, and are the same bit by bit.
class RankShares {
 public:
  static constexpr int kEvery = RankCut::kEvery;

  /// Errors: ConfigError where a part of one rank keeps its state elsewhere than in its record.
  RankShares(const WaveDiscretisation& waves, const RankCut& cut, std::shared_ptr<Ranks> ranks);

  Ranks& ranks() const { return *ranks_; }
  int rank() const { return ranks_->rank(); }
  int rank_of_task(int task) const { return rank_of_task_[static_cast<std::size_t>(task)]; }
  std::span<const int> ranks_of_tasks() const { return rank_of_task_; }
  bool is_own(int task) const {
    const int rank = rank_of_task(task);
    return rank == kEvery || rank == this->rank();
  }
  /// Tasks of this rank in the order of their numbers, and what they are made of.
  std::span<const int> own_tasks() const { return own_tasks_; }
  std::span<const BatchRange> own_ranges() const { return own_ranges_; }

  /// By entry the rank that steps the part; kEvery also where there is none.
  std::span<const int> ranks_of_entries() const { return rank_of_entry_; }

  /// An array of a step, by how it is laid out.
  struct Array {
    enum Kind { entries, waves, record };
    Kind kind;
    double* data;
  };
  /// Gives every rank what the others have written (of slices: nothing), and beside it a note of each rank to all: `note`
  /// is this rank's, of `notes[r]` bytes that of rank r (empty: none). Gives the notes one after
  /// another, good until the next call. All ranks call it.
  std::span<const std::byte> share(std::span<const Array> arrays,
                                   std::span<const std::byte> note = {},
                                   std::span<const std::size_t> notes = {});
  /// A part as all ranks know it: of slices, by its number in the whole.
  int number_of(int part) const {
    if (slice_ == nullptr || part < 0) return part;
    return static_cast<int>(slice_->numbers[static_cast<std::size_t>(part)]);
  }
  /// The failure of the lowest part that any rank has (`number_of`); ok where none has. All ranks call
  /// it.
  PhaseStatus merged(PhaseStatus own);
  void share(std::initializer_list<Array> arrays) {
    share(std::span(arrays.begin(), arrays.size()));
  }

 private:
  struct Run {
    std::size_t begin, count;
  };
  /// Of a rank, by Array::Kind.
  struct Runs {
    std::vector<Run> of[3];
    std::size_t doubles[3] = {};
  };

  void add_range(int rank, const BatchRange& range);

  const WaveDiscretisation& waves_;
  const SystemSlice* slice_;  // null: every rank has the whole system
  std::shared_ptr<Ranks> ranks_;
  std::vector<int> rank_of_task_;
  std::vector<int> own_tasks_;
  std::vector<BatchRange> own_ranges_;
  std::vector<int> rank_of_entry_;
  std::vector<Runs> runs_;  // by rank
  // Of a gather.
  std::vector<std::byte> sent_, received_, notes_;
  std::vector<std::size_t> bytes_;
};

}  // namespace portwave
