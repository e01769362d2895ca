#include <cstring>
#include <stdexcept>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/core/port.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "portwave/subsystems/nonlinear/newton_batch.hpp"
#include "support/lane_major.hpp"
#include "support/systems/nonlinear_parts.hpp"

namespace portwave::test_newton_batch {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

testing::LaneMajor newton(const Subsystem& part, NewtonOptions options = {}) {
  const Subsystem* parts[] = {&part};
  return testing::LaneMajor(make_newton_batch(parts, options));
}

// Against independent solutions.

/// Two states, an effort-in and a flow-in port with full feedthrough (S, N, P), one external input.
std::unique_ptr<LinearPortHamiltonian> mixed_linear_part() {
  Structure s = Structure::zero(2, 3);
  s.J.insert(0, 1) = 1.2;
  s.J.insert(1, 0) = -1.2;
  s.R.insert(0, 0) = 0.8;
  s.R.insert(1, 1) = 0.5;
  s.G.insert(0, 0) = 1.0;
  s.G.insert(1, 1) = 2.0;
  s.G.insert(0, 2) = 0.7;
  s.P.insert(0, 1) = 0.1;
  s.P.insert(1, 2) = -0.2;
  s.S.insert(0, 0) = 0.3;
  s.S.insert(1, 1) = 0.4;
  s.S.insert(2, 2) = 0.6;
  s.N.insert(0, 1) = 0.9;
  s.N.insert(1, 0) = -0.9;
  s.N.insert(1, 2) = 0.25;
  s.N.insert(2, 1) = -0.25;
  SparseMatrix Q(2, 2);
  Q.insert(0, 0) = 3.0;
  Q.insert(0, 1) = Q.insert(1, 0) = 0.5;
  Q.insert(1, 1) = 7.0;
  Signature signature{"mixed",
                      {{"x1", ""}, {"x2", ""}},
                      {{"push", Causality::effort_in, Domain::generic, 1},
                       {"pull", Causality::flow_in, Domain::generic, 1}},
                      {{"drive", ""}}};
  return std::make_unique<LinearPortHamiltonian>(signature, s, Q);
}

TEST(NewtonBatch, SolvesALinearStepAsOneDenseSystemDoes) {
  // Unknowns (x⁺, e₁, f₁, e₂, f₂), with the definition of waves as equations.
  const auto part = mixed_linear_part();
  const Structure& s = part->structure();
  const MatrixXd A = MatrixXd(s.J) - MatrixXd(s.R), B = MatrixXd(s.G) - MatrixXd(s.P);
  const MatrixXd C = (MatrixXd(s.G) + MatrixXd(s.P)).transpose(), D = MatrixXd(s.S) + MatrixXd(s.N);
  const MatrixXd Q(part->Q());
  const VectorXd x = Eigen::Vector2d(0.3, -0.9);
  const double a[] = {0.8, -1.1}, input = 0.45;
  for (const double h : {1e-4, 1e-2, 1.0, 50.0}) {
    for (const double scale : {0.01, 1.0, 30.0}) {
      const double gamma[] = {0.7 * scale, 1.9 * scale};
      MatrixXd K = MatrixXd::Zero(6, 6);
      VectorXd rhs = VectorXd::Zero(6);
      const int u[] = {2, 5}, y[] = {3, 4};  // push: u = e, y = f; pull: u = f, y = e
      K.topLeftCorner(2, 2) = MatrixXd::Identity(2, 2) - 0.5 * h * A * Q;
      rhs.head(2) = x + 0.5 * h * A * Q * x + h * B.col(2) * input;
      for (int j = 0; j < 2; ++j) {
        K.block(0, u[j], 2, 1) = -h * B.col(j);
        K(2 + j, y[j]) = 1.0;
        K.block(2 + j, 0, 1, 2) = -0.5 * C.row(j) * Q;
        for (int k = 0; k < 2; ++k) K(2 + j, u[k]) -= D(j, k);
        rhs[2 + j] = 0.5 * C.row(j).dot(Q * x) + D(j, 2) * input;
        K(4 + j, 2 + 2 * j) = 1.0;
        K(4 + j, 3 + 2 * j) = gamma[j];
        rhs[4 + j] = std::sqrt(2.0 * gamma[j] / h) * a[j];
      }
      const VectorXd z = K.fullPivLu().solve(rhs);

      auto batch = newton(*part);
      double x_next[2], b[2];
      StepEnergy energy;
      batch.prepare(h, gamma);
      batch.freeze({0, 1}, x.data(), &input);
      ASSERT_TRUE(batch.advance({0, 1}, a, x_next, b, &energy).ok());
      for (int i = 0; i < 2; ++i) {
        EXPECT_NEAR(x_next[i], z[i], 1e-12 * z.head(2).norm()) << "h=" << h << " scale=" << scale;
        const WaveTransform port(gamma[i], h);
        const double expected = port.to_waves({z[2 + 2 * i], z[3 + 2 * i]}).outgoing;
        EXPECT_NEAR(b[i], expected, 1e-12 * (1.0 + std::abs(expected)))
            << "h=" << h << " scale=" << scale << " port " << i;
      }
      const VectorXd g = 0.5 * Q * (x + z.head(2));
      const Eigen::Vector3d inputs(z[2], z[5], input);
      const double supply = h * input * (C.row(2).dot(g) + D.row(2).dot(inputs));
      const double loss = h * (g.dot(MatrixXd(s.R) * g) + 2.0 * g.dot(MatrixXd(s.P) * inputs) +
                               inputs.dot(MatrixXd(s.S) * inputs));
      EXPECT_NEAR(energy.external_supply_J, supply, 1e-12 * (1.0 + std::abs(supply)));
      EXPECT_NEAR(energy.dissipated_J, loss, 1e-12 * (1.0 + std::abs(loss)));
    }
  }
}

/// f of the capacitor's step by bisection in long double, from its scalar equations
///   q⁺ = q + h f,  e = (cosh q⁺ − cosh q)/(q⁺ − q) + 0.2 f,  e + γf = √(2γ/h) a.
long double capacitor_flow(double q, double h, double gamma, double a) {
  const long double incident = sqrtl(2.0L * gamma / h) * a;
  const auto excess = [&](long double f) {
    // cosh(q + d) − cosh(q) = 2 sinh(q + d/2) sinh(d/2)
    const long double half = 0.5L * h * f;
    const long double mean = half == 0.0L ? 1.0L : sinhl(half) / half;
    return sinhl(q + half) * mean + (0.2L + gamma) * f - incident;
  };
  long double low = -1e3L, high = 1e3L;
  for (int i = 0; i < 200; ++i) {
    const long double middle = 0.5L * (low + high);
    (excess(middle) > 0.0L ? high : low) = middle;
  }
  return 0.5L * (low + high);
}

TEST(NewtonBatch, SolvesANonlinearStepAsBisectionDoes) {
  const auto part = testing::stiffening_capacitor();
  for (const double h : {1e-5, 1e-2, 0.3, 2.0}) {
    for (const double gamma : {0.1, 3.0}) {
      for (const double q : {-2.0, 0.0, 1.3}) {
        for (const double a : {-1.5, 1e-6, 0.8}) {
          const double f = static_cast<double>(capacitor_flow(q, h, gamma, a));
          auto batch = newton(*part);
          double q_next, b;
          StepEnergy energy;
          batch.prepare(h, &gamma);
          batch.freeze({0, 1}, &q, nullptr);
          ASSERT_TRUE(batch.advance({0, 1}, &a, &q_next, &b, &energy).ok());
          const std::string where = ::testing::PrintToString(std::make_tuple(h, gamma, q, a));
          EXPECT_NEAR(q_next, q + h * f, 1e-15 * (1.0 + std::abs(q) + std::abs(q_next))) << where;
          // Power, u = f: the flow comes back out of the waves with their own round-off.
          const WaveTransform port(gamma, h);
          const double scale = port.scale() / gamma * (std::abs(a) + std::abs(b));
          EXPECT_NEAR(port.to_effort_flow({a, b}).flow, f, 1e-14 * (scale + std::abs(f))) << where;
        }
      }
    }
  }
}

TEST(NewtonBatch, ShortStepsDoNotDrownInRoundOff) {
  // 1e5 steps of 1e-9 s reach the state of 10 steps of 1e-5 s, up to the rounding of x⁺ in each.
  // Increments of H by subtraction would carry a noise of 1e-15 J/|Δx|, a millionth of the rate.
  const auto part = testing::pendulum();
  const double impedance = 2.0;
  const auto run = [&](double h, int steps) {
    auto batch = newton(*part);
    batch.prepare(h, &impedance);
    Eigen::Vector2d x(1.0, 0.5), x_next;
    for (int n = 0; n < steps; ++n) {
      const double a = 0.0;
      double b;
      StepEnergy energy;
      batch.freeze({0, 1}, x.data(), nullptr);
      EXPECT_TRUE(batch.advance({0, 1}, &a, x_next.data(), &b, &energy).ok());
      x = x_next;
    }
    return x;
  };
  const Eigen::Vector2d fine = run(1e-9, 100000), coarse = run(1e-5, 10);
  EXPECT_LT((fine - coarse).norm(), 2e-13);  // 1e5 roundings of x⁺, at random
  EXPECT_GT((fine - Eigen::Vector2d(1.0, 0.5)).norm(), 1e-4) << "nothing moved";
}

TEST(NewtonBatch, UsesTheDerivativeOfAStateDependentStructure) {
  // Quadratic convergence: with that derivative left out, this step takes more than 15 iterations.
  const auto part = testing::rigid_body();
  const double x[] = {1.5, -1.0, 0.7}, impedance[] = {1.0, 0.5, 2.0}, a[] = {0.9, -0.4, 0.2};
  double b[3];
  for (const int steps : {7, 2}) {
    auto batch = newton(*part, {.max_steps = steps});
    batch.prepare(0.7, impedance);
    batch.freeze({0, 1}, x, nullptr);
    const StepFault expected = steps == 7 ? StepFault::none : StepFault::not_converged;
    EXPECT_EQ(batch.scatter({0, 1}, a, b).fault, expected) << "max_steps " << steps;
  }
}

// Faults.

TEST(NewtonBatchFaults, NameTheFirstLaneThatFails) {
  const auto part = testing::pendulum();
  const std::vector<const Subsystem*> parts(4, part.get());
  testing::LaneMajor batch(make_newton_batch(parts));
  const std::vector<double> impedance(4, 1.0), x = {1, 0, 1, 0, 1, 0, 1, 0};
  batch.prepare(0.1, impedance.data());
  batch.freeze({0, 4}, x.data(), nullptr);
  std::vector<double> a = {0.5, 0.5, std::nan(""), HUGE_VAL}, b(4), good(4, 0.5), expected(4);
  const LaneStatus status = batch.scatter({0, 4}, a.data(), b.data());
  EXPECT_EQ(status.lane, 2);
  EXPECT_EQ(status.fault, StepFault::not_finite);
  EXPECT_EQ(batch.scatter({3, 4}, a.data(), b.data()).lane, 3);
  // A failure leaves no trace.
  ASSERT_TRUE(batch.scatter({0, 4}, good.data(), expected.data()).ok());
  EXPECT_EQ(std::memcmp(&expected[0], &b[0], sizeof(double)), 0);
  for (int l = 1; l < 4; ++l) EXPECT_EQ(expected[static_cast<std::size_t>(l)], expected[0]);
}

TEST(NewtonBatchFaults, ACallbackThatThrowsIsPassedOnAndLeavesNoTrace) {
  Hamiltonian H;
  H.value = [](const double* x) { return x[0] * x[0] * x[0] * x[0]; };
  H.gradient = [](const double* x, double* g) {
    if (std::abs(x[0]) > 3.0) throw std::domain_error("out of range");
    g[0] = 4.0 * x[0] * x[0] * x[0];
  };
  Structure s = Structure::zero(1, 1);
  s.G.insert(0, 0) = 1.0;
  const NonlinearPortHamiltonian part(
      {"spring", {{"q", "m"}}, {{"end", Causality::flow_in, Domain::translation, 1}}, {}}, s, H,
      {});
  auto batch = newton(part);
  const double impedance = 1.0, x = 0.5, gentle = 0.3, violent = 1e4;
  double before, after, b;
  batch.prepare(1.0, &impedance);
  batch.freeze({0, 1}, &x, nullptr);
  ASSERT_TRUE(batch.scatter({0, 1}, &gentle, &before).ok());
  try {
    (void)batch.scatter({0, 1}, &violent, &b);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const LaneException& error) {
    EXPECT_EQ(error.lane(), 0);
    EXPECT_STREQ(error.what(), "out of range");
  }
  ASSERT_TRUE(batch.scatter({0, 1}, &gentle, &after).ok());
  EXPECT_EQ(std::memcmp(&before, &after, sizeof(double)), 0);
}

TEST(NewtonBatchFaults, AStepOutOfTheDomainOfHIsShortened) {
  // H = −log(1 − q²): the first Newton step overshoots |q| = 1, where H and ∇H are NaN.
  Hamiltonian H;
  H.value = [](const double* x) { return -std::log(1.0 - x[0] * x[0]); };
  H.gradient = [](const double* x, double* g) {
    g[0] = std::abs(x[0]) < 1.0 ? 2.0 * x[0] / (1.0 - x[0] * x[0]) : std::nan("");
  };
  Structure s = Structure::zero(1, 1);
  s.G.insert(0, 0) = 1.0;
  const NonlinearPortHamiltonian part(
      {"barrier", {{"q", "m"}}, {{"end", Causality::flow_in, Domain::translation, 1}}, {}}, s, H,
      {});
  auto batch = newton(part);
  const double impedance = 1.0, h = 1.0, x = 0.5, a = 20.0;
  double q = 0.0, b = 0.0;
  StepEnergy energy;
  batch.prepare(h, &impedance);
  batch.freeze({0, 1}, &x, nullptr);
  ASSERT_TRUE(batch.advance({0, 1}, &a, &q, &b, &energy).ok());
  EXPECT_LT(q, 1.0);
  const double f = (q - x) / h, e = (part.storage(&q) - part.storage(&x)) / (q - x);
  EXPECT_NEAR(e + impedance * f, std::sqrt(2.0 * impedance / h) * a, 1e-9);
}

TEST(NewtonBatchFaults, RefusesWhatCannotBeABatch) {
  const auto pendulum = testing::pendulum();
  const auto quartic = testing::coupled_quartic();
  const std::vector<const Subsystem*> none, mixed = {pendulum.get(), quartic.get()};
  EXPECT_THROW(make_newton_batch(none), ConfigError);
  EXPECT_THROW(make_newton_batch(mixed), ConfigError);
  EXPECT_THROW(newton(*pendulum, {.max_steps = 0}), ConfigError);
  EXPECT_NO_THROW(newton(*pendulum));
}

TEST(NewtonBatchFaults, AnActiveFeedthroughThatCancelsTheImpedanceIsSingular) {
  // e = −2f + ..., so e + γf does not determine f at γ = 2.
  Structure s = Structure::zero(1, 1);
  s.G.insert(0, 0) = 1.0;
  s.S.insert(0, 0) = -2.0;
  SparseMatrix Q(1, 1);
  Q.insert(0, 0) = 1.0;
  LinearPortHamiltonian::Options options;
  options.allow_active = true;
  const LinearPortHamiltonian part(
      {"active", {{"q", "C"}}, {{"terminals", Causality::flow_in, Domain::electrical, 1}}, {}}, s,
      Q, options);
  const double singular = 2.0, sound = 2.5;
  EXPECT_THROW(newton(part).prepare(0.1, &singular), ConfigError);
  EXPECT_NO_THROW(newton(part).prepare(0.1, &sound));
}

TEST(NewtonBatch, SolvesAPartWithoutStates) {
  const auto resistor =
      make_resistor(3.0, {"terminals", Causality::flow_in, Domain::electrical, 1});
  auto batch = newton(*resistor);
  const double h = 0.5, gamma = 2.0, a = 1.5;
  double b = 0.0;
  StepEnergy energy;
  batch.prepare(h, &gamma);
  batch.freeze({0, 1}, nullptr, nullptr);
  ASSERT_TRUE(batch.advance({0, 1}, &a, nullptr, &b, &energy).ok());
  EXPECT_NEAR(b, a * (3.0 - gamma) / (3.0 + gamma), 1e-15);  // reflection of e = 3f
  EXPECT_NEAR(energy.dissipated_J, 0.5 * (a * a - b * b), 1e-15);
}

/// A pendulum that does something whenever its gradient is asked for.
class Interrupted final : public Subsystem {
 public:
  Interrupted() : Subsystem(testing::pendulum()->signature()), honest_(testing::pendulum()) {}
  double storage(const double* x) const override { return honest_->storage(x); }
  void gradient(const double* x, double* g) const override { honest_->gradient(x, g); }
  void discrete_gradient(const double* x, const double* y, double* g) const override {
    if (interrupt) interrupt();
    honest_->discrete_gradient(x, y, g);
  }
  void discrete_gradient_jacobian(const double* x, const double* y,
                                  std::vector<Eigen::Triplet<double>>& out) const override {
    honest_->discrete_gradient_jacobian(x, y, out);
  }
  const Structure& structure() const override { return honest_->structure(); }

