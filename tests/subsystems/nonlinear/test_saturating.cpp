// Saturating resistances, solved side by side: against bisection in extended precision and the batch for any law.

#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/subsystems/core/lane_exchange.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_resistance.hpp"
#include "support/lane_major.hpp"

namespace portwave::test_saturating {
namespace {

using Parts = std::vector<std::shared_ptr<const NonlinearResistance>>;

constexpr double kStep_s = 1e-3;

Signature one_port(Causality causality) {
  return {"law", {}, {{"port", causality, Domain::generic, 1}}, {}};
}

testing::LaneMajor batch_of(const Parts& parts) {
  std::vector<const Component*> pointers;
  for (const auto& part : parts) pointers.push_back(part.get());
  return testing::LaneMajor(parts[0]->make_batch(pointers));
}

struct Solved {
  std::vector<double> b;
  std::vector<StepEnergy> energy;
  LaneStatus status;
};

Solved solved(const Parts& parts, const std::vector<double>& gamma, const std::vector<double>& a) {
  testing::LaneMajor batch = batch_of(parts);
  batch.prepare(kStep_s, gamma.data());
  const LaneRange all{0, batch.lanes()};
  batch.freeze(all, nullptr, nullptr);
  Solved out{std::vector<double>(a.size()), std::vector<StepEnergy>(a.size()), {}};
  out.status = batch.advance(all, a.data(), nullptr, out.b.data(), out.energy.data());
  std::vector<double> again(a.size());
  EXPECT_EQ(batch.scatter(all, a.data(), again.data()).lane, out.status.lane);
  if (out.status.ok()) {
    EXPECT_EQ(again, out.b);
  }
  return out;
}

/// The root of k u + β(F tanh(u/r) + c u) = right ≥ 0.
long double root(const SaturatingLaw& law, long double k, long double beta, long double right) {
  long double low = 0.0L, high = right / k;
  for (int i = 0; i < 20000; ++i) {
    const long double mid = low + 0.5L * (high - low);
    if (mid == low || mid == high) break;
    const long double y = law.saturation * std::tanh(mid / law.reach) + law.slope * mid;
    (k * mid + beta * y > right ? high : low) = mid;
  }
  return low + 0.5L * (high - low);
}

TEST(Saturating, SticksCreepsAndSlidesAsBisectionDoes) {
  for (const Causality causality : {Causality::effort_in, Causality::flow_in}) {
    const bool effort = causality == Causality::effort_in;
    for (const SaturatingLaw law :
         {SaturatingLaw{0.3, 0.05}, SaturatingLaw{5.0, 1e-6}, SaturatingLaw{1e-9, 1e3, 0.2},
          SaturatingLaw{1e9, 1e-3, 1e6}, SaturatingLaw{0.0, 1.0, 0.5}, SaturatingLaw{0.0, 1.0}}) {
      Parts parts;
      std::vector<double> gammas, waves;
      for (const double gamma : {1e-9, 1e-3, 1.0, 2e3, 1e9}) {
        // Far below what slides, just below it, and far above.
        const double s = std::sqrt(2.0 * gamma / kStep_s);
        const double limit = (effort ? gamma : 1.0) * law.saturation / s;
        for (const double a : {0.0, 1e-12, 0.1, 3.0, 1e8, 1e-6 * limit, 0.5 * limit, 0.999 * limit,
                               (1.0 - 1e-13) * limit, limit, 1.5 * limit, 1e4 * limit}) {
          for (const double sign : {1.0, -1.0}) {
            parts.push_back(std::make_shared<NonlinearResistance>(one_port(causality), law));
            gammas.push_back(gamma);
            waves.push_back(sign * a);
          }
        }
      }
      const Solved own = solved(parts, gammas, waves);
      ASSERT_TRUE(own.status.ok());
      for (std::size_t l = 0; l < waves.size(); ++l) {
        const double gamma = gammas[l], s = std::sqrt(2.0 * gamma / kStep_s);
        const long double k = effort ? 1.0L : gamma, beta = effort ? gamma : 1.0L;
        const long double u = std::copysign(
            root(law, k, beta, static_cast<long double>(s) * std::abs(waves[l])), waves[l]);
        const long double y = law.saturation * std::tanh(u / law.reach) + law.slope * u;
        const auto b =
            static_cast<double>(effort ? 2.0L / s * u - waves[l] : waves[l] - 2.0L * gamma / s * u);
        const double size = std::abs(waves[l]);
        EXPECT_NEAR(own.b[l], b, 4e-15 * size) << "gamma " << gamma << ", a " << waves[l];
        EXPECT_GE(own.energy[l].dissipated_J, 0.0);
        EXPECT_NEAR(own.energy[l].dissipated_J, static_cast<double>(kStep_s * u * y),
                    4e-15 * size * size)
            << "gamma " << gamma << ", a " << waves[l];
        EXPECT_NEAR(own.energy[l].dissipated_J, 0.5 * (waves[l] * waves[l] - own.b[l] * own.b[l]),
                    4e-15 * size * size);
        EXPECT_EQ(own.energy[l].change_J, 0.0);
        EXPECT_EQ(own.energy[l].external_supply_J, 0.0);
      }
    }
  }
}

TEST(Saturating, DissipatesWhatTanhSays) {
  // By the dissipation of a port whose input is given, γ → ∞ for a flow: u = s a/γ.
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(-12.0, 2.0);
  const double gamma = 1e12, s = std::sqrt(2.0 * gamma / kStep_s);
  Parts parts;
  std::vector<double> waves;
  for (int l = 0; l < 4000; ++l) {
    parts.push_back(std::make_shared<NonlinearResistance>(one_port(Causality::flow_in),
                                                          SaturatingLaw{1.0, 1.0}));
    waves.push_back(std::pow(10.0, exponent(random)) * gamma / s * (l % 2 == 0 ? 1.0 : -1.0));
  }
  const Solved own = solved(parts, std::vector<double>(waves.size(), gamma), waves);
  for (std::size_t l = 0; l < waves.size(); ++l) {
    const long double u =
        root({1.0, 1.0}, gamma, 1.0L, static_cast<long double>(s) * std::abs(waves[l]));
    const auto lost = static_cast<double>(kStep_s * u * std::tanh(u));
    EXPECT_NEAR(own.energy[l].dissipated_J, lost, 3e-15 * lost) << static_cast<double>(u);
  }
}

TEST(Saturating, LanesDoNotDependOnTheirNeighbours) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> number(0.0, 1.0);
  Parts parts;
  std::vector<double> gamma, waves;
  for (int l = 0; l < 21; ++l) {
    parts.push_back(std::make_shared<NonlinearResistance>(
        one_port(l % 3 == 0 ? Causality::effort_in : Causality::flow_in),
        SaturatingLaw{number(random), 0.1 * number(random), 0.1 * number(random)}));
    gamma.push_back(0.1 + number(random));
    waves.push_back((l % 2 == 0 ? 1.0 : -1.0) * 0.1 * number(random));
  }
  const Solved together = solved(parts, gamma, waves);
  for (std::size_t l = 0; l < parts.size(); ++l) {
    const Solved alone = solved({parts[l]}, {gamma[l]}, {waves[l]});
    EXPECT_EQ(alone.b[0], together.b[l]) << l;
    EXPECT_EQ(alone.energy[0].dissipated_J, together.energy[l].dissipated_J) << l;
  }
}

TEST(Saturating, TheLaneWhoseWavesAreNotFiniteIsNamedAndTheOthersAreRight) {
  Parts parts;
  for (int l = 0; l < 11; ++l) {
    parts.push_back(std::make_shared<NonlinearResistance>(one_port(Causality::flow_in),
                                                          SaturatingLaw{1.0, 0.1}));
  }
  const std::vector<double> gamma(11, 1.0);
  std::vector<double> waves(11, 0.02);
  const Solved sound = solved(parts, gamma, waves);
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    waves.assign(11, 0.02);
    waves[9] = bad;
    const Solved own = solved(parts, gamma, waves);
    EXPECT_EQ(own.status.lane, 9);
    EXPECT_EQ(own.status.fault, StepFault::not_finite);
    for (std::size_t l = 0; l < 11; ++l) {
      if (l == 9) continue;
      EXPECT_EQ(own.b[l], sound.b[l]) << l;
    }
  }
}

