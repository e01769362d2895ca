// Stages of a part of which some states are damped and others not: against the equations of the step, solved densely,
// for linear parts and for those that are solved by Newton's method.

#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"

namespace portwave::test_states_damped_alone {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr int kStates = 4;

/// ẋ = (J − R)Qx beside a port that touches nothing.
struct Decaying {
  MatrixXd J, R, Q;

  explicit Decaying(unsigned seed) {
    std::mt19937_64 generator(seed);
    std::normal_distribution<double> normal;
    const auto random = [&]() -> MatrixXd {
      return MatrixXd::NullaryExpr(kStates, kStates, [&] { return normal(generator); });
    };
    const MatrixXd A = random(), L = random(), W = random();
    J = A - A.transpose();
    R = L * L.transpose();
    Q = W.transpose() * W + MatrixXd::Identity(kStates, kStates);
    Q = (0.5 * (Q + Q.transpose())).eval();
  }
  Signature signature() const {
    Signature out;
    out.type = "decaying";
    for (int i = 0; i < kStates; ++i) out.states.push_back({"x" + std::to_string(i), "1"});
    out.ports = {{"port", Causality::effort_in, Domain::generic, 1}};
    return out;
  }
  Structure structure() const {
    Structure out = Structure::zero(kStates, 1);
    out.J = J.sparseView();
    out.R = R.sparseView();
    return out;
  }
  std::shared_ptr<const Component> linear() const {
    return std::make_shared<LinearPortHamiltonian>(signature(), structure(),
                                                   SparseMatrix(Q.sparseView()));
  }
  std::shared_ptr<const Component> by_newton() const {
    Hamiltonian energy;
    energy.value = [Q = Q](const double* x) {
      const Eigen::Map<const VectorXd> at(x, kStates);
      return 0.5 * at.dot(Q * at);
    };
    energy.gradient = [Q = Q](const double* x, double* g) {
      Eigen::Map<VectorXd>(g, kStates) = Q * Eigen::Map<const VectorXd>(x, kStates);
    };
    return std::make_shared<NonlinearPortHamiltonian>(
        signature(), structure(), energy,
        NonlinearPortHamiltonian::Options{.polynomial_degree = 2});
  }
};

struct Step {
  VectorXd next;
  double numerical_J = 0.0;
};

/// zᵢ = Q(x + h Σⱼ aᵢⱼẋⱼ) + δθ h P̂(cᵢ) DQD Σⱼ bⱼP̂(cⱼ)ẋⱼ with the a of undamped stages, ẋᵢ = (J − R)zᵢ.
Step expected(const Decaying& part, const StageRule& rule, const StageDamping& damping, double h,
              const VectorXd& x) {
  const int s = rule.count, n = kStates;
  MatrixXd D = MatrixXd::Identity(n, n);
  for (int k = 0; k < n; ++k) D(k, k) = (damping.conserved >> k & 1U) != 0 ? 0.0 : 1.0;
  const MatrixXd A = part.J - part.R, K = D * part.Q * D;
  const double delta = damping.theta / (4.0 * s - 2.0);
  const auto top = [&](int i) {  // P̂(cᵢ)
    return rule.top[static_cast<std::size_t>(i)] / std::sqrt(rule.b[static_cast<std::size_t>(i)]);
  };
  MatrixXd lhs = MatrixXd::Identity(s * n, s * n);
  for (int i = 0; i < s; ++i) {
    for (int j = 0; j < s; ++j) {
      const double a = rule.A[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
      const double b = rule.b[static_cast<std::size_t>(j)];
      lhs.block(i * n, j * n, n, n) -= h * A * (a * part.Q + delta * top(i) * b * top(j) * K);
    }
  }
  const VectorXd rates = lhs.fullPivLu().solve((A * part.Q * x).replicate(s, 1));
  Step out{x};
  VectorXd moved = VectorXd::Zero(n);
  for (int i = 0; i < s; ++i) {
    const double b = rule.b[static_cast<std::size_t>(i)];
    out.next += h * b * rates.segment(i * n, n);
    moved += b * top(i) * rates.segment(i * n, n);
  }
  out.numerical_J = delta * h * h * moved.dot(K * moved);
  return out;
}

Step made(const std::shared_ptr<const Component>& part, const StageRule& rule, double h,
          const VectorXd& x) {
  const std::shared_ptr<const Component> staged = staged_part(part, rule);
  const Component* const alone[] = {staged.get()};
  const auto batch = staged->make_batch(alone);
  const VectorXd gamma = VectorXd::Ones(batch->wave_count()), a = VectorXd::Zero(rule.count);
  batch->prepare(h, gamma.data());
  AlignedVector record(batch->record_size(), 0.0), next = record;
  batch->set_state(0, x.data(), record.data());
  batch->freeze({0, 1}, record.data(), nullptr);
  VectorXd b = a;
  double change = 0.0, supplied = 0.0, dissipated = 0.0, numerical = 0.0;
  EXPECT_TRUE(batch
                  ->advance({0, 1}, record.data(), a.data(), next.data(), b.data(),
                            {&change, &supplied, &dissipated, &numerical})
                  .ok());
  Step out{x, numerical};
  batch->get_state(0, next.data(), out.next.data());
  // Of terms that are h|J − R||Q| times as large, up to 1e5 here.
  EXPECT_NEAR(change + dissipated, supplied, 1e-9 * (std::abs(change) + dissipated));
  return out;
}

TEST(StatesDampedAlone, FollowTheEquationsOfTheStep) {
  const VectorXd x = VectorXd::LinSpaced(kStates, 1.0, -2.0);
  for (unsigned seed = 1; seed <= 4; ++seed) {
    const Decaying part(seed);
    for (int stages = 1; stages <= kMostStages; ++stages) {
      for (const std::uint64_t conserved : {0x0U, 0x1U, 0x6U, 0xbU}) {
        for (const double h : {0.01, 1.0, 100.0}) {
          const StageRule& nodes = stage_rule(stages, StageNodes::radau);
          const StageDamping damping{.theta = seed % 2 == 0 ? 1.0 : 0.4, .conserved = conserved};
          const StageRule rule = damped(nodes, damping);
          const Step wanted = expected(part, nodes, damping, h, x);
          for (const auto& component : {part.linear(), part.by_newton()}) {
            const Step own = made(component, rule, h, x);
            const auto where = [&] {
              return ::testing::Message()
                     << seed << ", " << stages << " stages, conserved " << conserved
                     << ", h = " << h
                     << (component->capabilities().linear ? ", linear" : ", by Newton");
            };
            EXPECT_LT((own.next - wanted.next).norm(), 1e-9 * x.norm()) << where();
            EXPECT_NEAR(own.numerical_J, wanted.numerical_J, 1e-8 * x.dot(part.Q * x)) << where();
          }
          // A control: the damping of all states is another step.
          if (conserved != 0 && h == 1.0) {
            EXPECT_GT((expected(part, nodes, {damping.theta, 0}, h, x).next - wanted.next).norm(),
                      1e-4);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace portwave::test_states_damped_alone
