// The gap of an iteration, of waves that are given.

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/coupling/waves/residual.hpp>

#include "support/systems/coupled_systems.hpp"
#include "support/systems/systems.hpp"

namespace portwave::test_interface_residual {
namespace {

class InterfaceResidualOfAChain : public ::testing::Test {
 protected:
  InterfaceResidualOfAChain()
      : system_(testing::chain_of_blocks(12, 3)),
        waves_(system_, 0.01, std::vector<double>(system_.scalar_ports().size(), 1.0)),
        u_(static_cast<std::size_t>(waves_.wave_size()), 1.0),
        b_(u_),
        exchanged_(u_) {}

  InterfaceGap gap(bool per_part) {
    InterfaceResidual residual(waves_);
    for (int i = 0; i < static_cast<int>(waves_.batches().size()); ++i) {
      residual.measure(i, waves_.batch(i).all(), u_.data(), b_.data(), exchanged_.data());
    }
    return residual.gap(0, per_part);
  }
  double& wave(AlignedVector& waves, int port) {
    return waves[static_cast<std::size_t>(waves_.wave_of_port(port))];
  }

  System system_;
  WaveDiscretisation waves_;
  AlignedVector u_, b_, exchanged_;
};

TEST_F(InterfaceResidualOfAChain, IsTheNormOfWhatIsOff) {
  const auto ports = static_cast<double>(system_.scalar_ports().size());
  EXPECT_EQ(gap(false).residual, 0.0);
  wave(exchanged_, 0) = 1.5;
  EXPECT_DOUBLE_EQ(gap(false).residual, 0.5 / std::sqrt(ports));
  EXPECT_DOUBLE_EQ(gap(false).energy_J, 0.125);
  // The first block, by itself, is off by as much of less.
  EXPECT_GT(gap(true).residual, 2.0 * gap(false).residual);
}

// Whoever has measured a chunk may sum it up: the bits are those of a sum by one.
TEST(InterfaceResidualOfManyParts, ChunksMayBeSummedUpBefore) {
  const System system = testing::duffing_grid(20, 20);
  const WaveDiscretisation waves(system, 0.01,
                                 std::vector<double>(system.scalar_ports().size(), 1.0));
  AlignedVector u(static_cast<std::size_t>(waves.wave_size()), 1.0), exchanged = u;
  for (std::size_t i = 0; i < u.size(); ++i) exchanged[i] = 1.0 + 1.0 / static_cast<double>(i + 3);
  InterfaceResidual residual(waves);
  const auto measure = [&] {
    for (int i = 0; i < static_cast<int>(waves.batches().size()); ++i) {
      residual.measure(i, waves.batch(i).all(), u.data(), exchanged.data(), exchanged.data());
    }
  };
  measure();
  const double expected = residual.gap(0, false).residual;
  const auto [first, last] = waves.reduction().chunks_of(0);
  ASSERT_GT(last - first, 4);
  for (int chunk = first; chunk < last; chunk += 2) residual.sum_chunk(chunk);
  EXPECT_EQ(residual.gap(0, false).residual, expected);
  // Those sums count once, and none that is forgotten.
  EXPECT_EQ(residual.gap(0, false).residual, expected);
  residual.sum_chunk(first);
  for (double& wave : u) wave *= 1.5;
  measure();
  const double stale = residual.gap(0, false).residual, now = residual.gap(0, false).residual;
  EXPECT_NE(stale, now) << "control: the sum before was used";
  residual.sum_chunk(first);
  for (double& wave : u) wave *= 1.5;
  measure();
  residual.forget();
  const double forgotten = residual.gap(0, false).residual;
  EXPECT_EQ(forgotten, residual.gap(0, false).residual);
}

// Waves that are what is left of far larger ones never agree to more than the rounding of these.
TEST_F(InterfaceResidualOfAChain, ThatOfAPartIsNoneWhereRoundingExplainsIt) {
  constexpr double kOwn = 1e-12;
  const auto of_first = [&](double off, double around) {
    InterfaceResidual residual(waves_);
    residual.judge_parts();
    AlignedVector u = u_, exchanged = exchanged_;
    for (const int port : {0, 1}) wave(u, port) = wave(exchanged, port) = kOwn;
    wave(exchanged, 0) += off;
    for (double& m : residual.magnitudes()) m = around;
    for (int i = 0; i < static_cast<int>(waves_.batches().size()); ++i) {
      residual.measure(i, waves_.batch(i).all(), u.data(), u.data(), exchanged.data());
    }
    return residual.gap(0, true).residual;
  };
  EXPECT_LT(of_first(1e-15, 1.0), 1e-14);
  EXPECT_GT(of_first(1e-15, 1e-3), 1e-4) << "nothing large is around it";
  EXPECT_GT(of_first(1e-13, 1.0), 1e-2) << "more than rounding";
  EXPECT_GT(of_first(1e-15, std::numeric_limits<double>::infinity()), 1e-4);
  EXPECT_TRUE(std::isnan(of_first(std::numeric_limits<double>::quiet_NaN(), 1.0)));
}

TEST_F(InterfaceResidualOfAChain, IsNaNWhereverAWaveIs) {
  for (int port = 0; port < static_cast<int>(system_.scalar_ports().size()); ++port) {
    for (AlignedVector* const waves : {&u_, &exchanged_}) {
      const double before = wave(*waves, port);
      wave(*waves, port) = std::numeric_limits<double>::quiet_NaN();
      EXPECT_TRUE(std::isnan(gap(false).residual)) << port;
      EXPECT_TRUE(std::isnan(gap(true).residual)) << port;
      wave(*waves, port) = before;
    }
  }
}

// Waves along a direction that a singular equation leaves free: beside them any gap would be small.
TEST_F(InterfaceResidualOfAChain, WavesThatGrewOutOfAllProportionMakeNoGapSmall) {
  const auto ports = static_cast<double>(system_.scalar_ports().size());
  wave(exchanged_, 0) = 1.5;
  const InterfaceGap usual = gap(false);
  EXPECT_DOUBLE_EQ(usual.size, ports);
  EXPECT_EQ(usual.residual_since(ports), usual.residual);
  EXPECT_EQ(usual.residual_since(1e-7 * ports), usual.residual);
  EXPECT_EQ(usual.residual_since(0.0), usual.residual);

  for (std::size_t i = 0; i < u_.size(); ++i) u_[i] = b_[i] = exchanged_[i] = 1e11;
  EXPECT_EQ(gap(false).residual, 0.0);
  EXPECT_GT(gap(false).residual_since(ports), 1e-10) << "no gap is known to more than rounding";
  wave(exchanged_, 0) += 0.5;
  EXPECT_LT(gap(false).residual, 1e-11);
  EXPECT_GT(gap(false).residual_since(ports), 1e-6);
  EXPECT_EQ(gap(false).residual_since(1e21 * ports), gap(false).residual);
}

}  // namespace
}  // namespace portwave::test_interface_residual
