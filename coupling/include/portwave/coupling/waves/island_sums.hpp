#pragma once

#include <span>

namespace portwave {

/// Sums and maxima over the parts of islands, formed chunk by chunk (PartOrderReduction) from what is
/// known by entry. Whoever has looked at some parts only forms the chunks that it knows, hears of the
/// others, and gives what comes of both.
class IslandSums {
 public:
  virtual ~IslandSums() = default;
  /// Of each chunk there are so many sums, and after them so many maxima.
  virtual int sums() const = 0;
  virtual int maxima() const = 0;
  /// By entry, all that chunks are formed from.
  virtual std::span<const std::span<double>> terms() = 0;
  virtual void form(int chunk, double* values) const = 0;
  /// Of an island, to be used in place of what would come of the entries here.
  virtual void take(int island, const double* values) = 0;
};

/// The larger of two; NaN if one of them is.
inline double larger_or_nan(double a, double b) { return (a >= b || a != a) ? a : b; }

}  // namespace portwave
