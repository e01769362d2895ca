#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

#include "portwave/subsystems/descriptor/descriptor.hpp"

// The algebraic equations of d/dt(Ex) = Ax + f: index, hidden constraints, consistent values.

namespace portwave::test_descriptor {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

SparseMatrix sparse(const MatrixXd& M) { return M.sparseView(); }
SparseMatrix diagonal(std::initializer_list<double> entries) {
  MatrixXd M = MatrixXd::Zero(static_cast<int>(entries.size()), static_cast<int>(entries.size()));
  int i = 0;
  for (const double entry : entries) M(i, i) = entry, ++i;
  return sparse(M);
}
SparseMatrix identity(int n) { return sparse(MatrixXd::Identity(n, n)); }

/// The circuit u1, u2, u3, j1 | u4, u5 of Bartel, Günther, Jacob & Reis, Numer. Math. 155 (2023).
struct Circuit {
  MatrixXd E, J, R;

  explicit Circuit(bool coupled) {
    const double C1 = 5e-4, C2 = 5e-4, L = 20.0, g = 1.0 / 0.5, g5 = 1.0 / 5.0;
    E = VectorXd{{0.0, C1, 0.0, L, 0.0, C2}}.asDiagonal();
    J = MatrixXd::Zero(6, 6);
    J(2, 3) = 1.0;
    J(3, 2) = -1.0;
    if (coupled) {
      J(3, 4) = 1.0;
      J(4, 3) = -1.0;
    }
    R = MatrixXd::Zero(6, 6);
    const auto resistor = [&](int i, int j, double conductance) {
      R(i, i) += conductance;
      if (j < 0) return;
      R(j, j) += conductance;
      R(i, j) -= conductance;
      R(j, i) -= conductance;
    };
    resistor(0, 1, g);
    resistor(1, 2, g);
    resistor(2, -1, g);
    resistor(3 + 1, 4 + 1, g);
    resistor(5, -1, g5);
  }
};

/// Two masses held together by a rigid rod: p1, p2, λ with p1/m1 − p2/m2 = v(t).
struct Rod {
  double m1 = 2.0, m2 = 3.0;
  SparseMatrix E, J, R, Q;

