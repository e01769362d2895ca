#include "portwave/coupling/system/dirac.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <Eigen/Dense>
#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/matrices/decompositions.hpp"

namespace portwave {
namespace {

constexpr double kTolerance = 1e-12;
constexpr double kApart = 1e-4;  // rows of norm 1 that differ by more need no elimination
constexpr double kStructureRoundOff = 4.0 * std::numeric_limits<double>::epsilon();

DiracStructure zero(Eigen::Index rows, Eigen::Index columns) {
  return {Eigen::MatrixXd::Zero(rows, columns), Eigen::MatrixXd::Zero(rows, columns)};
}

// Row 0: Σ balanced = 0. Rows 1…k−1: the shared variable of port 0 equals that of port j.
void fill_junction(Eigen::MatrixXd& shared, Eigen::MatrixXd& balanced) {
  balanced.row(0).setOnes();
  for (Eigen::Index j = 1; j < shared.rows(); ++j) {
    shared(j, 0) = 1.0;
    shared(j, j) = -1.0;
  }
}

void check_shape(Issues& issues, const char* where, const Eigen::MatrixXd& matrix, Eigen::Index k) {
  if (matrix.rows() == k && matrix.cols() == k) return;
  issues.push_back(
      {where, fmt::format("must be square, one row and column per scalar port ({}×{}), "
                          "got {}×{}",
                          k, k, matrix.rows(), matrix.cols())});
}

void check_finite(Issues& issues, const char* where, const Eigen::MatrixXd& matrix) {
  for (Eigen::Index j = 0; j < matrix.cols(); ++j) {
    for (Eigen::Index i = 0; i < matrix.rows(); ++i) {
      if (std::isfinite(matrix(i, j))) continue;
      issues.push_back({where, fmt::format("entry ({},{}) = {} is not finite", i, j,
                                           shown_number(matrix(i, j)))});
      return;
    }
  }
}

// Rows of [E F], each divided by its largest entry and then by its norm, so that no square over- or
// underflows. Zero rows stay.
DiracStructure with_unit_rows(const DiracStructure& dirac) {
  DiracStructure result = dirac;
  for (Eigen::Index i = 0; i < dirac.E.rows(); ++i) {
    const double largest =
        std::max(dirac.E.row(i).cwiseAbs().maxCoeff(), dirac.F.row(i).cwiseAbs().maxCoeff());
    if (largest == 0.0) continue;
    result.E.row(i) /= largest;
    result.F.row(i) /= largest;
    const double norm = std::sqrt(result.E.row(i).squaredNorm() + result.F.row(i).squaredNorm());
    result.E.row(i) /= norm;
    result.F.row(i) /= norm;
  }
  return result;
}

double power_of_two(double value) { return std::exp2(std::round(std::log2(value))); }

// [E F] with rows and columns scaled by powers of two until the largest entry of each is near 1, so
// that its rank does not depend on the units of efforts and flows, port by port. In place, so that
// nothing overflows on the way.
Eigen::MatrixXd evened(const DiracStructure& dirac) {
  constexpr int kSweeps = 40;
  const Eigen::Index k = dirac.E.rows();
  Eigen::MatrixXd both(k, 2 * k);
  both << dirac.E, dirac.F;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    bool is_even = true;
    const auto even = [&](auto&& line) {
      const double size = line.cwiseAbs().maxCoeff();
      if (size == 0.0 || (size > 0.5 && size < 2.0)) return;
      is_even = false;
      line *= power_of_two(1.0 / std::max(size, std::numeric_limits<double>::min()));
    };
    for (Eigen::Index i = 0; i < both.rows(); ++i) even(both.row(i));
    for (Eigen::Index j = 0; j < both.cols(); ++j) even(both.col(j));
    if (is_even) break;
  }
  return both;
}

Eigen::Index rank(const DiracStructure& dirac) {
  const Eigen::MatrixXd transposed = evened(dirac).transpose();
  return pivoted_rank(transposed, kTolerance);
}

// Units taken apart: efforts of a port times s and flows divided by s, which leaves E Fᵀ as it is,
// until both have columns of one size; then rows of norm 1. A power of two for each port.
DiracStructure without_units(const DiracStructure& dirac) {
  constexpr int kSweeps = 40;
  DiracStructure result = with_unit_rows(dirac);
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    bool is_even = true;
    for (Eigen::Index j = 0; j < result.E.cols(); ++j) {
      const double effort = result.E.col(j).cwiseAbs().maxCoeff();
      const double flow = result.F.col(j).cwiseAbs().maxCoeff();
      if (effort == 0.0 || flow == 0.0) continue;  // the other one's scale cannot matter
      const double s = power_of_two(std::sqrt(flow) / std::sqrt(effort));
      if (s == 1.0) continue;
      is_even = false;
      result.E.col(j) *= s;
      result.F.col(j) /= s;
    }
    if (is_even) break;
    result = with_unit_rows(result);
  }
  return result;
}

