// Integral states, as positions are of velocities: their step against the dense equations,
// the same bits whatever lies beside a part, and what the batch says of its rounding, for steps far
// below and far above the part's own periods.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"

namespace portwave::test_integral_states {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using Long = long double;
using LongMatrix = Eigen::Matrix<Long, Eigen::Dynamic, Eigen::Dynamic>;
using LongVector = Eigen::Matrix<Long, Eigen::Dynamic, 1>;

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr int kMomenta = 3, kPositions = 5, kStates = kMomenta + kPositions;
/// Momenta 1, 3, 5; the elongation 0 is the integral of 3 and 5, position 2 of 1, position 4 of 3,
/// position 6 of 1 as well, and position 7 of 5.
constexpr int kMomentum[] = {1, 3, 5}, kPosition[] = {0, 2, 4, 6, 7};

struct Kind {
  double stiffness = 1.0;  ///< squares of frequencies are about this
  double damping = 0.1;    ///< may be negative: active
  double theta = 0.0;      ///< of damped stages
  int stages = 1;          ///< of these
  bool driven = false;
  bool two_ports = false;
  Causality causality = Causality::effort_in;
  /// Which states are integrals of which: as above, the other way round, or only some of them.
  enum class Pattern { usual, turned, few };
  Pattern pattern = Pattern::usual;
};

std::unique_ptr<LinearPortHamiltonian> make_part(const Kind& kind, std::mt19937_64& generator) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> mass(0.5, 2.0);
  const int ports = kind.two_ports ? 2 : 1, inputs = ports + (kind.driven ? 1 : 0);
  MatrixXd J = MatrixXd::Zero(kStates, kStates), R = J, Q = J, G = MatrixXd::Zero(kStates, inputs);
  const auto integrate = [&](int position, int momentum, double k) {
    J(position, momentum) += k;
    J(momentum, position) -= k;
  };
  const bool turned = kind.pattern == Kind::Pattern::turned;
  integrate(0, 3, 1.0);
  if (kind.pattern == Kind::Pattern::usual) integrate(0, 5, -1.0);
  integrate(2, turned ? 5 : 1, 1.0);
  integrate(4, 3, 1.0);
  integrate(6, 1, 0.7);
  integrate(7, turned ? 1 : 5, 1.0);
  if (kind.pattern == Kind::Pattern::few) R(4, 4) = R(7, 7) = 2.0 * kind.damping;  // these do not
  const MatrixXd L =
      MatrixXd::NullaryExpr(kPositions, kPositions, [&] { return normal(generator); });
  const MatrixXd K = kind.stiffness * (L.transpose() * L);
  for (int i = 0; i < kPositions; ++i) {
    for (int j = 0; j < kPositions; ++j) Q(kPosition[i], kPosition[j]) = 0.5 * (K(i, j) + K(j, i));
  }
  for (const int p : kMomentum) {
    Q(p, p) = 1.0 / mass(generator);
    R(p, p) = kind.damping;
    for (int j = 0; j < inputs; ++j) G(p, j) = normal(generator);
  }
  Structure structure = Structure::zero(kStates, inputs);
  structure.J = J.sparseView();
  structure.R = R.sparseView();
  structure.G = G.sparseView();
  Signature signature;
  signature.type = "positions and momenta";
  for (int i = 0; i < kStates; ++i) signature.states.push_back({"x" + std::to_string(i), "1"});
  for (int j = 0; j < ports; ++j) {
    signature.ports.push_back({.name = "p" + std::to_string(j), .causality = kind.causality});
  }
  if (kind.driven) signature.inputs.push_back({"u", "1"});
  return std::make_unique<LinearPortHamiltonian>(
      std::move(signature), std::move(structure), SparseMatrix(Q.sparseView()),
      LinearPortHamiltonian::Options{.allow_active = kind.damping < 0.0,
                                     .storage = StepMapStorage::dense});
}

/// The part as it is stepped.
std::shared_ptr<const Component> stepped(const Kind& kind, std::mt19937_64& generator) {
  std::shared_ptr<const Component> part = make_part(kind, generator);
  if (kind.theta == 0.0) return part;
  return staged_part(std::move(part),
                     damped(stage_rule(kind.stages, StageNodes::radau), {.theta = kind.theta}));
}

