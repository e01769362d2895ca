#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

namespace portwave {

/// One value each of `width` lanes that lie side by side. What is done to one is done to all, in the
/// same order: a lane has the bits that it has alone. For what is no kernel, but looks at many lanes:
/// two at a time, which every processor can.
template <int width>
class LaneValues {
 public:
  static LaneValues all(double value) {
    LaneValues out;
    each([&](std::size_t i) { out.pieces_[i] = Piece{} + value; });
    return out;
  }
  static LaneValues from(const double* values) {
    LaneValues out;
    std::memcpy(out.pieces_, values, sizeof(out.pieces_));
    return out;
  }
  void to(double* values) const { std::memcpy(values, pieces_, sizeof(pieces_)); }

  LaneValues& operator+=(const LaneValues& other) {
    each([&](std::size_t i) { pieces_[i] += other.pieces_[i]; });
    return *this;
  }
  LaneValues& operator-=(const LaneValues& other) {
    each([&](std::size_t i) { pieces_[i] -= other.pieces_[i]; });
    return *this;
  }
  LaneValues& operator*=(const LaneValues& other) {
    each([&](std::size_t i) { pieces_[i] *= other.pieces_[i]; });
    return *this;
  }
  friend LaneValues operator+(LaneValues a, const LaneValues& b) { return a += b; }
  friend LaneValues operator-(LaneValues a, const LaneValues& b) { return a -= b; }
  friend LaneValues operator*(LaneValues a, const LaneValues& b) { return a *= b; }
  friend LaneValues operator*(double a, const LaneValues& b) { return all(a) *= b; }
  friend LaneValues abs(LaneValues a) {
    each([&](std::size_t i) { a.pieces_[i] = size_of(a.pieces_[i]); });
    return a;
  }

 private:
  using Pair = double __attribute__((vector_size(16)));
  using Bits = long long __attribute__((vector_size(16)));
  using Piece = std::conditional_t<width == 1, double, Pair>;
  static constexpr int kPieces = static_cast<int>(width * sizeof(double) / sizeof(Piece));
  static_assert(kPieces * sizeof(Piece) == width * sizeof(double));

  /// Piece by piece without a loop, which the compiler would keep.
  template <class Act>
  [[gnu::always_inline]] static void each(const Act& act) {
    [&act]<std::size_t... i>(std::index_sequence<i...>) { (act(i), ...); }
    (std::make_index_sequence<static_cast<std::size_t>(kPieces)>());
  }

  static double size_of(double value) { return std::abs(value); }
  static Pair size_of(Pair values) {
    constexpr long long kWithoutSign = 0x7fff'ffff'ffff'ffff;
    return reinterpret_cast<Pair>(reinterpret_cast<Bits>(values) &
                                  Bits{kWithoutSign, kWithoutSign});
  }

  Piece pieces_[kPieces];
};

}  // namespace portwave