  std::function<void()> interrupt;

 private:
  std::unique_ptr<Subsystem> honest_;
};

/// A batch is const: solves of the same lane, one within the other, know nothing of each other.
TEST(NewtonBatch, SolvesALaneWhileItIsSolvingIt) {
  Interrupted part;
  const Subsystem* parts[] = {&part};
  const std::unique_ptr<StepBatch> prepared = make_newton_batch(parts);
  const double impedance = 2.0, x[] = {1.0, 0.5}, other_x[] = {-2.0, 3.0};
  prepared->prepare(0.1, &impedance);
  const StepBatch& batch = *prepared;
  const auto frozen = [&](const double* state) {
    AlignedVector record(batch.record_size(), 0.0);
    batch.set_state(0, state, record.data());
    batch.freeze({0, 1}, record.data(), nullptr);
    return record;
  };
  const auto solve = [&](const double* state, double a) {
    AlignedVector record = frozen(state);
    double b = 0.0;
    EXPECT_TRUE(batch.scatter({0, 1}, record.data(), &a, &b).ok());
    return b;
  };
  const double expected = solve(x, 0.7), other = solve(other_x, -0.4);
  int interruptions = 0;
  part.interrupt = [&] {
    const std::function<void()> again = std::move(part.interrupt);
    part.interrupt = nullptr;
    EXPECT_EQ(solve(other_x, -0.4), other);
    part.interrupt = again;
    ++interruptions;
  };
  EXPECT_EQ(solve(x, 0.7), expected);
  EXPECT_GT(interruptions, 1);
}

}  // namespace
}  // namespace portwave::test_newton_batch
