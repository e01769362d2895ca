// Inverse dynamics and weights of mechanisms: against Lagrange's equations by Uicker's method and a closed form, which
// share nothing with them, and against their own motion.

#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/catalogue/inverse_dynamics.hpp"
#include "portwave/subsystems/core/subsystem.hpp"

namespace portwave::test_inverse_dynamics {
namespace {

using Numbers = std::vector<double>;
using Texts = std::vector<std::string>;

std::shared_ptr<const Component> part_of(const std::string& type, Parameters parameters) {
  return make_part(type, std::move(parameters));
}

void expect_near(const Numbers& own, const Numbers& known, double within) {
  ASSERT_EQ(own.size(), known.size());
  for (std::size_t i = 0; i < own.size(); ++i) EXPECT_NEAR(own[i], known[i], within) << i;
}

/// Of tests/agreement/articulated_reference.py: turns, slides along a skew axis, turns again; a second limb.
std::shared_ptr<const Component> crane() {
  return part_of(
      "articulated",
      {{"joints", Texts{"revolute", "prismatic", "revolute", "revolute"}},
       {"parents", Numbers{0, 1, 2, 1}},
       {"places_m", MatrixRows{{0, 0, 0.5}, {0.3, 0.1, 0}, {-0.2, 0, 0.2}, {0, -0.3, 0}}},
       {"turns_rad", MatrixRows{{0.2, 0, 0}, {0, 0.4, 0}, {0, 0, 1}, {0, 0, 0}}},
       {"axes", MatrixRows{{0, 1, 1}, {1, 1, 0}, {1, 0, 0}, {0, 1, 0}}},
       {"masses_kg", Numbers{3, 1, 2, 0.8}},
       {"centres_m", MatrixRows{{0, 0.1, 0}, {0.1, 0, 0.2}, {0.1, 0, 0.1}, {0, 0, -0.3}}},
       {"inertias_kgm2", MatrixRows{{1, 0.1, 0, 1.5, 0, 2},
                                    {0.1, 0, 0, 0.2, 0, 0.15},
                                    {0.3, 0.02, 0, 0.2, 0, 0.4},
                                    {0.02, 0, 0.001, 0.02, 0, 0.01}}},
       {"damping", Numbers{0.3, 0.5, 0.1, 0}}});
}

TEST(InverseDynamics, IsThatOfLagrangesEquations) {
  InverseDynamics inverse(crane());
  ASSERT_EQ(inverse.positions(), 4);
  ASSERT_EQ(inverse.velocities(), 4);
  const Numbers q = {0.4, 0.2, -0.5, 0.7}, v = {0.5, -0.3, 1.0, -0.8}, a = {1.5, -0.7, 0.9, -2.0};
  Numbers out(4);
  inverse.torques(q, v, a, out);
  expect_near(out, {-1.22651030467094, -8.11361917836946, 0.261087411057079, 1.67153680456951},
              1e-12);
  inverse.gravity(q, out);
  expect_near(out, {-5.13128454009041, -7.0404047171782, -0.292639985312497, 1.8271923224182},
              1e-12);
  inverse.momenta(q, v, out);
  expect_near(out, {1.34138398972645, -0.463161006900436, 0.357292648894203, -0.0605427915634097},
              1e-12);
  inverse.velocities_of(q, Numbers(out), out);
  expect_near(out, v, 1e-12);
}

/// Two links of the textbook: q2 is relative to the first, both hang at 0.
TEST(InverseDynamics, OfTwoLinksIsThatOfTheTextbook) {
  const double l = 0.9, m1 = 2.0, m2 = 1.3, c1 = 0.4, c2 = 0.35, I1 = 0.11, I2 = 0.06, g = 9.81;
  InverseDynamics inverse(part_of("planar_arm", {{"lengths_m", Numbers{l, 0.7}},
                                                 {"masses_kg", Numbers{m1, m2}},
                                                 {"centres_m", Numbers{c1, c2}},
                                                 {"inertias_kgm2", Numbers{I1, I2}}}));
  for (const double turn : {-2.1, 0.3, 1.9}) {
    const Numbers q = {0.7, turn}, v = {1.1, -2.3}, a = {-0.6, 3.0};
    const double cosine = std::cos(q[1]), h = m2 * l * c2 * std::sin(q[1]);
    const double M11 = I1 + I2 + m1 * c1 * c1 + m2 * (l * l + c2 * c2 + 2 * l * c2 * cosine);
    const double M12 = I2 + m2 * (c2 * c2 + l * c2 * cosine), M22 = I2 + m2 * c2 * c2;
    const double g2 = m2 * c2 * g * std::sin(q[0] + q[1]);
    const double g1 = (m1 * c1 + m2 * l) * g * std::sin(q[0]) + g2;
    Numbers out(2);
    inverse.gravity(q, out);
    expect_near(out, {g1, g2}, 1e-12);
    inverse.torques(q, v, a, out);
    expect_near(out,
                {M11 * a[0] + M12 * a[1] - h * (2 * v[0] * v[1] + v[1] * v[1]) + g1,
                 M12 * a[0] + M22 * a[1] + h * v[0] * v[0] + g2},
                1e-12);
  }
}

/// Under these torques x' = (J − R)∇H + (0, τ) has v' = a, for ball joints and free bodies, too: by differences of v
/// along x'.
TEST(InverseDynamics, MovesFreeBodiesAsAsked) {
  const auto part = part_of("articulated",
                            {{"joints", Texts{"free", "spherical", "revolute"}},
                             {"places_m", MatrixRows{{0, 0, 0}, {0.3, 0, 0.1}, {-0.3, 0.1, 0}}},
                             {"axes", MatrixRows{{0, 0, 1}, {0, 1, 0}, {0, 1, 1}}},
                             {"masses_kg", Numbers{4, 1, 1.5}},
                             {"centres_m", MatrixRows{{0.05, 0, 0.1}, {0.2, 0, 0}, {-0.2, 0, 0.1}}},
                             {"inertias_kgm2", MatrixRows{{0.4, 0, 0.02, 0.5, 0, 0.3},
                                                          {0.01, 0, 0, 0.04, 0, 0.04},
                                                          {0.02, 0, 0, 0.05, 0, 0.05}}}});
  InverseDynamics inverse(part);
  const Subsystem& physics = *part->port_hamiltonian();
  const int nq = inverse.positions(), nv = inverse.velocities(), n = nq + nv;
  ASSERT_EQ(nv, 10);
  ASSERT_EQ(nq, 12);
  Numbers x = physics.default_state(), v, a;
  for (int i = 0; i < nq; ++i) x[static_cast<std::size_t>(i)] += 0.1 * std::sin(1.0 + i);
  for (int i = 0; i < nv; ++i) {
    v.push_back(std::cos(2.0 * i));
    a.push_back(2.0 * std::sin(3.0 + i));
  }
  const Numbers q(x.begin(), x.begin() + nq);
  Numbers torque(v.size()), p(v.size());
  inverse.torques(q, v, a, torque);
  inverse.momenta(q, v, p);
  std::copy(p.begin(), p.end(), x.begin() + nq);
  Eigen::VectorXd g(n);
  physics.gradient(x.data(), g.data());
  Structure s = physics.structure();
  physics.structure_at(x.data(), s);
  Eigen::VectorXd rate = s.J * g - s.R * g;
  for (int i = 0; i < nv; ++i) rate[nq + i] += torque[static_cast<std::size_t>(i)];
  constexpr double kReach = 1e-5;
  const auto velocities_at = [&](double time) {
    Numbers there = x, out(v.size());
    for (int i = 0; i < n; ++i) there[static_cast<std::size_t>(i)] += time * rate[i];
    inverse.velocities_of({there.data(), static_cast<std::size_t>(nq)},
                          {there.data() + nq, static_cast<std::size_t>(nv)}, out);
    return out;
  };
  const Numbers ahead = velocities_at(kReach), back = velocities_at(-kReach);
  for (std::size_t i = 0; i < v.size(); ++i)
    EXPECT_NEAR((ahead[i] - back[i]) / (2.0 * kReach), a[i], 1e-7) << i;
}

std::string refusal_of(const std::string& type) {
  try {
    const InverseDynamics inverse(make_part(type, find_part_type(type)->example));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(InverseDynamics, RefusesWhatIsNoMechanism) {
  for (const char* type : {"duffing_oscillator", "resistor", "dc_motor", "string"})
    EXPECT_NE(refusal_of(type).find("inverse dynamics of"), std::string::npos) << type;
  EXPECT_EQ(refusal_of("planar_arm"), "");
  InverseDynamics inverse(crane());
  Numbers out(4);
  EXPECT_THROW(inverse.gravity(Numbers(3), out), std::invalid_argument);
  EXPECT_THROW(inverse.torques(Numbers(4), Numbers(4), Numbers(5), out), std::invalid_argument);
}

}  // namespace
}  // namespace portwave::test_inverse_dynamics
