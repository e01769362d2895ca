// How well the energy of one step balances, and what a batch says of it (StepBatch::step_rounding):
// over steps from a millionth of a period to 1e8 periods, far from the origin, driven, floating.

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/base/lane_group.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"

namespace portwave::test_step_rounding {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr int kStates = 6;

struct Draw {
  explicit Draw(std::uint64_t seed) : generator(seed) {}
  MatrixXd matrix(int rows, int columns) {
    return MatrixXd::NullaryExpr(rows, columns, [this] { return normal(generator); });
  }
  std::mt19937_64 generator;
  std::normal_distribution<double> normal;
};

struct Kind {
  bool floating = false;  ///< Q has a kernel
  double offset = 0.0;    ///< of the start along that kernel
  bool driven = false;
  Causality causality = Causality::effort_in;
  StepMapStorage storage = StepMapStorage::dense;
  double damping = 0.0;  ///< R = damping·I; negative: active
};

std::unique_ptr<LinearPortHamiltonian> make_part(const Kind& kind, Draw& draw) {
  const int inputs = kind.driven ? 2 : 1;
  Structure structure = Structure::zero(kStates, inputs);
  const MatrixXd A = draw.matrix(kStates, kStates);
  structure.J = MatrixXd(A - A.transpose()).sparseView();
  structure.R = MatrixXd(kind.damping * MatrixXd::Identity(kStates, kStates)).sparseView();
  structure.G = draw.matrix(kStates, inputs).sparseView();
  const MatrixXd L = draw.matrix(kind.floating ? kStates - 1 : kStates, kStates);
  const MatrixXd Q = L.transpose() * L;
  Signature signature;
  signature.type = "random";
  for (int i = 0; i < kStates; ++i) signature.states.push_back({"x" + std::to_string(i), "1"});
  signature.ports.push_back({.name = "p", .causality = kind.causality});
  if (kind.driven) signature.inputs.push_back({"u", "1"});
  return std::make_unique<LinearPortHamiltonian>(
      std::move(signature), std::move(structure),
      SparseMatrix((0.5 * (Q + Q.transpose())).sparseView()),
      LinearPortHamiltonian::Options{.allow_active = kind.damping < 0.0, .storage = kind.storage});
}

/// Of one step: what does not balance, what the batch says it may be, and the energies moved.
struct Balance {
  double residual = 0.0, bound = 0.0, moved = 0.0;
};

#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 Quadruple;
#else
using Quadruple = long double;
#endif

/// H(x⁺) − H(x) of the states as they are: of a part that has drifted by 1e8 its terms cancel to
/// 1e-16.
double stored_change(const MatrixXd& Q, const VectorXd& x, const VectorXd& after) {
  Quadruple sum = 0;
  for (int i = 0; i < kStates; ++i) {
    for (int j = 0; j < kStates; ++j) {
      sum += Quadruple(0.5) * Q(i, j) * (Quadruple(x[i]) + after[i]) * (Quadruple(after[j]) - x[j]);
    }
  }
  return static_cast<double>(sum);
}

Balance step(const Kind& kind, double h, std::uint64_t seed) {
  Draw draw(seed);
  const auto part = make_part(kind, draw);
  const Component* parts[] = {part.get()};
  const auto batch = part->make_batch(parts);
  const double gamma = std::exp(draw.normal(draw.generator));
  std::vector<double> impedance(static_cast<std::size_t>(batch->wave_count()), gamma);
  batch->prepare(h, impedance.data());
  AlignedVector record(batch->record_size(), 0.0), next = record;
  VectorXd x = draw.matrix(kStates, 1);
  if (kind.offset != 0.0) {
    const Eigen::SelfAdjointEigenSolver<MatrixXd> eigen{MatrixXd(part->Q())};
    x += kind.offset * eigen.eigenvectors().col(0);
  }
  const double u = 0.7, a = draw.normal(draw.generator);
  batch->set_state(0, x.data(), record.data());
  batch->freeze({0, 1}, record.data(), kind.driven ? &u : nullptr);
  double b = 0.0, change = 0.0, supplied = 0.0, dissipated = 0.0;
  EXPECT_TRUE(
      batch->advance({0, 1}, record.data(), &a, next.data(), &b, {&change, &supplied, &dissipated})
          .ok());
  VectorXd after(kStates);
  batch->get_state(0, next.data(), after.data());
  const double stored = stored_change(MatrixXd(part->Q()), x, after);
  Balance balance;
  balance.residual = stored + 0.5 * (b - a) * (b + a) - supplied;
  balance.bound = batch->roundings()->step_rounding(0, record.data(), &a, next.data()).value();
  double above = 0.0;
  if (batch->roundings()->step_rounding_bounds(0, record.data(), &a, next.data(), &above)) {
    EXPECT_GE(above, balance.bound);
  } else {
    EXPECT_EQ(kind.storage, StepMapStorage::sparse);
  }
  balance.moved = 0.5 * (a * a + b * b) + std::abs(supplied) + std::abs(part->storage(x.data())) +
                  std::abs(part->storage(after.data()));
  return balance;
}

std::vector<Kind> kinds() {
  std::vector<Kind> list;
  for (const StepMapStorage storage : {StepMapStorage::dense, StepMapStorage::sparse}) {
    for (const Causality causality : {Causality::effort_in, Causality::flow_in}) {
      for (const bool driven : {false, true}) {
        list.push_back({.driven = driven, .causality = causality, .storage = storage});
        for (const double offset : {0.0, 1e4, 1e8}) {
          list.push_back({.floating = true,
                          .offset = offset,
                          .driven = driven,
                          .causality = causality,
                          .storage = storage});
        }
      }
    }
  }
  return list;
}

TEST(StepRounding, BoundsWhatDoesNotBalance) {
  for (const Kind& kind : kinds()) {
    for (const double h : {1e-6, 1e-3, 1.0, 1e3, 1e6, 1e8}) {
      // A sparse step that floats for 1e5 periods and more is too ill-conditioned for its factors.
      if (kind.floating && kind.storage == StepMapStorage::sparse && h > 1e3) continue;
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const Balance balance = step(kind, h, seed);
        EXPECT_LE(std::abs(balance.residual), balance.bound + 16.0 * kEpsilon * balance.moved)
            << "h " << h << " seed " << seed << " offset " << kind.offset << " driven "
            << kind.driven << (kind.storage == StepMapStorage::dense ? " dense" : " sparse")
            << (kind.floating ? " floating" : "")
            << (kind.causality == Causality::effort_in ? " effort in" : " flow in") << " moved "
            << balance.moved;
      }
    }
  }
}

