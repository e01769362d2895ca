#include <cmath>
#include <limits>
#include <random>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "portwave/coupling/system/dirac.hpp"

namespace portwave::test_dirac {
namespace {

constexpr unsigned kSeed = 17;

std::string text_of(const Issues& issues) {
  return issues.empty() ? "" : ConfigError(issues).what();
}

Eigen::MatrixXd random_matrix(std::mt19937_64& random, Eigen::Index rows, Eigen::Index columns) {
  std::normal_distribution<double> normal;
  return Eigen::MatrixXd::NullaryExpr(rows, columns, [&] { return normal(random); });
}

Eigen::VectorXd random_impedance(std::mt19937_64& random, int size, double decades) {
  std::uniform_real_distribution<double> exponent(-decades, decades);
  return Eigen::VectorXd::NullaryExpr(size, [&] { return std::pow(10.0, exponent(random)); });
}

struct Named {
  std::string name;
  DiracStructure dirac;
};

std::vector<Named> structures() {
  std::mt19937_64 random(kSeed);
  const Eigen::MatrixXd A = random_matrix(random, 5, 5);
  const Eigen::MatrixXd C = A - A.transpose();
  const auto in = Causality::effort_in, out = Causality::flow_in;
  std::vector<Named> all = {
      {"connection", DiracStructure::connection()},
      {"free", DiracStructure::free()},
      {"fixed", DiracStructure::fixed()},
      {"skew gain, efforts in", DiracStructure::skew_gain(C, {in, in, in, in, in})},
      {"skew gain, flows in", DiracStructure::skew_gain(C, {out, out, out, out, out})},
      {"skew gain, mixed", DiracStructure::skew_gain(C, {in, out, out, in, out})},
  };
  for (const double ratio : {-1e6, -2.5, 1e-6, 1.0, 3.0}) {
    all.push_back({"transformer " + std::to_string(ratio), DiracStructure::transformer(ratio)});
    all.push_back({"gyrator " + std::to_string(ratio), DiracStructure::gyrator(ratio)});
  }
  for (const int arity : {2, 3, 4, 9, 65}) {
    all.push_back({"common effort " + std::to_string(arity), DiracStructure::common_effort(arity)});
    all.push_back({"common flow " + std::to_string(arity), DiracStructure::common_flow(arity)});
  }
  // The same subspace by other rows: a random recombination of the mixed skew gain.
  const Eigen::MatrixXd T = random_matrix(random, 5, 5);
  const DiracStructure mixed = all[5].dirac;
  all.push_back({"kernel, recombined", {T * mixed.E, T * mixed.F}});
  return all;
}

TEST(DiracStructure, EveryOneOfTheCatalogueIsADiracStructure) {
  for (const Named& named : structures()) {
    const Eigen::MatrixXd& E = named.dirac.E;
    const Eigen::MatrixXd& F = named.dirac.F;
    EXPECT_EQ(text_of(validate(named.dirac)), "") << named.name;
    Eigen::MatrixXd both(E.rows(), 2 * E.cols());
    both << E, F;
    EXPECT_EQ(both.colPivHouseholderQr().rank(), named.dirac.size()) << named.name;
    const Eigen::MatrixXd power = E * F.transpose() + F * E.transpose();
    EXPECT_LE(power.cwiseAbs().maxCoeff(), 1e-14 * both.squaredNorm()) << named.name;
  }
}

TEST(WaveMap, IsOrthogonalForAnyImpedances) {
  std::mt19937_64 random(kSeed);
  for (const Named& named : structures()) {
    const int k = named.dirac.size();
    for (const double decades : {0.0, 1.0, 4.0, 8.0}) {
      const Eigen::VectorXd gamma = random_impedance(random, k, decades);
      const Eigen::MatrixXd P = wave_map(named.dirac, gamma);
      const double defect =
          (P.transpose() * P - Eigen::MatrixXd::Identity(k, k)).cwiseAbs().maxCoeff();
      EXPECT_LE(defect, 1e-14 * k) << named.name << " decades=" << decades << " seed=" << kSeed;
    }
  }
}

/// Efforts and flows from b and a = P b, per unit of √(1/2h): e = √γ (a + b), f = (a − b)/√γ.
struct Element {
  Eigen::VectorXd effort;
  Eigen::VectorXd flow;
};

Element element(const Eigen::MatrixXd& P, const Eigen::VectorXd& gamma, const Eigen::VectorXd& b) {
  const Eigen::VectorXd a = P * b;
  return {(gamma.cwiseSqrt().array() * (a + b).array()).matrix(),
          ((a - b).array() / gamma.cwiseSqrt().array()).matrix()};
}

TEST(WaveMap, ScattersIntoTheStructureWithoutPower) {
  std::mt19937_64 random(kSeed);
  for (const Named& named : structures()) {
    const int k = named.dirac.size();
    const Eigen::VectorXd gamma = random_impedance(random, k, 1.0);
    const Eigen::MatrixXd P = wave_map(named.dirac, gamma);
    const Eigen::VectorXd root = gamma.cwiseSqrt();
    const Eigen::VectorXd row_size =
        named.dirac.E.cwiseAbs() * root + named.dirac.F.cwiseAbs() * root.cwiseInverse();
    for (int draw = 0; draw < 20; ++draw) {
      const Eigen::VectorXd b = random_matrix(random, k, 1);
      const Element x = element(P, gamma, b);
      const Eigen::VectorXd defect = named.dirac.E * x.effort + named.dirac.F * x.flow;
      EXPECT_LE((defect.cwiseAbs() - 1e-14 * b.norm() * row_size).maxCoeff(), 0.0)
          << named.name << " draw=" << draw << " seed=" << kSeed;
      EXPECT_LE(std::abs(x.effort.dot(x.flow)), 1e-13 * b.squaredNorm())
          << named.name << " draw=" << draw << " seed=" << kSeed;
    }
  }
}

TEST(WaveMapControl, ARowOfAnotherStructureIsNoticed) {
  std::mt19937_64 random(kSeed);
  const Eigen::VectorXd gamma = Eigen::Vector2d(1.0, 2.0);
  const Eigen::MatrixXd P = wave_map(DiracStructure::transformer(2.0), gamma);
  const Element x = element(P, gamma, random_matrix(random, 2, 1));
  const DiracStructure other = DiracStructure::transformer(2.1);
  EXPECT_GT((other.E * x.effort + other.F * x.flow).cwiseAbs().maxCoeff(), 1e-3);
}

// P = −(EΓ^½ + FΓ^−½)⁻¹(EΓ^½ − FΓ^−½), evaluated as written.
TEST(WaveMap, IsTheStatedFormula) {
  std::mt19937_64 random(kSeed);
  for (const Named& named : structures()) {
    const int k = named.dirac.size();
    const Eigen::VectorXd gamma = random_impedance(random, k, 1.0);
    const Eigen::VectorXd root = gamma.cwiseSqrt();
    const Eigen::MatrixXd A = named.dirac.E * root.asDiagonal();
    const Eigen::MatrixXd B = named.dirac.F * root.cwiseInverse().asDiagonal();
    const Eigen::MatrixXd formula = -(A + B).fullPivLu().solve(A - B);
    EXPECT_LE((wave_map(named.dirac, gamma) - formula).cwiseAbs().maxCoeff(), 1e-9)
        << named.name << " seed=" << kSeed;
  }
}

TEST(WaveMap, HasTheClosedFormsOfTheField) {
  const Eigen::MatrixXd swap = (Eigen::MatrixXd(2, 2) << 0, 1, 1, 0).finished();
  const auto near = [](const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) {
    return (a - b).cwiseAbs().maxCoeff() <= 1e-15;
  };
  for (const double gamma : {1e-6, 0.4, 1e6}) {
    const Eigen::VectorXd one = Eigen::VectorXd::Constant(1, gamma);
    EXPECT_TRUE(near(wave_map(DiracStructure::connection(), Eigen::Vector2d(gamma, gamma)), swap));
    EXPECT_TRUE(near(wave_map(DiracStructure::free(), one), -Eigen::MatrixXd::Identity(1, 1)));
    EXPECT_TRUE(near(wave_map(DiracStructure::fixed(), one), Eigen::MatrixXd::Identity(1, 1)));
  }
  // Three equal ports: P = ±(2nnᵀ − I).
  const Eigen::VectorXd equal = Eigen::VectorXd::Ones(3);
  const Eigen::MatrixXd reflection =
      Eigen::MatrixXd::Constant(3, 3, 2.0 / 3.0) - Eigen::MatrixXd::Identity(3, 3);
  EXPECT_TRUE(near(wave_map(DiracStructure::common_effort(3), equal), reflection));
  EXPECT_TRUE(near(wave_map(DiracStructure::common_flow(3), equal), -reflection));
  // A gyrator with γ₁γ₂ = r² turns by a quarter: P² = −I.
  const Eigen::MatrixXd P = wave_map(DiracStructure::gyrator(6.0), Eigen::Vector2d(4.0, 9.0));
  EXPECT_TRUE(near(P * P, -Eigen::MatrixXd::Identity(2, 2)));
}

// e₁ = r f₂, e₂ = −r f₁ and e₁ = n e₂, f₂ = −n f₁, at a pair of numbers.
TEST(DiracStructure, SignsAreTheStatedOnes) {
  const auto holds = [](const DiracStructure& d, const Eigen::VectorXd& e,
                        const Eigen::VectorXd& f) {
    return (d.E * e + d.F * f).cwiseAbs().maxCoeff() < 1e-15;
  };
  using Eigen::Vector2d, Eigen::Vector3d;
  EXPECT_TRUE(holds(DiracStructure::connection(), Vector2d(3, 3), Vector2d(2, -2)));
  EXPECT_FALSE(holds(DiracStructure::connection(), Vector2d(3, -3), Vector2d(2, -2)));
  EXPECT_TRUE(holds(DiracStructure::transformer(4), Vector2d(8, 2), Vector2d(3, -12)));
  EXPECT_FALSE(holds(DiracStructure::transformer(4), Vector2d(2, 8), Vector2d(-12, 3)));
  EXPECT_TRUE(holds(DiracStructure::gyrator(2), Vector2d(10, -6), Vector2d(3, 5)));
  EXPECT_FALSE(holds(DiracStructure::gyrator(2), Vector2d(-10, 6), Vector2d(3, 5)));
  EXPECT_TRUE(holds(DiracStructure::common_effort(3), Vector3d(7, 7, 7), Vector3d(1, 2, -3)));
  EXPECT_TRUE(holds(DiracStructure::common_flow(3), Vector3d(1, 2, -3), Vector3d(7, 7, 7)));
  // u = −Ĉy with u = (e₁, f₂), y = (f₁, e₂), Ĉ = [0 c; −c 0]: e₁ = −c e₂, f₂ = c f₁.
  const Eigen::MatrixXd C = (Eigen::MatrixXd(2, 2) << 0, 3, -3, 0).finished();
  const DiracStructure gain =
      DiracStructure::skew_gain(C, {Causality::effort_in, Causality::flow_in});
  EXPECT_TRUE(holds(gain, Vector2d(-6, 2), Vector2d(5, 15)));
  EXPECT_FALSE(holds(gain, Vector2d(6, 2), Vector2d(5, 15)));
}

TEST(DiracStructure, DefectsAreNamed) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Eigen::MatrixXd I = Eigen::MatrixXd::Identity(2, 2);
  const Eigen::MatrixXd zero = Eigen::MatrixXd::Zero(2, 2);
  const Eigen::MatrixXd symmetric = (Eigen::MatrixXd(2, 2) << 0, 1, 1, 0).finished();
  const Eigen::MatrixXd with_nan = (Eigen::MatrixXd(2, 2) << 1, 0, nan, 1).finished();
  const auto in = Causality::effort_in;
  const std::vector<std::pair<DiracStructure, std::string>> defective = {
      {DiracStructure::skew_gain(symmetric, {in, in}),
       "E F^T + F E^T must vanish (no power is made or lost), but its entry (0,1) is 2"},
      {{I, 0.5 * I},
       "E F^T + F E^T must vanish (no power is made or lost), but its entry (0,0) is 1"},
      {{zero, (Eigen::MatrixXd(2, 2) << 1, 1, 2, 2).finished()},
       "[E F] must have rank 2, got 1: its rows leave the ports undetermined"},
      {{zero, zero}, "[E F] must have rank 2, got 0: its rows leave the ports undetermined"},
      {{with_nan, zero}, "/E: entry (1,0) = nan is not finite"},
      {{I, with_nan}, "/F: entry (1,0) = nan is not finite"},
      {{Eigen::MatrixXd::Ones(2, 3), zero},
       "/E: must be square, one row and column per scalar port (2×2), got 2×3"},
      {{I, Eigen::MatrixXd::Ones(1, 1)},
       "/F: must be square, one row and column per scalar port (2×2), got 1×1"},
      {{Eigen::MatrixXd(), Eigen::MatrixXd()}, "/E: must have at least one row"},
      {{symmetric, I},
       "E F^T + F E^T must vanish (no power is made or lost), but its entry (0,1) is 2"},
  };
  for (const auto& [dirac, message] : defective) EXPECT_EQ(text_of(validate(dirac)), message);
}

TEST(DiracStructure, ReportsRankAndIsotropyTogether) {
  const DiracStructure both{Eigen::MatrixXd::Ones(2, 2), Eigen::MatrixXd::Ones(2, 2)};
  EXPECT_EQ(validate(both).size(), 2U);
}

TEST(DiracStructure, RowsThatDifferByRoundOffAreOne) {
  const auto with_rows = [](double difference) {
    const Eigen::MatrixXd F = (Eigen::MatrixXd(2, 2) << 1.0, 1.0, 1.0, 1.0 + difference).finished();
    return DiracStructure{Eigen::MatrixXd::Zero(2, 2), F};
  };
  EXPECT_EQ(validate(with_rows(1e-13)).size(), 1U);
  EXPECT_EQ(text_of(validate(with_rows(1e-9))), "");
}

// A kernel may be off by round-off, in either unit system, but not by more.
TEST(DiracStructure, ForgivesRoundOffOnly) {
  for (const double ratio : {1e-9, 1.0, 1e9}) {
    DiracStructure dirac = DiracStructure::transformer(ratio);
    dirac.F(1, 0) *= 1.0 + 1e-13;
    EXPECT_EQ(text_of(validate(dirac)), "") << "ratio=" << ratio;
    dirac.F(1, 0) *= 1.001;
    EXPECT_EQ(validate(dirac).size(), 1U) << "ratio=" << ratio;
  }
}

// The same in other units: efforts of port j times unit_j·scale, flows divided by unit_j, rows by
// anything.
DiracStructure in_units(const DiracStructure& dirac, const Eigen::VectorXd& unit, double scale,
                        const Eigen::VectorXd& row) {
  return {row.asDiagonal() * (scale * dirac.E) * unit.asDiagonal(),
          row.asDiagonal() * dirac.F * unit.cwiseInverse().asDiagonal()};
}

TEST(DiracStructure, UnitsDoNotMatter) {
  std::mt19937_64 random(kSeed);
  for (const auto& [name, dirac] : structures()) {
    const int k = dirac.size();
    if (k > 9) continue;
    for (const double scale : {1e-18, 1e-9, 1.0, 1e9, 1e18}) {
      for (const bool mixed : {false, true}) {
        const Eigen::VectorXd one = Eigen::VectorXd::Ones(k);
        const Eigen::VectorXd unit = mixed ? random_impedance(random, k, 9.0) : one;
        const Eigen::VectorXd row = mixed ? random_impedance(random, k, 9.0) : one;
        EXPECT_EQ(text_of(validate(in_units(dirac, unit, scale, row))), "")
            << name << ", scale " << scale;
        // An entry that is off by a thousandth makes power, which is seen, and so is a row that
        // says nothing new.
        if (k < 2) continue;
        DiracStructure active = dirac;
        Eigen::Index i = 0, j = 0;
        active.E.cwiseAbs().maxCoeff(&i, &j);
        active.E(i, j) *= 1.001;
        EXPECT_EQ(text_of(validate(in_units(active, unit, scale, row))).substr(0, 29),
                  "E F^T + F E^T must vanish (no")
            << name << ", scale " << scale;
        DiracStructure deficient = dirac;
        deficient.E.row(1) = 0.25 * deficient.E.row(0);
        deficient.F.row(1) = 0.25 * deficient.F.row(0);
        EXPECT_EQ(text_of(validate(in_units(deficient, unit, scale, row))).substr(0, 22),
                  "[E F] must have rank " + std::to_string(k))
            << name << ", scale " << scale;
      }
    }
  }
}

// Rows that mix the laws of efforts and flows look alike where the units of one outweigh the
// other's. The structure is the same, and so is its wave map.
TEST(WaveMap, IsThatOfTheStructureInAnyUnits) {
  std::mt19937_64 random(kSeed);
  for (const auto& [name, dirac] : structures()) {
    const int k = dirac.size();
    if (k > 9) continue;
    const Eigen::MatrixXd expected = wave_map(dirac, Eigen::VectorXd::Ones(k));
    for (const double scale : {1e-18, 1e-9, 1e-5, 1e5, 1e9, 1e18}) {
      const Eigen::MatrixXd T = random_matrix(random, k, k);
      const DiracStructure given{scale * (T * dirac.E), T * dirac.F};
      EXPECT_EQ(text_of(validate(given)), "") << name << ", scale " << scale;
      // Efforts in other units are met by impedances in other units.
      const Eigen::VectorXd impedance = Eigen::VectorXd::Constant(k, 1.0 / scale);
      const Eigen::MatrixXd P = wave_map(with_separate_rows(given), impedance);
      const double rounding = 1e-13 / T.fullPivLu().rcond();
      EXPECT_LT((P - expected).cwiseAbs().maxCoeff(), rounding) << name << ", scale " << scale;
    }
  }
}

}  // namespace
}  // namespace portwave::test_dirac
