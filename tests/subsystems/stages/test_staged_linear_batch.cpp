// One step with stages of descriptor parts and of linear parts with sparse step maps: its energy
// balance and what the batch says of its rounding, dense against sparse, and what no step depends on.

#include <cmath>
#include <functional>
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
#include "support/systems/descriptor_parts.hpp"

namespace portwave::test_staged_linear_batch {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

/// With feedthrough, losses and an input that acts on states and ports; two ports.
std::unique_ptr<Subsystem> random_linear(StepMapStorage storage, double loss = 0.05) {
  std::mt19937_64 generator(5);
  std::normal_distribution<double> normal;
  const auto random = [&](int rows, int columns) -> MatrixXd {
    return MatrixXd::NullaryExpr(rows, columns, [&] { return normal(generator); });
  };
  constexpr int kStates = 7, kInputs = 3;
  const MatrixXd A = random(kStates, kStates), B = random(kInputs, kInputs),
                 L = random(kStates + kInputs, 4), W = random(kStates, kStates);
  const MatrixXd losses = loss * L * L.transpose();
  Structure s = Structure::zero(kStates, kInputs);
  s.J = MatrixXd(A - A.transpose()).sparseView();
  s.R = MatrixXd(losses.topLeftCorner(kStates, kStates)).sparseView();
  s.G = random(kStates, kInputs).sparseView();
  s.P = MatrixXd(losses.topRightCorner(kStates, kInputs)).sparseView();
  s.S = MatrixXd(losses.bottomRightCorner(kInputs, kInputs)).sparseView();
  s.N = MatrixXd(0.3 * (B - B.transpose())).sparseView();
  Signature signature;
  signature.type = "random";
  for (int i = 0; i < kStates; ++i) signature.states.push_back({"x" + std::to_string(i), "1"});
  signature.ports = {testing::port("one", Causality::effort_in),
                     testing::port("two", Causality::flow_in)};
  signature.inputs = {{"u", "1"}};
  const MatrixXd Q = W.transpose() * W;
  return std::make_unique<LinearPortHamiltonian>(
      std::move(signature), std::move(s), SparseMatrix((0.5 * (Q + Q.transpose())).sparseView()),
      LinearPortHamiltonian::Options{.storage = storage});
}

/// The skewed part without its losses.
std::unique_ptr<Subsystem> lossless_descriptor(StepMapStorage storage) {
  const auto part = testing::skewed_part(storage);
  DescriptorForm form = part->form();
  form.R.setZero();
  return std::make_unique<DescriptorPortHamiltonian>(
      part->signature(), form, DescriptorPortHamiltonian::Options{.storage = storage});
}

struct Kind {
  const char* name;
  std::function<std::unique_ptr<Subsystem>(StepMapStorage)> make;
  bool lossless = false;
};

std::vector<Kind> kinds() {
  return {{"linear", [](StepMapStorage s) { return random_linear(s); }},
          {"lossless_linear", [](StepMapStorage s) { return random_linear(s, 0.0); }, true},
          {"lossless_descriptor", lossless_descriptor, true},
          {"circuit_left", [](StepMapStorage s) { return testing::circuit_left(s); }},
          {"circuit_right", [](StepMapStorage s) { return testing::circuit_right(s); }},
          {"rod", [](StepMapStorage s) { return testing::rigid_rod({}, s); }},
          {"ladder", [](StepMapStorage s) { return testing::rc_ladder(21, s); }},
          {"skewed", [](StepMapStorage s) { return testing::skewed_part(s); }}};
}

/// A part with stages by itself, with random impedances.
struct Single {
  std::shared_ptr<const Component> part;
  std::unique_ptr<StepBatch> batch;
  AlignedVector record, next;
  VectorXd input, a, b, after;
  double change = 0.0, supplied = 0.0, dissipated = 0.0;

