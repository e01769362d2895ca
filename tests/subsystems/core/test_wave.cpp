#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "portwave/subsystems/core/port.hpp"

namespace portwave::test_wave {
namespace {

constexpr int kDraws = 200;
constexpr unsigned kSeed = 11;

/// Largest |h e f − ½(a² − b²)| relative to its terms, over random (e, f) spread over decades.
double worst_power_defect(double impedance, double step_s, double step_of_identity) {
  std::mt19937_64 random(kSeed);
  std::uniform_real_distribution<double> exponent(-6.0, 6.0), sign(-1.0, 1.0);
  const WaveTransform transform(impedance, step_s);
  double worst = 0.0;
  for (int i = 0; i < kDraws; ++i) {
    const EffortFlow port{std::copysign(std::pow(10.0, exponent(random)), sign(random)),
                          std::copysign(std::pow(10.0, exponent(random)), sign(random))};
    const WavePair w = transform.to_waves(port);
    const double received = step_of_identity * port.effort * port.flow;
    const double scattered = 0.5 * (w.incident * w.incident - w.outgoing * w.outgoing);
    const double scale = 0.5 * (w.incident * w.incident + w.outgoing * w.outgoing);
    worst = std::max(worst, std::abs(received - scattered) / scale);
  }
  return worst;
}

TEST(WaveTransform, EnergyIntoThePortIsIncidentMinusOutgoing) {
  for (const double impedance : {1e-9, 1e-3, 0.4, 1.0, 800.25, 1e9}) {
    for (const double h : {1e-6, 1e-2, 1.0, 10.0}) {
      EXPECT_LE(worst_power_defect(impedance, h, h), 1e-15)
          << "γ=" << impedance << " h=" << h << " seed=" << kSeed;
    }
  }
}

TEST(WaveTransformControl, EnergyOverAnotherStepIsNoticed) {
  EXPECT_GT(worst_power_defect(1.0, 1e-2, 2e-2), 1e-3);
}

TEST(WaveTransform, IsInvertedByItsInverse) {
  std::mt19937_64 random(kSeed);
  std::normal_distribution<double> normal;
  for (const double impedance : {1e-9, 0.4, 1e9}) {
    for (const double h : {1e-6, 1e-2, 10.0}) {
      const WaveTransform transform(impedance, h);
      for (int i = 0; i < kDraws; ++i) {
        const WavePair w{normal(random), normal(random)};
        const WavePair back = transform.to_waves(transform.to_effort_flow(w));
        const double tolerance = 1e-15 * (std::abs(w.incident) + std::abs(w.outgoing));
        EXPECT_NEAR(back.incident, w.incident, tolerance) << "γ=" << impedance << " h=" << h;
        EXPECT_NEAR(back.outgoing, w.outgoing, tolerance) << "γ=" << impedance << " h=" << h;
      }
    }
  }
}

// e + γf = √(2γ/h) a and e − γf = √(2γ/h) b, at numbers that are exact in binary.
TEST(WaveTransform, HasTheStatedScale) {
  const WaveTransform transform(2.0, 0.25);
  EXPECT_EQ(transform.impedance(), 2.0);
  EXPECT_EQ(transform.scale(), 4.0);
  const WavePair w = transform.to_waves({6.0, 1.0});
  EXPECT_EQ(w.incident, 2.0);
  EXPECT_EQ(w.outgoing, 1.0);
}

// A matched resistor e = γf reflects nothing; an open and a shut end reflect everything.
TEST(WaveTransform, MatchedResistorDoesNotReflect) {
  const WaveTransform transform(3.0, 1e-2);
  EXPECT_EQ(transform.to_waves({3.0 * 7.0, 7.0}).outgoing, 0.0);
  const WavePair shut = transform.to_waves({5.0, 0.0});
  EXPECT_EQ(shut.outgoing, shut.incident);
  const WavePair open = transform.to_waves({0.0, 5.0});
  EXPECT_EQ(open.outgoing, -open.incident);
}

}  // namespace
}  // namespace portwave::test_wave
