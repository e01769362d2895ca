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

/// The ranks of the tasks of a partition, and the places in the arrays of a step that each rank writes.
/// Every rank has the arrays of the whole system and writes its share of them. Shares of others are fetched
/// when they are needed, without any conversion: every rank then forms sums and decisions from the same
/// numbers, in the order of the parts, with the same bits.
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
  /// The tasks of this rank, in the order of their numbers, and their lanes.
  std::span<const int> own_tasks() const { return own_tasks_; }
  std::span<const BatchRange> own_ranges() const { return own_ranges_; }

  /// By entry: the rank that steps the part; kEvery also for entries without a part.
  std::span<const int> ranks_of_entries() const { return rank_of_entry_; }

  /// An array of a step, by how it is laid out.
  struct Array {
    enum Kind { entries, waves, record };
    Kind kind;
    double* data;
  };
  /// Sends every rank the lanes that the others have written (with slices: none), and a note of each rank.
  /// `note`: the note of this rank; `notes[r]`: the bytes of that of rank r; empty: there are no notes.
  /// Returns all notes one after another, valid until the next call. All ranks call it.
  std::span<const std::byte> share(std::span<const Array> arrays,
                                   std::span<const std::byte> note = {},
                                   std::span<const std::size_t> notes = {});
  /// The number by which all ranks know a part: with slices, its number in the whole system.
  int number_of(int part) const {
    if (slice_ == nullptr || part < 0) return part;
    return static_cast<int>(slice_->numbers[static_cast<std::size_t>(part)]);
  }
  /// The failure of the lowest-numbered part (`number_of`) on any rank; ok if there is none. All ranks call
  /// it.
  PhaseStatus merged(PhaseStatus own);
  void share(std::initializer_list<Array> arrays) {
    share(std::span(arrays.begin(), arrays.size()));
  }

 private:
  struct Run {
    std::size_t begin, count;
  };
  /// The lanes of one rank, by Array::Kind.
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
  // Used by `share`.
  std::vector<std::byte> sent_, received_, notes_;
  std::vector<std::size_t> bytes_;
};

}  // namespace portwave
