#include "expressions/split_energy.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "expressions/divided_difference.hpp"
#include "nonlinear/discrete_gradients.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"

namespace portwave {
namespace {
namespace split {

using Node = ExpressionGraph::Node;

/// Where H is no polynomial: exact to round-off for a sine over a tenth of its period; the rest is corrected.
constexpr int kPoints = 4;
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

/// `node` in a graph of the kept variables alone, the others being 0.
class Restriction {
 public:
  Restriction(const ExpressionGraph& from, const std::vector<int>& kept)
      : from_(from), to_(static_cast<int>(kept.size())), node_(at(from.size()), -1) {
    const Node zero = to_.number(0.0);
    for (int i = 0; i < from.variables(); ++i) node_[at(i)] = zero;
    for (std::size_t k = 0; k < kept.size(); ++k) node_[at(kept[k])] = static_cast<Node>(k);
  }

  /// Nodes are numbered after their arguments.
  Node of(Node node) {
    std::vector<bool> needed(at(node) + 1, false);
    needed[at(node)] = true;
    for (Node i = node; i >= from_.variables(); --i) {
      if (!needed[at(i)]) continue;
      for (const Node argument : from_.at(i).arguments) {
        if (argument >= 0) needed[at(argument)] = true;
      }
    }
    for (Node i = from_.variables(); i <= node; ++i) {
      if (!needed[at(i)] || node_[at(i)] >= 0) continue;
      std::array<Node, 3> arguments = {-1, -1, -1};
      for (std::size_t k = 0; k < 3; ++k) {
        const Node argument = from_.at(i).arguments[k];
        if (argument >= 0) arguments[k] = node_[at(argument)];
      }
      node_[at(i)] = to_.copied(from_.at(i), arguments);
    }
    return node_[at(node)];
  }
  ExpressionGraph& graph() { return to_; }

 private:
  const ExpressionGraph& from_;
  ExpressionGraph to_;
  std::vector<Node> node_;
};

/// SplitEnergy::closed_mean of V, whose second derivatives are these.
ExpressionTape closed_mean(const ExpressionGraph& graph, Node V,
                           const std::vector<Node>& curvatures) {
  const int r = graph.variables();
  for (int j = 0; j < r; ++j) {
    for (int i = 0; i < r; ++i) {
      if (i != j && !graph.is_zero(curvatures[at(j * r + i)])) return {};
    }
  }
  ExpressionGraph out(2 * r);
  std::vector<Node> means, results;
  for (int i = 0; i < r; ++i) {
    Restriction own(graph, {i});
    const Node alone = own.of(V);
    const auto mean = divided_difference(own.graph(), alone, out, i, r + i);
    if (!mean) return {};
    means.push_back(*mean);
  }
  results = means;
  for (int i = 0; i < r; ++i) results.push_back(out.gradient(means[at(i)])[at(r + i)]);
  for (int i = 0; i < r; ++i) results.push_back(out.magnitude(means[at(i)]));
  return ExpressionTape(out, results);
}

}  // namespace split
}  // namespace

SplitEnergy::SplitEnergy(const ExpressionGraph& of, ExpressionGraph::Node energy) {
  using split::Node;
  ExpressionGraph graph = of;
  const int n = graph.variables();
  const std::vector<Node> gradient = graph.gradient(energy), hessian = graph.hessian(energy);
  // Where H has a kink or jumps, its second derivatives do not show that it bends.
  std::vector<bool> is_bent = graph.change_over_by(energy);
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < n; ++i) {
      if (!graph.number_of(hessian[at(j * n + i)])) is_bent[at(i)] = is_bent[at(j)] = true;
    }
  }
  for (int i = 0; i < n; ++i) {
    if (is_bent[at(i)]) bent_.push_back(i);
  }
  Q_ = Eigen::MatrixXd::Zero(n, n);
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < n; ++i) {
      if (is_bent[at(i)] && is_bent[at(j)]) continue;
      Q_(i, j) = graph.number_of(hessian[at(j * n + i)]).value_or(0.0);
    }
  }
  // ∂H/∂x of the others is linear: at 0 it is c.
  c_ = Eigen::VectorXd::Zero(n);
  std::vector<double> slopes(at(n)), zero(at(n), 0.0);
  split::Restriction nothing(graph, {});
  for (int i = 0; i < n; ++i) {
    if (!is_bent[at(i)])
      c_[i] = nothing.graph().number_of(nothing.of(gradient[at(i)])).value_or(0.0);
  }

  split::Restriction bent(graph, bent_);
  const Node V = bent.of(energy);
  ExpressionGraph& own = bent.graph();
  const int r = own.variables();
  std::vector<Node> results = own.gradient(V);
  const std::vector<Node> curvatures = own.hessian(V);
  for (int j = 0; j < r; ++j) {
    for (int i = j; i < r; ++i) results.push_back(curvatures[at(j * r + i)]);
  }
  slopes_ = ExpressionTape(own, results);
  std::vector<Node> terms;
  for (int i = 0; i < r; ++i) terms.push_back(own.magnitude(results[at(i)]));
  terms_ = ExpressionTape(own, terms);
  value_ = ExpressionTape(own, std::vector<Node>{V});
  value_and_terms_ = ExpressionTape(own, std::vector<Node>{V, own.magnitude(V)});
  const int degree = own.degree(V).value_or(0);
  constexpr int kMost = NonlinearPortHamiltonian::kMostPolynomialDegree;
  const bool is_polynomial = r == 0 || (degree > 0 && degree <= kMost);
  if (r == 1 && is_polynomial) {
    std::vector<Node> series;
    Node derivative = V;
    for (int m = 1; m <= degree; ++m) {
      derivative = own.quotient(own.gradient(derivative)[0], own.number(m));
      series.push_back(derivative);
    }
    taylor_ = ExpressionTape(own, series);
  }
  if (!is_polynomial) closed_mean_ = split::closed_mean(own, V, curvatures);
  is_exact_ = is_polynomial || closed_mean_.results() > 0;
  const auto& rule =
      detail::gauss_legendre(is_polynomial ? std::max(1, (degree + 1) / 2) : split::kPoints);
  nodes_ = rule.nodes;
  weights_ = rule.weights;
}

