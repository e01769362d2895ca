// Which states rigid joints allow, against dense linear algebra that knows nothing of joints.

#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <Eigen/SVD>
#include <gtest/gtest.h>

#include "portwave/coupling/system/state_constraints.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/descriptor/descriptor_part.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"

namespace portwave::test_state_constraints {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

using States = std::vector<std::vector<double>>;

States initial_states(const System& system) {
  States out;
  for (const Part& part : system.parts()) out.push_back(part.initial_state);
  return out;
}

auto reader_of(const States& states) {
  return [&states](int part) -> std::span<const double> {
    return states[static_cast<std::size_t>(part)];
  };
}

StateInstant at_start(const System& system, const States& states) {
  return {.state = reader_of(states), .input = [&system](int part, int input) {
            return system.parts()[static_cast<std::size_t>(part)]
                .inputs[static_cast<std::size_t>(input)](0.0);
          }};
}

std::vector<StateConstraints::Odds> odds_at_start(const System& system) {
  const States states = initial_states(system);
  const StateConstraints constraints(system, reader_of(states));
  return constraints.odds(at_start(system, states), kOddsShare);
}

States after(const States& states, const StateConstraints::Odds& odds) {
  States out = states;
  for (const StateConstraints::Jump& own : odds.jumps) {
    out[static_cast<std::size_t>(own.part)][static_cast<std::size_t>(own.state)] = own.after;
  }
  return out;
}

// Random networks of linear parts.

class Networks {
 public:
  explicit Networks(unsigned seed) : random_(seed) {}

  System draw() {
    SystemBuilder builder;
    const int parts = 3 + pick(6);
    for (int i = 0; i < parts; ++i) add_part(builder, "p" + std::to_string(i));
    std::ranges::shuffle(ports_, random_);
    for (std::size_t next = 0; next < ports_.size();) next = join(builder, next);
    return builder.build();
  }

 private:
  int pick(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }
  double normal() { return std::normal_distribution<double>()(random_); }
  double size() { return std::exp(normal()); }

  void add_part(SystemBuilder& builder, const std::string& name) {
    const int kind = pick(6);
    const int ports = kind < 3 ? 1 + pick(3) : kind == 3 ? 1 + pick(2) : kind == 4 ? 2 : 1;
    const int states = kind < 2 ? 1 : kind == 2 ? 2 + pick(2) : 0;
    const int inputs = kind == 5 ? 1 : 0;
    Signature signature{"random", {}, {}, {}};
    for (int i = 0; i < states; ++i) signature.states.push_back({"x" + std::to_string(i), ""});
    for (int i = 0; i < ports; ++i) {
      signature.ports.push_back({"t" + std::to_string(i),
                                 pick(2) == 0 ? Causality::effort_in : Causality::flow_in,
                                 Domain::generic, 1});
      ports_.push_back(name + ".t" + std::to_string(i));
    }
    if (inputs > 0) signature.inputs.push_back({"s", ""});
    Structure s = Structure::zero(states, ports + inputs);
    MatrixXd G(states, ports + inputs), Q = MatrixXd::Zero(states, states);
    for (double& own : G.reshaped()) own = normal();
    if (kind < 2) G.setConstant(pick(2) == 0 ? 1.0 : -1.0);
    for (int i = 0; i < states; ++i) Q(i, i) = size();
    if (states > 1) {
      const MatrixXd mixed = MatrixXd::NullaryExpr(states, states, [&] { return normal(); });
      Q = mixed * mixed.transpose() + 0.1 * MatrixXd::Identity(states, states);
    }
    if (kind == 3) {  // a resistance
      const VectorXd a = VectorXd::NullaryExpr(ports, [&] { return normal(); });
      s.S = MatrixXd(a * a.transpose()).sparseView();
    }
    if (kind == 4) {  // a lossless two-port
      const double n = pick(3) == 0 ? 1.0 : normal();
      s.N.insert(0, 1) = n;
      s.N.insert(1, 0) = -n;
    }
    if (kind == 5) {
      s.N.insert(0, 1) = 1.0;
      s.N.insert(1, 0) = -1.0;
    }
    s.G = G.sparseView();
    SystemBuilder::PartOptions options;
    for (int i = 0; i < states; ++i) options.initial_state.push_back(normal());
    if (inputs > 0) options.inputs["s"] = Signal::constant(normal());
    builder.add(
        name,
        std::make_shared<LinearPortHamiltonian>(std::move(signature), std::move(s), Q.sparseView()),
        std::move(options));
  }