// The entry of E Fᵀ + F Eᵀ that is farthest beyond what round-off of its terms explains.
void check_isotropy(Issues& issues, const DiracStructure& given, const DiracStructure& unit) {
  const Eigen::MatrixXd half = unit.E * unit.F.transpose();
  const Eigen::MatrixXd terms = unit.E.cwiseAbs() * unit.F.cwiseAbs().transpose();
  const Eigen::MatrixXd defect = (half + half.transpose()).cwiseAbs();
  const Eigen::MatrixXd allowed =
      (kTolerance * (terms + terms.transpose())).array() + kStructureRoundOff;
  Eigen::Index i = 0;
  Eigen::Index j = 0;
  if ((defect - allowed).maxCoeff(&i, &j) <= 0.0) return;
  if (i > j) std::swap(i, j);
  const double entry = given.E.row(i).dot(given.F.row(j)) + given.F.row(i).dot(given.E.row(j));
  issues.push_back(
      {"", fmt::format("E F^T + F E^T must vanish (no power is made or lost), but its entry "
                       "({},{}) is {:.6g}",
                       i, j, entry)});
}

}  // namespace

DiracStructure DiracStructure::connection() {
  DiracStructure dirac = common_effort(2);
  dirac.kind = "connection";
  return dirac;
}

DiracStructure DiracStructure::common_effort(int arity) {
  DiracStructure dirac = zero(arity, arity);
  fill_junction(dirac.E, dirac.F);
  dirac.kind = "common_effort";
  return dirac;
}

DiracStructure DiracStructure::common_flow(int arity) {
  DiracStructure dirac = zero(arity, arity);
  fill_junction(dirac.F, dirac.E);
  dirac.kind = "common_flow";
  return dirac;
}

DiracStructure DiracStructure::transformer(double ratio) {
  DiracStructure dirac = zero(2, 2);
  dirac.E.row(0) << 1.0, -ratio;
  dirac.F.row(1) << ratio, 1.0;
  dirac.kind = "transformer";
  return dirac;
}

DiracStructure DiracStructure::gyrator(double ratio) {
  DiracStructure dirac = zero(2, 2);
  dirac.E.setIdentity();
  dirac.F << 0.0, -ratio, ratio, 0.0;
  dirac.kind = "gyrator";
  return dirac;
}

DiracStructure DiracStructure::skew_gain(const Eigen::MatrixXd& C,
                                         const std::vector<Causality>& causalities) {
  const auto k = static_cast<Eigen::Index>(causalities.size());
  DiracStructure dirac = zero(C.rows(), C.cols());
  for (Eigen::Index j = 0; j < std::min(C.cols(), k); ++j) {
    const bool effort_in = causalities[static_cast<std::size_t>(j)] == Causality::effort_in;
    Eigen::MatrixXd& inputs = effort_in ? dirac.E : dirac.F;
    Eigen::MatrixXd& outputs = effort_in ? dirac.F : dirac.E;
    if (j < C.rows()) inputs(j, j) = 1.0;
    outputs.col(j) += C.col(j);
  }
  dirac.kind = "skew_gain";
  return dirac;
}

