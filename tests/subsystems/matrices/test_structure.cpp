#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave::test_structure {
namespace {

constexpr unsigned kSeed = 5;

Eigen::MatrixXd random_matrix(std::mt19937_64& random, int rows, int columns) {
  std::normal_distribution<double> normal;
  return Eigen::MatrixXd::NullaryExpr(rows, columns, [&] { return normal(random); });
}

SparseMatrix sparse(const Eigen::MatrixXd& dense) { return dense.sparseView(); }

/// A sound structure with a dissipation matrix of rank `rank` at most.
Structure random_structure(std::mt19937_64& random, int n, int m, int rank) {
  const Eigen::MatrixXd A = random_matrix(random, n, n);
  const Eigen::MatrixXd B = random_matrix(random, m, m);
  const Eigen::MatrixXd L = random_matrix(random, n + m, rank);
  const Eigen::MatrixXd D = L * L.transpose();
  return {sparse(A - A.transpose()),           sparse(D.topLeftCorner(n, n)),
          sparse(random_matrix(random, n, m)), sparse(D.topRightCorner(n, m)),
          sparse(D.bottomRightCorner(m, m)),   sparse(B - B.transpose())};
}

std::string text_of(const Issues& issues) {
  return issues.empty() ? "" : ConfigError(issues).what();
}

TEST(Structure, SoundOnesPassWhateverTheirRankAndShape) {
  std::mt19937_64 random(kSeed);
  for (const int n : {0, 1, 2, 7, 20}) {
    for (const int m : {0, 1, 3}) {
      for (const int rank : {0, 1, 2, n + m}) {
        const Structure structure = random_structure(random, n, m, rank);
        EXPECT_EQ(text_of(validate(structure, n, m)), "")
            << "n=" << n << " m=" << m << " rank=" << rank << " seed=" << kSeed;
      }
    }
  }
}

TEST(Structure, ZeroHasTheStatedShapesAndIsSound) {
  const Structure zero = Structure::zero(3, 2);
  EXPECT_EQ(zero.states(), 3);
  EXPECT_EQ(zero.inputs(), 2);
  EXPECT_EQ(text_of(validate(zero, 3, 2)), "");
  EXPECT_EQ(validate(zero, 2, 3).size(), 6U) << "every matrix has another shape";
}

struct Defect {
  std::string name;
  void (*spoil)(Structure&);
  std::string message;
};

// n = m = 2; J = [0 1; −1 0], R = diag(0, 0.5), G = I.
Structure plain() {
  Structure s = Structure::zero(2, 2);
  s.J = sparse((Eigen::MatrixXd(2, 2) << 0, 1, -1, 0).finished());
  s.R = sparse((Eigen::MatrixXd(2, 2) << 0, 0, 0, 0.5).finished());
  s.G = sparse(Eigen::MatrixXd::Identity(2, 2));
  return s;
}

constexpr const char* kMustSay = "; a part that may create energy must say allow_active";

TEST(Structure, NamesTheDefectAndTheWorstEntry) {
  const std::string not_psd = "/R: [R P; P^T S] is not positive semidefinite: smallest eigenvalue ";
  const std::vector<Defect> defects = {
      {"J", [](Structure& s) { s.J.coeffRef(1, 0) = -0.9; },
       "/J: J is not skew: J(0,1) = 1, J(1,0) = -0.9"},
      {"diagonal of J", [](Structure& s) { s.J.coeffRef(1, 1) = 3.0; },
       "/J: J is not skew: J(1,1) = 3"},
      {"N", [](Structure& s) { s.N.coeffRef(0, 1) = 2.0; },
       "/N: N is not skew: N(0,1) = 2, N(1,0) = 0"},
      {"R", [](Structure& s) { s.R.coeffRef(0, 1) = 0.25; },
       "/R: R is not symmetric: R(0,1) = 0.25, R(1,0) = 0"},
      {"S", [](Structure& s) { s.S.coeffRef(1, 0) = -1.0; },
       "/S: S is not symmetric: S(0,1) = 0, S(1,0) = -1"},
      {"shape", [](Structure& s) { s.G = SparseMatrix(2, 3); }, "/G: must be 2×2, got 2×3"},
      {"finiteness",
       [](Structure& s) { s.P.coeffRef(0, 1) = std::numeric_limits<double>::quiet_NaN(); },
       "/P: P(0,1) = nan is not finite"},
      {"negative damper", [](Structure& s) { s.R.coeffRef(1, 1) = -0.1; },
       not_psd + "-0.1 (block of v1)" + kMustSay},
      {"P without S", [](Structure& s) { s.P.coeffRef(0, 1) = 2.0; },
       not_psd + "-2 (block of q1, force)" + kMustSay},
      {"negative feedthrough", [](Structure& s) { s.S.coeffRef(0, 0) = -3.0; },
       not_psd + "-3 (block of port)" + kMustSay},
  };
  for (const Defect& defect : defects) {
    Structure structure = plain();
    ASSERT_EQ(text_of(validate(structure, 2, 2)), "");
    defect.spoil(structure);
    const StructureRules rules{.allow_active = false, .names = {"q1", "v1", "port", "force"}};
    EXPECT_EQ(text_of(validate(structure, 2, 2, rules)), defect.message) << defect.name;
  }
}

TEST(Structure, ReportsAllDefectsAtOnce) {
  Structure structure = plain();
  structure.J.coeffRef(1, 0) = 1.0;
  structure.R.coeffRef(0, 1) = 1.0;
  structure.G = SparseMatrix(3, 2);
  structure.N.coeffRef(0, 0) = 1.0;
  const Issues issues = validate(structure, 2, 2);
  ASSERT_EQ(issues.size(), 4U) << text_of(issues);
  EXPECT_EQ(issues[0].where, "/J");
  EXPECT_EQ(issues[1].where, "/R");
  EXPECT_EQ(issues[2].where, "/G");
  EXPECT_EQ(issues[3].where, "/N");
}

TEST(Structure, VariablesWithoutNamesAreNumbered) {
  Structure structure = plain();
  structure.P.coeffRef(1, 0) = 1.0;
  EXPECT_NE(text_of(validate(structure, 2, 2)).find("(block of state 1, input 0)"),
            std::string::npos);
}

TEST(Structure, StoredZerosDoNotTieVariablesTogether) {
  Structure structure = plain();
  structure.R.coeffRef(0, 1) = 0.0;
  structure.R.coeffRef(1, 0) = 0.0;
  structure.R.coeffRef(1, 1) = -0.1;
  EXPECT_NE(text_of(validate(structure, 2, 2)).find("(block of state 1)"), std::string::npos);
}

TEST(Structure, AllowActiveLetsOnlyDefinitenessPass) {
  Structure structure = plain();
  structure.R.coeffRef(1, 1) = -0.1;
  EXPECT_EQ(text_of(validate(structure, 2, 2, {.allow_active = true})), "");
  structure.J.coeffRef(1, 0) = 1.0;
  EXPECT_EQ(validate(structure, 2, 2, {.allow_active = true}).size(), 1U);
}

TEST(Structure, RoundOffPassesAndAThousandfoldDoesNot) {
  for (const double scale : {1e-9, 1.0, 1e9}) {
    Structure structure = plain();
    structure.J *= scale;
    structure.J.coeffRef(0, 1) += 1e-13 * scale;
    EXPECT_EQ(text_of(validate(structure, 2, 2)), "") << "scale=" << scale;
    structure.J.coeffRef(0, 1) += 1e-10 * scale;
    EXPECT_EQ(validate(structure, 2, 2).size(), 1U) << "scale=" << scale;
  }
}

// Definiteness is a property of the part, not of the units of its variables.
TEST(Structure, DefinitenessDoesNotDependOnUnits) {
  for (const double unit : {1e-6, 1e-3, 1.0, 1e3, 1e6}) {
    Eigen::MatrixXd D(2, 2);
    D << unit * unit, -unit, -unit, 1.0;  // a damper on a spring's end: rank 1
    EXPECT_TRUE(is_positive_semidefinite(sparse(D))) << "unit=" << unit;
    D(1, 1) = 0.999999;
    EXPECT_FALSE(is_positive_semidefinite(sparse(D))) << "unit=" << unit;
  }
}

TEST(Structure, DefinitenessForgivesRoundOffOfProducts) {
  std::mt19937_64 random(kSeed);
  for (int draw = 0; draw < 50; ++draw) {
    const Eigen::MatrixXd L = random_matrix(random, 12, 3);
    EXPECT_TRUE(is_positive_semidefinite(sparse(L * L.transpose())))
        << "draw=" << draw << " seed=" << kSeed;
    const Eigen::MatrixXd indefinite = L * L.transpose() - 1e-9 * Eigen::MatrixXd::Identity(12, 12);
    EXPECT_FALSE(is_positive_semidefinite(sparse(indefinite))) << "draw=" << draw;
  }
}

// A line of dampers between `size` neighbours: one connected block, sparse beyond a few hundred.
SparseMatrix damper_line(int size, int negative_bond) {
  std::vector<Eigen::Triplet<double>> entries;
  for (int i = 0; i + 1 < size; ++i) {
    const double c = i == negative_bond ? -1e-6 : 1.0;
    entries.emplace_back(i, i, c);
    entries.emplace_back(i + 1, i + 1, c);
    entries.emplace_back(i, i + 1, -c);
    entries.emplace_back(i + 1, i, -c);
  }
  SparseMatrix matrix(size, size);
  matrix.setFromTriplets(entries.begin(), entries.end());
  return matrix;
}

/// Springs in a row, fixed at no end: nodes one more than springs.
Eigen::MatrixXd springs_in_a_row(const std::vector<double>& stiffness) {
  const auto nodes = static_cast<Eigen::Index>(stiffness.size()) + 1;
  Eigen::MatrixXd K = Eigen::MatrixXd::Zero(nodes, nodes);
  for (Eigen::Index i = 0; i + 1 < nodes; ++i) {
    const double k = stiffness[static_cast<std::size_t>(i)];
    K.block(i, i, 2, 2) += (Eigen::Matrix2d() << k, -k, -k, k).finished();
  }
  return K;
}

bool storage_passes(const Eigen::MatrixXd& Q) {
  return validate_storage(sparse(Q), static_cast<int>(Q.rows())).empty();
}

// A soft spring beside a stiff one, tied to it or not: what it does to energy is judged by its own
// size.
TEST(Structure, ASoftPartDoesNotHideBesideAStiffOne) {
  for (const double unit : {1e-9, 1.0, 1e9}) {
    for (const double spread : {1.0, 1e4, 1e8, 1e9}) {
      const double stiff = unit * spread / 3.0, soft = unit / 7.0;
      for (const auto& row : {std::vector{stiff, soft}, std::vector{soft, stiff},
                              std::vector{stiff, stiff, soft}, std::vector{soft, stiff, soft}}) {
        const Eigen::MatrixXd K = springs_in_a_row(row);
        EXPECT_TRUE(storage_passes(K)) << unit << " " << spread;
        for (Eigen::Index i = 0; i < K.rows(); ++i) {
          // One end of a soft spring pushes a thousandth of it the wrong way.
          if (K(i, i) > 2.0 * soft) continue;
          Eigen::MatrixXd active = K;
          active(i, i) -= 1e-3 * soft;
          EXPECT_FALSE(storage_passes(active)) << unit << " " << spread << " node " << i;
          Structure structure = Structure::zero(static_cast<int>(K.rows()), 0);
          structure.R = sparse(active);
          EXPECT_EQ(validate(structure, static_cast<int>(K.rows()), 0).size(), 1U);
          const StructureRules allowed{.allow_active = true, .names = {}};
          EXPECT_TRUE(validate(structure, static_cast<int>(K.rows()), 0, allowed).empty());
        }
      }
    }
    // Not tied together at all, nor of one unit.
    Eigen::MatrixXd apart = Eigen::MatrixXd::Zero(4, 4);
    apart.topLeftCorner(2, 2) = 1e9 * unit * springs_in_a_row({1.0});
    apart.bottomRightCorner(2, 2) = 1e-9 * unit * springs_in_a_row({1.0});
    EXPECT_TRUE(storage_passes(apart));
    Eigen::MatrixXd spoilt = apart;
    spoilt(2, 2) *= 0.999;
    EXPECT_FALSE(storage_passes(spoilt));
    spoilt = apart;
    spoilt(2, 3) *= 0.999;
    EXPECT_FALSE(storage_passes(spoilt)) << "not symmetric";
  }
}

TEST(Structure, SymmetryAndSkewnessAreJudgedPairByPair) {
  const auto places = [](double stiff, double soft, double factor) {
    Structure structure = Structure::zero(4, 4);
    for (const auto& [i, j, size] : {std::tuple{0, 1, stiff}, std::tuple{2, 3, soft}}) {
      const double lower = factor * size;
      structure.J.insert(i, j) = size;
      structure.J.insert(j, i) = -(size == soft ? lower : size);
      structure.N.insert(i, j) = size;
      structure.N.insert(j, i) = -(size == soft ? lower : size);
      structure.R.insert(i, j) = structure.S.insert(i, j) = 0.5 * size;
      structure.R.insert(j, i) = structure.S.insert(j, i) = 0.5 * (size == soft ? lower : size);
      for (const int k : {i, j}) structure.R.insert(k, k) = structure.S.insert(k, k) = size;
    }
    std::string found;
    for (const Issue& issue : validate(structure, 4, 4)) found += issue.where;
    return found;
  };
  for (const double spread : {1.0, 1e5, 1e12, 1e18}) {
    EXPECT_EQ(places(spread, 1.0, 1.0), "") << spread;
    EXPECT_EQ(places(spread, 1.0, 1.0 + 1e-15), "") << spread;
    EXPECT_EQ(places(spread, 1.0, 1.001), "/J/R/S/N") << spread;
  }
}

// What is passive up to the rounding that made it is passive, whatever its spread and its units.
TEST(Structure, WhatOnlyRoundingHasSpoiltPasses) {
  std::mt19937_64 random(kSeed);
  std::uniform_real_distribution<double> decades(-4.5, 4.5);
  int singular = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const int n = 2 + trial % 40;
    std::vector<double> k(static_cast<std::size_t>(n - 1));
    for (double& value : k) value = std::pow(10.0, decades(random));
    const double unit = trial % 3 == 0 ? 1e-9 : trial % 3 == 1 ? 1.0 : 1e9;
    EXPECT_TRUE(storage_passes(unit * springs_in_a_row(k))) << "springs, trial " << trial;

    // Gram matrices of half rank, with units by row.
    const Eigen::MatrixXd L = random_matrix(random, n, std::max(1, n / 2));
    Eigen::VectorXd units(n);
    for (double& value : units) value = std::pow(10.0, 2.0 * decades(random));
    const Eigen::MatrixXd scaled = units.asDiagonal() * L;
    const Eigen::MatrixXd gram = scaled * scaled.transpose();
    EXPECT_TRUE(storage_passes(gram)) << "Gram, trial " << trial;
    Eigen::MatrixXd skew = units.asDiagonal() * random_matrix(random, n, n) * units.asDiagonal();
    const Eigen::MatrixXd T = random_matrix(random, n, n);
    skew = T * (skew - skew.transpose()).eval() * T.transpose();
    Structure structure = Structure::zero(n, 0);
    structure.J = sparse(skew);
    EXPECT_EQ(text_of(validate(structure, n, 0)), "") << "transformed skew, trial " << trial;

    // A floating frame, condensed to its ends and some nodes between: its stiffness is what is left
    // of large terms, with a rigid motion that costs nothing but for rounding.
    const Eigen::MatrixXd K = springs_in_a_row(k);
    const int kept = std::max(2, n / 3), inner = n - kept;
    if (inner == 0) continue;
    Eigen::PermutationMatrix<Eigen::Dynamic> shuffle(n);
    shuffle.setIdentity();
    std::shuffle(shuffle.indices().data(), shuffle.indices().data() + n, random);
    const Eigen::MatrixXd S = shuffle * K * shuffle.transpose();
    Eigen::MatrixXd condensed =
        S.topLeftCorner(kept, kept) -
        S.topRightCorner(kept, inner) *
            S.bottomRightCorner(inner, inner).ldlt().solve(S.bottomLeftCorner(inner, kept));
    condensed = 0.5 * (condensed + condensed.transpose()).eval();
    // Only where all that is left is well above the rounding of what it is left of.
    if (condensed.diagonal().minCoeff() < 1e-3 * S.diagonal().maxCoeff()) continue;
    ++singular;
    EXPECT_TRUE(storage_passes(condensed)) << "condensed, trial " << trial;
  }
  EXPECT_GT(singular, 5);
}

