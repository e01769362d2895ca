#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace portwave::testing {

/// Numbers that are the same on every machine: by splitmix64, and by arithmetic that IEEE 754
/// rounds, none of a library of mathematics.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  double operator()(double low, double high) {
    return low + (high - low) * (static_cast<double>(bits() >> 11) * 0x1p-53);
  }
  /// From 0 to below `end`.
  int below(int end) { return static_cast<int>(bits() % static_cast<std::uint64_t>(end)); }

  std::vector<double> draw(int count, double low, double high) {
    std::vector<double> out(static_cast<std::size_t>(count));
    for (double& value : out) value = (*this)(low, high);
    return out;
  }

 private:
  std::uint64_t state_;
};

/// Moves a number of the order of 1 by 9e-13, for controls: sums still show it.
inline void nudge(double& value) { value += 0x1p-40; }

}  // namespace portwave::testing
