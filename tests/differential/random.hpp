#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "differential/network.hpp"

namespace portwave::differential {

/// Random numbers that are the same on every platform (splitmix64).
class Random {
 public:
  Random(std::string_view family, std::uint64_t seed) : state_(1469598103934665603ULL) {
    for (const char c : family)
      state_ = (state_ ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    state_ ^= seed * 0x9E3779B97F4A7C15ULL;
    bits();
  }

  std::uint64_t bits() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  double uniform(double from, double to) {
    return from + (to - from) * (static_cast<double>(bits() >> 11) * 0x1p-53);
  }
  double logarithmic(double from, double to) {
    return std::exp(uniform(std::log(from), std::log(to)));
  }
  int integer(int from, int to) {
    return from + static_cast<int>(bits() % static_cast<std::uint64_t>(to - from + 1));
  }
  bool chance(double probability) { return uniform(0.0, 1.0) < probability; }
  /// A power of two nearest to 10^d, d uniform: products with it are exact.
  double power_of_two(double from_decade, double to_decade) {
    return std::ldexp(
        1.0, static_cast<int>(std::lround(uniform(from_decade, to_decade) * 3.3219280948873623)));
  }
  /// Entries in [−1, 1] on a grid of 2⁻²⁰: sums of a few products of two are exact.
  Matrix grid(int rows, int columns) {
    return Matrix::NullaryExpr(rows, columns,
                               [this] { return std::ldexp(integer(-1048576, 1048576), -20); });
  }
  Matrix matrix(int rows, int columns) {
    return Matrix::NullaryExpr(rows, columns, [this] { return uniform(-1.0, 1.0); });
  }
  Matrix skew(int n) {
    const Matrix a = matrix(n, n);
    return a - a.transpose();
  }
  /// LLᵀ of this rank, exactly so.
  Matrix semidefinite(int n, int rank) {
    if (rank == 0) return Matrix::Zero(n, n);
    const Matrix L = grid(n, rank);
    return L * L.transpose();
  }

 private:
  std::uint64_t state_;
};

}  // namespace portwave::differential
