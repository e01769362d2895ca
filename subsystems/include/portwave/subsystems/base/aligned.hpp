#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <new>
#include <span>
#include <vector>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Cache lines, and lane groups of eight doubles, begin at multiples of this many bytes.
inline constexpr std::size_t kAlignment = 64;

template <class T>
struct AlignedAllocator {
  using value_type = T;

  AlignedAllocator() = default;
  template <class U>
  AlignedAllocator(const AlignedAllocator<U>& /*other*/) {}  // NOLINT: allocators convert

  T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new (count * sizeof(T), std::align_val_t{kAlignment}));
  }
  void deallocate(T* p, std::size_t /*count*/) noexcept {
    ::operator delete (p, std::align_val_t{kAlignment});
  }
  friend bool operator==(const AlignedAllocator&, const AlignedAllocator&) { return true; }
};

using AlignedVector = std::vector<double, AlignedAllocator<double>>;

}  // namespace portwave

namespace portwave {

/// Arrays in one piece of memory. Arrays that are read and written side by side begin at different
/// offsets within a page: with equal offsets, processors make a load wait for a store 4096 bytes
/// away.
class StaggeredMemory {
 public:
  /// Arrays of one size [doubles].
  struct Kind {
    int count;
    std::size_t size;
  };
  StaggeredMemory(std::initializer_list<Kind> kinds) {
    std::size_t total = 0;
    for (const Kind& kind : kinds)
      total += static_cast<std::size_t>(kind.count) * padded(kind.size);
    memory_.resize(total, 0.0);
  }

  /// The next array, all zero.
  std::span<double> take(std::size_t size) {
    const std::span<double> out(memory_.data() + used_, size);
    used_ += padded(size);
    return out;
  }
  std::span<double> take(const AlignedVector& values) {
    const std::span<double> out = take(values.size());
    std::copy(values.begin(), values.end(), out.begin());
    return out;
  }

  std::size_t bytes() const { return memory_.capacity() * sizeof(double); }

 private:
  static constexpr std::size_t kPage = 4096 / sizeof(double);
  static constexpr std::size_t kShift = 9 * kAlignment / sizeof(double);

  static std::size_t padded(std::size_t size) {
    // Small arrays lie in the first-level cache anyway and need no room of a page each.
    const std::size_t unit = size < kPage ? kAlignment / sizeof(double) : kPage;
    return (size + unit - 1) / unit * unit + kShift;
  }

  AlignedVector memory_;
  std::size_t used_ = 0;
};

}  // namespace portwave