// An entry beside a diagonal of zero makes a matrix indefinite, however small it is beside others.
TEST(Structure, AnEntryBesideAZeroDiagonalIsNoRoundOff) {
  for (const double unit : {1e-150, 1e-9, 1.0, 1e9, 1e150}) {
    Eigen::MatrixXd Q = Eigen::MatrixXd::Zero(3, 3);
    Q(0, 0) = 1e9 * unit;
    Q(1, 1) = 1e-3 * unit;
    EXPECT_TRUE(storage_passes(Q));
    Q(1, 2) = Q(2, 1) = 1e-6 * unit;
    EXPECT_FALSE(storage_passes(Q)) << unit;
    Q(1, 2) = Q(2, 1) = 1e-20 * unit;  // round-off of the entry that it meets
    EXPECT_TRUE(storage_passes(Q)) << unit;
  }
  const double tiny = std::numeric_limits<double>::denorm_min();
  EXPECT_TRUE(storage_passes((Eigen::Matrix2d() << tiny, -tiny, -tiny, tiny).finished()));
  EXPECT_FALSE(storage_passes((Eigen::Matrix2d() << 1e308, 1.1e308, 1.1e308, 1e308).finished()));
}

TEST(Structure, LargeBlocksAreJudgedLikeSmallOnes) {
  for (const int size : {2, 40, 399, 400, 401, 2000}) {
    EXPECT_TRUE(is_positive_semidefinite(damper_line(size, -1))) << "size=" << size;
    EXPECT_FALSE(is_positive_semidefinite(damper_line(size, size / 2 - 1))) << "size=" << size;
  }
}

