#include "nonlinear/discrete_gradients.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include <Eigen/Core>

#include "base/workspace.hpp"
#include "portwave/subsystems/base/typical_state.hpp"

namespace portwave::detail {
namespace {

using Vector = Eigen::Map<Eigen::VectorXd>;
using ConstVector = Eigen::Map<const Eigen::VectorXd>;
using Matrix = Eigen::Map<Eigen::MatrixXd>;

constexpr double kEps = std::numeric_limits<double>::epsilon();

/// Gauss–Legendre with three points on [0, 1]: the middle and these, with weights 8/18 and 5/18.
const double kGaussReach = 0.5 * std::sqrt(0.6);

QuadratureRule make_gauss_legendre(int points) {
  QuadratureRule rule;
  for (int k = 0; k < points; ++k) {
    double z = -std::cos(std::numbers::pi * (k + 0.75) / (points + 0.5));
    double slope = 1.0;
    for (int iteration = 0; iteration < 20; ++iteration) {
      double before = 1.0;
      double value = z;
      for (int degree = 2; degree <= points; ++degree) {
        const double next = ((2 * degree - 1) * z * value - (degree - 1) * before) / degree;
        before = value;
        value = next;
      }
      slope = points * (z * value - before) / (z * z - 1.0);
      const double correction = value / slope;
      z -= correction;
      if (std::abs(correction) <= kEps) break;
    }
    rule.nodes.push_back(0.5 * (1.0 + z));
    rule.weights.push_back(1.0 / ((1.0 - z * z) * slope * slope));
  }
  return rule;
}

/// Whether an increment of H is better had by Gauss quadrature of ∇H along the step than from
/// values of H: where the quadrature is exact to the round-off of H, as either the Lobatto rule of
/// lower order (Simpson's) or the values themselves confirm. `size` is a magnitude that H has
/// there; the round-off of H may well be larger than ε times it, by cancellation inside H.
bool quadrature_is_exact(double gauss, double simpson, double values, double round_off) {
  return std::abs(gauss - simpson) <= round_off || std::abs(gauss - values) <= round_off;
}

/// The Gonzalez gradient is g_mid + c Δx/|Δx|², with the defect c = H(x⁺) − H(x) − g_midᵀΔx.
///
/// c is O(|Δx|³), but computed from values of H it carries their round-off, which the division by
/// |Δx| turns into noise that would spoil the limit x⁺ → x. So c comes from three-point Gauss
/// quadrature wherever that is exact to round-off: just as true to the energy, with no more than
/// the round-off of ∇H. It vanishes smoothly with |Δx|³, and the gradient goes over into the
/// midpoint gradient. Where the rule switches, c jumps by the round-off of H.
///
/// Even so c is known no better than to the round-off of ∇HᵀΔx, ε of all terms of ∇H times |Δx|. The
/// division turns that into a fraction of the largest components of ∇H, which appears in all others:
/// the force of a spring in the velocity of a mass that comes to rest. No step could be found then. So
/// c is 0 where it is no more than its rounding.
struct GonzalezDefect {
  double c = 0.0;
  double length_squared = 0.0;
  double rounding = 0.0;  ///< of c