  Rod() {
    E = diagonal({1.0, 1.0, 0.0});
    Q = diagonal({1.0 / m1, 1.0 / m2, 1.0});
    MatrixXd j = MatrixXd::Zero(3, 3);
    j(0, 2) = -1.0;
    j(1, 2) = 1.0;
    J = sparse(j - j.transpose());
    R = diagonal({0.5, 0.0, 0.0});
  }
  SparseMatrix A() const { return descriptor_rate(J, R, Q); }
};

TEST(DescriptorIndex, OfAnOrdinarySystemIsZero) {
  MatrixXd E(2, 2);
  E << 2.0, 1.0, 1.0, 2.0;
  const auto found = analyse_descriptor(sparse(E), SparseMatrix(2, 2), identity(2), identity(2));
  EXPECT_TRUE(found.regular);
  EXPECT_EQ(found.index, 0);
  EXPECT_EQ(found.algebraic, 0);
}

TEST(DescriptorIndex, OfTheCircuitIsOneAsAWholeAndByBlocks) {
  for (const bool coupled : {true, false}) {
    const Circuit circuit(coupled);
    const auto found =
        analyse_descriptor(sparse(circuit.E), sparse(circuit.J), sparse(circuit.R), identity(6));
    EXPECT_TRUE(found.regular) << coupled;
    EXPECT_EQ(found.index, 1) << coupled;
    EXPECT_EQ(found.algebraic, 3) << coupled;
    EXPECT_EQ(found.hidden, 0) << coupled;
  }
}

TEST(DescriptorIndex, OfARigidRodIsTwo) {
  const Rod rod;
  const auto found = analyse_descriptor(rod.E, rod.J, rod.R, rod.Q);
  EXPECT_TRUE(found.regular);
  EXPECT_EQ(found.index, 2);
  EXPECT_EQ(found.algebraic, 1);
  EXPECT_EQ(found.hidden, 1);
}

TEST(DescriptorIndex, DoesNotDependOnUnits) {
  // Rows and columns in other units: D E D', D A D' with factors from 1e-12 to 1e12.
  const Rod rod;
  const VectorXd rows{{1e-9, 1e12, 1e-12}}, columns{{1e6, 1e-12, 1e9}};
  const SparseMatrix E = rows.asDiagonal() * rod.E * columns.asDiagonal();
  const SparseMatrix A = rows.asDiagonal() * rod.A() * columns.asDiagonal();
  EXPECT_EQ(AlgebraicPart(E, A).analysis().index, 2);
  // A capacitance of 1 fF beside one of 1 F is one all the same.
  EXPECT_EQ(AlgebraicPart(diagonal({1e-15, 1.0}), diagonal({-1.0, -1.0})).analysis().index, 0);
}

TEST(DescriptorIndex, OfAChainOfDerivativesIsAboveTwo) {
  // x2' = x1, x3' = x2, 0 = x3: not port-Hamiltonian, index 3.
  MatrixXd E = MatrixXd::Zero(3, 3);
  E(0, 1) = E(1, 2) = 1.0;
  const auto found = AlgebraicPart(sparse(E), identity(3)).analysis();
  EXPECT_TRUE(found.regular);
  EXPECT_EQ(found.index, 3);
}

TEST(DescriptorIndex, FindsSingularPencils) {
  // A state that no equation determines; with E = R = 0 and a J of odd size that is always so.
  EXPECT_FALSE(analyse_descriptor(diagonal({1.0, 0.0}), SparseMatrix(2, 2), diagonal({1.0, 0.0}),
                                  identity(2))
                   .regular);
  MatrixXd J = MatrixXd::Zero(3, 3);
  J(0, 1) = 1.0, J(1, 0) = -1.0, J(1, 2) = 2.0, J(2, 1) = -2.0;
  EXPECT_FALSE(
      analyse_descriptor(SparseMatrix(3, 3), sparse(J), SparseMatrix(3, 3), identity(3)).regular);
  // Control: of even size it need not be.
  const MatrixXd rotation = (MatrixXd(2, 2) << 0.0, 1.0, -1.0, 0.0).finished();
  const auto fine =
      analyse_descriptor(SparseMatrix(2, 2), sparse(rotation), SparseMatrix(2, 2), identity(2));
  EXPECT_TRUE(fine.regular);
  EXPECT_EQ(fine.index, 1);
}

TEST(ConsistentValues, OfTheCircuitMeetItsAlgebraicEquationsAndKeepEx) {
  const Circuit circuit(true);
  const SparseMatrix E = sparse(circuit.E);
  const SparseMatrix A = descriptor_rate(sparse(circuit.J), sparse(circuit.R), identity(6));
  VectorXd x{{7.0, 1.0, -3.0, 0.25, 11.0, 2.0}}, f = VectorXd::Unit(6, 0) * 0.7;
  const ConsistentState found = consistent_state(E, A, f, {}, x);
  ASSERT_TRUE(found.consistent());
  EXPECT_EQ((E * (found.x - x)).norm(), 0.0);
  const VectorXd rate = A * found.x + f;
  for (const int row : {0, 2, 4}) EXPECT_NEAR(rate[row], 0.0, 1e-14);
  const VectorXd before = A * x + f;
  EXPECT_GT(std::abs(before[0]), 0.1);  // control: they were not met
}

TEST(ConsistentValues, OfARigidRodNeedTheRateOfTheInput) {
  const Rod rod;
  const double v = 0.4, v_rate = -1.5;
  const VectorXd x{{2.0 * 1.4, 3.0 * 1.0, 99.0}}, f{{0.3, -0.2, -v}}, f_rate{{0.0, 0.0, -v_rate}};
  const ConsistentState found = consistent_state(rod.E, rod.A(), f, f_rate, x);
  ASSERT_TRUE(found.consistent());
  EXPECT_EQ(found.x[0], x[0]);
  EXPECT_EQ(found.x[1], x[1]);
  // v1' − v2' = v' with the force that was found.
  const VectorXd rate = rod.A() * found.x + f;
  EXPECT_NEAR(rate[0] / rod.m1 - rate[1] / rod.m2, v_rate, 1e-14);
  const ConsistentState without = consistent_state(rod.E, rod.A(), f, {}, x);
  EXPECT_GT(std::abs(without.x[2] - found.x[2]), 0.1);  // control
}

TEST(ConsistentValues, OfIndexTwoBesideIndexOneAreFound) {
  // u1 with a capacitor and a voltage source v(t) of current j, u2 with resistors alone.
  const double C = 1e-6, g = 2.0, v = 3.0, v_rate = 4e5;
  MatrixXd J = MatrixXd::Zero(3, 3), R = J;
  J(0, 2) = -1.0, J(2, 0) = 1.0;
  R.topLeftCorner(2, 2) << g, -g, -g, 2.0 * g;
  const AlgebraicPart part(diagonal({C, 0.0, 0.0}),
                           descriptor_rate(sparse(J), sparse(R), identity(3)));
  EXPECT_EQ(part.analysis().index, 2);
  EXPECT_EQ(part.analysis().algebraic, 2);
  EXPECT_EQ(part.analysis().hidden, 1);
  const ConsistentState found = part.consistent_state(
      VectorXd{{0.0, 0.0, -v}}, VectorXd{{0.0, 0.0, -v_rate}}, VectorXd{{v, 0.0, 0.0}});
  ASSERT_TRUE(found.consistent());
  EXPECT_NEAR(found.x[1], 0.5 * v, 1e-14);
  EXPECT_NEAR(found.x[2], -C * v_rate - g * 0.5 * v, 1e-13);
}

TEST(ConsistentValues, AreRefusedWhereAHiddenConstraintIsViolated) {
  const Rod rod;
  const VectorXd x{{2.0, 4.5, 0.0}};  // 1 m/s and 1.5 m/s
  const ConsistentState found = consistent_state(rod.E, rod.A(), VectorXd::Zero(3), {}, x);
  ASSERT_EQ(found.violated.size(), 1u);
  EXPECT_EQ(found.violated[0].equations, std::vector<int>{2});
  EXPECT_EQ(found.violated[0].states, (std::vector<int>{0, 1}));
  EXPECT_NEAR(std::abs(found.violated[0].residual), 0.5, 1e-15);
  EXPECT_EQ(found.x, x);
}

TEST(ConsistentValues, AreNotDeterminedByASingularPencil) {
  const SparseMatrix E = diagonal({1.0, 0.0}), A = diagonal({-1.0, 0.0});
  EXPECT_THROW((void)consistent_state(E, A, VectorXd::Zero(2), {}, VectorXd::Zero(2)), ConfigError);
}

TEST(ConsistentValues, OfLongLaddersAreFound) {
  // Nodes in a row, resistors between them, a capacitor to ground at every third, and floating
  // capacitors across the others: kernels of E of every kind, thousands of components.
  const int n = 6000;
  std::vector<Eigen::Triplet<double>> capacitances, conductances;
  const auto add = [](std::vector<Eigen::Triplet<double>>& M, int i, int j, double value) {
    M.emplace_back(i, i, value);
    if (j < 0) return;
    M.emplace_back(j, j, value);
    M.emplace_back(i, j, -value);
    M.emplace_back(j, i, -value);
  };
  for (int i = 0; i < n; ++i) {
    add(conductances, i, i + 1 < n ? i + 1 : -1, 1.0 + 0.3 * std::sin(i));
    if (i % 4 == 0) add(capacitances, i, -1, 1e-6);
    if (i % 4 == 1) add(capacitances, i, i + 1, 1e-9);
  }
  SparseMatrix E(n, n), R(n, n), I(n, n);
  E.setFromTriplets(capacitances.begin(), capacitances.end());
  R.setFromTriplets(conductances.begin(), conductances.end());
  I.setIdentity();
  const AlgebraicPart part(E, descriptor_rate(SparseMatrix(n, n), R, I));
  EXPECT_EQ(part.analysis().index, 1);
  EXPECT_EQ(part.analysis().algebraic, n / 2);
  VectorXd x(n), f(n);
  for (int i = 0; i < n; ++i) x[i] = std::cos(3.0 * i), f[i] = std::sin(7.0 * i);
  const ConsistentState found = part.consistent_state(f, {}, x);
  ASSERT_TRUE(found.consistent());
  const VectorXd residual = part.equations().transpose() * VectorXd(f - R * found.x);
  EXPECT_LE(residual.cwiseAbs().maxCoeff(), 1e-12);
  EXPECT_LE((E * (found.x - x)).cwiseAbs().maxCoeff(), 1e-12 * 1e-6);
}

TEST(ConsistentValues, OfALargeSingularComponentAreFound) {
  // One chain of 1500 floating capacitors: a connected E with a kernel of dimension 1.
  const int n = 1500;
  std::vector<Eigen::Triplet<double>> entries;
  for (int i = 0; i + 1 < n; ++i) {
    entries.emplace_back(i, i, 1e-3);
    entries.emplace_back(i + 1, i + 1, 1e-3);
    entries.emplace_back(i, i + 1, -1e-3);
    entries.emplace_back(i + 1, i, -1e-3);
  }
  SparseMatrix E(n, n), A(n, n);
  E.setFromTriplets(entries.begin(), entries.end());
  A.insert(0, 0) = -2.0;
  const AlgebraicPart part(E, A);
  EXPECT_EQ(part.analysis().algebraic, 1);
  EXPECT_EQ(part.analysis().index, 1);
  const ConsistentState found =
      part.consistent_state(VectorXd::Unit(n, 0) * 3.0, {}, VectorXd::Zero(n));
  EXPECT_NEAR(found.x[0], 1.5, 1e-9);
  EXPECT_NEAR(found.x[n - 1], 1.5, 1e-9);
}

}  // namespace
}  // namespace portwave::test_descriptor
