#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include <Eigen/Dense>

#include "impedance/impedance_rules.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/matrices/decompositions.hpp"

namespace portwave {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

double minor_of(const Matrix& B, Eigen::Index i, Eigen::Index j) {
  return B(i, i) * B(j, j) - B(i, j) * B(j, i);
}

double determinant(const Matrix& B) {
  if (B.rows() == 2) return minor_of(B, 0, 1);
  return B(0, 0) * (B(1, 1) * B(2, 2) - B(1, 2) * B(2, 1)) -
         B(0, 1) * (B(1, 0) * B(2, 2) - B(1, 2) * B(2, 0)) +
         B(0, 2) * (B(1, 0) * B(2, 1) - B(1, 1) * B(2, 0));
}

/// With all eigenvalues 1, the trace of diag(x) B is 2 and its determinant 1. Of the two solutions
/// that with the larger x₁.
Vector two_scales(const Matrix& B) {
  const double product = 1.0 / determinant(B);
  const double root = 1.0 - B(0, 0) * B(1, 1) * product;
  const double first = (1.0 + std::sqrt(std::max(root, 0.0))) / B(0, 0);
  return Vector{{first, product / first}};
}

/// The elementary symmetric functions of the eigenvalues of diag(x) B, less those of 1, 1, 1.
Vector defect_of(const Matrix& B, const Vector& x) {
  return Vector{{B(0, 0) * x[0] + B(1, 1) * x[1] + B(2, 2) * x[2] - 3.0,
                 minor_of(B, 0, 1) * x[0] * x[1] + minor_of(B, 0, 2) * x[0] * x[2] +
                     minor_of(B, 1, 2) * x[1] * x[2] - 3.0,
                 determinant(B) * x[0] * x[1] * x[2] - 1.0}};
}

/// Newton's method; false where it does not stay among positive scales.
bool improve_scales(const Matrix& B, Vector& x) {
  constexpr int kMostSteps = 20;
  constexpr double kEnough = 1e-10;
  for (int n = 0; n < kMostSteps; ++n) {
    const Vector defect = defect_of(B, x);
    if (!defect.allFinite()) return false;
    if (defect.cwiseAbs().maxCoeff() <= kEnough) return true;
    const double m01 = minor_of(B, 0, 1), m02 = minor_of(B, 0, 2), m12 = minor_of(B, 1, 2);
    const double det = determinant(B);
    Matrix slope(3, 3);
    slope << B(0, 0), B(1, 1), B(2, 2), m01 * x[1] + m02 * x[2], m01 * x[0] + m12 * x[2],
        m02 * x[0] + m12 * x[1], det * x[1] * x[2], det * x[0] * x[2], det * x[0] * x[1];
    x -= lu_solve(slope, defect);
    if (!(x.minCoeff() > 0.0)) return false;
  }
  return false;
}

/// √bᵢ aᵢⱼ/√bⱼ: the response of a lossless element, but for a factor.
Matrix element_response(int stages) {
  const StageRule& rule = gauss_stages(stages);
  Matrix out(stages, stages);
  for (int i = 0; i < stages; ++i) {
    for (int j = 0; j < stages; ++j) {
      const auto row = static_cast<std::size_t>(i), column = static_cast<std::size_t>(j);
      out(i, j) = rule.A[row][column] * std::sqrt(rule.b[row] / rule.b[column]);
    }
  }
  return out;
}

/// By continuation from a lossless element that stores what flows, or that responds to its rate,
/// whichever is nearer.
Vector three_scales(const Matrix& B) {
  constexpr int kSteps = 8;
  // Of a lossless element; the mirror image solves it too.
  constexpr std::array kElement = {13.0335, 3.8662, 2.3814};
  Matrix start = element_response(3);
  Vector x{{kElement[0], kElement[1], kElement[2]}};
  const auto scaled = [&](const Matrix& M) {
    return Matrix(M * std::cbrt(determinant(B) / determinant(M)));
  };
  const Matrix inverse = lu_inverse(start);
  const bool is_rate = (scaled(inverse) - B).norm() < (scaled(start) - B).norm();
  if (is_rate) {
    start = inverse;
    x = x.cwiseInverse().eval();
  }
  const double factor = std::cbrt(determinant(B) / determinant(start));
  start *= factor;
  x /= factor;
  for (int n = 0; n <= kSteps; ++n) {
    const double share = static_cast<double>(n) / kSteps;
    if (!improve_scales((1.0 - share) * start + share * B, x)) return {};
  }
  return x;
}

}  // namespace

Eigen::VectorXd stage_scales(const Eigen::MatrixXd& response) {
  const Eigen::Index stages = response.rows();
  if (stages < 2 || stages > 3 || !response.allFinite()) return {};
  const Vector diagonal = response.diagonal();
  if (!(diagonal.minCoeff() > 0.0)) return {};
  // In units of the response, so that products of three entries do not overflow.
  const double unit = diagonal.maxCoeff();
  const Matrix B = response / unit;
  if (!(determinant(B) > 0.0)) return {};
  const Vector x = stages == 2 ? two_scales(B) : three_scales(B);
  if (x.size() == 0 || !x.allFinite() || !(x.minCoeff() > 0.0)) return {};
  return x / unit;
}

}  // namespace portwave
