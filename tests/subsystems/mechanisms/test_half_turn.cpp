// Series of half turns beside the C library's functions in higher precision.

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "mechanisms/half_turn.hpp"

namespace portwave::test_half_turn {
namespace {

/// The largest error in units of 1e-16, also where the series end.
template <class Sinc>
double worst_of(const Sinc& sinc) {
  double worst = 0.0;
  for (double size = 1e-12; size < 4.0; size *= 1.01) {
    for (const double half : {size, -size}) {
      const auto exact = static_cast<long double>(half);
      const HalfTurn turn(half);
      const auto differ = [&worst](double own, long double right) {
        worst = std::max(worst, static_cast<double>(std::abs(own - right) * 1e16L));
      };
      differ(turn.cosine, std::cos(exact));
      differ(turn.sine / std::min(1.0, std::abs(half)),
             std::sin(exact) / std::min(1.0L, std::abs(exact)));
      differ(sinc(half), std::sin(exact) / exact);
    }
  }
  return worst;
}

TEST(HalfTurn, IsExactToRoundOff) {
  EXPECT_LE(worst_of([](double half) { return HalfTurn(half).sinc; }), 4.0);
  EXPECT_LE(worst_of([](double half) { return HalfTurn::sinc_of(half); }), 4.0);
}

TEST(HalfTurnControl, AFifthTermIsMissed) {
  const auto short_series = [](double z) {
    const double square = z * z;
    return square < 1e-2 ? 1.0 + square * (-1.0 / 6.0 + square * (1.0 / 120.0 - square / 5040.0))
                         : std::sin(z) / z;
  };
  EXPECT_GT(worst_of(short_series), 100.0);
}

}  // namespace
}  // namespace portwave::test_half_turn
