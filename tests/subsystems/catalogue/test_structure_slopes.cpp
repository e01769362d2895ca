// How a structure by expressions changes with the state: exact, beside differences of its matrices.

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "nonlinear/structure_slopes.hpp"
#include "portwave/subsystems/catalogue/parts.hpp"
#include "portwave/subsystems/core/subsystem.hpp"

namespace portwave::test_structure_slopes {
namespace {

using Numbers = std::vector<double>;
using Given = parts::PortHamiltonianParameters;

/// J, R and the columns of G and P at the input change.
Given turning() {
  return {.states = {{"a", ""}, {"b", ""}, {"c", ""}},
          .ports = {{"port", Causality::effort_in, Domain::generic, 1}},
          .inputs = {{"drive", ""}},
          .energy = "a^2/2 + b^2/3 + c^2/5",
          .J = {{0, "-sin(c)", "a*b"}, {"sin(c)", 0, "-a"}, {"-a*b", "a", 0}},
          .R = {{"1 + b^2", 0, 0}, {0, 1, "0.1*c"}, {0, "0.1*c", 2}},
          .G = {{1, "cos(a)"}, {0, 0}, {0, "b*c"}},
          .P = {{0, 0}, {0, "0.1*a"}, {0, 0}},
          .S = {{0, 0}, {0, 3}}};
}

/// The largest difference of ∂((J − R)g + (G − P)u)/∂x from central differences.
double error_of(const Given& given, const Numbers& x, const Numbers& x_of_differences) {
  const std::shared_ptr<const Component> part = parts::port_hamiltonian(given);
  const Subsystem& physics = *part->port_hamiltonian();
  const auto* const own = structure_slopes_of(physics);
  EXPECT_NE(own, nullptr);
  if (own == nullptr) return 0.0;
  const Eigen::Vector3d g(0.7, -0.4, 1.1);
  const Eigen::Vector2d u(0.9, -0.3);
  Eigen::Matrix3d slopes;
  own->structure_slopes(x.data(), g.data(), u.data(), slopes.data());
  const auto rate = [&](const Numbers& at) {
    Structure s = physics.structure();
    physics.structure_at(at.data(), s);
    return Eigen::Vector3d(s.J * g - s.R * g + s.G * u - s.P * u);
  };
  constexpr double kStep = 1e-5;
  double worst = 0.0;
  for (int j = 0; j < 3; ++j) {
    Numbers back = x_of_differences, ahead = x_of_differences;
    back[static_cast<std::size_t>(j)] -= kStep;
    ahead[static_cast<std::size_t>(j)] += kStep;
    const Eigen::Vector3d difference = (rate(ahead) - rate(back)) / (2.0 * kStep);
    worst = std::max(worst, (slopes.col(j) - difference).cwiseAbs().maxCoeff());
  }
  return worst;
}

TEST(StructureSlopes, AreThoseOfTheMatrices) {
  for (const Numbers& x : {Numbers{0.3, -0.2, 0.5}, Numbers{1.0, 0.4, -0.7}}) {
    EXPECT_LT(error_of(turning(), x, x), 1e-9);
    // The control: those a little aside are others.
    EXPECT_GT(error_of(turning(), x, {x[0] + 1e-3, x[1], x[2] + 1e-3}), 1e-5);
  }
}

TEST(StructureSlopes, AreNotKnownWherePortsChangeOrNothingDoes) {
  Given given = turning();
  EXPECT_NE(structure_slopes_of(*parts::port_hamiltonian(given).build()), nullptr);
  given.G = {{"cos(b)", "cos(a)"}, {0, 0}, {0, "b*c"}};
  EXPECT_EQ(structure_slopes_of(*parts::port_hamiltonian(given).build()), nullptr);
  given = turning();
  given.energy = "a^2/2 + b^2/3 + c^2/5 + cos(a)";
  given.J = {{0, 1, 0}, {-1, 0, 0}, {0, 0, 0}};
  given.R = {{1, 0, 0}, {0, 1, 0}, {0, 0, 2}};
  given.G = {{1, 0}, {0, 0}, {0, 0}};
  given.P = {{0, 0}, {0, 0}, {0, 0}};
  EXPECT_EQ(structure_slopes_of(*parts::port_hamiltonian(given).build()), nullptr);
}

}  // namespace
}  // namespace portwave::test_structure_slopes