/// Parts side by side, and one step of all of them.
class Bench {
 public:
  Bench(std::vector<std::shared_ptr<const Component>> parts, double h, double gamma,
        const std::vector<std::uint64_t>& seeds, double scale = 1.0)
      : parts_(std::move(parts)) {
    std::vector<const Component*> components;
    for (const auto& part : parts_) components.push_back(part.get());
    batch_ = parts_[0]->make_batch(components);
    const int lanes = static_cast<int>(parts_.size());
    const auto waves = static_cast<std::size_t>(batch_->wave_size() * batch_->stride());
    std::vector<double> impedance(waves, gamma);
    batch_->prepare(h, impedance.data());
    record_.assign(batch_->record_size(), 0.0);
    next_ = record_;
    a_.assign(waves, 0.0);
    b_ = a_;
    for (auto* column : {&change, &supplied, &dissipated}) {
      column->assign(static_cast<std::size_t>(batch_->stride()), 0.0);
    }
    std::vector<double> inputs;
    for (int l = 0; l < lanes; ++l) {
      std::normal_distribution<double> normal;
      std::mt19937_64 own(seeds[static_cast<std::size_t>(l)]);
      states.emplace_back(VectorXd::NullaryExpr(kStates, [&] { return scale * normal(own); }));
      batch_->set_state(l, states.back().data(), record_.data());
      for (int j = 0; j < batch_->wave_size(); ++j) {
        a_[static_cast<std::size_t>(j * batch_->stride() + l)] = scale * normal(own);
      }
      for (int j = 0; j < std::max(1, batch_->input_size()); ++j) {
        inputs.push_back(scale * normal(own));
      }
    }
    input = inputs;
    const bool driven = batch_->input_size() > 0;
    batch_->freeze({0, lanes}, record_.data(), driven ? inputs.data() : nullptr);
    EXPECT_TRUE(batch_
                    ->advance({0, lanes}, record_.data(), a_.data(), next_.data(), b_.data(),
                              {change.data(), supplied.data(), dissipated.data()})
                    .ok());
    batch_->freeze({0, lanes}, next_.data(), nullptr);  // as after a snapshot
  }

  VectorXd after(int lane) const {
    VectorXd x(kStates);
    batch_->get_state(lane, next_.data(), x.data());
    return x;
  }
  double incident(int lane, int port) const { return wave(a_, lane, port); }
  double outgoing(int lane, int port) const { return wave(b_, lane, port); }
  double bound(int lane) const {
    return batch_->roundings()
        ->step_rounding(lane, record_.data(), a_.data(), next_.data())
        .value();
  }
  int ports() const { return batch_->wave_size(); }

  std::vector<VectorXd> states;  ///< at the start
  std::vector<double> input, change, supplied, dissipated;

 private:
  double wave(const AlignedVector& waves, int lane, int port) const {
    return waves[static_cast<std::size_t>(port * batch_->stride() + lane)];
  }
  std::vector<std::shared_ptr<const Component>> parts_;
  std::unique_ptr<StepBatch> batch_;
  AlignedVector record_, next_, a_, b_;
};

Bench alone(const Kind& kind, double h, std::uint64_t seed, double scale = 1.0) {
  std::mt19937_64 generator(seed);
  return Bench({stepped(kind, generator)}, h, 0.7, {seed}, scale);
}