  /// Nothing to correct: x⁺ = x, or nearer than floating point can square, or c is round-off.
  /// Not where it is no number: that has to be seen.
  bool vanishes() const { return !(length_squared > 1e-280) || std::abs(c) <= rounding; }
  /// Rises from 0 at the rounding to c at twice that, so that no step meets a jump.
  double correction() const {
    return std::copysign(std::min(std::abs(c), 2.0 * (std::abs(c) - rounding)), c) / length_squared;
  }
  bool is_whole() const { return std::abs(c) >= 2.0 * rounding; }
};

/// A bound of the rounding of ∇HᵀΔx: ε of what the components of ∇H add up, largest of all that
/// `slopes` says (n of them), and of what roundings of x move in it. The second takes a Hessian, and is
/// asked for only where c, `at_least`, is not far above what it usually is.
double rounding_of_work(const StorageFunction& H, const double* x, const double* x_next,
                        const Vector& dx, const Vector& slopes, double at_least) {
  constexpr double kFarAbove = 1024.0;
  const int n = H.n;
  double sum = 0.0;
  if (H.gradient_terms != nullptr) {
    double reach = H.least_reach;  // in typical states
    for (int i = 0; i < n; ++i) {
      const double size = std::max(std::abs(x[i]), std::abs(x_next[i]));
      reach = std::max(reach, size / H.typical_state[static_cast<std::size_t>(i)]);
    }
    for (int i = 0; i < n; ++i) {
      const double usual = reach * (*H.gradient_terms)[static_cast<std::size_t>(i)];
      sum += std::max(slopes[i], usual) * std::abs(dx[i]);
    }
    if (at_least > kFarAbove * kEps * sum) return 4.0 * kEps * sum;
  }
  Workspace scratch(static_cast<std::size_t>(n + n * n));
  Vector point(scratch.data(), n);
  Matrix hessian(scratch.data() + n, n, n);
  point = ConstVector(x, n) + 0.5 * dx;
  H.hessian(point.data(), hessian.data());
  sum = 0.0;
  for (int i = 0; i < n; ++i) {
    double terms = slopes[i];
    for (int j = 0; j < n; ++j) {
      terms += std::abs(hessian(i, j)) * (std::abs(x[j]) + std::abs(x_next[j]));
    }
    sum += terms * std::abs(dx[i]);
  }
  return 4.0 * kEps * sum;
}

GonzalezDefect gonzalez_defect(const StorageFunction& H, const double* x, const double* x_next,
                               Vector dx, Vector g_mid) {
  const int n = H.n;
  Workspace scratch(static_cast<std::size_t>(3 * n));
  Vector point(scratch.data(), n);
  Vector sample(scratch.data() + n, n);
  Vector slopes(scratch.data() + 2 * n, n);  // the largest |∇H|, component by component
  const ConstVector from(x, n);

  dx = ConstVector(x_next, n) - from;
  point = from + 0.5 * dx;
  H.gradient(point.data(), g_mid.data());
  GonzalezDefect defect;
  defect.length_squared = dx.squaredNorm();
  if (!(defect.length_squared > 1e-280)) return defect;
  slopes = g_mid.cwiseAbs();

  // (∇H(x + sΔx) − g_mid)ᵀΔx
  const auto excess = [&](double s) {
    point = from + s * dx;
    H.gradient(s == 1.0 ? x_next : point.data(), sample.data());
    slopes = slopes.cwiseMax(sample.cwiseAbs());
    double sum = 0.0;
    for (int i = 0; i < n; ++i) sum += (sample[i] - g_mid[i]) * dx[i];
    return sum;
  };
  const double gauss = 5.0 / 18.0 * (excess(0.5 - kGaussReach) + excess(0.5 + kGaussReach));
  const double simpson = 1.0 / 6.0 * (excess(0.0) + excess(1.0));
  const double before = H.value(x);
  const double after = H.value(x_next);
  const double values = (after - before) - g_mid.dot(dx);
  const double work = g_mid.cwiseAbs().dot(dx.cwiseAbs());
  const double of_values = 4.0 * kEps * (std::abs(before) + std::abs(after) + work);
  defect.rounding = rounding_of_work(H, x, x_next, dx, slopes, std::abs(gauss));
  const double round_off = std::max(of_values, defect.rounding);
  const bool exact = quadrature_is_exact(gauss, simpson, values, round_off);
  defect.c = exact ? gauss : values;
  if (!exact) defect.rounding = round_off;
  return defect;
}

}  // namespace

double StorageFunction::step_at(int i, double x_i) const {
  return difference_step(typical_state[static_cast<std::size_t>(i)], x_i);
}

void StorageFunction::hessian(const double* x, double* H) const {
  if (callbacks.hessian) {
    callbacks.hessian(x, H);
    return;
  }
  Workspace scratch(static_cast<std::size_t>(3 * n));
  Vector point(scratch.data(), n);
  Vector back(scratch.data() + n, n);
  Vector ahead(scratch.data() + 2 * n, n);
  Matrix out(H, n, n);
  point = ConstVector(x, n);
  for (int j = 0; j < n; ++j) {
    const double step = step_at(j, x[j]);
    point[j] = x[j] - step;
    const double low = point[j];
    gradient(point.data(), back.data());
    point[j] = x[j] + step;
    gradient(point.data(), ahead.data());
    out.col(j) = (ahead - back) / (point[j] - low);
    point[j] = x[j];
  }
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < j; ++i) out(i, j) = out(j, i) = 0.5 * (out(i, j) + out(j, i));
  }
}

