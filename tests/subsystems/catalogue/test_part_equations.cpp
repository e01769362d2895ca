#include <random>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "portwave/subsystems/catalogue/chain.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"

// The matrices of the mechanical parts against Newton's equations written out by hand.
namespace portwave::test_part_equations {
namespace {

constexpr unsigned kSeed = 3;

struct Response {
  Eigen::VectorXd rate;    ///< ẋ
  Eigen::VectorXd output;  ///< y
};

/// ẋ = (J − R)∇H + (G − P)u,  y = (G + P)ᵀ∇H + (S + N)u.
Response by_matrices(const Subsystem& part, const Eigen::VectorXd& x, const Eigen::VectorXd& u) {
  const Structure& s = part.structure();
  Eigen::VectorXd g(x.size());
  part.gradient(x.data(), g.data());
  return {(s.J - s.R) * g + (s.G - s.P) * u,
          Eigen::VectorXd(SparseMatrix(s.G + s.P).transpose() * g + (s.S + s.N) * u)};
}

Eigen::VectorXd random_vector(std::mt19937_64& random, Eigen::Index size) {
  std::normal_distribution<double> normal;
  return Eigen::VectorXd::NullaryExpr(size, [&] { return normal(random); });
}

/// Forces on the masses of a chain, spring by spring.
Response by_newton(const ChainParameters& p, const Eigen::VectorXd& x, const Eigen::VectorXd& u) {
  const int n = p.masses;
  Response r{Eigen::VectorXd::Zero(x.size()), Eigen::VectorXd::Zero(u.size())};
  Eigen::VectorXd force = Eigen::VectorXd::Zero(n);
  const auto q = [&](int i) { return x[2 * i]; };
  const auto v = [&](int i) { return x[2 * i + 1]; };
  for (int i = 0; i < n; ++i) {
    force[i] += u[2 + i] - p.damping_Ns_per_m * v(i) - p.ground_stiffness_N_per_m * q(i);
  }
  for (int i = 0; i + 1 < n; ++i) {
    const double pull =
        p.stiffness_N_per_m * (q(i + 1) - q(i)) + p.internal_damping_Ns_per_m * (v(i + 1) - v(i));
    force[i] += pull;
    force[i + 1] -= pull;
  }
  int elongation = 2 * n;
  const auto end = [&](int port, ChainEnd kind, int mass) {
    if (kind == ChainEnd::mass) {
      force[mass] -= u[port];
      r.output[port] = -v(mass);
      return;
    }
    const double stretching = u[port] - v(mass);
    const double pull =
        p.coupling_stiffness_N_per_m * x[elongation] + p.coupling_damping_Ns_per_m * stretching;
    force[mass] += pull;
    r.output[port] = pull;
    r.rate[elongation++] = stretching;
  };
  end(0, p.left_end, 0);
  end(1, p.right_end, n - 1);
  for (int i = 0; i < n; ++i) {
    r.rate[2 * i] = v(i);
    r.rate[2 * i + 1] = force[i] / p.mass_kg;
    r.output[2 + i] = v(i);
  }
  return r;
}

ChainParameters chain(int masses, ChainEnd left, ChainEnd right) {
  return {.masses = masses,
          .mass_kg = 2.5,
          .stiffness_N_per_m = 30.0,
          .damping_Ns_per_m = 0.3,
          .internal_damping_Ns_per_m = 0.7,
          .ground_stiffness_N_per_m = 11.0,
          .coupling_stiffness_N_per_m = 40.0,
          .coupling_damping_Ns_per_m = 0.9,
          .left_end = left,
          .right_end = right};
}

double chain_defect(const ChainParameters& built, const ChainParameters& expected) {
  const auto part = mass_spring_damper_chain(built);
  std::mt19937_64 random(kSeed);
  double worst = 0.0;
  for (int draw = 0; draw < 20; ++draw) {
    const Eigen::VectorXd x = random_vector(random, part->signature().state_size());
    const Eigen::VectorXd u = random_vector(random, 2 + built.masses);
    const Response a = by_matrices(*part, x, u);
    const Response b = by_newton(expected, x, u);
    worst = std::max({worst, (a.rate - b.rate).cwiseAbs().maxCoeff(),
                      (a.output - b.output).cwiseAbs().maxCoeff()});
  }
  return worst;
}

TEST(ChainEquations, AreNewtonsForEveryPairOfEnds) {
  for (const int masses : {1, 2, 3, 40}) {
    for (const ChainEnd left : {ChainEnd::mass, ChainEnd::spring}) {
      for (const ChainEnd right : {ChainEnd::mass, ChainEnd::spring}) {
        const ChainParameters p = chain(masses, left, right);
        EXPECT_LE(chain_defect(p, p), 1e-12)
            << "masses=" << masses << " left=" << static_cast<int>(left)
            << " right=" << static_cast<int>(right) << " seed=" << kSeed;
      }
    }
  }
}

TEST(ChainEquationsControl, NoticeEveryCoefficient) {
  const ChainParameters p = chain(3, ChainEnd::spring, ChainEnd::spring);
  const std::vector<double ChainParameters::*> coefficients = {
      &ChainParameters::mass_kg,
      &ChainParameters::stiffness_N_per_m,
      &ChainParameters::damping_Ns_per_m,
      &ChainParameters::internal_damping_Ns_per_m,
      &ChainParameters::ground_stiffness_N_per_m,
      &ChainParameters::coupling_stiffness_N_per_m,
      &ChainParameters::coupling_damping_Ns_per_m};
  for (const auto coefficient : coefficients) {
    ChainParameters other = p;
    other.*coefficient *= 1.01;
    EXPECT_GT(chain_defect(p, other), 1e-4);
  }
}

TEST(ChainEquations, StatesPortsAndInputsAreNamed) {
  const auto part = mass_spring_damper_chain(chain(2, ChainEnd::spring, ChainEnd::spring));
  EXPECT_EQ(variable_names(part->signature()),
            (std::vector<std::string>{"q1", "v1", "q2", "v2", "left_elongation", "right_elongation",
                                      "left", "right", "force_1", "force_2"}));
  EXPECT_EQ(part->signature().ports[0].causality, Causality::flow_in);
  const auto masses = mass_spring_damper_chain(chain(2, ChainEnd::mass, ChainEnd::mass));
  EXPECT_EQ(masses->signature().ports[1].causality, Causality::effort_in);
  EXPECT_EQ(masses->signature().state_size(), 4);
}

TEST(ChainEquations, StorageIsKineticPlusElastic) {
  const ChainParameters p = chain(2, ChainEnd::mass, ChainEnd::spring);
  const auto part = mass_spring_damper_chain(p);
  const double x[] = {0.1, -0.2, 0.4, 0.5, -0.3};
  const double expected = 0.5 * p.mass_kg * (0.2 * 0.2 + 0.5 * 0.5) +
                          0.5 * p.stiffness_N_per_m * 0.3 * 0.3 +
                          0.5 * p.ground_stiffness_N_per_m * (0.1 * 0.1 + 0.4 * 0.4) +
                          0.5 * p.coupling_stiffness_N_per_m * 0.3 * 0.3;
  EXPECT_NEAR(part->storage(x), expected, 1e-14);
}

// m v' = −k q − c v − e + F,  f = −v.
TEST(LinearOscillatorEquations, AreNewtons) {
  const auto part =
      linear_oscillator({.mass_kg = 4.0, .stiffness_N_per_m = 50.0, .damping_Ns_per_m = 0.3});
  std::mt19937_64 random(kSeed);
  for (int draw = 0; draw < 20; ++draw) {
    const Eigen::VectorXd x = random_vector(random, 2), u = random_vector(random, 2);
    const Response r = by_matrices(*part, x, u);
    EXPECT_NEAR(r.rate[0], x[1], 1e-14);
    EXPECT_NEAR(r.rate[1], (-50.0 * x[0] - 0.3 * x[1] - u[0] + u[1]) / 4.0, 1e-13);
    EXPECT_NEAR(r.output[0], -x[1], 1e-14);
    EXPECT_NEAR(r.output[1], x[1], 1e-14);
  }
}

// m v' = −k₁q − k₃q³ − c₁v + e + F,  δ' = u − v,  e = k₁₂δ + c₁₂(u − v).
TEST(DuffingOscillatorEquations, AreNewtons) {
  const auto part = duffing_oscillator({.mass_kg = 8.0,
                                        .stiffness_N_per_m = 100.0,
                                        .cubic_stiffness_N_per_m3 = 800.0,
                                        .damping_Ns_per_m = 0.3,
                                        .coupling_stiffness_N_per_m = 120.0,
                                        .coupling_damping_Ns_per_m = 0.05});
  std::mt19937_64 random(kSeed);
  for (int draw = 0; draw < 20; ++draw) {
    const Eigen::VectorXd x = random_vector(random, 3), u = random_vector(random, 2);
    const double q = x[0], v = x[1], e = 120.0 * x[2] + 0.05 * (u[0] - v);
    const Response r = by_matrices(*part, x, u);
    EXPECT_NEAR(r.rate[0], v, 1e-13);
    EXPECT_NEAR(r.rate[1], (-100.0 * q - 800.0 * q * q * q - 0.3 * v + e + u[1]) / 8.0, 1e-10);
    EXPECT_NEAR(r.rate[2], u[0] - v, 1e-13);
    EXPECT_NEAR(r.output[0], e, 1e-11);
    EXPECT_NEAR(r.output[1], v, 1e-13);
  }
}

// m v' = −k₁q − k₃q³ − c₁v + e_E + e_S − e_W − e_N + F,  δ' = u − v,  e = k₁₂δ + c₁₂(u − v).
TEST(DuffingNodeEquations, AreNewtons) {
  const auto part = duffing_node({.mass_kg = 8.0,
                                  .stiffness_N_per_m = 100.0,
                                  .cubic_stiffness_N_per_m3 = 800.0,
                                  .damping_Ns_per_m = 0.3,
                                  .coupling_stiffness_N_per_m = 120.0,
                                  .coupling_damping_Ns_per_m = 0.05});
  std::mt19937_64 random(kSeed);
  for (int draw = 0; draw < 20; ++draw) {
    const Eigen::VectorXd x = random_vector(random, 4), u = random_vector(random, 5);
    const double q = x[0], v = x[1];
    const double east = 120.0 * x[2] + 0.05 * (u[0] - v);
    const double south = 120.0 * x[3] + 0.05 * (u[1] - v);
    const double own = -100.0 * q - 800.0 * q * q * q - 0.3 * v;
    const Response r = by_matrices(*part, x, u);
    EXPECT_NEAR(r.rate[0], v, 1e-13);
    EXPECT_NEAR(r.rate[1], (own + east + south - u[2] - u[3] + u[4]) / 8.0, 1e-10);
    EXPECT_NEAR(r.rate[2], u[0] - v, 1e-13);
    EXPECT_NEAR(r.rate[3], u[1] - v, 1e-13);
    EXPECT_NEAR(r.output[0], east, 1e-11);
    EXPECT_NEAR(r.output[1], south, 1e-11);
    EXPECT_NEAR(r.output[2], -v, 1e-13);
    EXPECT_NEAR(r.output[3], -v, 1e-13);
    EXPECT_NEAR(r.output[4], v, 1e-13);
  }
}

// A node whose other ports are free is the oscillator, east being its coupling.
TEST(DuffingNodeEquations, AreTheOscillatorsAlongOneAxis) {
  const DuffingOscillatorParameters p = {.mass_kg = 8.0,
                                         .stiffness_N_per_m = 100.0,
                                         .cubic_stiffness_N_per_m3 = 8000.0,
                                         .damping_Ns_per_m = 0.3,
                                         .coupling_stiffness_N_per_m = 120.0};
  const auto node = duffing_node(p);
  const auto oscillator = duffing_oscillator(p);
  std::mt19937_64 random(kSeed);
  for (int draw = 0; draw < 20; ++draw) {
    const Eigen::VectorXd x = random_vector(random, 3), u = random_vector(random, 2);
    const Response one = by_matrices(*oscillator, x, u);
    const Response four = by_matrices(*node, Eigen::Vector4d(x[0], x[1], x[2], 0.0),
                                      (Eigen::VectorXd(5) << u[0], 0.0, 0.0, 0.0, u[1]).finished());
    EXPECT_NEAR((one.rate - four.rate.head(3)).cwiseAbs().maxCoeff(), 0.0, 1e-11);
    EXPECT_NEAR(one.output[0], four.output[0], 1e-11);
  }
}

// e = r f, with f into the resistor.
TEST(ResistorEquations, AreOhmsLaw) {
  const auto part = make_resistor(2.5, {"end", Causality::effort_in, Domain::electrical, 2});
  const Response r = by_matrices(*part, Eigen::VectorXd(0), Eigen::Vector2d(3.0, -4.0));
  EXPECT_EQ(r.output, Eigen::Vector2d(7.5, -10.0));
  EXPECT_EQ(part->signature().ports[0].causality, Causality::flow_in);
  EXPECT_EQ(part->signature().ports[0].domain, Domain::electrical);
}

}  // namespace
}  // namespace portwave::test_part_equations