DiracStructure DiracStructure::free() {
  return {Eigen::MatrixXd::Ones(1, 1), Eigen::MatrixXd::Zero(1, 1), "free"};
}

DiracStructure DiracStructure::fixed() {
  return {Eigen::MatrixXd::Zero(1, 1), Eigen::MatrixXd::Ones(1, 1), "fixed"};
}

Issues validate(const DiracStructure& dirac) {
  Issues issues;
  const Eigen::Index k = dirac.E.rows();
  if (k == 0) return {{"/E", "must have at least one row"}};
  check_shape(issues, "/E", dirac.E, k);
  check_shape(issues, "/F", dirac.F, k);
  check_finite(issues, "/E", dirac.E);
  check_finite(issues, "/F", dirac.F);
  if (!issues.empty()) return issues;

  if (const Eigen::Index r = rank(dirac); r < k) {
    issues.push_back({"", fmt::format("[E F] must have rank {}, got {}: its rows leave the ports "
                                      "undetermined",
                                      k, r)});
  }
  check_isotropy(issues, dirac, without_units(dirac));
  return issues;
}

DiracStructure with_separate_rows(const DiracStructure& dirac) {
  const Eigen::Index k = dirac.E.rows();
  const DiracStructure unit = with_unit_rows(dirac);
  Eigen::MatrixXd transposed(2 * k, k);
  transposed << unit.E.transpose(), unit.F.transpose();
  const Eigen::VectorXd diagonal = pivoted_qr(transposed).diagonal.cwiseAbs();
  if (diagonal.minCoeff() > kApart * diagonal.maxCoeff()) return dirac;

  // Gauss-Jordan elimination with the largest of the evened entries as pivots; every row is then
  // free of the pivots of the others, and no unit can make two of them alike.
  Eigen::MatrixXd both(k, 2 * k), even = evened(dirac);
  both << dirac.E, dirac.F;
  const auto eliminate = [k](Eigen::MatrixXd& M, Eigen::Index row, Eigen::Index pivot) {
    for (Eigen::Index i = 0; i < k; ++i) {
      if (i == row || M(i, pivot) == 0.0) continue;
      const double factor = M(i, pivot) / M(row, pivot);
      for (Eigen::Index j = 0; j < 2 * k; ++j) {
        const double term = factor * M(row, j);
        const double rest = M(i, j) - term;
        M(i, j) = std::abs(rest) <= kStructureRoundOff * std::abs(term) ? 0.0 : rest;
      }
      M(i, pivot) = 0.0;
    }
  };
  for (Eigen::Index step = 0; step < k; ++step) {
    Eigen::Index row = 0, pivot = 0;
    even.bottomRows(k - step).cwiseAbs().maxCoeff(&row, &pivot);
    row += step;
    even.row(step).swap(even.row(row));
    both.row(step).swap(both.row(row));
    eliminate(even, step, pivot);
    eliminate(both, step, pivot);
  }
  return {both.leftCols(k), both.rightCols(k)};
}

Eigen::MatrixXd wave_map(const DiracStructure& dirac, const Eigen::VectorXd& impedance) {
  // With A = EΓ^½ and B = FΓ^−½, isotropy is ABᵀ + BAᵀ = 0, so that A + B is orthogonal once the
  // rows of [A B] are orthonormal. Then P = −(A + B)ᵀ(A − B) is orthogonal to round-off, however
  // badly the given rows or the impedances are scaled.
  const Eigen::Index k = dirac.E.rows();
  const Eigen::ArrayXd root = impedance.array().sqrt();
  const DiracStructure waves = with_unit_rows(
      {dirac.E * root.matrix().asDiagonal(), dirac.F * root.inverse().matrix().asDiagonal()});
  Eigen::MatrixXd transposed(2 * k, k);
  transposed << waves.E.transpose(), waves.F.transpose();
  const Eigen::MatrixXd Q = orthonormal_columns(transposed);
  const auto A = Q.topRows(k);
  const auto B = Q.bottomRows(k);
  return -(A + B) * (A - B).transpose();
}

}  // namespace portwave
