#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "portwave/coupling/waves/wave_discretisation.hpp"

namespace portwave {

/// Parts in the order of their numbers, for sums over arrays with one entry per lane: the order of
/// such a sum depends on the system alone, not on how its parts are laid out.
class PartList {
 public:
  PartList() = default;
  /// `parts` in increasing order.
  PartList(const WaveDiscretisation& waves, std::span<const int> parts);

  double sum(const double* by_entry) const;
  /// The largest entry; NaN when one is NaN.
  double largest(const double* by_entry) const;
  double largest_ratio(const double* numerator, const double* denominator) const;
  int size() const { return count_; }
  std::size_t bytes() const { return entries_.capacity() * sizeof(int); }
  /// The first entry when entries follow one another, and the list of them otherwise.
  int first() const { return first_; }
  const int* entries() const { return entries_.empty() ? nullptr : entries_.data(); }

 private:
  int count_ = 0;
  int first_ = 0;  ///< entries follow one another from here when entries_ is empty
  std::vector<int> entries_;
};

/// The parts of each island, in the order of their numbers.
class IslandParts {
 public:
  explicit IslandParts(const System& system);

  std::span<const int> of(int island) const {
    const auto i = static_cast<std::size_t>(island);
    return std::span<const int>(parts_).subspan(
        static_cast<std::size_t>(first_[i]), static_cast<std::size_t>(first_[i + 1] - first_[i]));
  }
  int count() const { return static_cast<int>(first_.size()) - 1; }
  std::size_t bytes() const { return (first_.capacity() + parts_.capacity()) * sizeof(int); }

 private:
  std::vector<int> first_, parts_;
};

/// One list per island, in order, and one of all parts.
std::vector<PartList> island_lists(const WaveDiscretisation& waves);
PartList all_parts(const WaveDiscretisation& waves);

}  // namespace portwave
