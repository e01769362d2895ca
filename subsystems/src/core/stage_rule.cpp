#include "portwave/subsystems/core/stage_rule.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace portwave {
namespace {

StageRule two_stages() {
  const double r = std::sqrt(3.0) / 6.0;
  return {.count = 2,
          .c = {0.5 - r, 0.5 + r},
          .b = {0.5, 0.5},
          .A = {{{0.25, 0.25 - r}, {0.25 + r, 0.25}}}};
}

StageRule three_stages() {
  const double r = std::sqrt(15.0);
  return {.count = 3,
          .c = {0.5 - r / 10.0, 0.5, 0.5 + r / 10.0},
          .b = {5.0 / 18.0, 4.0 / 9.0, 5.0 / 18.0},
          .A = {{{5.0 / 36.0, 2.0 / 9.0 - r / 15.0, 5.0 / 36.0 - r / 30.0},
                 {5.0 / 36.0 + r / 24.0, 2.0 / 9.0, 5.0 / 36.0 - r / 24.0},
                 {5.0 / 36.0 + r / 30.0, 2.0 / 9.0 + r / 15.0, 5.0 / 36.0}}}};
}

/// √(2s − 1) P_{s−1}(2τ − 1)
double top_polynomial(int stages, double tau) {
  const double y = 2.0 * tau - 1.0;
  const std::array<double, kMostStages> legendre = {1.0, y, 0.5 * (3.0 * y * y - 1.0)};
  return std::sqrt(2.0 * stages - 1.0) * legendre[static_cast<std::size_t>(stages - 1)];
}

void set_top(StageRule& rule) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(rule.count); ++i) {
    rule.top[i] = std::sqrt(rule.b[i]) * top_polynomial(rule.count, rule.c[i]);
  }
}

StageRule gauss(int stages) {
  StageRule rule = stages == 1   ? StageRule{.count = 1, .c = {0.5}, .b = {1.0}, .A = {{{0.5}}}}
                   : stages == 2 ? two_stages()
                                 : three_stages();
  set_top(rule);
  return rule;
}

/// aᵢⱼ = (1/bᵢ) ∫₀¹ lᵢ(τ) ∫₀^τ lⱼ, by three points of Gauss, which are exact here.
StageRule radau(int stages) {
  const double r = std::sqrt(6.0);
  StageRule rule{.count = stages, .nodes = StageNodes::radau};
  rule.c = {1.0};
  rule.b = {1.0};
  if (stages == 2) {
    rule.c = {1.0 / 3.0, 1.0};
    rule.b = {0.75, 0.25};
  } else if (stages == 3) {
    rule.c = {(4.0 - r) / 10.0, (4.0 + r) / 10.0, 1.0};
    rule.b = {(16.0 - r) / 36.0, (16.0 + r) / 36.0, 1.0 / 9.0};
  }
  const StageRule& quadrature = gauss_stages(kMostStages);
  for (int i = 0; i < stages; ++i) {
    for (int j = 0; j < stages; ++j) {
      double sum = 0.0;
      for (std::size_t k = 0; k < kMostStages; ++k) {
        sum +=
            quadrature.b[k] * rule.lagrange(i, quadrature.c[k]) * rule.integral(j, quadrature.c[k]);
      }
      rule.A[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] =
          sum / rule.b[static_cast<std::size_t>(i)];
    }
  }
  set_top(rule);
  return rule;
}

}  // namespace

double StageRule::lagrange(int j, double tau) const {
  double product = 1.0;
  for (int k = 0; k < count; ++k) {
    if (k == j) continue;
    const double own = c[static_cast<std::size_t>(j)], other = c[static_cast<std::size_t>(k)];
    product *= (tau - other) / (own - other);
  }
  return product;
}

/// By three Gauss points on [0, τ], which are exact for quadratics.
double StageRule::integral(int j, double tau) const {
  const StageRule& rule = gauss_stages(kMostStages);
  double sum = 0.0;
  for (std::size_t k = 0; k < kMostStages; ++k) sum += rule.b[k] * lagrange(j, tau * rule.c[k]);
  return tau * sum;
}

double StageRule::inverse(int i, int j) const {
  const auto node = [this](int k) { return c[static_cast<std::size_t>(k)]; };
  if (i == j) {
    double sum = 1.0 / node(j);
    for (int k = 0; k < count; ++k) sum += k == j ? 0.0 : 1.0 / (node(j) - node(k));
    return sum;
  }
  double product = node(i) / node(j) / (node(j) - node(i));
  for (int k = 0; k < count; ++k) {
    if (k != i && k != j) product *= (node(i) - node(k)) / (node(j) - node(k));
  }
  return product;
}

double substep_share(const StageRule& stages, int substeps, int k, int i, int l) {
  const auto row = static_cast<std::size_t>(i), column = static_cast<std::size_t>(l);
  const double tau = (k + stages.c[row]) / substeps;
  return stages.lagrange(l, tau) * std::sqrt(stages.b[row] / stages.b[column]);
}

const StageRule& gauss_stages(int stages) {
  static const std::array<StageRule, kMostStages> all = {gauss(1), gauss(2), gauss(3)};
  return all[static_cast<std::size_t>(stages - 1)];
}

const StageRule& stage_rule(int stages, StageNodes nodes) {
  if (nodes == StageNodes::gauss) return gauss_stages(stages);
  static const std::array<StageRule, kMostStages> all = {radau(1), radau(2), radau(3)};
  return all[static_cast<std::size_t>(stages - 1)];
}

double StageRule::undamped(int i, int j) const {
  return stage_rule(count, nodes).A[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
}

StageRule damped(const StageRule& rule, const StageDamping& damping) {
  StageRule out = rule;
  out.conserved = damping.conserved;
  out.damping = std::clamp(damping.theta, 0.0, 1.0) / (4.0 * rule.count - 2.0);
  for (std::size_t i = 0; i < static_cast<std::size_t>(rule.count); ++i) {
    for (std::size_t j = 0; j < static_cast<std::size_t>(rule.count); ++j) {
      out.A[i][j] += out.damping * rule.top[i] * rule.top[j] * std::sqrt(rule.b[j] / rule.b[i]);
    }
  }
  return out;
}

std::string_view to_string(StageKind kind) {
  constexpr std::array<std::string_view, 3> names = {"gauss", "damped", "auto"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace portwave