/// Of lanes side by side what each has alone, bit by bit: with the same coefficients and with others, in
/// a last group that is not full, with inputs, and far from the origin.
TEST(StepRounding, OfAGroupIsThatOfItsLanes) {
  constexpr int kLanes = 19;
  for (const bool is_shared : {true, false}) {
    for (const Kind& kind : {Kind{}, Kind{.floating = true, .offset = 1e6, .driven = true},
                             Kind{.driven = true, .causality = Causality::flow_in}}) {
      Draw draw(5);
      std::vector<std::shared_ptr<const LinearPortHamiltonian>> own;
      std::vector<const Component*> parts;
      for (int l = 0; l < kLanes; ++l) {
        own.push_back(is_shared && l > 0 ? own.front() : make_part(kind, draw));
        parts.push_back(own.back().get());
      }
      const auto batch = own.front()->make_batch(parts);
      std::vector<double> impedance(static_cast<std::size_t>(batch->wave_count()), 0.4);
      batch->prepare(0.1, impedance.data());
      AlignedVector record(batch->record_size(), 0.0), next = record;
      AlignedVector a(static_cast<std::size_t>(batch->stride()), 0.0), b = a;
      std::vector<double> inputs(a.size()), change(a.size()), supplied(a.size()),
          dissipated(a.size());
      for (int l = 0; l < kLanes; ++l) {
        VectorXd x = draw.matrix(kStates, 1);
        x.array() += kind.offset;
        batch->set_state(l, x.data(), record.data());
        a[static_cast<std::size_t>(l)] = draw.normal(draw.generator);
        inputs[static_cast<std::size_t>(l)] = draw.normal(draw.generator);
      }
      batch->freeze({0, kLanes}, record.data(), kind.driven ? inputs.data() : nullptr);
      ASSERT_TRUE(batch
                      ->advance({0, kLanes}, record.data(), a.data(), next.data(), b.data(),
                                {change.data(), supplied.data(), dissipated.data()})
                      .ok());
      for (int l = 0; l < kLanes; ++l) {
        const int first = l / batch->lane_group() * batch->lane_group();
        std::array<double, kLaneGroup> group{};
        ASSERT_TRUE(batch->roundings()->step_roundings(l, record.data(), a.data(), next.data(),
                                                       group.data()));
        EXPECT_EQ(
            group[static_cast<std::size_t>(l - first)],
            batch->roundings()->step_rounding(l, record.data(), a.data(), next.data()).value())
            << "lane " << l << (is_shared ? " shared" : "") << " offset " << kind.offset;
        EXPECT_GT(group[static_cast<std::size_t>(l - first)], 0.0);
        std::array<double, kLaneGroup> bound{};
        ASSERT_TRUE(batch->roundings()->step_rounding_bounds(l, record.data(), a.data(),
                                                             next.data(), bound.data()));
        EXPECT_GE(bound[static_cast<std::size_t>(l - first)],
                  group[static_cast<std::size_t>(l - first)]);
        EXPECT_LE(bound[static_cast<std::size_t>(l - first)],
                  1e5 * group[static_cast<std::size_t>(l - first)]);
      }
    }
  }
}

