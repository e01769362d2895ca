#include "portwave/coupling/waves/extended_sums.hpp"

#include <algorithm>
#include <cmath>

namespace portwave {
namespace {

struct Pair {
  double high, low;
};

/// As exact as two doubles can be.
Pair pair_of(long double value) {
  const auto high = static_cast<double>(value);
  return {high, std::isfinite(high) ? static_cast<double>(value - high) : 0.0};
}

long double value_of(const double* pair) { return static_cast<long double>(pair[0]) + pair[1]; }

}  // namespace

ExtendedSums::ExtendedSums(const System& system, const PartOrderReduction& parts, std::size_t most,
                           SlicesTogether* slices)
    : system_(system), parts_(parts), slices_(slices), loop_(parts) {
  found_.reserve(most);
  if (slices_ != nullptr) {
    place_.resize(static_cast<std::size_t>(parts.island_count()), -1);
  } else {
    by_chunk_.resize(static_cast<std::size_t>(parts.chunk_count()));
  }
}

ExtendedSums::Terms ExtendedSums::rounded(Terms terms) {
  for (long double& term : terms) {
    const Pair pair = pair_of(term);
    term = static_cast<long double>(pair.high) + pair.low;
  }
  return terms;
}

ExtendedSums::Terms ExtendedSums::added(const Terms& a, const Terms& b) {
  Terms sum;
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = a[i] + b[i];
  return rounded(sum);
}

void ExtendedSums::find_together(std::span<const int> islands, const OfChunk& of_chunk) {
  for (const int island : islands) {
    place_[static_cast<std::size_t>(island)] = static_cast<int>(found_.size());
    found_.emplace_back();
  }
  of_chunk_ = &of_chunk;
  slices_->share(*this);
  of_chunk_ = nullptr;
  for (const int island : islands) place_[static_cast<std::size_t>(island)] = -1;
}

void ExtendedSums::form(int chunk, double* values) const {
  const int island = system_.island_of_part(parts_.parts_of_chunk(chunk).front());
  if (place_[static_cast<std::size_t>(island)] < 0) {
    std::fill_n(values, sums(), 0.0);
    return;
  }
  for (const long double term : (*of_chunk_)(chunk)) {
    const Pair pair = pair_of(term);
    *values++ = pair.high;
    *values++ = pair.low;
  }
}

void ExtendedSums::add(double* values, const double* other) const {
  for (int i = 0; i < sums(); i += 2) {
    const Pair pair = pair_of(value_of(values + i) + value_of(other + i));
    values[i] = pair.high;
    values[i + 1] = pair.low;
  }
}

void ExtendedSums::take(int island, const double* values) {
  const int place = place_[static_cast<std::size_t>(island)];
  if (place < 0) return;
  for (std::size_t i = 0; i < kTerms; ++i) {
    found_[static_cast<std::size_t>(place)][i] = value_of(values + 2 * i);
  }
}

std::size_t ExtendedSums::bytes() const {
  return (by_chunk_.capacity() + found_.capacity()) * sizeof(Terms) +
         place_.capacity() * sizeof(int) + loop_.bytes();
}

}  // namespace portwave
