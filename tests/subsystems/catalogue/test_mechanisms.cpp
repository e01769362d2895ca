// The mechanisms of the catalogue against other formulations of their equations: Lagrange's, from
// a kinetic energy of points that is differentiated numerically, and Euler's in terms of ω and a
// rotation matrix.

#include <cmath>
#include <functional>
#include <memory>
#include <numbers>
#include <random>
#include <utility>
#include <vector>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "support/free_motion.hpp"

namespace portwave::test_mechanisms {
namespace {

using Eigen::VectorXd;
using Numbers = std::vector<double>;

constexpr unsigned kSeed = 5;

std::shared_ptr<const Component> part_of(const char* type, Parameters parameters) {
  return make_part(type, std::move(parameters));
}

/// ẋ at (x, u), u being port inputs, then external ones; and the outputs.
std::pair<VectorXd, VectorXd> response(const Component& part, const VectorXd& x,
                                       const VectorXd& u) {
  const Subsystem& physics = *part.port_hamiltonian();
  Structure s = physics.structure();
  physics.structure_at(x.data(), s);
  VectorXd g(x.size());
  physics.gradient(x.data(), g.data());
  return {(s.J - s.R) * g + s.G * u, VectorXd(s.G.transpose() * g)};
}

VectorXd random_vector(std::mt19937_64& random, Eigen::Index size) {
  std::normal_distribution<double> normal;
  return VectorXd::NullaryExpr(size, [&] { return normal(random); });
}

/// df/dt at 0, by differences of sixth order.
double slope(const std::function<double(double)>& f) {
  const double h = 5e-3;
  return (45.0 * (f(h) - f(-h)) - 9.0 * (f(2.0 * h) - f(-2.0 * h)) + f(3.0 * h) - f(-3.0 * h)) /
         (60.0 * h);
}

/// A mechanism by its Lagrangian T(q, q̇) − V(q).
struct Lagrangian {
  std::function<double(const VectorXd& q, const VectorXd& rate)> kinetic;
  std::function<double(const VectorXd& q)> potential;

  /// T is quadratic in the rates: this is exact.
  VectorXd momenta(const VectorXd& q, const VectorXd& rate) const {
    VectorXd p(q.size());
    for (Eigen::Index i = 0; i < q.size(); ++i) {
      const VectorXd unit = VectorXd::Unit(q.size(), i);
      p[i] = 0.5 * (kinetic(q, rate + unit) - kinetic(q, rate - unit));
    }
    return p;
  }
  /// ∂L/∂q
  VectorXd forces(const VectorXd& q, const VectorXd& rate) const {
    VectorXd f(q.size());
    for (Eigen::Index i = 0; i < q.size(); ++i) {
      const VectorXd unit = VectorXd::Unit(q.size(), i);
      f[i] = slope([&](double t) { return kinetic(q + t * unit, rate) - potential(q + t * unit); });
    }
    return f;
  }
};

/// The largest relative defect of q' = rate and p' = ∂L/∂q + forces.
double lagrange_defect(const Component& part, const Lagrangian& lagrangian, const VectorXd& q,
                       const VectorXd& rate, const VectorXd& u, const VectorXd& forces) {
  VectorXd x(2 * q.size());
  x << q, lagrangian.momenta(q, rate);
  const VectorXd expected = lagrangian.forces(q, rate) + forces;
  const VectorXd actual = response(part, x, u).first;
  return std::max((actual.head(q.size()) - rate).norm() / (1.0 + rate.norm()),
                  (actual.tail(q.size()) - expected).norm() / (1.0 + expected.norm()));
}

struct Links {
  Numbers lengths, masses, centres, inertias, damping;

