// Mean gradients in closed form: those of a function of one state are its divided differences, exact for every
// length of the step, and each summand has its own.

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/subsystems/catalogue/parts.hpp"
#include "portwave/subsystems/core/subsystem.hpp"

namespace portwave::test_mean_gradients {
namespace {

using Numbers = std::vector<double>;
using Function = std::function<long double(long double)>;

/// ∇̄H of a part with positions a and b, the energy of its motion and this potential.
Numbers mean_gradient(const std::string& potential, const Numbers& x, const Numbers& x_next) {
  const CataloguePart part =
      parts::port_hamiltonian({.states = {{"a", "m"}, {"b", "m"}, {"p", ""}, {"s", ""}},
                               .ports = {{"port", Causality::effort_in, Domain::translation, 1}},
                               .energy = "p^2/2 + s^2/2 + " + potential,
                               .J = {{0, 0, 1, 0}, {0, 0, 0, 1}, {-1, 0, 0, 0}, {0, -1, 0, 0}},
                               .G = {{0}, {0}, {-1}, {0}}});
  const std::shared_ptr<const Component> own = part;
  Numbers g(4);
  own->port_hamiltonian()->discrete_gradient(x.data(), x_next.data(), g.data());
  return g;
}

/// The largest error of the first entry beside (V(a⁺) − V(a))/(a⁺ − a), as long doubles have it, over steps of all
/// lengths; what those do not know of short steps is admitted.
double error_of(const std::string& potential, const Function& V) {
  double worst = 0.0;
  for (const double a : {-1.3, 0.0, 1e-9, 0.4, 2.0}) {
    for (const double length : {2.5, 1.0, 0.1, 1e-2, 1e-4, 1e-8, 1e-12}) {
      for (const double sign : {1.0, -1.0}) {
        const double next = a + sign * length;
        const Numbers g = mean_gradient(potential, {a, 0, 0, 0}, {next, 0, 0, 0});
        const long double moved = static_cast<long double>(next) - a;
        const long double low = V(a), high = V(next), exact = (high - low) / moved;
        const double size = 1.0 + static_cast<double>(std::abs(exact));
        const double unknown =
            static_cast<double>(1e-18L * (std::abs(high) + std::abs(low) + 1.0L) / std::abs(moved));
        const auto error = static_cast<double>(std::abs(g[0] - exact));
        worst = std::max(worst, (error - unknown) / size);
      }
    }
  }
  return worst;
}

TEST(MeanGradients, OfOneStateAreDividedDifferences) {
  const auto square = [](long double x) { return x * x; };
  struct Case {
    std::string potential;
    Function V;
  };
  const std::vector<Case> cases = {
      {"2*(1 - cos(3*a))", [](long double x) { return 2 * (1 - std::cos(3 * x)); }},
      {"sin(a) + a^4/4", [=](long double x) { return std::sin(x) + square(x) * square(x) / 4; }},
      {"exp(-a) + a - 1", [](long double x) { return std::exp(-x) + x - 1; }},
      {"cosh(a) - 1", [](long double x) { return std::cosh(x) - 1; }},
      {"a*sinh(a)", [](long double x) { return x * std::sinh(x); }},
      {"sqrt(1 + a^2)", [=](long double x) { return std::sqrt(1 + square(x)); }},
      {"1/(2 + cos(a))^3", [](long double x) { return 1 / std::pow(2 + std::cos(x), 3.0L); }},
      {"exp(-a^2)*cos(a)", [=](long double x) { return std::exp(-square(x)) * std::cos(x); }},
      {"sin(a)^2/(1 + a^2)", [=](long double x) { return square(std::sin(x)) / (1 + square(x)); }},
      {"(1 + a^2)^-2", [=](long double x) { return 1 / square(1 + square(x)); }},
  };
  for (const Case& each : cases) {
    EXPECT_LT(error_of(each.potential, each.V), 4e-15) << each.potential;
    // The control: a potential that differs by a millionth of a millionth.
    EXPECT_GT(error_of("1.000000000001*(" + each.potential + ")", each.V), 1e-14) << each.potential;
  }
}

/// The share of a in V(a, b) along long steps, beside that of the summand of a alone.
double error_of_share(const std::string& potential) {
  double worst = 0.0;
  for (const double length : {0.5, 2.0}) {
    const Numbers x = {0.3, -0.2, 0, 0}, next = {0.3 + length, 0.1 - length, 0, 0};
    const double exact = (std::cos(x[0]) - std::cos(next[0])) / length;
    worst = std::max(worst, std::abs(mean_gradient(potential, x, next)[0] - exact));
  }
  return worst;
}

TEST(MeanGradients, EachSummandHasItsOwn) {
  EXPECT_LT(error_of_share("1 - cos(a) + exp(b)"), 1e-15);
  EXPECT_GT(error_of_share("1 - cos(a) + exp(b) + 1e-6*sin(a*b)"), 1e-10);
}

}  // namespace
}  // namespace portwave::test_mean_gradients