/// x⁺ with the ports closed: of the midpoint rule x̄ and u, with damping the state x̄ that the stage sees, of
///   2/((1 + θ)h) (x̄ − x) = (J − R)Qx̄ + Gu,   u + γy = s a or γu + y = s a,   y = GᵀQx̄.
VectorXd dense_step(const LinearPortHamiltonian& part, const Bench& bench, double h, double gamma,
                    double theta = 0.0) {
  const LongMatrix Q = MatrixXd(part.Q()).cast<Long>();
  const LongMatrix F = MatrixXd(part.structure().J - part.structure().R).cast<Long>();
  const LongMatrix G = MatrixXd(part.structure().G).cast<Long>();
  const int p = bench.ports(), q = static_cast<int>(G.cols()) - p;
  const bool effort_in = part.signature().ports[0].causality == Causality::effort_in;
  LongMatrix A = LongMatrix::Zero(kStates + p, kStates + p);
  LongVector r = LongVector::Zero(kStates + p);
  const Long rate = 2 / (1 + Long(theta)) / Long(h);
  A.topLeftCorner(kStates, kStates) = rate * LongMatrix::Identity(kStates, kStates) - F * Q;
  A.topRightCorner(kStates, p) = -G.leftCols(p);
  const LongMatrix y = G.leftCols(p).transpose() * Q;
  A.bottomLeftCorner(p, kStates) = (effort_in ? Long(gamma) : Long(1)) * y;
  A.bottomRightCorner(p, p) = (effort_in ? Long(1) : Long(gamma)) * LongMatrix::Identity(p, p);
  const LongVector x = bench.states[0].cast<Long>();
  r.head(kStates) = rate * x;
  if (q > 0) r.head(kStates) += G.rightCols(q) * Long(bench.input[0]);
  for (int j = 0; j < p; ++j)
    r[kStates + j] = std::sqrt(2 * Long(gamma) / Long(h)) * bench.incident(0, j);
  const LongVector solved = A.fullPivLu().solve(r);
  return (x + rate * Long(h) * (solved.head(kStates) - x)).cast<double>();
}

std::vector<Kind> kinds() {
  std::vector<Kind> list;
  for (const auto pattern : {Kind::Pattern::turned, Kind::Pattern::few}) {
    list.push_back({.driven = true, .two_ports = true, .pattern = pattern});
  }
  for (const double stiffness : {1e-6, 1.0, 1e6, 1e12}) {
    for (const bool two : {false, true}) {
      for (const bool driven : {false, true}) {
        for (const Causality causality : {Causality::effort_in, Causality::flow_in}) {
          list.push_back(
              {.stiffness = stiffness, .driven = driven, .two_ports = two, .causality = causality});
          for (const double theta : {0.4, 1.0}) {
            list.push_back(list.back());
            list.back().theta = theta;
          }
        }
      }
    }
  }
  return list;
}

std::string name_of(const Kind& kind, double h, std::uint64_t seed) {
  return "stiffness " + std::to_string(kind.stiffness) + " theta " + std::to_string(kind.theta) +
         " h " + std::to_string(h) + " seed " + std::to_string(seed) +
         (kind.two_ports ? " two ports" : "") + (kind.driven ? " driven" : "") +
         (kind.causality == Causality::effort_in ? " effort in" : " flow in");
}

/// Largest difference in roots of energies, beside the largest of the state itself.
double difference(const LinearPortHamiltonian& part, const VectorXd& a, const VectorXd& b) {
  double worst = 0.0, scale = 0.0;
  for (int i = 0; i < kStates; ++i) {
    const double root = std::sqrt(part.Q().coeff(i, i));
    worst = std::max(worst, root * std::abs(a[i] - b[i]));
    scale = std::max(scale, root * std::abs(b[i]));
  }
  return worst / scale;
}

TEST(IntegralStates, StepAsTheDenseEquations) {
  for (const Kind& kind : kinds()) {
    for (const double h : {1e-5, 1e-3, 0.1, 3.0}) {
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        const Bench bench = alone(kind, h, seed);
        std::mt19937_64 generator(seed);
        const auto part = make_part(kind, generator);
        const VectorXd expected = dense_step(*part, bench, h, 0.7, kind.theta);
        EXPECT_LE(difference(*part, bench.after(0), expected), 1e-12) << name_of(kind, h, seed);
      }
    }
  }
}

TEST(IntegralStates, ControlTheDenseEquationsSeeAWrongImpedance) {
  const Bench bench = alone({}, 0.1, 1);
  std::mt19937_64 generator(1);
  const auto part = make_part({}, generator);
  EXPECT_GT(difference(*part, bench.after(0), dense_step(*part, bench, 0.1, 0.7 * (1 + 1e-9))),
            1e-12);
}