  explicit Links(int n) {
    for (int k = 0; k < n; ++k) {
      lengths.push_back(1.0 / (1 + k) + 0.2);
      masses.push_back(2.0 - 0.05 * k);
      centres.push_back(0.4 * lengths.back());
      inertias.push_back(0.1 + 0.01 * k);
      damping.push_back(0.3 + 0.1 * k);
    }
  }
  Parameters parameters() const {
    return {{"lengths_m", lengths},           {"masses_kg", masses},
            {"centres_m", centres},           {"inertias_kgm2", inertias},
            {"damping_Nms_per_rad", damping}, {"tip_port", true}};
  }
  /// The place at a distance along a link.
  Eigen::Vector2d place(const VectorXd& q, std::size_t link, double distance) const {
    Eigen::Vector2d at(0.0, 0.0);
    double angle = 0.0;
    for (std::size_t k = 0; k <= link; ++k) {
      angle += q[static_cast<Eigen::Index>(k)];
      at +=
          (k == link ? distance : lengths[k]) * Eigen::Vector2d(std::sin(angle), -std::cos(angle));
    }
    return at;
  }
  /// Its velocity, joint by joint: ω × the way from the joint.
  Eigen::Vector2d velocity(const VectorXd& q, const VectorXd& rate, std::size_t link,
                           double distance) const {
    const Eigen::Vector2d end = place(q, link, distance);
    Eigen::Vector2d v(0.0, 0.0);
    for (std::size_t k = 0; k <= link; ++k) {
      const Eigen::Vector2d way = end - place(q, k, 0.0);
      v += rate[static_cast<Eigen::Index>(k)] * Eigen::Vector2d(-way[1], way[0]);
    }
    return v;
  }
  Lagrangian lagrangian() const {
    return {[this](const VectorXd& q, const VectorXd& rate) {
              double energy = 0.0, spin = 0.0;
              for (std::size_t k = 0; k < lengths.size(); ++k) {
                spin += rate[static_cast<Eigen::Index>(k)];
                energy += 0.5 * masses[k] * velocity(q, rate, k, centres[k]).squaredNorm() +
                          0.5 * inertias[k] * spin * spin;
              }
              return energy;
            },
            [this](const VectorXd& q) {
              double energy = 0.0;
              for (std::size_t k = 0; k < lengths.size(); ++k) {
                energy += masses[k] * 9.81 * place(q, k, centres[k])[1];
              }
              return energy;
            }};
  }
};

double arm_defect(const Links& built, const Links& expected) {
  const auto part = part_of("planar_arm", built.parameters());
  const auto n = static_cast<Eigen::Index>(built.lengths.size());
  std::mt19937_64 random(kSeed);
  double worst = 0.0;
  for (int draw = 0; draw < 3; ++draw) {
    const VectorXd q = random_vector(random, n), rate = random_vector(random, n);
    const VectorXd u = random_vector(random, 2 * n + 2);
    const std::size_t last = expected.lengths.size() - 1;
    VectorXd forces = u.tail(n) - u.head(n);
    for (Eigen::Index k = 0; k < n; ++k) {
      forces[k] -= expected.damping[static_cast<std::size_t>(k)] * rate[k];
      // Virtual work of −e at the tip.
      forces[k] -= u.segment<2>(n).dot(
          expected.velocity(q, VectorXd::Unit(n, k), last, expected.lengths[last]));
    }
    worst = std::max(worst, lagrange_defect(*part, expected.lagrangian(), q, rate, u, forces));
  }
  return worst;
}

TEST(PlanarArmEquations, AreLagranges) {
  for (const int links : {1, 2, 3, 7, 20}) {
    EXPECT_LE(arm_defect(Links(links), Links(links)), 1e-8) << links << " links, seed " << kSeed;
  }
}

TEST(PlanarArmEquationsControl, NoticeEveryParameter) {
  for (Numbers Links::*const list :
       {&Links::lengths, &Links::masses, &Links::centres, &Links::inertias, &Links::damping}) {
    Links other(3);
    (other.*list)[2] *= 1.01;
    EXPECT_GT(arm_defect(Links(3), other), 1e-5);
  }
}

TEST(PlanarArm, SaysAllThatIsWrongWithItsLists) {
  try {
    make_part("planar_arm", {{"lengths_m", Numbers{1.0, 1.0}},
                             {"masses_kg", Numbers{1.0}},
                             {"damping_Nms_per_rad", Numbers{1.0, 1.0, 1.0}}});
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("/masses_kg: must have a number for each of the 2 links"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("/damping_Nms_per_rad: "), std::string::npos) << text;
  }
}

Parameters cart(double length) {
  return {{"cart_mass_kg", 3.0},          {"mass_kg", 1.0},
          {"length_m", length},           {"inertia_kgm2", 0.05},
          {"cart_damping_Ns_per_m", 0.2}, {"damping_Nms_per_rad", 0.03}};
}

double cart_defect(double length) {
  const auto part = part_of("cart_pendulum", cart(length));
  const Lagrangian lagrangian = {
      [](const VectorXd& q, const VectorXd& rate) {
        const Eigen::Vector2d v(rate[0] + 0.7 * std::cos(q[1]) * rate[1],
                                0.7 * std::sin(q[1]) * rate[1]);
        return 0.5 * (3.0 * rate[0] * rate[0] + v.squaredNorm() + 0.05 * rate[1] * rate[1]);
      },
      [](const VectorXd& q) { return -9.81 * 0.7 * std::cos(q[1]); }};
  std::mt19937_64 random(kSeed);
  double worst = 0.0;
  for (int draw = 0; draw < 10; ++draw) {
    const VectorXd q = random_vector(random, 2), rate = random_vector(random, 2);
    const VectorXd u = random_vector(random, 3);
    const Eigen::Vector2d forces(u[1] - u[0] - 0.2 * rate[0], u[2] - 0.03 * rate[1]);
    worst = std::max(worst, lagrange_defect(*part, lagrangian, q, rate, u, forces));
  }
  return worst;
}

TEST(CartPendulumEquations, AreLagranges) {
  EXPECT_LE(cart_defect(0.7), 1e-9);
  EXPECT_GT(cart_defect(0.701), 1e-5) << "control: a longer pendulum is noticed";
}

TEST(PendulumEquations, AreNewtons) {
  const auto part = part_of(
      "pendulum",
      {{"mass_kg", 1.2}, {"length_m", 0.8}, {"inertia_kgm2", 0.1}, {"damping_Nms_per_rad", 0.05}});
  const double inertia = 0.1 + 1.2 * 0.64, speed = -1.7, angle = 2.2;
  const auto [rate, output] =
      response(*part, Eigen::Vector2d(angle, inertia * speed), Eigen::Vector2d(0.3, 0.9));
  EXPECT_NEAR(rate[0], speed, 1e-14);
  EXPECT_NEAR(rate[1], -1.2 * 9.81 * 0.8 * std::sin(angle) - 0.05 * speed - 0.3 + 0.9, 1e-13);
  EXPECT_NEAR(output[0], -speed, 1e-14);
}

// Linearised about the upright position, q − π grows as cosh(t √(mgl/J)).
TEST(Pendulum, FallsFromNearlyUprightAtTheRateOfTheLinearisation) {
  const auto part = part_of("pendulum", {{"mass_kg", 1.0}, {"length_m", 1.0}});
  const double from = 1e-6, time = 2.0;
  const Numbers end =
      testing::move_freely(part, 3, time / 200, 200, {std::numbers::pi + from, 0.0});
  EXPECT_NEAR((end[0] - std::numbers::pi) / (from * std::cosh(time * std::sqrt(9.81))), 1.0, 1e-6);
}

// H(q⁺) − H(q) over increments so small that it would cancel.
TEST(Pendulum, KeepsTheDiscreteGradientToRoundOffForSmallIncrements) {
  const auto part = part_of("pendulum", {{"mass_kg", 1.0}, {"length_m", 1.0}});
  for (const double increment : {1e-1, 1e-4, 1e-8, 1e-12, 0.0}) {
    const double x[] = {0.7, 0.0}, y[] = {0.7 + increment, 0.0};
    const double taken = y[0] - x[0];
    double g[2];
    part->port_hamiltonian()->discrete_gradient(x, y, g);
    const double series =
        std::sin(0.7) + 0.5 * taken * std::cos(0.7) - taken * taken / 6.0 * std::sin(0.7) -
        taken * taken * taken / 24.0 * std::cos(0.7) + std::pow(taken, 4) / 120.0 * std::sin(0.7);
    EXPECT_NEAR(g[0], 9.81 * series, 9.81 * (2e-15 + std::pow(increment, 5) / 500.0)) << increment;
  }
}

// A motion far from the origin is the same one, as well as the distance lets the state be stored.
TEST(Mechanisms, MoveFarFromTheOriginAsNearIt) {
  struct Case {
    const char* type;
    Numbers start;
    std::size_t moved;
    double by;
    double tolerance;
  };
  // Turned by 159155 whole turns: about 1e6 rad, where the spacing of doubles is 1e-10.
  const double turns = 159155.0 * 2.0 * std::numbers::pi;
  Numbers body(13, 0.0);
  body[3] = 1.0;
  body[6] = 1.0;
  body[10] = 0.1;
  body[11] = 1.5;
  const std::vector<Case> cases = {{"pendulum", {1.0, 0.2}, 0, turns, 1e-8},
                                   {"planar_arm", {1.0, 0.5, 3.0, 1.0}, 0, turns, 1e-6},
                                   {"cart_pendulum", {0.0, 1.0, 3.0, 2.0}, 0, 1e6, 1e-8},
                                   {"cart_pendulum", {0.0, 1.0, 3.0, 2.0}, 1, turns, 1e-6},
                                   {"rigid_body", body, 0, 1e6, 1e-8}};
  for (const Case& c : cases) {
    const std::shared_ptr<const Component> shared(
        make_part(c.type, find_part_type(c.type)->example));
    Numbers start = c.start;
    const Numbers near = testing::move_freely(shared, 1, 0.01, 100, start);
    start[c.moved] += c.by;
    Numbers far;
    EXPECT_NO_THROW(far = testing::move_freely(shared, 1, 0.01, 100, start))
        << c.type << " moved along state " << c.moved;
    if (far.empty()) continue;
    far[c.moved] -= c.by;
    for (std::size_t i = 0; i < far.size(); ++i) {
      EXPECT_NEAR(far[i], near[i], c.tolerance * (1.0 + std::abs(near[i])))
          << c.type << " moved along state " << c.moved << ", state " << i;
    }
  }
}

/// Euler's equations, I ω' = Iω × ω, and R' = R [ω]×, by the classical Runge–Kutta method.
std::pair<Eigen::Vector3d, Eigen::Matrix3d> turn(const Eigen::Vector3d& inertia,
                                                 Eigen::Vector3d omega, double time_s, int steps) {
  using Turn = Eigen::Matrix<double, 3, 4>;
  const auto rate = [&](const Turn& y) {
    const Eigen::Vector3d w = y.col(0);
    Turn out;
    out.col(0) = inertia.cwiseProduct(w).cross(w).cwiseQuotient(inertia);
    for (int row = 0; row < 3; ++row) {
      const Eigen::Vector3d r = y.block<1, 3>(row, 1).transpose();
      out.block<1, 3>(row, 1) = r.cross(w).transpose();
    }
    return out;
  };
  Turn y;
  y.col(0) = omega;
  y.rightCols<3>().setIdentity();
  const double h = time_s / steps;
  for (int step = 0; step < steps; ++step) {
    const Turn a = rate(y), b = rate(y + 0.5 * h * a), c = rate(y + 0.5 * h * b),
               d = rate(y + h * c);
    y += h / 6.0 * (a + 2.0 * b + 2.0 * c + d);
  }
  return {y.col(0), y.rightCols<3>()};
}

// About the middle axis: the body turns over.
TEST(RigidBody, TurnsOverAsEulersEquationsSay) {
  const Eigen::Vector3d inertia(1.0, 1.5, 2.0), omega(0.01, 3.0, 0.02);
  const auto part = part_of("rigid_body", {{"mass_kg", 2.0},
                                           {"inertia_1_kgm2", 1.0},
                                           {"inertia_2_kgm2", 1.5},
                                           {"inertia_3_kgm2", 2.0}});
  const auto with_steps = [&](int stages, int steps) {
    Numbers x(13, 0.0);
    x[6] = 1.0;
    for (std::size_t i = 0; i < 3; ++i) {
      const auto at = static_cast<Eigen::Index>(i);
      x[10 + i] = inertia[at] * omega[at];
    }
    return testing::move_freely(part, stages, 7.0 / steps, steps, x);
  };
  const auto [expected, R] = turn(inertia, omega, 7.0, 14000);
  EXPECT_LT(expected[1], -1.0) << "it turned over";
  const auto error = [&](const Numbers& x) {
    const Eigen::Quaterniond q(x[6], x[7], x[8], x[9]);
    const Eigen::Vector3d spin(x[10], x[11], x[12]);
    return std::max((spin.cwiseQuotient(inertia) - expected).norm(),
                    (q.toRotationMatrix() - R).norm());
  };
  EXPECT_LE(error(with_steps(3, 300)), 1e-7);
  EXPECT_GT(error(with_steps(1, 300)), 1e-5) << "control: one stage is of second order";
}

TEST(RigidBody, KeepsItsSpinQuaternionAndEnergyOverLongSteps) {
  const auto part = part_of("rigid_body", {{"mass_kg", 2.0},
                                           {"inertia_1_kgm2", 1.0},
                                           {"inertia_2_kgm2", 1.5},
                                           {"inertia_3_kgm2", 2.0}});
  Numbers x(13, 0.0);
  x[6] = 1.0;
  x[10] = 0.1;
  x[11] = 2.0;
  x[12] = 0.2;
  const Numbers end = testing::move_freely(part, 1, 0.1, 300, x);
  const auto length = [](const double* v, int n) {
    return Eigen::Map<const VectorXd>(v, n).norm();
  };
  EXPECT_NEAR(length(&end[6], 4), 1.0, 1e-12);
  EXPECT_NEAR(length(&end[10], 3), length(&x[10], 3), 1e-11);
  EXPECT_NEAR(part->port_hamiltonian()->storage(end.data()),
              part->port_hamiltonian()->storage(x.data()), 1e-9 * 2.0 * 9.81 * std::abs(end[2]));
}

TEST(RigidBody, RefusesAQuaternionThatIsNoRotation) {
  const auto part = part_of("rigid_body", find_part_type("rigid_body")->example);
  Numbers x = part->default_state();
  EXPECT_TRUE(part->check_initial_state(x.data()).empty());
  x[6] = 0.9;
  ASSERT_EQ(part->check_initial_state(x.data()).size(), 1U);
  EXPECT_EQ(part->check_initial_state(x.data())[0].where, "/initial_state");
  EXPECT_THROW(make_part("rigid_body", {{"mass_kg", 1.0},
                                        {"inertia_1_kgm2", 1.0},
                                        {"inertia_2_kgm2", 1.0},
                                        {"inertia_3_kgm2", 2.1}}),
               ConfigError);
}

// A torque about the world's x on a body turned by 90° about z acts about its own −y.
TEST(RigidBody, TakesTorquesInWorldAxes) {
  const auto part = part_of("rigid_body", find_part_type("rigid_body")->example);
  VectorXd x = VectorXd::Zero(13);
  x[6] = x[9] = std::sqrt(0.5);
  VectorXd u = VectorXd::Zero(12);
  u[9] = 1.0;
  const VectorXd rate = response(*part, x, u).first;
  EXPECT_NEAR((rate.tail(3) - Eigen::Vector3d(0.0, -1.0, 0.0)).norm(), 0.0, 1e-15);
  u[9] = 0.0;
  u[3] = 1.0;
  EXPECT_NEAR((response(*part, x, u).first.tail(3) + rate.tail(3)).norm(), 0.0, 1e-15);
}

TEST(SynchronousMachineEquations, AreParks) {
  const auto part = part_of("synchronous_machine", find_part_type("synchronous_machine")->example);
  const double flux_d = 0.7, flux_q = -0.4, speed = 3.0;
  const double i_d = (flux_d - 0.2) / 0.3, i_q = flux_q / 0.5;
  const auto [rate, output] = response(*part, Eigen::Vector3d(flux_d, flux_q, 0.6 * speed),
                                       Eigen::Vector4d(5.0, -2.0, 0.3, 0.8));
  EXPECT_NEAR(rate[0], 5.0 - 0.4 * i_d + 2.0 * speed * flux_q, 1e-13);
  EXPECT_NEAR(rate[1], -2.0 - 0.4 * i_q - 2.0 * speed * flux_d, 1e-13);
  EXPECT_NEAR(rate[2], 2.0 * (flux_d * i_q - flux_q * i_d) - 0.01 * speed - 0.3 + 0.8, 1e-13);
  EXPECT_NEAR(output[0], i_d, 1e-14);
  EXPECT_NEAR(output[1], i_q, 1e-14);
  EXPECT_NEAR(output[2], -speed, 1e-14);
}

// Orders 2, 4 and 6 with one, two and three stages.
TEST(Mechanisms, ConvergeWithTwiceTheirStages) {
  const std::vector<std::pair<const char*, Numbers>> starts = {
      {"pendulum", {1.0, 0.2}},
      {"planar_arm", {1.0, 0.5, 30.0, 5.0}},
      {"cart_pendulum", {0.0, 1.0, 30.0, 60.0}},
      {"rigid_body", {0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0.5, 2.0, 0.7}},
      {"synchronous_machine", {0.5, 0.3, 1.2}}};
  for (const auto& [type, start] : starts) {
    const std::shared_ptr<const Component> part(make_part(type, find_part_type(type)->example));
    const auto end = [&](int stages, int steps) {
      const Numbers x = testing::move_freely(part, stages, 0.8 / steps, steps, start);
      return VectorXd(Eigen::Map<const VectorXd>(x.data(), static_cast<Eigen::Index>(x.size())));
    };
    for (const int stages : {1, 2, 3}) {
      const VectorXd coarse = end(stages, 8), middle = end(stages, 16), fine = end(stages, 32);
      const double order = std::log2((coarse - middle).norm() / (middle - fine).norm());
      EXPECT_GT(order, 2.0 * stages - 0.35) << type << " with " << stages << " stages";
      EXPECT_LT(order, 2.0 * stages + 1.5) << type << " with " << stages << " stages";
    }
  }
}

}  // namespace
}  // namespace portwave::test_mechanisms
