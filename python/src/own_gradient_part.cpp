#include "own_gradient_part.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <limits>
#include <string>
#include <utility>

#include "portwave/subsystems/base/error.hpp"

namespace {

std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.9g", value);
  return text;
}

}  // namespace

OwnGradientPart::OwnGradientPart(portwave::Signature signature, portwave::Structure structure,
                                 portwave::Hamiltonian hamiltonian, Options options,
                                 StepGradient own)
    : NonlinearPortHamiltonian(std::move(signature), std::move(structure), std::move(hamiltonian),
                               std::move(options)),
      own_(std::move(own)) {
  check();
}

void OwnGradientPart::discrete_gradient(const double* x, const double* x_next, double* g) const {
  own_(x, x_next, g);
}

void OwnGradientPart::discrete_gradient_jacobian(
    const double* x, const double* x_next, std::vector<Eigen::Triplet<double>>& jacobian) const {
  const int n = signature().state_size();
  const std::vector<double> sizes = typical_state();
  std::vector<double> moved(x_next, x_next + n), ahead(moved.size()), back(moved.size());
  const double share = std::cbrt(std::numeric_limits<double>::epsilon());
  for (int j = 0; j < n; ++j) {
    const auto at = static_cast<std::size_t>(j);
    const double step = share * std::max(std::abs(x_next[j]), sizes[at]);
    moved[at] = x_next[j] + step;
    own_(x, moved.data(), ahead.data());
    const double upper = moved[at];
    moved[at] = x_next[j] - step;
    own_(x, moved.data(), back.data());
    const double width = upper - moved[at];
    moved[at] = x_next[j];
    for (int i = 0; i < n; ++i) {
      const auto row = static_cast<std::size_t>(i);
      jacobian.emplace_back(i, j, (ahead[row] - back[row]) / width);
    }
  }
}

/// From the default state and from fixed places near it, by steps of several lengths and none.
void OwnGradientPart::check() const {
  const std::vector<double> start = default_state(), sizes = typical_state();
  std::uint64_t random = 20261129;
  const auto perturbed = [&](const std::vector<double>& x, double reach) {
    std::vector<double> out(x);
    for (std::size_t i = 0; i < out.size(); ++i) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      out[i] += reach * sizes[i] * (static_cast<double>(random >> 11) * 0x1.0p-53 - 0.5);
    }
    return out;
  };
  for (int k = 0; k < 4; ++k) {
    const std::vector<double> x = k == 0 ? start : perturbed(start, 1.0);
    check_pair(x, x);
    for (const double reach : {1e-3, 0.1, 1.0}) check_pair(x, perturbed(x, reach));
  }
}

void OwnGradientPart::check_pair(const std::vector<double>& x,
                                 const std::vector<double>& x_next) const {
  const auto fail = [&](const std::string& what) {
    std::string text = "\"" + signature().type + "\": " + what + ", from";
    for (std::size_t i = 0; i < x.size(); ++i) {
      text += (i == 0 ? " " : ", ") + signature().states[i].name + " = " + text_of(x[i]) + " to " +
              text_of(x_next[i]);
    }
    throw portwave::ConfigError("/discrete_gradient", text);
  };
  std::vector<double> g(x.size()), slope(x.size());
  double before = 0.0, after = 0.0;
  try {
    before = storage(x.data());
    after = storage(x_next.data());
    gradient(x.data(), slope.data());
  } catch (const std::exception&) {
    return;  // outside the domain of H
  }
  if (!std::isfinite(before) || !std::isfinite(after)) return;
  try {
    own_(x.data(), x_next.data(), g.data());
  } catch (const std::exception& error) {
    fail(std::string("threw: ") + error.what());
  }
  double change = 0.0, terms = 0.0;
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (!std::isfinite(g[i]))
      fail("its entry for " + signature().states[i].name + " is not finite");
    change += g[i] * (x_next[i] - x[i]);
    terms += std::abs(g[i] * (x_next[i] - x[i]));
  }
  const double known_J = storage_terms() + std::abs(before) + std::abs(after);
  if (std::abs(change - (after - before)) > 1e-9 * terms + 1e-12 * known_J) {
    fail("times the step is " + text_of(change) + " J, but H changes by " +
         text_of(after - before) + " J");
  }
  if (x != x_next) return;
  const std::vector<double> sizes = typical_state();
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double scale = std::abs(slope[i]) + storage_terms() / sizes[i];
    if (std::abs(g[i] - slope[i]) <= 1e-8 * scale) continue;
    fail("its entry for " + signature().states[i].name + " is " + text_of(g[i]) +
         ", but that of the gradient " + text_of(slope[i]));
  }
}