const QuadratureRule& gauss_legendre(int points) {
  static const auto rules = [] {
    std::array<QuadratureRule, kMaxQuadraturePoints> all;
    for (int k = 0; k < kMaxQuadraturePoints; ++k) {
      all[static_cast<std::size_t>(k)] = make_gauss_legendre(k + 1);
    }
    return all;
  }();
  return rules[static_cast<std::size_t>(points - 1)];
}

void gonzalez(const StorageFunction& H, const double* x, const double* x_next, double* g) {
  Workspace scratch(static_cast<std::size_t>(H.n));
  Vector dx(scratch.data(), H.n);
  Vector out(g, H.n);
  const GonzalezDefect defect = gonzalez_defect(H, x, x_next, dx, out);
  if (!defect.vanishes()) out += defect.correction() * dx;
}

void add_gonzalez_terms(const StorageFunction& H, const double* x, const double* x_next,
                        const double* g, double* terms) {
  Workspace scratch(static_cast<std::size_t>(3 * H.n));
  Vector dx(scratch.data(), H.n);
  Vector point(scratch.data() + H.n, H.n);
  Vector g_mid(scratch.data() + 2 * H.n, H.n);
  dx = ConstVector(x_next, H.n) - ConstVector(x, H.n);
  point = ConstVector(x, H.n) + 0.5 * dx;
  H.gradient(point.data(), g_mid.data());
  if (ConstVector(g, H.n) == g_mid) return;
  Vector out(terms, H.n);
  const double work = out.dot(dx.cwiseAbs());
  out += (work / dx.squaredNorm()) * dx.cwiseAbs();
}

/// ½∇²H_mid + Δx ∇cᵀ/|Δx|² + c (I − 2 Δx Δxᵀ/|Δx|²)/|Δx|², ∇c = ∇H(x⁺) − g_mid − ½∇²H_mid Δx.
/// The correction is dropped where ∇c is no more than the round-off of its terms, or c is hardly more.
void gonzalez_jacobian(const StorageFunction& H, const double* x, const double* x_next,
                       double* jacobian) {
  const int n = H.n;
  Workspace scratch(static_cast<std::size_t>(4 * n));
  Vector dx(scratch.data(), n);
  Vector g_mid(scratch.data() + n, n);
  Vector slope(scratch.data() + 2 * n, n);
  Vector point(scratch.data() + 3 * n, n);
  Matrix out(jacobian, n, n);

  const GonzalezDefect defect = gonzalez_defect(H, x, x_next, dx, g_mid);
  point = ConstVector(x, n) + 0.5 * dx;
  H.hessian(point.data(), jacobian);
  out *= 0.5;
  if (defect.vanishes() || !defect.is_whole()) return;

  H.gradient(x_next, slope.data());
  const double magnitude = slope.norm() + g_mid.norm();
  slope -= g_mid;
  for (int j = 0; j < n; ++j) slope -= dx[j] * out.col(j);
  if (!(slope.norm() > 16.0 * kEps * magnitude)) return;

  const double factor = defect.c / defect.length_squared;
  for (int j = 0; j < n; ++j) {
    const double along = (slope[j] - 2.0 * factor * dx[j]) / defect.length_squared;
    out.col(j) += along * dx;
    out(j, j) += factor;
  }
}

void mean_value(const StorageFunction& H, int points, const double* x, const double* x_next,
                double* g) {
  const int n = H.n;
  Workspace scratch(static_cast<std::size_t>(2 * n));
  Vector point(scratch.data(), n);
  Vector sample(scratch.data() + n, n);
  Vector out(g, n);
  const ConstVector from(x, n);
  const ConstVector to(x_next, n);
  const QuadratureRule& rule = gauss_legendre(points);
  out.setZero();
  for (std::size_t k = 0; k < rule.nodes.size(); ++k) {
    point = from + rule.nodes[k] * (to - from);
    H.gradient(point.data(), sample.data());
    out += rule.weights[k] * sample;
  }
}

