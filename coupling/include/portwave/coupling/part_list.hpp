#pragma once

#include <span>
#include <vector>

#include "portwave/coupling/wave_discretisation.hpp"

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

/// One list per island, in order, and one of all parts.
std::vector<PartList> island_lists(const WaveDiscretisation& waves);
PartList all_parts(const WaveDiscretisation& waves);

}  // namespace portwave