  Single(std::shared_ptr<const Component> given, int stages, double h, unsigned seed)
      : Single(std::move(given), gauss_stages(stages), h, seed) {}
  Single(std::shared_ptr<const Component> given, const StageRule& stages, double h, unsigned seed)
      : part(staged_part(std::move(given), stages)) {
    const Component* parts[] = {part.get()};
    batch = part->make_batch(parts);
    std::mt19937_64 generator(seed);
    std::normal_distribution<double> normal;
    const auto random = [&](int n) -> VectorXd {
      return VectorXd::NullaryExpr(n, [&] { return normal(generator); });
    };
    const VectorXd gamma = random(batch->wave_count()).array().exp();
    batch->prepare(h, gamma.data());
    record.assign(batch->record_size(), 0.0);
    next = record;
    a = random(batch->wave_size());
    b = a;
    input = random(batch->input_size());
    after = random(batch->state_size());
  }

  void step(const VectorXd& x) {
    batch->set_state(0, x.data(), record.data());
    batch->freeze({0, 1}, record.data(), input.data());
    EXPECT_TRUE(batch
                    ->advance({0, 1}, record.data(), a.data(), next.data(), b.data(),
                              {&change, &supplied, &dissipated})
                    .ok());
    batch->get_state(0, next.data(), after.data());
  }
  /// −dissipated but for rounding, what the batch says that may be, and what moves.
  double residual() const { return change + 0.5 * (b - a).dot(b + a) - supplied; }
  double bound() const {
    return batch->roundings()->step_rounding(0, record.data(), a.data(), next.data()).value();
  }
  double moved(const VectorXd& x) const {
    const Subsystem& physics = *part->port_hamiltonian();
    return 0.5 * (a.squaredNorm() + b.squaredNorm()) + std::abs(supplied) + dissipated +
           std::abs(physics.storage(x.data())) + std::abs(physics.storage(after.data()));
  }
};

VectorXd start_of(const Kind& kind, const Subsystem& part, unsigned seed) {
  std::mt19937_64 generator(seed + 100);
  std::normal_distribution<double> normal;
  VectorXd x =
      VectorXd::NullaryExpr(part.signature().state_size(), [&] { return normal(generator); });
  if (kind.name == std::string("rod")) x[1] = 1.5 * x[0];  // what its constraint asks for
  return x;
}

class StagedLinearBatch : public ::testing::TestWithParam<int> {};

TEST_P(StagedLinearBatch, BalancesItsEnergyToWhatItSaysOfItsRounding) {
  for (const Kind& kind : kinds()) {
    for (const StepMapStorage storage : {StepMapStorage::dense, StepMapStorage::sparse}) {
      for (const double h : {1e-6, 1e-3, 0.1, 1.0, 1e3, 1e6}) {
        for (unsigned seed = 1; seed <= 10; ++seed) {
          std::shared_ptr<const Subsystem> part = kind.make(storage);
          const VectorXd x = start_of(kind, *part, seed);
          Single single(part, GetParam(), h, seed);
          single.step(x);
          const double bound = single.bound() + 16.0 * kEpsilon * single.moved(x);
          const std::string where = std::string(kind.name) + ", h = " + std::to_string(h) +
                                    ", seed " + std::to_string(seed) +
                                    (storage == StepMapStorage::dense ? ", dense" : ", sparse");
          EXPECT_LE(single.residual(), bound) << where;
          EXPECT_GE(single.residual(), kind.lossless ? -bound : -HUGE_VAL) << where;
          if (h > 1.0) continue;
          EXPECT_NEAR(single.residual(), -single.dissipated, bound + 1e-13 * single.moved(x))
              << where;
          if (h != 0.1) continue;
          // The controls: a bound of any use, and steps that lose far more than it.
          EXPECT_LE(bound, 1e-11 * single.moved(x)) << where;
          EXPECT_LT(single.residual(), kind.lossless ? HUGE_VAL : -1e3 * bound) << where;
        }
      }
    }
  }
}

TEST_P(StagedLinearBatch, DenseAndSparseStepMapsGiveTheSameStep) {
  for (const Kind& kind : kinds()) {
    for (const double h : {1e-4, 0.1, 10.0}) {
      const std::shared_ptr<const Subsystem> dense = kind.make(StepMapStorage::dense),
                                             sparse = kind.make(StepMapStorage::sparse);
      EXPECT_NE(staged_part(dense, GetParam())->batch_key(),
                staged_part(sparse, GetParam())->batch_key());
      const VectorXd x = start_of(kind, *dense, 3);
      Single one(dense, GetParam(), h, 3), other(sparse, GetParam(), h, 3);
      one.step(x);
      other.step(x);
      const double tolerance = 1e-11 * (x.norm() + one.after.norm());
      EXPECT_LE((one.after - other.after).norm(), tolerance) << kind.name << ", h = " << h;
      EXPECT_LE((one.b - other.b).norm(), 1e-11 * (one.a.norm() + one.b.norm())) << kind.name;
      const double moved = one.moved(x);
      EXPECT_NEAR(one.change, other.change, 1e-12 * moved) << kind.name;
      EXPECT_NEAR(one.supplied, other.supplied, 1e-12 * moved) << kind.name;
      EXPECT_NEAR(one.dissipated, other.dissipated, 1e-12 * moved) << kind.name;
    }
  }
}

/// Masses between springs, some of them braked: positions and elongations, velocities whose losses show, one that does not.
std::unique_ptr<Subsystem> line_of_masses(StepMapStorage storage) {
  constexpr int kMasses = 4, kStates = 2 * kMasses;  // elongation, momentum
  Structure s = Structure::zero(kStates, 2);
  SparseMatrix Q(kStates, kStates);
  for (int i = 0; i < kMasses; ++i) {
    const int q = 2 * i, p = q + 1;
    s.J.insert(q, p) = 1.0;
    s.J.insert(p, q) = -1.0;
    if (i > 0) {
      s.J.insert(q, p - 2) = -1.0;
      s.J.insert(p - 2, q) = 1.0;
    }
    if (i != 2) s.R.insert(p, p) = 0.3 + 0.1 * i;
    Q.insert(q, q) = 20.0 + i;
    Q.insert(p, p) = 0.5 + 0.25 * i;
  }
  s.G.insert(1, 0) = 1.0;
  s.G.insert(kStates - 2, 1) = 1.0;
  Signature signature;
  signature.type = "line";
  for (int i = 0; i < kStates; ++i) signature.states.push_back({"x" + std::to_string(i), "1"});
  signature.ports = {testing::port("one", Causality::effort_in),
                     testing::port("two", Causality::flow_in)};
  return std::make_unique<LinearPortHamiltonian>(
      std::move(signature), std::move(s), Q, LinearPortHamiltonian::Options{.storage = storage});
}

// Dense batches derive most of what damping takes from what the account has anyway, sparse ones have its increments.
TEST_P(StagedLinearBatch, WhatDampingTakesIsTheSameInDenseAndSparseBatches) {
  std::vector<Kind> all = kinds();
  all.push_back({"line", line_of_masses});
  for (const Kind& kind : all) {
    for (const double theta : {0.3, 1.0}) {
      const StageRule rule = damped(stage_rule(GetParam(), StageNodes::radau), {.theta = theta});
      for (const double h : {1e-4, 0.1, 10.0}) {
        const std::shared_ptr<const Subsystem> dense = kind.make(StepMapStorage::dense);
        const VectorXd x = start_of(kind, *dense, 3);
        Single one(dense, rule, h, 3), other(kind.make(StepMapStorage::sparse), rule, h, 3);
        one.step(x);
        other.step(x);
        const double moved = one.moved(x);
        const std::string where = std::string(kind.name) + ", h = " + std::to_string(h);
        EXPECT_NEAR(one.dissipated, other.dissipated, 1e-12 * moved) << where;
        EXPECT_NEAR(one.residual(), -one.dissipated, one.bound() + 1e-13 * moved) << where;
        Single gauss(dense, stage_rule(GetParam(), StageNodes::radau), h, 3);
        gauss.step(x);
        if (h != 0.1) continue;
        EXPECT_GT(std::abs(gauss.dissipated - one.dissipated), 1e-9 * moved) << where;  // control
      }
    }
  }
}

// The batches of one stage share no code with this one but the factors.
TEST(StagedLinearBatchOfOneStage, TakesTheStepOfOneStage) {
  for (const Kind& kind : kinds()) {
    for (const StepMapStorage storage : {StepMapStorage::dense, StepMapStorage::sparse}) {
      std::shared_ptr<const Subsystem> part = kind.make(storage);
      const VectorXd x = start_of(kind, *part, 6);
      Single staged(part, 1, 0.1, 6), plain(part, 1, 0.1, 6);
      const Component* parts[] = {part.get()};
      plain.batch = part->make_batch(parts);
      std::vector<double> gamma(static_cast<std::size_t>(plain.batch->wave_size()), 0.6);
      for (Single* one : {&staged, &plain}) {
        one->batch->prepare(0.1, gamma.data());
        one->record.assign(one->batch->record_size(), 0.0);
        one->next = one->record;
        one->step(x);
      }
      const double tolerance = 1e-12 * (x.norm() + plain.after.norm());
      EXPECT_LE((staged.after - plain.after).norm(), tolerance) << kind.name;
      EXPECT_LE((staged.b - plain.b).norm(), 1e-12 * (plain.a.norm() + plain.b.norm()))
          << kind.name;
      EXPECT_NEAR(staged.dissipated, plain.dissipated, 1e-12 * plain.moved(x)) << kind.name;
      EXPECT_NEAR(staged.supplied, plain.supplied, 1e-12 * plain.moved(x)) << kind.name;
    }
  }
}

TEST_P(StagedLinearBatch, NoStepDependsOnTheAlgebraicComponentsOfItsStart) {
  for (const Kind& kind : kinds()) {
    const std::shared_ptr<const Subsystem> part = kind.make(StepMapStorage::automatic);
    const auto* const own = dynamic_cast<const DescriptorPortHamiltonian*>(part.get());
    if (own == nullptr) continue;
    const VectorXd x = start_of(kind, *part, 4);
    const VectorXd w = VectorXd::LinSpaced(own->kernel().cols(), 3.0, -2.0);
    Single one(part, GetParam(), 0.1, 4), other(part, GetParam(), 0.1, 4);
    one.step(x);
    other.step(x + own->kernel() * w);
    const double scale = x.norm() + w.norm() + one.after.norm();
    EXPECT_LE((one.after - other.after).norm(), 1e-12 * scale) << kind.name;
    EXPECT_LE((one.b - other.b).norm(), 1e-12 * scale) << kind.name;
    // The control: what E sees does matter.
    other.step(x + VectorXd(own->form().E.transpose() * VectorXd::Ones(x.size())));
    EXPECT_GT((one.after - other.after).norm(), 1e-6) << kind.name;
  }
}

TEST_P(StagedLinearBatch, LanesOfOnePartAreThoseOfEqualParts) {
  const std::shared_ptr<const Subsystem> part = testing::circuit_left(),
                                         equal = testing::circuit_left();
  const auto first = staged_part(part, GetParam()), second = staged_part(equal, GetParam());
  const Component* parts[] = {first.get(), first.get(), second.get()};
  const auto batch = first->make_batch(parts);
  std::vector<double> gamma(static_cast<std::size_t>(batch->wave_count()), 0.7);
  gamma[1] = 2.0;  // of the second lane
  batch->prepare(0.1, gamma.data());
  const auto columns = static_cast<std::size_t>(batch->wave_size() * batch->wave_size());
  std::vector<double> one(columns), two(columns), three(columns);
  batch->affine_map()->affine_matrix(0, one.data());
  batch->affine_map()->affine_matrix(1, two.data());
  batch->affine_map()->affine_matrix(2, three.data());
  EXPECT_EQ(one, three);
  EXPECT_NE(one, two);
}

INSTANTIATE_TEST_SUITE_P(Stages, StagedLinearBatch, ::testing::Values(2, 3));

}  // namespace
}  // namespace portwave::test_staged_linear_batch
