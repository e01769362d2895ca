#pragma once

#include <bit>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "portwave/coupling/system/system.hpp"
#include "portwave/coupling/waves/phase_status.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Reduces values by part to values of an island or of the system: sums, maxima, the first part of some
/// kind, the first failure. Parts are always taken in the order of their numbers, so that a result depends
/// on the system alone: not on the layout of parts in memory, on the threads that computed their values, or
/// on the number of threads.
///
/// Every joint decision of a step on several parts goes through here: the gap of an island, the products of
/// its accelerated iteration, energies and tanks, the guard, and the choice of the failure to report. So
/// this is the one place to extend for runs on several machines (docs/decisions/0032-engine-seams.md).
/// Results for islands are then known wherever they are needed: sums over islands are plain loops.
///
/// A sum over an island is a tree. Its leaves are *chunks*, 64 parts of the island in a row
/// (the last one may have fewer), each in eight interleaved partial sums that are then added pairwise;
/// the chunks are added two by two. So a thread or process that knows all parts of a chunk, or of a branch,
/// can pass on its sum in their place (docs/decisions/0056-sums-as-trees.md). In a slice, the parts are its
/// own; on each rank they begin a chunk of an island that is cut, and some islands may have none here.
///
/// "By entry": an array with one value per lane, a part's being at PartSlot::entry.
/// Cost           one indirect call per chunk; nothing is allocated after construction.
/// Thread-safety  may be shared; it is not written after construction.
class PartOrderReduction {
 public:
  PartOrderReduction() = default;
  /// `entry_of_part`: PartSlot::entry, by number of the part.
  PartOrderReduction(const System& system, std::span<const int> entry_of_part);

  int island_count() const { return static_cast<int>(islands_.size()); }
  int part_count() const { return part_count_; }
  /// The parts of an island in the order of their numbers, and their entries.
  std::span<const int> parts_of(int island) const { return section(parts_, island); }
  std::span<const int> entries_of(int island) const { return section(entries_, island); }

  /// Largest number of parts in a chunk.
  static constexpr int kChunk = 64;
  /// The entries of the parts of a chunk: the i-th at shift + i where `index` is null, and at index[i]
  /// otherwise (shift is then 0).
  struct Entries {
    int shift;
    const int* index;
    int count;
  };
  /// Chunks are numbered island by island.
  int chunk_count() const { return static_cast<int>(chunks_.size()); }
  std::pair<int, int> chunks_of(int island) const {
    const List& list = islands_[static_cast<std::size_t>(island)];
    return {list.first_chunk, list.first_chunk + (list.count + kChunk - 1) / kChunk};
  }
  /// In the order of their numbers.
  std::span<const int> parts_of_chunk(int chunk) const {
    const Chunk& own = chunks_[static_cast<std::size_t>(chunk)];
    return std::span<const int>(parts_).subspan(static_cast<std::size_t>(own.first),
                                                static_cast<std::size_t>(own.count));
  }
  Entries entries_of_chunk(int chunk) const {
    const Chunk& own = chunks_[static_cast<std::size_t>(chunk)];
    if (own.shift >= 0) return {own.shift, nullptr, own.count};
    return {0, entries_.data() + own.first, own.count};
  }
  /// visit(chunk) for the chunks whose entries follow one another and are all among those from `first`
  /// to `last`.
  template <class Visit>
  void for_chunks_within(int first, int last, const Visit& visit) const {
    for (auto chunk = adjacent_from(first); chunk != adjacent_.end(); ++chunk) {
      const Chunk& own = chunks_[static_cast<std::size_t>(*chunk)];
      if (own.shift + own.count > last) return;
      visit(*chunk);
    }
  }

  /// The tree over the chunks from `first` to `last`: at(chunk) is the value of one, add(a, b) that
  /// of two branches. A branch of n chunks has the largest power of two below n on its left.
  template <class Value, class At, class Add>
  static Value tree(int first, int last, const At& at, const Add& add) {
    if (last - first == 1) return at(first);
    const int middle = middle_of(first, last);
    const Value left = tree<Value>(first, middle, at, add);
    return add(left, tree<Value>(middle, last, at, add));
  }
  static int middle_of(int first, int last) {
    return first + static_cast<int>(std::bit_floor(static_cast<unsigned>(last - first - 1)));
  }

  /// Σ over the parts of an island.
  double sum(int island, const double* by_entry) const {
    const List& list = islands_[static_cast<std::size_t>(island)];
    if (list.count > kChunk) return sum_of_many(island, by_entry);
    return sum_(by_entry + list.shift, index_of(list), list.count);
  }
  double sum_of_chunk(int chunk, const double* by_entry) const {
    const Entries own = entries_of_chunk(chunk);
    return sum_(by_entry + own.shift, own.index, own.count);
  }
  /// Any other reduction, one part after another: take(so_far, part).
  template <class Result, class Take>
  Result fold(int island, Result so_far, const Take& take) const {
    for (const int part : parts_of(island)) take(so_far, part);
    return so_far;
  }
  template <class Result, class Take>
  Result fold_all(Result so_far, const Take& take) const {
    for (int part = 0; part < part_count_; ++part) take(so_far, part);
    return so_far;
  }
  /// The first part for which holds(part) is true; −1: none.
  template <class Holds>
  int first_part(const Holds& holds) const {
    for (int part = 0; part < part_count_; ++part) {
      if (holds(part)) return part;
    }
    return -1;
  }

  /// The failure to report among those of a macro-step: that of the earliest iteration, and within an
  /// iteration that of the lowest part. Iteration −1: there is none. The order and grouping in which they are
  /// taken do not matter.
  static void take_failure(int& iteration, PhaseStatus& failure, int other_iteration,
                           const PhaseStatus& other) {
    if (other_iteration < 0) return;
    if (iteration < 0 || other_iteration < iteration) {
      iteration = other_iteration;
      failure = other;
    } else if (other_iteration == iteration) {
      failure.merge(other);
    }
  }

  std::size_t bytes() const;

 private:
  /// The parts of an island; their entries follow one another from `shift`, or are listed in entries_.
  struct List {
    int first = 0;  ///< in parts_ and entries_
    int count = 0;
    int first_chunk = 0;
    int shift = 0;
    bool adjacent = true;
  };
  struct Chunk {
    int first;  ///< in entries_
    int count;
    int shift;  ///< −1: the entries do not follow one another
  };

  std::vector<int>::const_iterator adjacent_from(int entry) const;
  double sum_of_many(int island, const double* by_entry) const;
  std::span<const int> section(const std::vector<int>& values, int island) const {
    const List& list = islands_[static_cast<std::size_t>(island)];
    return std::span<const int>(values).subspan(static_cast<std::size_t>(list.first),
                                                static_cast<std::size_t>(list.count));
  }
  const int* index_of(const List& list) const {
    return list.adjacent ? nullptr : entries_.data() + list.first;
  }
  void make_chunks(const List& list);

  double (*sum_)(const double* values, const int* index, int count) = nullptr;
  std::vector<List> islands_;
  std::vector<Chunk> chunks_;
  std::vector<int> adjacent_;  // chunks whose entries follow one another, by entry
  int part_count_ = 0;
  std::vector<int> parts_, entries_;  // island by island
};

}  // namespace portwave
