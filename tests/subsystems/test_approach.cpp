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

#include "nonlinear_parts.hpp"
#include "portwave/subsystems/newton_batch.hpp"
#include "support/lane_major.hpp"

// StepBatch::approach of the Newton batch: b ≈ S(a), as exact as the inner iteration needs it.

namespace portwave {
namespace {

using Eigen::VectorXd;

/// Passes everything on and counts what a port solve asks of a part. The physics only: its batch is
/// the generic one.
class Counting : public Subsystem {
 public:
  explicit Counting(const Subsystem& part) : Subsystem(part.signature()), part_(part) {}

  double storage(const double* x) const override { return part_.storage(x); }
  void gradient(const double* x, double* g) const override { part_.gradient(x, g); }
  void discrete_gradient(const double* x, const double* x_next, double* g) const override {
    ++gradients;
    part_.discrete_gradient(x, x_next, g);
  }
  void discrete_gradient_jacobian(const double* x, const double* x_next,
                                  std::vector<Eigen::Triplet<double>>& j) const override {
    ++jacobians;
    part_.discrete_gradient_jacobian(x, x_next, j);
  }
  const Structure& structure() const override { return part_.structure(); }
  bool constant_structure() const override { return part_.constant_structure(); }
  void structure_at(const double* x, Structure& out) const override { part_.structure_at(x, out); }
  std::vector<double> default_state() const override { return part_.default_state(); }

  mutable int gradients = 0;
  mutable int jacobians = 0;

 private:
  const Subsystem& part_;
};

struct Sample {
  std::string name;
  std::unique_ptr<NonlinearPortHamiltonian> part;
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

TEST(XX, Print) {
  for (const Sample& sample : samples()) {
    const int p = sample.part->signature().wave_size();
    for (double h : {1e-3, 1e-2, 0.1, 0.5}) {
      for (double rate : {0.9, 0.5, 0.1, 1e-3}) {
        Counting a(*sample.part), b(*sample.part);
        auto exact = frozen(a, sample, h), near = frozen(b, sample, h);
        double worst = 0;
        VectorXd before, S(p), N(p);
        const int K = 20;
        int k = 0;
        for (const VectorXd& u : approaching(p, K, rate, 1)) {
          ASSERT_TRUE(exact.scatter({0, 1}, u.data(), S.data()).ok());
          ASSERT_TRUE(near.approach({0, 1}, u.data(), N.data()).ok());
          const double err = (S - N).norm();
          if (k > 0) {
            const double d = (u - before).norm();
            worst = std::max(worst, (err - 1e-14 * (u.norm() + S.norm())) / d);
          }
          before = u;
          ++k;
        }
        printf("%-12s h=%-6g rate=%-6g exact g %3d J %3d   near g %3d J %3d  worst err/d %.2e final %.1e\n",
               sample.name.c_str(), h, rate, a.gradients, a.jacobians, b.gradients, b.jacobians,
               worst, (S - N).norm());
      }
    }
  }
}

}  // namespace
}  // namespace portwave