std::size_t SplitEnergy::scratch_size(int lanes) const {
  const int r = static_cast<int>(bent_.size());
  return at(std::max({value_and_terms_.scratch_size(lanes), slopes_.scratch_size(lanes),
                      taylor_.scratch_size(lanes), terms_.scratch_size(lanes),
                      closed_mean_.scratch_size(lanes)}) +
            (2 * r + slope_count() + 2 + 3 * r) * lanes);
}

template <int lanes>
void SplitEnergy::take_closed_mean(const double* y, const double* delta, double* mean,
                                   double* jacobian, double* noise, double* scratch) const {
  const int r = static_cast<int>(bent_.size()), count = r * lanes;
  double* const step = scratch;
  double* const out = step + 2 * count;
  std::copy(y, y + count, step);
  std::copy(delta, delta + count, step + count);
  closed_mean_.run<lanes>(step, out, out + 3 * count);
  std::copy(out, out + count, mean);
  std::fill(jacobian, jacobian + r * count, 0.0);
  for (int i = 0; i < r; ++i) {
    const double* const slope = out + count + i * lanes;
    std::copy(slope, slope + lanes, jacobian + (i * r + i) * lanes);
  }
  for (int i = 0; i < count && noise != nullptr; ++i) {
    noise[i] =
        out[2 * count + i] + 2.0 * std::abs(out[count + i]) * (std::abs(y[i]) + std::abs(delta[i]));
  }
}

template <int lanes>
void SplitEnergy::mean(const double* y, const double* delta, const double* V_before, double* mean,
                       double* jacobian, double* noise, double* scratch) const {
  if (closed_mean_.results() > 0) {
    return take_closed_mean<lanes>(y, delta, mean, jacobian, noise, scratch);
  }
  const int r = static_cast<int>(bent_.size());
  double* const point = scratch;
  double* const sample = point + r * lanes;
  double* const rest = sample + slope_count() * lanes;
  std::fill(mean, mean + r * lanes, 0.0);
  std::fill(jacobian, jacobian + r * r * lanes, 0.0);
  if (noise != nullptr) {
    for (int i = 0; i < r * lanes; ++i) point[i] = y[i] + 0.5 * delta[i];
    terms_.run<lanes>(point, noise, rest);
  }
  for (std::size_t k = 0; k < nodes_.size(); ++k) {
    for (int i = 0; i < r * lanes; ++i) point[i] = y[i] + nodes_[k] * delta[i];
    slopes_.run<lanes>(point, sample, rest);
    const double weight = weights_[k], share = weights_[k] * nodes_[k];
    for (int i = 0; i < r * lanes; ++i) mean[i] += weight * sample[i];
    const double* curvature = sample + r * lanes;
    for (int j = 0; j < r; ++j) {
      for (int i = j; i < r; ++i, curvature += lanes) {
        double* const lower = jacobian + (j * r + i) * lanes;
        double* const upper = jacobian + (i * r + j) * lanes;
        for (int l = 0; l < lanes; ++l) lower[l] += share * curvature[l];
        for (int l = 0; l < lanes && i != j; ++l) upper[l] += share * curvature[l];
        if (noise == nullptr) continue;
        for (int l = 0; l < lanes; ++l) {
          const double size = weight * std::abs(curvature[l]);
          noise[i * lanes + l] +=
              size * (std::abs(y[j * lanes + l]) + std::abs(delta[j * lanes + l]));
          if (i == j) continue;
          noise[j * lanes + l] +=
              size * (std::abs(y[i * lanes + l]) + std::abs(delta[i * lanes + l]));
        }
      }
    }
  }
  if (!is_exact_) correct<lanes>(y, delta, V_before, mean, jacobian, noise, scratch);
}