/// Parts in one batch whose integrals have rows of their own in some lanes only: soft and stiff ones, and
/// such with other integrals.
void expect_same_bits(bool mixes, const std::vector<Kind::Pattern>& patterns,
                      const std::vector<double>& thetas = {0.0}, int stages = 1) {
  constexpr double kStep = 0.1;
  for (const bool driven : {false, true}) {
    for (const int lanes : {2, 8, 21}) {
      std::vector<std::shared_ptr<const Component>> parts;
      std::vector<std::uint64_t> seeds;
      std::vector<Kind> kinds_of_lanes;
      for (int l = 0; l < lanes; ++l) {
        const Kind kind{.stiffness = mixes && l % 3 == 1 ? 1e9 : 1.0,
                        .theta = thetas[static_cast<std::size_t>(l) % thetas.size()],
                        .stages = stages,
                        .driven = driven,
                        .two_ports = true,
                        .pattern = patterns[static_cast<std::size_t>(l) % patterns.size()]};
        const auto seed = static_cast<std::uint64_t>(100 + l);
        std::mt19937_64 generator(seed);
        parts.push_back(stepped(kind, generator));
        seeds.push_back(seed);
        kinds_of_lanes.push_back(kind);
      }
      const Bench together(parts, kStep, 0.7, seeds);
      for (int l = 0; l < lanes; ++l) {
        const auto at = static_cast<std::size_t>(l);
        const Bench single = alone(kinds_of_lanes[at], kStep, seeds[at]);
        EXPECT_EQ(together.after(l), single.after(0)) << "lane " << l << " of " << lanes;
        EXPECT_EQ(together.outgoing(l, 0), single.outgoing(0, 0));
        EXPECT_EQ(together.outgoing(l, 1), single.outgoing(0, 1));
        EXPECT_EQ(together.change[at], single.change[0]);
        EXPECT_EQ(together.supplied[at], single.supplied[0]);
        EXPECT_EQ(together.dissipated[at], single.dissipated[0]);
        EXPECT_EQ(together.bound(l), single.bound(0));
      }
    }
  }
}

using enum Kind::Pattern;
TEST(IntegralStates, AreTheSameBitsWhateverLiesBeside) { expect_same_bits(true, {usual}); }
TEST(IntegralStates, AreTheSameBitsWhateverIsIntegratedBeside) {
  expect_same_bits(false, {usual, turned});
  expect_same_bits(false, {few, usual});
  expect_same_bits(false, {turned, few, usual, turned});
  expect_same_bits(true, {few, turned, usual, few, usual});
}
TEST(IntegralStates, AreTheSameBitsWhateverIsDampedBeside) {
  expect_same_bits(false, {usual}, {1.0});
  expect_same_bits(true, {few, turned, usual}, {1.0, 0.4});
  for (const int stages : {2, 3}) {
    expect_same_bits(false, {usual}, {1.0}, stages);
    expect_same_bits(true, {few, turned, usual}, {1.0}, stages);
  }
}

/// H(x⁺) − H(x) of the states as they are.
Long stored_change(const LinearPortHamiltonian& part, const VectorXd& x, const VectorXd& after) {
  const MatrixXd Q(part.Q());
  Long sum = 0;
  for (int i = 0; i < kStates; ++i) {
    for (int j = 0; j < kStates; ++j) {
      sum += Long(0.5) * Q(i, j) * (Long(x[i]) + after[i]) * (Long(after[j]) - x[j]);
    }
  }
  return sum;
}

struct Balance {
  double residual, bound, moved;
};

Balance balance_of(const Kind& kind, double h, std::uint64_t seed, double scale) {
  const Bench bench = alone(kind, h, seed, scale);
  std::mt19937_64 generator(seed);
  const auto part = make_part(kind, generator);
  const VectorXd& x = bench.states[0];
  const VectorXd after = bench.after(0);
  Long residual = stored_change(*part, x, after) - Long(bench.supplied[0]);
  if (kind.theta > 0.0) residual += Long(bench.dissipated[0]);  // by the step
  double moved =
      std::abs(bench.supplied[0]) + part->storage(x.data()) + part->storage(after.data());
  for (int j = 0; j < bench.ports(); ++j) {
    const double a = bench.incident(0, j), b = bench.outgoing(0, j);
    residual += Long(0.5) * (Long(b) - a) * (Long(b) + a);
    moved += 0.5 * (a * a + b * b);
  }
  return {static_cast<double>(residual), bench.bound(0), moved};
}