  std::size_t join(SystemBuilder& builder, std::size_t next) {
    const std::size_t left = ports_.size() - next;
    const auto take = [&](std::size_t count) {
      return std::vector<std::string>(ports_.begin() + static_cast<std::ptrdiff_t>(next),
                                      ports_.begin() + static_cast<std::ptrdiff_t>(next + count));
    };
    if (left == 1) {
      builder.join(pick(2) == 0 ? Joint(joint::Free{}) : Joint(joint::Fixed{}), take(1));
      return next + 1;
    }
    const std::size_t most = std::min<std::size_t>(left, 2 + static_cast<std::size_t>(pick(3)));
    switch (pick(7)) {
      case 0:
        builder.join(joint::Connection{}, take(2));
        return next + 2;
      case 1:
        builder.join(joint::Transformer{normal()}, take(2));
        return next + 2;
      case 2:
        builder.join(joint::Gyrator{normal()}, take(2));
        return next + 2;
      case 3:
        builder.join(joint::Fixed{}, take(1));
        return next + 1;
      case 4:
        builder.join(joint::CommonEffort{}, take(most));
        return next + most;
      default:
        builder.join(joint::CommonFlow{}, take(most));
        return next + most;
    }
  }

  std::mt19937 random_;
  std::vector<std::string> ports_;
};

/// All efforts and flows w of a network of linear parts, by one dense matrix: M w = C x + s.
struct Dense {
  MatrixXd M, C, Q;
  VectorXd s, x;
  MatrixXd constraint;  ///< orthonormal rows n: nᵀM = 0

  Dense(const System& system, const States& states) {
    const auto p = static_cast<int>(system.scalar_ports().size());
    int n = 0;
    for (const auto& own : states) n += static_cast<int>(own.size());
    M = MatrixXd::Zero(2 * p, 2 * p);
    C = MatrixXd::Zero(2 * p, n);
    Q = MatrixXd::Zero(n, n);
    s = VectorXd::Zero(2 * p);
    x = VectorXd::Zero(n);
    int first = 0, row = 0;
    for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
      const Part& part = system.parts()[static_cast<std::size_t>(i)];
      const auto& own = dynamic_cast<const LinearPortHamiltonian&>(*part.component);
      const int size = own.signature().state_size(), ports = own.signature().wave_size();
      const int port = system.first_scalar_port(i);
      const Structure& matrices = own.structure();
      const MatrixXd D = MatrixXd(matrices.S) + MatrixXd(matrices.N);
      const MatrixXd G = MatrixXd(matrices.G) + MatrixXd(matrices.P);
      for (int j = 0; j < size; ++j)
        x[first + j] = states[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
      Q.block(first, first, size, size) = MatrixXd(own.Q());
      for (int j = 0; j < ports; ++j, ++row) {
        const auto effort_in = [&](int k) {
          return own.signature().ports[static_cast<std::size_t>(k)].causality ==
                 Causality::effort_in;
        };
        M(row, effort_in(j) ? p + port + j : port + j) += 1.0;
        for (int k = 0; k < ports; ++k) M(row, effort_in(k) ? port + k : p + port + k) -= D(j, k);
        if (size > 0) C.block(row, first, 1, size) = G.col(j).transpose() * MatrixXd(own.Q());
        if (!own.signature().inputs.empty()) s[row] = D(j, ports) * part.inputs[0](0.0);
      }
      first += size;
    }
    for (const Junction& junction : system.junctions()) {
      for (int i = 0; i < junction.dirac.size(); ++i, ++row) {
        for (int j = 0; j < junction.dirac.size(); ++j) {
          const int port = junction.waves[static_cast<std::size_t>(j)];
          M(row, port) += junction.dirac.E(i, j);
          M(row, p + port) += junction.dirac.F(i, j);
        }
      }
    }
    const Eigen::JacobiSVD<MatrixXd> svd(M, Eigen::ComputeFullU);
    const VectorXd& values = svd.singularValues();
    const auto rank = (values.array() > 1e-10 * values[0]).count();
    constraint = svd.matrixU().rightCols(2 * p - rank).transpose();
  }