/// V̄ + κδ with κ|δ|² = V(y⁺) − V(y) − V̄ᵀδ: 0 up to the rounding of that, whole from twice that on, so that no
/// step meets a jump. Not a number where V(y⁺) is none: quadrature does not see a pole between its nodes.
template <int lanes>
void SplitEnergy::correct(const double* y, const double* delta, const double* V_before,
                          double* mean, double* jacobian, double* noise, double* scratch) const {
  const int r = static_cast<int>(bent_.size());
  double* const point = scratch;
  double* const sample = point + r * lanes;
  double* const V_after = sample + slope_count() * lanes;
  double* const terms = V_after + lanes;  // its second result
  double* const rest = terms + lanes;
  for (int i = 0; i < r * lanes; ++i) point[i] = y[i] + delta[i];
  value_and_terms_.run<lanes>(point, V_after, rest);
  constexpr double kSafety = 8.0;
  double missing[lanes], length[lanes], rounding[lanes];
  bool any = false;
  for (int l = 0; l < lanes; ++l) {
    double work = 0.0, size = 0.0, square = 0.0;
    for (int i = 0; i < r; ++i) {
      const double term = mean[i * lanes + l] * delta[i * lanes + l];
      work += term;
      // y + δ is rounded, too.
      size += std::abs(term) + std::abs(mean[i * lanes + l] * y[i * lanes + l]);
      square += delta[i * lanes + l] * delta[i * lanes + l];
    }
    missing[l] = (V_after[l] - V_before[l]) - work;
    length[l] = square;
    const double sum = terms[l] + std::abs(V_after[l]) + std::abs(V_before[l]) + size;
    rounding[l] = std::isfinite(sum) ? kSafety * split::kEpsilon * sum : 0.0;
    any = any || (!(std::abs(missing[l]) <= rounding[l]) && square > 1e-280);
  }
  if (!any) return;
  slopes_.run<lanes>(point, sample, rest);
  for (int l = 0; l < lanes; ++l) {
    if (std::abs(missing[l]) <= rounding[l] || !(length[l] > 1e-280)) continue;
    const auto v = [l](double* values, int i) -> double& { return values[i * lanes + l]; };
    const double part = std::min(std::abs(missing[l]), 2.0 * (std::abs(missing[l]) - rounding[l]));
    const double factor = std::copysign(part, missing[l]) / length[l];
    for (int j = 0; j < r; ++j) {  // ∇κ, in place of ∇V
      double slope = v(sample, j) - v(mean, j);
      for (int i = 0; i < r; ++i) slope -= v(jacobian, j * r + i) * delta[i * lanes + l];
      v(sample, j) = (slope - 2.0 * factor * delta[j * lanes + l]) / length[l];
    }
    for (int i = 0; i < r; ++i) {
      const double moved = delta[i * lanes + l];
      v(mean, i) += factor * moved;
      if (noise != nullptr)
        v(noise, i) += std::abs(rounding[l] / (kSafety * split::kEpsilon) * moved / length[l]);
      for (int j = 0; j < r; ++j) v(jacobian, j * r + i) += v(sample, j) * moved;
      v(jacobian, i * r + i) += factor;
    }
  }
}

template void SplitEnergy::mean<1>(const double*, const double*, const double*, double*, double*,
                                   double*, double*) const;
template void SplitEnergy::mean<8>(const double*, const double*, const double*, double*, double*,
                                   double*, double*) const;

}  // namespace portwave
