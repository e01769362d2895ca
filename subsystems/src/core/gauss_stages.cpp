#include "portwave/subsystems/core/gauss_stages.hpp"

#include <cmath>
#include <cstddef>

namespace portwave {
namespace {

GaussStages two_stages() {
  const double r = std::sqrt(3.0) / 6.0;
  return {.count = 2,
          .c = {0.5 - r, 0.5 + r},
          .b = {0.5, 0.5},
          .A = {{{0.25, 0.25 - r}, {0.25 + r, 0.25}}}};
}

GaussStages three_stages() {
  const double r = std::sqrt(15.0);
  return {.count = 3,
          .c = {0.5 - r / 10.0, 0.5, 0.5 + r / 10.0},
          .b = {5.0 / 18.0, 4.0 / 9.0, 5.0 / 18.0},
          .A = {{{5.0 / 36.0, 2.0 / 9.0 - r / 15.0, 5.0 / 36.0 - r / 30.0},
                 {5.0 / 36.0 + r / 24.0, 2.0 / 9.0, 5.0 / 36.0 - r / 24.0},
                 {5.0 / 36.0 + r / 30.0, 2.0 / 9.0 + r / 15.0, 5.0 / 36.0}}}};
}

}  // namespace

double GaussStages::lagrange(int j, double tau) const {
  double product = 1.0;
  for (int k = 0; k < count; ++k) {
    if (k == j) continue;
    const double own = c[static_cast<std::size_t>(j)], other = c[static_cast<std::size_t>(k)];
    product *= (tau - other) / (own - other);
  }
  return product;
}

/// By three Gauss points on [0, τ], which are exact for quadratics.
double GaussStages::integral(int j, double tau) const {
  const GaussStages& rule = gauss_stages(kMostStages);
  double sum = 0.0;
  for (std::size_t k = 0; k < kMostStages; ++k) sum += rule.b[k] * lagrange(j, tau * rule.c[k]);
  return tau * sum;
}

double GaussStages::inverse(int i, int j) const {
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

double substep_share(const GaussStages& stages, int substeps, int k, int i, int l) {
  const auto row = static_cast<std::size_t>(i), column = static_cast<std::size_t>(l);
  const double tau = (k + stages.c[row]) / substeps;
  return stages.lagrange(l, tau) * std::sqrt(stages.b[row] / stages.b[column]);
}

const GaussStages& gauss_stages(int stages) {
  static const std::array<GaussStages, kMostStages> all = {
      GaussStages{.count = 1, .c = {0.5}, .b = {1.0}, .A = {{{0.5}}}}, two_stages(),
      three_stages()};
  return all[static_cast<std::size_t>(stages - 1)];
}

}  // namespace portwave