/// Two ports without states, a resistor between them or a gyrator.
std::unique_ptr<LinearPortHamiltonian> two_port(double resistance, double gyration) {
  Structure structure = Structure::zero(0, 2);
  MatrixXd S = MatrixXd::Zero(2, 2), N = MatrixXd::Zero(2, 2);
  S.diagonal().setConstant(resistance);
  N(0, 1) = gyration;
  N(1, 0) = -gyration;
  structure.S = S.sparseView();
  structure.N = N.sparseView();
  Signature signature;
  signature.type = "two_port";
  signature.ports.push_back({.name = "p"});
  signature.ports.push_back({.name = "q"});
  return std::make_unique<LinearPortHamiltonian>(std::move(signature), structure,
                                                 SparseMatrix(0, 0));
}

/// Of the lanes from `lane` on.
std::array<double, kLaneGroup> bounds_of(std::span<const Component* const> parts, int lane) {
  const auto batch = parts[0]->make_batch(parts);
  const std::vector<double> impedance(static_cast<std::size_t>(batch->wave_count()), 1.0);
  batch->prepare(0.1, impedance.data());
  const AlignedVector record(batch->record_size(), 0.0), next = record;
  const AlignedVector a(static_cast<std::size_t>(batch->wave_count()), 2.0);
  std::array<double, kLaneGroup> out{};
  EXPECT_TRUE(batch->roundings()->step_rounding_bounds(lane, record.data(), a.data(), next.data(),
                                                       out.data()));
  const double told =
      batch->roundings()->step_rounding(lane, record.data(), a.data(), next.data()).value_or(0.0);
  EXPECT_GE(out[0], told);
  EXPECT_GT(told, 0.0);
  return out;
}

/// Parts without states have no rows of the step map, and gyrators no energies: groups of lanes are told
/// apart by all that they have.
TEST(StepRounding, BoundsThatOfPartsWithoutStates) {
  for (const bool gyrates : {false, true}) {
    std::vector<std::unique_ptr<LinearPortHamiltonian>> own;
    std::vector<const Component*> parts;
    for (const double value : {1e-9, 5.0}) {
      for (int l = 0; l < kLaneGroup; ++l) {
        own.push_back(gyrates ? two_port(0.0, value) : two_port(value, 0.0));
        parts.push_back(own.back().get());
      }
    }
    const std::span<const Component* const> all(parts);
    const auto first = bounds_of(all, 0), second = bounds_of(all, kLaneGroup);
    EXPECT_EQ(first, bounds_of(all.first(kLaneGroup), 0)) << gyrates;
    EXPECT_EQ(second, bounds_of(all.last(kLaneGroup), 0)) << gyrates;
    EXPECT_NE(first, second) << gyrates;
  }
}

/// Dense maps near the origin balance to the rounding of their entries, however long the step is.
TEST(StepRounding, IsOfTheOrderOfEpsilonAtEveryStepSize) {
  for (const double h : {1e-6, 1e-3, 1.0, 1e3, 1e6, 1e8}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Balance balance = step({}, h, seed);
      EXPECT_LE(balance.bound, 1e4 * kEpsilon * balance.moved) << "h " << h << " seed " << seed;
    }
  }
}

TEST(StepRounding, ControlDoesNotHideANegativeDamper) {
  for (const double h : {1e-3, 1.0}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      for (const StepMapStorage storage : {StepMapStorage::dense, StepMapStorage::sparse}) {
        const Balance balance = step({.storage = storage, .damping = -1e-6}, h, seed);
        EXPECT_GT(balance.residual, balance.bound + 16.0 * kEpsilon * balance.moved)
            << "h " << h << " seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace portwave::test_step_rounding