TEST(IntegralStates, BalanceToTheRoundingThatTheBatchTells) {
  for (Kind kind : kinds()) {
    kind.damping = 0.0;
    for (const double h : {1e-6, 1e-3, 1.0, 1e3}) {
      for (const double scale : {1e-9, 1.0, 1e9}) {
        for (std::uint64_t seed = 0; seed < 5; ++seed) {
          const Balance balance = balance_of(kind, h, seed, scale);
          EXPECT_LE(std::abs(balance.residual), balance.bound + 16.0 * kEpsilon * balance.moved)
              << name_of(kind, h, seed) << " scale " << scale;
          EXPECT_LE(balance.bound, 1e4 * kEpsilon * balance.moved) << name_of(kind, h, seed);
        }
      }
    }
  }
}

TEST(IntegralStates, ControlTheBoundDoesNotHideANegativeDamper) {
  for (const double stiffness : {1e-6, 1.0, 1e6}) {
    for (const double h : {1e-3, 1.0}) {
      const Balance balance = balance_of({.stiffness = stiffness, .damping = -1e-6}, h, 3, 1.0);
      EXPECT_GT(balance.residual, balance.bound + 16.0 * kEpsilon * balance.moved)
          << "stiffness " << stiffness << " h " << h;
    }
  }
}

std::unique_ptr<LinearPortHamiltonian> free_mass() {
  Structure structure = Structure::zero(2, 1);
  structure.J.insert(0, 1) = 1.0;
  structure.J.insert(1, 0) = -1.0;
  structure.G.insert(1, 0) = 1.0;
  SparseMatrix Q(2, 2);
  Q.insert(1, 1) = 0.5;
  Signature signature;
  signature.type = "mass";
  signature.states = {{"q", "m"}, {"p", "kg m/s"}};
  signature.ports.push_back({.name = "port", .causality = Causality::effort_in});
  return std::make_unique<LinearPortHamiltonian>(std::move(signature), std::move(structure), Q);
}

/// Free masses far from the origin coast: after 10⁵ steps they are where q₀ + vt is, and their speed is
/// what it was.
TEST(IntegralStates, CoastFarFromTheOrigin) {
  const auto mass = free_mass();
  const Component* const parts[] = {mass.get()};
  const auto batch = mass->make_batch(parts);
  const double gamma = 0.3, h = 1e-2, momentum = 2.0;
  batch->prepare(h, &gamma);
  AlignedVector record(batch->record_size(), 0.0), next = record;
  const double start[] = {1e6, momentum};
  batch->set_state(0, start, record.data());
  batch->freeze({0, 1}, record.data(), nullptr);
  // No force: u = 0, so that s a = γy.
  const double a = gamma * 0.5 * momentum / std::sqrt(2.0 * gamma / h);
  constexpr int kSteps = 100'000;
  for (int i = 0; i < kSteps; ++i) {
    double b = 0.0;
    ASSERT_TRUE(batch->advance({0, 1}, record.data(), &a, next.data(), &b, {}).ok());
    record.swap(next);
  }
  double end[2];
  batch->get_state(0, record.data(), end);
  EXPECT_NEAR(end[1], momentum, 1e-10);
  EXPECT_NEAR(end[0], 1e6 + kSteps * h * 0.5 * momentum, 1e-5);
}

/// A position that overflows while all waves are finite ends the step.
TEST(IntegralStates, OneThatOverflowsIsFound) {
  const auto mass = free_mass();
  for (const int lanes : {1, 11}) {
    const std::vector<const Component*> parts(static_cast<std::size_t>(lanes), mass.get());
    const auto batch = mass->make_batch(parts);
    const std::vector<double> gamma(static_cast<std::size_t>(batch->stride()), 0.3);
    batch->prepare(1e-2, gamma.data());
    AlignedVector record(batch->record_size(), 0.0), next = record;
    AlignedVector a(gamma.size(), 0.0), b = a;
    const double start[] = {0.0, 1.7e308};
    batch->set_state(lanes - 1, start, record.data());
    batch->freeze({0, lanes}, record.data(), nullptr);
    const LaneStatus status =
        batch->advance({0, lanes}, record.data(), a.data(), next.data(), b.data(), {});
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status.lane, lanes - 1);
    for (const double wave : b) EXPECT_TRUE(std::isfinite(wave));
  }
}

}  // namespace
}  // namespace portwave::test_integral_states
