#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "portwave/subsystems/linear/linear_part.hpp"
#include "portwave/subsystems/nonlinear/newton_batch.hpp"
#include "support/lane_major.hpp"
#include "support/systems/counting_part.hpp"
#include "support/systems/nonlinear_parts.hpp"

// StepBatch::inexact_scatter of the Newton batch: b ≈ S(a), as exact as the inner iteration needs
// it.

namespace portwave::test_approach {
namespace {

using Eigen::VectorXd;

struct Sample {
  std::string name;
  std::shared_ptr<const Subsystem> part;
  VectorXd x, impedance;
};

std::vector<Sample> samples() {
  using Vec = VectorXd;
  std::vector<Sample> out;
  const auto add = [&](const char* name, std::unique_ptr<NonlinearPortHamiltonian> part, Vec x,
                       Vec impedance) {
    out.push_back({name, std::move(part), std::move(x), std::move(impedance)});
  };
  add("pendulum", testing::pendulum(), Eigen::Vector2d(1.0, 0.5), Vec::Constant(1, 2.0));
  add("capacitor", testing::stiffening_capacitor(), Vec::Constant(1, 1.3), Vec::Constant(1, 3.0));
  add("quartic", testing::coupled_quartic(), Eigen::Vector4d(0.8, -0.3, 0.5, 0.2),
      Vec::Constant(1, 1.0));
  add("chain", testing::quartic_chain(6), Vec::LinSpaced(12, 0.5, -0.5), Vec::Constant(1, 1.5));
  add("rigid_body", testing::rigid_body(), Eigen::Vector3d(1.5, -1.0, 0.7),
      Eigen::Vector3d(1.0, 0.5, 2.0));
  return out;
}

/// Incident waves as an inner iteration makes them: towards a limit, at a linear rate.
std::vector<VectorXd> approaching(int waves, int count, double rate, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  VectorXd limit(waves), away(waves);
  for (int j = 0; j < waves; ++j) {
    limit[j] = normal(random);
    away[j] = normal(random);
  }
  std::vector<VectorXd> out;
  for (int k = 0; k < count; ++k) {
    out.push_back(limit + (k % 3 == 1 ? -1.0 : 1.0) * std::pow(rate, k) * away);
  }
  return out;
}

testing::LaneMajor frozen(const Subsystem& part, const Sample& sample, double h) {
  const Subsystem* parts[] = {&part};
  testing::LaneMajor batch(make_newton_batch(parts));
  batch.prepare(h, sample.impedance.data());
  batch.freeze({0, 1}, sample.x.data(), nullptr);
  return batch;
}

constexpr int kSolves = 20;

double round_off(const VectorXd& a, const VectorXd& b) { return 1e-13 * (a.norm() + b.norm()); }

void for_iterations(const std::function<void(const Sample&, double h, double rate)>& body) {
  for (const Sample& sample : samples()) {
    for (const double h : {1e-3, 1e-2, 0.1, 0.5}) {
      for (const double rate : {0.9, 0.5, 0.1, 1e-3}) {
        SCOPED_TRACE(sample.name + ::testing::PrintToString(std::make_pair(h, rate)));
        body(sample, h, rate);
      }
    }
  }
}

TEST(Approach, KeepsItsErrorBelowTheDistanceOfSuccessiveWaves) {
  double worst = 0.0;
  for_iterations([&](const Sample& sample, double h, double rate) {
    const int p = sample.part->signature().wave_size();
    auto exact = frozen(*sample.part, sample, h), near = frozen(*sample.part, sample, h);
    const auto incident = approaching(p, kSolves, rate, 1);
    VectorXd S(p), b(p);
    for (std::size_t k = 0; k < incident.size(); ++k) {
      const VectorXd& a = incident[k];
      ASSERT_TRUE(exact.scatter({0, 1}, a.data(), S.data()).ok());
      ASSERT_TRUE(near.inexact_scatter({0, 1}, a.data(), b.data()).ok());
      const double distance = k < 2 ? 0.0 : (a - incident[k - 1]).norm();
      const double error = (b - S).norm();
      EXPECT_LE(error, StepBatch::kInexactScatterError * distance + round_off(a, S)) << "k=" << k;
      if (error > round_off(a, S)) worst = std::max(worst, error / distance);
    }
    ASSERT_TRUE(near.inexact_scatter({0, 1}, incident.back().data(), b.data()).ok());
    EXPECT_LE((b - S).norm(), round_off(incident.back(), S)) << "a repeats";
  });
  EXPECT_GT(worst, 1e-7) << "nothing was inexact: the bound was not tested";
}

TEST(Approach, EndsAtTheExactWaveWhenTheIterationConverges) {
  for_iterations([&](const Sample& sample, double h, double rate) {
    const int p = sample.part->signature().wave_size();
    auto exact = frozen(*sample.part, sample, h), near = frozen(*sample.part, sample, h);
    const int solves = 3 + static_cast<int>(std::ceil(std::log(1e-10) / std::log(rate)));
    const auto incident = approaching(p, solves, rate, 2);
    VectorXd S(p), b(p);
    for (const VectorXd& a : incident) {
      ASSERT_TRUE(near.inexact_scatter({0, 1}, a.data(), b.data()).ok());
    }
    ASSERT_TRUE(exact.scatter({0, 1}, incident.back().data(), S.data()).ok());
    EXPECT_LE((b - S).norm(), 1e-12 * (incident.back().norm() + S.norm()));
  });
}

TEST(Approach, AsksForAFractionOfTheWork) {
  for_iterations([&](const Sample& sample, double h, double rate) {
    const testing::CountingPart cold(sample.part), warm(sample.part);
    auto exact = frozen(cold, sample, h), near = frozen(warm, sample, h);
    const int p = sample.part->signature().wave_size();
    VectorXd b(p);
    for (const VectorXd& a : approaching(p, kSolves, rate, 1)) {
      ASSERT_TRUE(exact.scatter({0, 1}, a.data(), b.data()).ok());
      ASSERT_TRUE(near.inexact_scatter({0, 1}, a.data(), b.data()).ok());
    }
    EXPECT_LE(warm.jacobians, 0.15 * static_cast<double>(cold.jacobians))
        << warm.jacobians << "/" << cold.jacobians;
    EXPECT_LE(warm.gradients, 0.7 * static_cast<double>(cold.gradients))
        << warm.gradients << "/" << cold.gradients;
    EXPECT_LE(warm.gradients + warm.jacobians,
              0.5 * static_cast<double>(cold.gradients + cold.jacobians));
  });
}

TEST(Approach, SurvivesJumps) {
  // An accelerated iteration goes to and fro: by decades, in no order.
  for (const Sample& sample : samples()) {
    const int p = sample.part->signature().wave_size();
    for (const double h : {1e-2, 0.1}) {
      auto exact = frozen(*sample.part, sample, h), near = frozen(*sample.part, sample, h);
      std::mt19937_64 random(3);
      std::normal_distribution<double> normal;
      VectorXd before = VectorXd::Zero(p), a(p), S(p), b(p);
      for (int k = 0; k < 60; ++k) {
        const double away = std::pow(10.0, -std::abs(4.0 * normal(random)));
        for (double& value : a) value = 0.7 + away * normal(random);
        ASSERT_TRUE(exact.scatter({0, 1}, a.data(), S.data()).ok());
        ASSERT_TRUE(near.inexact_scatter({0, 1}, a.data(), b.data()).ok());
        const double distance = k < 2 ? 0.0 : (a - before).norm();
        EXPECT_LE((b - S).norm(), StepBatch::kInexactScatterError * distance + round_off(a, S))
            << sample.name << " h=" << h << " k=" << k;
        before = a;
      }
    }
  }
}

// Purity.

bool same_bits(const VectorXd& x, const VectorXd& y) {
  return std::memcmp(x.data(), y.data(), static_cast<std::size_t>(x.size()) * sizeof(double)) == 0;
}

TEST(Approach, DependsOnTheApproachesOfTheLaneSinceItWasFrozenOnly) {
  constexpr int kLanes = 5;
  for (const Sample& sample : samples()) {
    const int n = sample.part->signature().state_size(), p = sample.part->signature().wave_size();
    const std::vector<const Subsystem*> parts(kLanes, sample.part.get());
    testing::LaneMajor together(make_newton_batch(parts));
    together.prepare(0.1, sample.impedance.replicate(kLanes, 1).eval().data());
    const VectorXd x = sample.x.replicate(kLanes, 1);
    VectorXd a(kLanes * p), b(kLanes * p), x_next(kLanes * n), other(kLanes * p);
    for (const bool again : {false, true}) {
      SCOPED_TRACE(sample.name + (again ? ", frozen again" : ""));
      together.freeze({0, kLanes}, x.data(), nullptr);
      std::vector<std::vector<VectorXd>> incident;
      std::vector<testing::LaneMajor> alone;
      for (int l = 0; l < kLanes; ++l) {
        incident.push_back(approaching(p, kSolves, 0.1 + 0.2 * l, 7u + static_cast<unsigned>(l)));
        alone.push_back(frozen(*sample.part, sample, 0.1));
      }
      for (std::size_t k = 0; k < kSolves; ++k) {
        for (int l = 0; l < kLanes; ++l)
          a.segment(l * p, p) = incident[static_cast<std::size_t>(l)][k];
        // In pieces, and with other solves in between.
        ASSERT_TRUE(together.inexact_scatter({3, 5}, a.data(), b.data()).ok());
        other = 2.0 * a;
        VectorXd rest(kLanes * p);
        ASSERT_TRUE(together.scatter({0, kLanes}, other.data(), rest.data()).ok());
        ASSERT_TRUE(
            together.advance({0, kLanes}, other.data(), x_next.data(), rest.data(), nullptr).ok());
        ASSERT_TRUE(together.inexact_scatter({0, 3}, a.data(), b.data()).ok());
        for (int l = 0; l < kLanes; ++l) {
          auto& single = alone[static_cast<std::size_t>(l)];
          const VectorXd& own = incident[static_cast<std::size_t>(l)][k];
          VectorXd expected(p), repeated(p);
          ASSERT_TRUE(single.inexact_scatter({0, 1}, own.data(), expected.data()).ok());
          EXPECT_TRUE(same_bits(b.segment(l * p, p), expected)) << "k=" << k << " lane " << l;
          // Solving for the same wave again leaves no trace.
          if (k % 4 == 3) {
            ASSERT_TRUE(single.inexact_scatter({0, 1}, own.data(), repeated.data()).ok());
          }
        }
      }
    }
  }
}

TEST(Approach, LeavesTheCommitAsItIs) {
  for (const Sample& sample : samples()) {
    const int n = sample.part->signature().state_size(), p = sample.part->signature().wave_size();
    auto used = frozen(*sample.part, sample, 0.1), fresh = frozen(*sample.part, sample, 0.1);
    const auto incident = approaching(p, 5, 0.5, 1);
    VectorXd x(n), x_fresh(n), b(p), b_fresh(p);
    for (const VectorXd& a : incident) {
      ASSERT_TRUE(used.inexact_scatter({0, 1}, a.data(), b.data()).ok());
    }
    ASSERT_TRUE(used.advance({0, 1}, incident.back().data(), x.data(), b.data(), nullptr).ok());
    ASSERT_TRUE(
        fresh.advance({0, 1}, incident.back().data(), x_fresh.data(), b_fresh.data(), nullptr)
            .ok());
    EXPECT_TRUE(same_bits(x, x_fresh) && same_bits(b, b_fresh)) << sample.name;
  }
}

// Faults.

TEST(ApproachFaults, AreThoseOfScatterAndAreForgotten) {
  for (const Sample& sample : samples()) {
    const int p = sample.part->signature().wave_size();
    const VectorXd good = VectorXd::Constant(p, 0.5), near = VectorXd::Constant(p, 0.51);
    VectorXd b(p), expected(p);
    auto batch = frozen(*sample.part, sample, 0.1);
    for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
      for (const VectorXd& a : {good, near}) {
        ASSERT_TRUE(batch.inexact_scatter({0, 1}, a.data(), b.data()).ok()) << sample.name;
      }
      for (int twice = 0; twice < 2; ++twice) {
        const VectorXd a = VectorXd::Constant(p, bad);
        EXPECT_EQ(batch.inexact_scatter({0, 1}, a.data(), b.data()).fault, StepFault::not_finite);
      }
      ASSERT_TRUE(batch.inexact_scatter({0, 1}, good.data(), b.data()).ok());
      ASSERT_TRUE(batch.scatter({0, 1}, good.data(), expected.data()).ok());
      EXPECT_TRUE(same_bits(b, expected)) << sample.name << ": a cold solve again";
    }
  }
}

/// H = −log(1 − q²), which is not defined, and throws if told to, at |q| ≥ 1.
std::unique_ptr<NonlinearPortHamiltonian> barrier(bool throws) {
  Hamiltonian H;
  H.value = [](const double* x) { return -std::log(1.0 - x[0] * x[0]); };
  H.gradient = [throws](const double* x, double* g) {
    const bool inside = std::abs(x[0]) < 1.0;
    if (throws && !inside) throw std::domain_error("out of range");
    g[0] = inside ? 2.0 * x[0] / (1.0 - x[0] * x[0]) : std::nan("");
  };
  Structure s = Structure::zero(1, 1);
  s.G.insert(0, 0) = 1.0;
  return std::make_unique<NonlinearPortHamiltonian>(
      Signature{"barrier", {{"q", "m"}}, {{"end", Causality::flow_in, Domain::translation, 1}}, {}},
      s, H, NonlinearPortHamiltonian::Options{});
}

TEST(ApproachFaults, OccurOnlyWhereScatterFails) {
  // Simplified steps from the last solution overshoot the domain of H, where a damped Newton does
  // not; or the other way round.
  int solved = 0, failed = 0;
  for (const bool throws : {false, true}) {
    const auto part = barrier(throws);
    const double impedance = 1.0, x = 0.5;
    testing::LaneMajor exact = [&] {
      const Subsystem* parts[] = {part.get()};
      return testing::LaneMajor(make_newton_batch(parts));
    }();
    const Subsystem* parts[] = {part.get()};
    testing::LaneMajor near(make_newton_batch(parts));
    for (testing::LaneMajor* batch : {&exact, &near}) {
      batch->prepare(1.0, &impedance);
      batch->freeze({0, 1}, &x, nullptr);
    }
    std::mt19937_64 random(5);
    std::normal_distribution<double> normal;
    const auto outcome = [](testing::LaneMajor& batch, bool approach, double a, double& b) {
      try {
        return (approach ? batch.inexact_scatter({0, 1}, &a, &b) : batch.scatter({0, 1}, &a, &b))
            .fault;
      } catch (const LaneException&) {
        return StepFault::threw;
      }
    };
    double before = 0.0;
    for (int k = 0; k < 400; ++k) {
      const double a = 20.0 * normal(random);
      double S = 0.0, b = 0.0;
      const StepFault expected = outcome(exact, false, a, S);
      const StepFault found = outcome(near, true, a, b);
      if (expected == StepFault::none) {
        ++solved;
        EXPECT_EQ(found, expected) << "k=" << k << " a=" << a << " throws=" << throws;
        EXPECT_LE(std::abs(b - S), StepBatch::kInexactScatterError * std::abs(a - before) +
                                       1e-13 * (std::abs(a) + std::abs(S)));
      } else if (found != StepFault::none) {
        ++failed;
        EXPECT_EQ(found, expected);
      }
      before = a;
    }
  }
  EXPECT_GT(solved, 100);
  EXPECT_GT(failed, 10) << "no failure was seen";
}

TEST(ApproachFaults, AreNotHiddenByAWarmStartThatNeverConverges) {
  const auto part = testing::pendulum();
  const Subsystem* parts[] = {part.get()};
  testing::LaneMajor batch(make_newton_batch(parts, {.max_steps = 1}));
  const double impedance = 2.0, x[] = {1.0, 0.5}, a = 0.5;
  double b = 0.0;
  batch.prepare(0.5, &impedance);
  batch.freeze({0, 1}, x, nullptr);
  EXPECT_EQ(batch.inexact_scatter({0, 1}, &a, &b).fault, StepFault::not_converged);
  EXPECT_EQ(batch.inexact_scatter({0, 1}, &a, &b).fault, StepFault::not_converged);
}

TEST(Approach, SolvesPartsWithoutStates) {
  const auto resistor =
      make_resistor(3.0, {"terminals", Causality::flow_in, Domain::electrical, 1});
  const Subsystem* parts[] = {resistor.get()};
  testing::LaneMajor batch(make_newton_batch(parts));
  const double gamma = 2.0;
  batch.prepare(0.5, &gamma);
  batch.freeze({0, 1}, nullptr, nullptr);
  for (const double a : {1.5, 1.4, 1.4, -3.0}) {
    double b = 0.0;
    ASSERT_TRUE(batch.inexact_scatter({0, 1}, &a, &b).ok());
    EXPECT_NEAR(b, a * (3.0 - gamma) / (3.0 + gamma), 1e-15);
  }
}

}  // namespace
}  // namespace portwave::test_approach