void mean_value_jacobian(const StorageFunction& H, int points, const double* x,
                         const double* x_next, double* jacobian) {
  const int n = H.n;
  Workspace scratch(static_cast<std::size_t>(n + n * n));
  Vector point(scratch.data(), n);
  Matrix sample(scratch.data() + n, n, n);
  Matrix out(jacobian, n, n);
  const ConstVector from(x, n);
  const ConstVector to(x_next, n);
  const QuadratureRule& rule = gauss_legendre(points);
  out.setZero();
  for (std::size_t k = 0; k < rule.nodes.size(); ++k) {
    point = from + rule.nodes[k] * (to - from);
    H.hessian(point.data(), sample.data());
    out += (rule.weights[k] * rule.nodes[k]) * sample;
  }
}

/// ∇̄H_i = (H(y_i) − H(y_{i−1}))/Δx_i, where y_i has the first i components of x⁺ and the rest of
/// x. The quotient has the noise ε|H|/|Δx_i|. As for Gonzalez, the mean of ∂_iH over the increment
/// by three-point Gauss quadrature takes its place where that is exact to the round-off of H: the
/// energy identity then still holds to round-off, and the order is that of the exact quotient.
void itoh_abe(const StorageFunction& H, const double* x, const double* x_next, double* g) {
  const int n = H.n;
  Workspace scratch(static_cast<std::size_t>(2 * n));
  Vector point(scratch.data(), n);
  Vector sample(scratch.data() + n, n);
  point = ConstVector(x, n);
  double before = H.value(x);
  for (int i = 0; i < n; ++i) {
    const double dx = x_next[i] - x[i];
    const auto slope = [&](double s) {
      point[i] = s == 1.0 ? x_next[i] : x[i] + s * dx;
      H.gradient(point.data(), sample.data());
      return sample[i];
    };
    const double middle = slope(0.5);
    const double gauss =
        (8.0 * middle + 5.0 * (slope(0.5 - kGaussReach) + slope(0.5 + kGaussReach))) / 18.0;
    const double simpson = (4.0 * middle + slope(0.0) + slope(1.0)) / 6.0;
    point[i] = x_next[i];
    const double after = dx != 0.0 ? H.value(point.data()) : before;
    const double values = after - before;
    const double size = std::abs(before) + std::abs(after) + std::abs(gauss * dx);
    const bool exact = quadrature_is_exact(gauss * dx, simpson * dx, values, 4.0 * kEps * size);
    g[i] = exact ? gauss : values / dx;
    before = after;
  }
}

/// ∂∇̄H_i/∂x⁺_j is the mean of ∂_i∂_jH over increment i for j < i, and (∂_iH(y_i) − ∇̄H_i)/Δx_i
/// for j = i, which tends to ½∂_i²H. Both come from differences of ∇H along component i, widened
/// to a difference step where the increment is too short for them.
void itoh_abe_jacobian(const StorageFunction& H, const double* x, const double* x_next,
                       double* jacobian) {
  const int n = H.n;
  Workspace scratch(static_cast<std::size_t>(4 * n));
  Vector point(scratch.data(), n);
  Vector back(scratch.data() + n, n);
  Vector ahead(scratch.data() + 2 * n, n);
  Vector mean(scratch.data() + 3 * n, n);
  Matrix out(jacobian, n, n);
  out.setZero();
  itoh_abe(H, x, x_next, mean.data());
  point = ConstVector(x, n);
  for (int i = 0; i < n; ++i) {
    const double dx = x_next[i] - x[i];
    const double shortest = H.step_at(i, x[i]);
    const bool wide = std::abs(dx) > shortest;
    const double middle = x[i] + 0.5 * dx;
    const double low = wide ? x[i] : middle - 0.5 * shortest;
    const double high = wide ? x_next[i] : middle + 0.5 * shortest;
    point[i] = low;
    H.gradient(point.data(), back.data());
    point[i] = high;
    H.gradient(point.data(), ahead.data());
    for (int j = 0; j < i; ++j) out(i, j) = (ahead[j] - back[j]) / (high - low);
    out(i, i) = wide ? (ahead[i] - mean[i]) / dx : 0.5 * (ahead[i] - back[i]) / (high - low);
    point[i] = x_next[i];
  }
}

}  // namespace portwave::detail
