#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace portwave {

/// The larger of two; NaN if one of them is.
inline double larger_or_nan(double a, double b) { return (a >= b || a != a) ? a : b; }

/// Sums and maxima over the parts of islands, formed chunk by chunk (PartOrderReduction) from values by
/// entry. A process that has examined only some parts forms the chunks that it knows, receives the others,
/// and provides the totals.
class IslandSums {
 public:
  virtual ~IslandSums() = default;
  /// Each chunk has this many sums, followed by this many maxima.
  virtual int sums() const = 0;
  virtual int maxima() const = 0;
  /// All values by entry from which chunks are formed.
  virtual std::span<const std::span<double>> terms() = 0;
  virtual void form(int chunk, double* values) const = 0;
  /// values ← values + other, of two branches of the tree.
  virtual void add(double* values, const double* other) const {
    for (int i = 0; i < sums(); ++i) values[i] += other[i];
    for (int i = sums(); i < sums() + maxima(); ++i) {
      values[i] = larger_or_nan(values[i], other[i]);
    }
  }
  /// Totals of an island, which replace those of the entries here.
  virtual void take(int island, const double* values) = 0;
};

/// Reductions over several processes, each of which has a slice of the system and knows its own parts only
/// (SystemSlice). All of them call these functions, in the same order.
class SlicesTogether {
 public:
  virtual ~SlicesTogether() = default;
  /// Forms sums over all islands and hands them to the IslandSums.
  virtual void share(IslandSums& sums) = 0;
  /// The data of each process, in the order of the ranks, which is that of the parts; all give the same
  /// number of bytes.
  virtual std::vector<std::byte> gather(std::span<const std::byte> own) = 0;
  /// The number in the whole system of one of this process's parts.
  virtual std::int64_t number_of(int part) const = 0;

  template <class Value>
  std::vector<Value> gathered(const Value& own) {
    static_assert(std::is_trivially_copyable_v<Value>);
    const std::vector<std::byte> bytes = gather(std::as_bytes(std::span(&own, 1)));
    std::vector<Value> all(bytes.size() / sizeof(Value));
    std::memcpy(all.data(), bytes.data(), bytes.size());
    return all;
  }
  bool any(bool own) {
    bool is_any = false;
    for (const char other : gathered(static_cast<char>(own))) is_any = is_any || other != 0;
    return is_any;
  }
};

}  // namespace portwave