TEST(Structure, LargeBlocksAreNamedShortly) {
  Structure structure = Structure::zero(1000, 0);
  structure.R = damper_line(1000, 500);
  const std::string text = text_of(validate(structure, 1000, 0));
  EXPECT_NE(text.find("a negative eigenvalue (block of state 0, state 1, state 2, state 3 and 996 "
                      "more)"),
            std::string::npos)
      << text;
}

TEST(Storage, IsSymmetricSemidefiniteAndOfTheRightShape) {
  EXPECT_EQ(text_of(validate_storage(sparse(Eigen::MatrixXd::Identity(2, 2)), 2)), "");
  EXPECT_EQ(text_of(validate_storage(SparseMatrix(2, 2), 2)), "");
  EXPECT_EQ(text_of(validate_storage(SparseMatrix(2, 2), 3)), "/Q: must be 3×3, got 2×2");
  EXPECT_EQ(text_of(validate_storage(sparse((Eigen::MatrixXd(2, 2) << 1, 2, 0, 1).finished()), 2)),
            "/Q: Q is not symmetric: Q(0,1) = 2, Q(1,0) = 0");
  EXPECT_EQ(
      text_of(validate_storage(sparse((Eigen::MatrixXd(2, 2) << 1, 2, 2, 1).finished()), 2)),
      "/Q: Q is not positive semidefinite: smallest eigenvalue -1 (block of state 0, state 1)");
}

TEST(Structure, DissipationMatrixPutsTheBlocksInPlace) {
  std::mt19937_64 random(kSeed);
  const Structure s = random_structure(random, 3, 2, 4);
  const Eigen::MatrixXd D(dissipation_matrix(s));
  EXPECT_EQ(D, D.transpose());
  EXPECT_EQ(D.topLeftCorner(3, 3), Eigen::MatrixXd(s.R));
  EXPECT_EQ(D.topRightCorner(3, 2), Eigen::MatrixXd(s.P));
  EXPECT_EQ(D.bottomRightCorner(2, 2), Eigen::MatrixXd(s.S));
}

}  // namespace
}  // namespace portwave::test_structure