TEST(Saturating, AnExchangedLaneIsThatOfABatchMadeAnew) {
  const auto part = [](double F) {
    return std::make_shared<NonlinearResistance>(one_port(Causality::flow_in),
                                                 SaturatingLaw{F, 0.1});
  };
  const std::vector<double> gamma(10, 1.0), waves(10, 0.03);
  for (const std::size_t lane : {0, 5, 9}) {
    Parts before(10, part(1.0)), after = before;
    after[lane] = part(3.0);
    testing::LaneMajor batch = batch_of(before), one = batch_of({after[lane]});
    batch.prepare(kStep_s, gamma.data());
    auto& exchange = dynamic_cast<LaneExchange&>(batch.batch());
    std::vector<double> aligned(16, 1.0), b(10);
    ASSERT_TRUE(exchange.exchange(static_cast<int>(lane), one.batch(), aligned.data()));
    ASSERT_TRUE(batch.scatter({0, 10}, waves.data(), b.data()).ok());
    EXPECT_EQ(b, solved(after, gamma, waves).b);
    EXPECT_NE(b, solved(before, gamma, waves).b);
  }
}

TEST(Saturating, PartsOfOneShapeShareABatch) {
  const NonlinearResistance soft(one_port(Causality::flow_in), SaturatingLaw{1.0, 0.5});
  const NonlinearResistance hard(one_port(Causality::flow_in), SaturatingLaw{9.0, 1e-3});
  const NonlinearResistance cubic(one_port(Causality::flow_in), [](double u) {
    return PortLawValue{u * u * u, 3.0 * u * u};
  });
  const NonlinearResistance linear(one_port(Causality::flow_in), [](double u) {
    return PortLawValue{u, 1.0};
  });
  EXPECT_EQ(soft.batch_key(), hard.batch_key());
  EXPECT_EQ(cubic.batch_key(), linear.batch_key());
  EXPECT_NE(soft.batch_key(), cubic.batch_key());
  EXPECT_EQ(cubic.saturating_law(), nullptr);
}

}  // namespace
}  // namespace portwave::test_saturating