  VectorXd violation(const VectorXd& at_x) const { return constraint * (C * at_x + s); }
  /// How many of them say something.
  Eigen::Index count() const {
    MatrixXd says(constraint.rows(), C.cols() + 1);
    says << constraint * C, constraint * s;
    if (says.size() == 0) return 0;
    const Eigen::JacobiSVD<MatrixXd> svd(says);
    return (svd.singularValues().array() > 1e-10).count();
  }
  /// The state nearest to x in the norm of the energy that satisfies what can be satisfied.
  VectorXd projected() const {
    MatrixXd K = constraint * C;
    K = (K.array().abs() > 1e-12).select(K, 0.0);
    if (K.isZero(0.0)) return x;
    const MatrixXd weighted = K * Q.llt().solve(K.transpose());
    const Eigen::JacobiSVD<MatrixXd> svd(weighted, Eigen::ComputeThinU | Eigen::ComputeThinV);
    Eigen::JacobiSVD<MatrixXd> solver = svd;
    solver.setThreshold(1e-10);
    return x - Q.llt().solve(K.transpose() * solver.solve(violation(x)));
  }
};

TEST(StateConstraints, AreThoseOfDenseLinearAlgebra) {
  int tied = 0, contradictory = 0;
  for (unsigned seed = 1; seed <= 400; ++seed) {
    const System system = Networks(seed).draw();
    const States states = initial_states(system);
    const Dense dense(system, states);
    const StateConstraints constraints(system, reader_of(states));
    const bool is_tied = dense.count() > 0;
    ASSERT_TRUE(!is_tied || !constraints.empty()) << "seed " << seed;
    const auto all = constraints.odds(at_start(system, states), kOddsShare);
    const bool at_odds = dense.violation(dense.x).norm() > 1e-8;
    ASSERT_EQ(at_odds, !all.empty())
        << "seed " << seed << " violation " << dense.violation(dense.x).norm();
    if (all.empty()) continue;
    ++tied;
    States moved = states;
    bool is_consistent = true;
    for (const auto& odds : all) {
      moved = after(moved, odds);
      is_consistent = is_consistent && odds.is_consistent;
    }
    const Dense then(system, moved);
    const bool can_be = dense.violation(dense.projected()).norm() <= 1e-7;
    ASSERT_EQ(can_be, is_consistent) << "seed " << seed;
    if (!is_consistent) {
      ++contradictory;
      continue;
    }
    // The states that the impulse leads to satisfy all constraints, and are nearest in energy.
    EXPECT_LE(then.violation(then.x).norm(), 1e-7 * (1.0 + then.x.norm())) << "seed " << seed;
    EXPECT_LE((then.x - dense.projected()).norm(), 1e-6 * (1.0 + dense.projected().norm()))
        << "seed " << seed;
    // Part by part: the states, and energies that add up to those of dense algebra.
    double change_J = 0.0, impact_J = 0.0, supplied_J = 0.0;
    States by_part = states;
    for (const auto& odds : all) {
      EXPECT_TRUE(odds.is_passive) << "seed " << seed;
      for (const StateConstraints::PartImpulse& own : odds.parts) {
        EXPECT_GE(own.impact_J, -1e-12 * odds.energy_J) << "seed " << seed;
        change_J += own.change_J;
        impact_J += own.impact_J;
        supplied_J += own.supplied_J;
        if (!own.state.empty()) by_part[static_cast<std::size_t>(own.part)] = own.state;
      }
    }
    const Dense exact(system, by_part);
    EXPECT_LE((exact.x - then.x).norm(), 1e-8 * (1.0 + then.x.norm())) << "seed " << seed;
    const VectorXd dx = exact.x - dense.x;
    const double size_J = 1.0 + dense.x.dot(dense.Q * dense.x) + exact.x.dot(dense.Q * exact.x);
    EXPECT_NEAR(impact_J, 0.5 * dx.dot(dense.Q * dx), 1e-10 * size_J) << "seed " << seed;
    EXPECT_NEAR(change_J, 0.5 * dx.dot(dense.Q * (exact.x + dense.x)), 1e-10 * size_J)
        << "seed " << seed;
    EXPECT_NEAR(change_J, supplied_J - impact_J, 1e-14 * size_J) << "seed " << seed;
    // What is left is rounding, which where a state has come to 0 is all there is.
    for (const auto& left : constraints.odds(at_start(system, moved), kOddsShare)) {
      EXPECT_LE(left.impulse_J, 1e-20 * (1.0 + dense.x.dot(dense.Q * dense.x))) << "seed " << seed;
    }
  }
  EXPECT_GT(tied, 100);
  EXPECT_GT(contradictory, 0);
}

// What people build.

std::shared_ptr<const Component> part(const std::string& type, Parameters parameters) {
  return make_part(type, std::move(parameters));
}

SystemBuilder::PartOptions begins(std::vector<double> state) {
  return {.initial_state = std::move(state)};
}
SystemBuilder::PartOptions given(const std::string& input, double value) {
  SystemBuilder::PartOptions options;
  options.inputs[input] = Signal::constant(value);
  return options;
}

System two_inertias(double a_kgm2, double b_kgm2, double a_rad_per_s, double b_rad_per_s) {
  SystemBuilder builder;
  builder.add("a", part("inertia", {{"inertia_kgm2", a_kgm2}}), begins({0.0, a_rad_per_s}));
  builder.add("b", part("inertia", {{"inertia_kgm2", b_kgm2}}), begins({0.0, b_rad_per_s}));
  builder.join(joint::CommonFlow{}, {"a.shaft", "b.shaft"});
  return builder.build();
}

TEST(StateConstraints, APlasticImpactKeepsTheMomentum) {
  const System system = two_inertias(1.0, 3.0, 10.0, 2.0);
  const auto all = odds_at_start(system);
  ASSERT_EQ(all.size(), 1u);
  ASSERT_EQ(all[0].jumps.size(), 2u);
  EXPECT_NEAR(all[0].jumps[0].after, 4.0, 1e-12);
  EXPECT_NEAR(all[0].jumps[1].after, 4.0, 1e-12);
  EXPECT_NEAR(all[0].change_J, 32.0 - 56.0, 1e-11);
  EXPECT_NEAR(all[0].impulse_J, 24.0, 1e-11);
}

TEST(StateConstraints, NamesTheJointThePartsAndTheValues) {
  const System system = two_inertias(1.0, 3.0, 10.0, 2.0);
  const States states = initial_states(system);
  const StateConstraints constraints(system, reader_of(states));
  ASSERT_EQ(constraints.size(), 1);
  EXPECT_EQ(constraints.joints(0), "common_flow of a.shaft, b.shaft");
  EXPECT_EQ(constraints.values(0, at_start(system, states)),
            "a.speed = 10 rad/s against b.speed = 2 rad/s");
  const auto all = constraints.odds(at_start(system, states), kOddsShare);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(constraints.jumps(all[0]), "a.speed 10 -> 4 rad/s, b.speed 2 -> 4 rad/s");
}

TEST(StateConstraints, UnitsDoNotMatter) {
  for (const double unit : {1e-18, 1e-9, 1.0, 1e9, 1e18}) {
    for (const double speed : {1e-9, 1.0, 1e9}) {
      EXPECT_EQ(odds_at_start(two_inertias(unit, 3.0 * unit, 10.0 * speed, 2.0 * speed)).size(), 1u)
          << unit << ' ' << speed;
      EXPECT_TRUE(odds_at_start(two_inertias(unit, 3.0 * unit, speed, speed)).empty())
          << unit << ' ' << speed;
      EXPECT_EQ(odds_at_start(two_inertias(unit, 1e-9 * unit, 10.0 * speed, speed)).size(), 1u)
          << unit << ' ' << speed;
    }
  }
}

TEST(StateConstraints, RoundingIsNoViolation) {
  EXPECT_TRUE(odds_at_start(two_inertias(1.0, 3.0, 0.1 + 0.2, 0.3)).empty());
  EXPECT_TRUE(odds_at_start(two_inertias(1.0, 3.0, 1.000001, 1.0)).empty());
  EXPECT_FALSE(odds_at_start(two_inertias(1.0, 3.0, 1.001, 1.0)).empty());
}

/// Pairs of a joint and of what stands at it.
struct Case {
  const char* name;
  std::function<void(SystemBuilder&)> build;
  bool at_odds;
};

class AtOdds : public ::testing::TestWithParam<Case> {};

TEST_P(AtOdds, IsFound) {
  SystemBuilder builder;
  GetParam().build(builder);
  const System system = builder.build();
  EXPECT_EQ(!odds_at_start(system).empty(), GetParam().at_odds);
}

const std::vector<Case> kCases = {
    {"held_mass_that_moves",
     [](SystemBuilder& b) {
       b.add("m", part("mass", {{"mass_kg", 2.0}}), begins({1.0, 3.0}));
       b.join(joint::Fixed{}, {"m.port"});
     },
     true},
    {"held_mass_at_rest",
     [](SystemBuilder& b) {
       b.add("m", part("mass", {{"mass_kg", 2.0}}), begins({1.0, 0.0}));
       b.join(joint::Fixed{}, {"m.port"});
     },
     false},
    {"short_circuit",
     [](SystemBuilder& b) {
       b.add("c", part("capacitor", {{"capacitance_F", 1e-9}}), begins({5.0}));
       b.join(joint::Free{}, {"c.terminals"});
     },
     true},
    {"opened_inductor",
     [](SystemBuilder& b) {
       b.add("l", part("inductor", {{"inductance_H", 1e-3}}), begins({2.0}));
       b.join(joint::Fixed{}, {"l.terminals"});
     },
     true},
    {"capacitor_on_a_source",
     [](SystemBuilder& b) {
       b.add("v", part("effort_source", {{"domain", std::string("electrical")}}),
             given("effort", 1.0));
       b.add("r", part("resistor", {{"resistance_ohm", 1.0}, {"gives", std::string("current")}}));
       b.add("c", part("capacitor", {{"capacitance_F", 1.0}}));
       b.join(joint::CommonEffort{}, {"v.port", "r.terminals", "c.terminals"});
     },
     true},
    {"capacitor_on_a_source_through_a_resistor",
     [](SystemBuilder& b) {
       b.add("v", part("effort_source", {{"domain", std::string("electrical")}}),
             given("effort", 1.0));
       b.add("r", part("resistor", {{"resistance_ohm", 1.0}, {"gives", std::string("voltage")}}));
       b.add("c", part("capacitor", {{"capacitance_F", 1.0}}));
       b.join(joint::CommonFlow{}, {"v.port", "r.terminals", "c.terminals"});
     },
     false},
    {"capacitors_in_parallel",
     [](SystemBuilder& b) {
       b.add("c", part("capacitor", {{"capacitance_F", 1e-6}}), begins({5.0}));
       b.add("d", part("capacitor", {{"capacitance_F", 1e-9}}), begins({4.0}));
       b.connect("c.terminals", "d.terminals");
     },
     true},
    {"inductors_in_series",
     [](SystemBuilder& b) {
       b.add("c", part("inductor", {{"inductance_H", 1e-6}}), begins({5.0}));
       b.add("d", part("inductor", {{"inductance_H", 1e-9}}), begins({4.0}));
       b.join(joint::CommonFlow{}, {"c.terminals", "d.terminals"});
     },
     true},
    {"mass_on_a_speed",
     [](SystemBuilder& b) {
       b.add("s", part("flow_source", {{"domain", std::string("translation")}}),
             given("flow", 0.5));
       b.add("m", part("mass", {{"mass_kg", 1.0}}));
       b.join(joint::CommonFlow{}, {"s.port", "m.port"});
     },
     true},
    {"mass_at_that_speed",
     [](SystemBuilder& b) {
       b.add("s", part("flow_source", {{"domain", std::string("translation")}}),
             given("flow", 0.5));
       b.add("m", part("mass", {{"mass_kg", 1.0}}), begins({0.0, 0.5}));
       b.join(joint::CommonFlow{}, {"s.port", "m.port"});
     },
     false},
    {"two_sources_that_disagree",
     [](SystemBuilder& b) {
       b.add("s", part("effort_source", {{"domain", std::string("electrical")}}),
             given("effort", 1.0));
       b.add("t", part("effort_source", {{"domain", std::string("electrical")}}),
             given("effort", 2.0));
       b.connect("s.port", "t.port");
     },
     true},
    {"shafts_through_a_gear",
     [](SystemBuilder& b) {
       b.add("a", part("inertia", {{"inertia_kgm2", 1.0}}), begins({0.0, 6.0}));
       b.add("g", part("gear", {{"ratio", 3.0}}));
       b.add("b", part("inertia", {{"inertia_kgm2", 1.0}}), begins({0.0, 1.0}));
       b.connect("a.shaft", "g.input");
       b.join(joint::CommonFlow{}, {"g.output", "b.shaft"});
     },
     true},
    {"shafts_through_a_gear_that_turn_with_it",
     [](SystemBuilder& b) {
       b.add("a", part("inertia", {{"inertia_kgm2", 1.0}}), begins({0.0, 6.0}));
       b.add("g", part("gear", {{"ratio", 3.0}}));
       b.add("b", part("inertia", {{"inertia_kgm2", 1.0}}), begins({0.0, 2.0}));
       b.connect("a.shaft", "g.input");
       b.join(joint::CommonFlow{}, {"g.output", "b.shaft"});
     },
     false},
    {"masses_side_by_side_of_a_damper",
     [](SystemBuilder& b) {
       b.add("a", part("mass", {{"mass_kg", 1.0}}), begins({0.0, 6.0}));
       b.add("d", part("damper", {{"damping_Ns_per_m", 3.0}}));
       b.add("b", part("mass", {{"mass_kg", 1.0}}), begins({0.0, 1.0}));
       b.connect("a.port", "d.left");
       b.connect("d.right", "b.port");
     },
     false},
    {"current_through_an_open_switch",
     [](SystemBuilder& b) {
       b.add("l", part("inductor", {{"inductance_H", 1.0}}), begins({1.0}));
       b.add("s", part("electrical_switch", {{"on_S", 10.0}}), begins({0.0}));
       b.connect("l.terminals", "s.terminals");
     },
     true},
    {"current_through_a_closed_switch",
     [](SystemBuilder& b) {
       b.add("l", part("inductor", {{"inductance_H", 1.0}}), begins({1.0}));
       b.add("s", part("electrical_switch", {{"on_S", 10.0}}), begins({1.0}));
       b.connect("l.terminals", "s.terminals");
     },
     false},
};

INSTANTIATE_TEST_SUITE_P(StateConstraints, AtOdds, ::testing::ValuesIn(kCases),
                         [](const auto& own) { return std::string(own.param.name); });

TEST(StateConstraints, AChainOfManyIsOneImpact) {
  constexpr int kParts = 200;
  SystemBuilder builder;
  double momentum = 0.0, mass = 0.0;
  for (int i = 0; i < kParts; ++i) {
    const double speed = i == 0 ? 100.0 : 0.0, own = 1.0 + i % 7;
    builder.add("m" + std::to_string(i), part("mass", {{"mass_kg", own}, {"ports", 2}}),
                begins({0.0, speed}));
    momentum += own * speed;
    mass += own;
  }
  builder.join(joint::Free{}, {"m0.port_1"});
  for (int i = 1; i < kParts; ++i) {
    builder.join(joint::CommonFlow{},
                 {"m" + std::to_string(i - 1) + ".port_2", "m" + std::to_string(i) + ".port_1"});
  }
  builder.join(joint::Free{}, {"m" + std::to_string(kParts - 1) + ".port_2"});
  const auto all = odds_at_start(builder.build());
  ASSERT_EQ(all.size(), 1u);
  ASSERT_EQ(all[0].jumps.size(), std::size_t{kParts});
  for (const auto& jump : all[0].jumps) {
    EXPECT_NEAR(jump.after, momentum / mass, 1e-9 * momentum / mass);
  }
}

TEST(StateConstraints, AConstraintWithinADescriptorPartMeetsItsInput) {
  // m v' = λ + …, 0 = s − v: a mass whose speed is prescribed, of index 2.
  const auto made = [](double speed) {
    Signature signature{"prescribed",
                        {{"p", "kg m/s"}, {"lambda", "N"}},
                        {{"t", Causality::effort_in, Domain::translation, 1}},
                        {{"s", "m/s"}}};
    const auto dense = [](int rows, int columns, std::vector<double> values) {
      return SparseMatrix(
          Eigen::Map<Eigen::Matrix<double, -1, -1, Eigen::RowMajor>>(values.data(), rows, columns)
              .sparseView());
    };
    DescriptorForm form{.E = dense(2, 2, {1, 0, 0, 0}),
                        .J = dense(2, 2, {0, 1, -1, 0}),
                        .R = SparseMatrix(2, 2),
                        .Q = dense(2, 2, {0.5, 0, 0, 1}),
                        .B = dense(2, 2, {1, 0, 0, 1})};
    SystemBuilder builder;
    SystemBuilder::PartOptions options = given("s", 3.0);
    options.initial_state = {speed / 0.5, 0.0};
    builder.add("d", std::make_shared<DescriptorPortHamiltonian>(signature, form), options);
    builder.join(joint::Free{}, {"d.t"});
    return builder.build();
  };
  EXPECT_TRUE(odds_at_start(made(3.0)).empty());
  const auto all = odds_at_start(made(0.0));
  ASSERT_EQ(all.size(), 1u);
  ASSERT_FALSE(all[0].jumps.empty());
  EXPECT_NEAR(all[0].jumps[0].after, 6.0, 1e-12);
  ASSERT_EQ(all[0].parts.size(), 1u);
  EXPECT_NEAR(all[0].parts[0].state[0], 6.0, 1e-12);
  EXPECT_NEAR(all[0].parts[0].supplied_J, 18.0, 1e-12) << "3 m/s times 6 kg m/s";
  EXPECT_NEAR(all[0].parts[0].impact_J, 9.0, 1e-12);
}

TEST(StateConstraints, ANetworkWithoutRigidJointsTiesNothing) {
  SystemBuilder builder;
  for (int i = 0; i < 50; ++i) {
    builder.add("m" + std::to_string(i), part("mass", {{"mass_kg", 1.0}, {"ports", 2}}),
                begins({0.0, double(i)}));
    builder.add("s" + std::to_string(i),
                part("spring_damper", {{"stiffness_N_per_m", 1.0}, {"damping_Ns_per_m", 0.1}}));
  }
  builder.join(joint::Free{}, {"m0.port_1"});
  for (int i = 0; i < 50; ++i) {
    const std::string own = std::to_string(i), next = std::to_string(i + 1);
    builder.connect("m" + own + ".port_2", "s" + own + ".left");
    if (i + 1 < 50) builder.connect("s" + own + ".right", "m" + next + ".port_1");
  }
  builder.join(joint::Fixed{}, {"s49.right"});
  const System system = builder.build();
  const States states = initial_states(system);
  EXPECT_TRUE(StateConstraints(system, reader_of(states)).empty());
}

}  // namespace
}  // namespace portwave::test_state_constraints
