// A nonlinear part that says of which degree its H is: mean gradients are then exact, and so is the
// balance of energy.

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"
#include "support/lane_major.hpp"

namespace portwave::test_polynomial_degree {
namespace {

/// A mass on a spring with H = p²/2 + q^degree/degree, and a port on the mass.
std::unique_ptr<Subsystem> power_spring(int degree, int declared) {
  Signature signature{"power_spring",
                      {{"q", "m"}, {"p", "kg m/s"}},
                      {{"mass", Causality::effort_in, Domain::translation, 1}},
                      {}};
  Structure structure = Structure::zero(2, 1);
  structure.J.insert(0, 1) = 1.0;
  structure.J.insert(1, 0) = -1.0;
  structure.G.insert(1, 0) = 1.0;
  Hamiltonian H;
  H.value = [degree](const double* x) {
    return 0.5 * x[1] * x[1] + std::pow(x[0], degree) / degree;
  };
  H.gradient = [degree](const double* x, double* g) {
    g[0] = std::pow(x[0], degree - 1);
    g[1] = x[1];
  };
  H.hessian = [degree](const double* x, double* hessian) {
    hessian[0] = (degree - 1) * std::pow(x[0], degree - 2);
    hessian[1] = hessian[2] = 0.0;
    hessian[3] = 1.0;
  };
  NonlinearPortHamiltonian::Options options;
  options.discrete_gradient = DiscreteGradient::mean_value;
  options.polynomial_degree = declared;
  options.quadrature_points = 2;
  return std::make_unique<NonlinearPortHamiltonian>(signature, structure, H, options);
}

/// The largest |H(x⁺) − H(x) − work| of some steps, as a part of the energies in them.
double imbalance(int stages, int degree, int declared) {
  const std::shared_ptr<const Component> part = staged_part(power_spring(degree, declared), stages);
  testing::LaneMajor map = testing::batch_of_one(*part);
  const std::vector<double> gamma(static_cast<std::size_t>(stages), 0.8);
  map.prepare(0.9, gamma.data());
  std::vector<double> x = {1.3, -0.7}, next(2), a(gamma.size()), b(gamma.size());
  double worst = 0.0;
  for (int n = 0; n < 20; ++n) {
    for (std::size_t j = 0; j < a.size(); ++j)
      a[j] = 0.5 * std::sin(n + 2.0 * static_cast<double>(j));
    map.freeze({0, 1}, x.data(), nullptr);
    StepEnergy energy;
    EXPECT_TRUE(map.advance({0, 1}, a.data(), next.data(), b.data(), &energy).ok());
    double work = 0.0;
    for (std::size_t j = 0; j < a.size(); ++j) work += 0.5 * (a[j] * a[j] - b[j] * b[j]);
    const Subsystem& physics = *part->port_hamiltonian();
    const double before = physics.storage(x.data()), after = physics.storage(next.data());
    worst = std::max(worst, std::abs(after - before - work) / (before + after));
    EXPECT_NEAR(energy.change_J, after - before, 1e-13 * (before + after));
    x = next;
  }
  return worst;
}

TEST(PolynomialDegree, MakesTheBalanceExact) {
  for (const int degree : {2, 4, 6, 8, 10}) {
    for (const int stages : {1, 2, 3}) {
      EXPECT_LT(imbalance(stages, degree, degree), 1e-13) << degree << ", " << stages << " stages";
    }
  }
}

TEST(PolynomialDegreeControl, ADegreeThatIsTooLowLeavesADefect) {
  for (const int stages : {1, 2, 3}) {
    EXPECT_GT(imbalance(stages, 8, 4), 1e-9) << stages << " stages";
    EXPECT_GT(imbalance(stages, 10, 4), 1e-9) << stages << " stages";
  }
}

TEST(PolynomialDegree, HasALimit) {
  EXPECT_NO_THROW(power_spring(10, 10));
  EXPECT_THROW(power_spring(10, 11), ConfigError);
  EXPECT_THROW(power_spring(10, -1), ConfigError);
}

}  // namespace
}  // namespace portwave::test_polynomial_degree
