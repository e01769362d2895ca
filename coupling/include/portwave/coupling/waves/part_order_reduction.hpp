#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "portwave/coupling/system/system.hpp"
#include "portwave/coupling/waves/phase_status.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Turns what is known part by part into what is known of an island or of the system: sums, maxima,
/// the first part of some kind, the first failure. Parts are always taken in the order of their
/// numbers, so that a result depends on the system alone: not on how parts are laid out in memory,
/// on who computed their values, or on how many threads there were.
///
/// Everything that a step decides for several parts together goes through here: the gap of an
/// island, the products of its accelerated iteration, energies and tanks, the guard, and which
/// failure is reported. So this is one place to extend for runs on several machines
/// (docs/decisions/0032-engine-seams.md). What has been found for islands is then known to all who
/// need it: sums over islands are plain loops.
///
/// "By entry": an array with one value per lane, a part's being at PartSlot::entry.
/// Cost           one indirect call per sum; nothing is allocated after construction.
/// Thread-safety  may be shared; it is not written after construction.
class PartOrderReduction {
 public:
  PartOrderReduction() = default;
  /// `entry_of_part`: PartSlot::entry, by number of the part.
  PartOrderReduction(const System& system, std::span<const int> entry_of_part);

  int island_count() const { return static_cast<int>(islands_.size()); }
  int part_count() const { return all_.count; }
  /// The parts of an island in the order of their numbers, and their entries.
  std::span<const int> parts_of(int island) const { return slice(parts_, island); }
  std::span<const int> entries_of(int island) const { return slice(entries_, island); }

  /// Σ over the parts of an island, in eight interleaved partial sums that are then added pairwise:
  /// the order depends on the number of parts alone.
  double sum(int island, const double* by_entry) const {
    const List& list = islands_[static_cast<std::size_t>(island)];
    return sum_(by_entry + list.shift, index_of(list), list.count);
  }
  double sum_all(const double* by_entry) const {
    return sum_(by_entry + all_.shift, index_of(all_), all_.count);
  }
  /// Several sums over all parts at once: sums(shift, index, count) finds the entry of the i-th
  /// part at shift + i where `index` is null, and at index[i] otherwise (shift is then 0).
  template <class Sums>
  auto sums_all(const Sums& sums) const {
    return sums(all_.shift, index_of(all_), all_.count);
  }

  /// Whatever else is put together one part after another: take(so_far, part).
  template <class Result, class Take>
  Result fold(int island, Result so_far, const Take& take) const {
    for (const int part : parts_of(island)) take(so_far, part);
    return so_far;
  }
  template <class Result, class Take>
  Result fold_all(Result so_far, const Take& take) const {
    for (int part = 0; part < all_.count; ++part) take(so_far, part);
    return so_far;
  }
  /// The first part for which holds(part) is true; −1: none.
  template <class Holds>
  int first_part(const Holds& holds) const {
    for (int part = 0; part < all_.count; ++part) {
      if (holds(part)) return part;
    }
    return -1;
  }

  /// Of the failures of a macro-step keeps the one to report: that of the earliest iteration, and
  /// of one iteration that of the lowest part. Iteration −1: there is none. The order and grouping
  /// in which they are taken do not matter.
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
  /// Some parts; their entries follow one another from `shift`, or are listed in entries_ or, for
  /// all parts of several islands, in entry_of_part_.
  struct List {
    int first = 0;  ///< in parts_ and entries_
    int count = 0;
    int shift = 0;
    bool adjacent = true;
    bool of_system = false;
  };

  std::span<const int> slice(const std::vector<int>& values, int island) const {
    const List& list = islands_[static_cast<std::size_t>(island)];
    return std::span<const int>(values).subspan(static_cast<std::size_t>(list.first),
                                                static_cast<std::size_t>(list.count));
  }
  const int* index_of(const List& list) const {
    if (list.adjacent) return nullptr;
    return list.of_system ? entry_of_part_.data() : entries_.data() + list.first;
  }
  static void find_shift(std::span<const int> entries, List& list);

  double (*sum_)(const double* values, const int* index, int count) = nullptr;
  std::vector<List> islands_;
  List all_;
  std::vector<int> parts_, entries_;  // island by island
  std::vector<int> entry_of_part_;    // empty where the parts of the system are adjacent
};

}  // namespace portwave
