// The interface equation: exact at once where the parts are affine, quasi-Newton elsewhere.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/coupling/impedance/tuning.hpp"
#include "portwave/coupling/waves/interface_solver.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/coupling/waves/wave_iteration.hpp"
#include "support/inner_iteration.hpp"
#include "support/systems/coupled_systems.hpp"
#include "support/systems/random_networks.hpp"
#include "support/systems/systems.hpp"
#include "waves/interface_equation.hpp"

namespace portwave::test_interface_solver {
namespace {

WaveCoupling with_kind(const System& system, double h, WaveUpdate kind) {
  WaveCoupling method;
  method.kind = kind;
  method.impedance_kind = ImpedanceKind::automatic;
  return choose_method(PortResponses(system, h), method).method.waves();
}

TEST(InterfaceSolver, ClosesTheGapOfAffineNetworksAtOnce) {
  int hard = 0;
  for (unsigned seed = 1; seed <= 150; ++seed) {
    const System system = testing::random_network({.most_parts = 8, .decades = 4.0}, seed);
    for (const double h : {1e-3, 0.3}) {
      const auto run =
          testing::run_steps(system, h, with_kind(system, h, WaveUpdate::interface), 4, 1e-12, 20);
      EXPECT_TRUE(run.converged) << "seed " << seed << " h " << h;
      EXPECT_LE(run.most_evaluations, 3) << "seed " << seed << " h " << h;
      const auto plain = testing::run_steps(
          system, h, with_kind(system, h, WaveUpdate::peaceman_rachford), 4, 1e-12, 20);
      hard += plain.converged ? 0 : 1;
    }
  }
  EXPECT_GT(hard, 50) << "control: easy for the plain iteration, too";
}

TEST(InterfaceSolver, LeavesAloneWhatIsNotDetermined) {
  // Two rigid bodies joined twice: how the two connections share the force is not determined; and a
  // body held between two free ends: PD has an eigenvalue −1 that nothing excites.
  SystemBuilder builder;
  builder.add("a", testing::sprung_mass({.mass = 1.0, .rigid_ports = 3, .velocity = 1.0}));
  builder.add("b", testing::sprung_mass({.mass = 2.0, .rigid_ports = 4}));
  builder.connect("a.p0", "b.p0");
  builder.connect("a.p1", "b.p1");
  builder.join(joint::Free{}, {"a.p2"});
  builder.join(joint::Free{}, {"b.p2"});
  builder.join(joint::Free{}, {"b.p3"});
  const System system = builder.build();
  for (const double gamma : {0.01, 1.0, 150.0}) {
    WaveCoupling method;
    method.kind = WaveUpdate::interface;
    method.impedance.assign(system.scalar_ports().size(), gamma);
    const auto run = testing::run_steps(system, 0.01, method, 20, 1e-12, 10);
    EXPECT_TRUE(run.converged) << gamma;
    EXPECT_LE(run.most_evaluations, 3) << gamma;
  }
}

TEST(InterfaceSolver, ManyPortsOnOneJunctionMakeNoDenseMatrix) {
  const System system = testing::dc_motors(400, true);
  const PortResponses responses(system, 1e-3);
  const auto gamma = tune_impedance(responses, ImpedanceKind::matched).by_port;
  const PredictedRate rate = predict_rate(responses, gamma, WaveUpdate::interface, 1.0);
  EXPECT_TRUE(rate.converges);
  EXPECT_LE(rate.evaluations, 3);
  const std::size_t ports = system.scalar_ports().size();
  EXPECT_LT(rate.factor_entries, ports * ports / 20);
}

/// A ring of bodies with eight ports each: two to the links beside it, six to limbs, one of which may be a body by
/// itself.
System ring_of_bodies(int bodies, double last_mass = 0.0) {
  SystemBuilder builder;
  for (int i = 0; i < bodies; ++i) {
    const std::string n = std::to_string(i);
    builder.add("body" + n, testing::sprung_mass({.mass = 2.0 + 0.01 * i,
                                                  .stiffness = 10.0,
                                                  .rigid_ports = 8,
                                                  .velocity = i % 3 - 1.0}));
    builder.add("link" + n,
                testing::sprung_mass(
                    {.mass = 0.5, .up_stiffness = 50.0, .up_damping = 0.1, .rigid_ports = 1}));
    for (int k = 2; k < 7; ++k) {
      const std::string limb = "limb" + n + "_" + std::to_string(k);
      builder.add(limb, testing::sprung_mass({.up_stiffness = 30.0 * k + i, .up_damping = 0.1}));
      builder.connect(limb + ".up", "body" + n + ".p" + std::to_string(k));
    }
    const bool is_last = last_mass > 0.0 && i == bodies - 1;
    builder.add("tail" + n, is_last ? testing::sprung_mass({.mass = last_mass, .rigid_ports = 1})
                                    : testing::sprung_mass({.up_stiffness = 5.0}));
    builder.connect("link" + n + ".up", "body" + n + ".p0");
    builder.connect("tail" + n + (is_last ? ".p0" : ".up"), "body" + n + ".p7");
  }
  for (int i = 0; i < bodies; ++i) {
    builder.connect("link" + std::to_string(i) + ".p0",
                    "body" + std::to_string((i + 1) % bodies) + ".p1");
  }
  return builder.build();
}

// In large islands a body with many ports has an unknown of its own. Beside a wall, such as a body of 1e12 kg, that
// has no pivot, and the body is taken as it is.
TEST(InterfaceSolver, BodiesWithManyPortsMakeFewEntries) {
  WaveCoupling method;
  method.kind = WaveUpdate::interface;
  const auto entries_per_body = [&](int bodies, double last_mass) {
    const System system = ring_of_bodies(bodies, last_mass);
    method.impedance.assign(system.scalar_ports().size(), 3.0);
    const auto run = testing::run_steps(system, 0.01, method, 10, 1e-12, 10);
    EXPECT_TRUE(run.converged) << bodies << ", " << last_mass << " kg";
    EXPECT_LE(run.most_evaluations, 3) << bodies << ", " << last_mass << " kg";
    const PredictedRate rate =
        predict_rate(PortResponses(system, 0.01), method.impedance, WaveUpdate::interface, 1.0);
    return static_cast<double>(rate.factor_entries) / bodies;
  };
  const double few = entries_per_body(20, 0.0), many = entries_per_body(80, 0.0);
  EXPECT_LT(many, 0.85 * few);
  EXPECT_LT(entries_per_body(80, 1.0), 0.85 * few);
  EXPECT_GT(entries_per_body(80, 1e12), 0.95 * few) << "control: the others were not taken by D";
}

TEST(InterfaceSolver, IsQuasiNewtonWherePartsAreNonlinear) {
  const System system = testing::duffing_grid(6, 6);
  const WaveCoupling method = with_kind(system, 0.1, WaveUpdate::interface);
  const auto run = testing::run_steps(system, 0.1, method, 10, 1e-10, 50);
  EXPECT_TRUE(run.converged);
  EXPECT_LE(run.most_evaluations, 8);
}

/// One island, judged by hand.
class ByHand {
 public:
  explicit ByHand(const System& system)
      : waves_(system, 0.02, std::vector<double>(system.scalar_ports().size(), 3.0)),
        solver_(waves_),
        iteration_(waves_, {&peaceman_rachford(), 1.0}),
        record_(waves_.initial_record()) {
    solver_.use(0, true);
    solver_.begin();
  }
  double evaluate() {
    EXPECT_TRUE(iteration_.evaluate(record_.data()).ok());
    const std::span<const double> u = iteration_.u(), exchanged = iteration_.shadow();
    double square = 0.0;
    size_ = 0.0;
    for (std::size_t w = 0; w < u.size(); ++w) {
      square += (exchanged[w] - u[w]) * (exchanged[w] - u[w]);
      size_ += exchanged[w] * exchanged[w];
    }
    return square;
  }
  using Effort = InterfaceSolver::Effort;
  bool accept(double square) {
    solver_.measure(0, iteration_.u().data(), iteration_.shadow().data());
    return solver_.accept(0, square, size_);
  }
  bool judge(double square, Effort most = Effort::renew) {
    const bool stands = accept(square);
    done = solver_.advance(0, record_.data(), most);
    return stands;
  }
  bool rehearse(Effort effort) {
    return solver_.rehearse(0, record_.data(), iteration_.u().data(), iteration_.shadow().data(),
                            effort);
  }
  Effort done = Effort::renew;
  void adopt() {
    for (std::size_t w = 0; w < iteration_.u().size(); ++w) {
      iteration_.u()[w] = solver_.next(0).of(w);
    }
  }
  InterfaceSolver& solver() { return solver_; }
  AlignedVector u() { return {iteration_.u().begin(), iteration_.u().end()}; }
  AlignedVector exchanged() { return {iteration_.shadow().begin(), iteration_.shadow().end()}; }

 private:
  WaveDiscretisation waves_;
  InterfaceSolver solver_;
  WaveIteration iteration_;
  AlignedVector record_;
  double size_ = 0.0;
};

TEST(InterfaceSolver, WithoutTimeForASolveTheIterationIsAveraged) {
  using Effort = InterfaceSolver::Effort;
  const System system = testing::duffing_grid(2, 2);
  ByHand island(system);
  const double first = island.evaluate();
  double last = first;
  EXPECT_FALSE(island.rehearse(Effort::solve)) << "there are no factors yet";
  for (const Effort most : {Effort::average, Effort::solve}) {  // of factors that there are not
    for (int k = 0; k < 20; ++k) {
      EXPECT_TRUE(island.judge(last, most));
      EXPECT_EQ(island.done, Effort::average);
      EXPECT_FALSE(island.solver().on_trial(0));
      island.adopt();
      const double next = island.evaluate();
      EXPECT_LE(next, last * (1.0 + 1e-12)) << "the gap of an averaged iteration never grows";
      last = next;
    }
  }
  EXPECT_EQ(island.solver().linearisation_evaluations(), 0);
  EXPECT_LT(last, 0.5 * first);
}

TEST(InterfaceSolver, SolvesWithTheFactorsOfARehearsal) {
  using Effort = InterfaceSolver::Effort;
  const System system = testing::duffing_grid(2, 2);
  ByHand island(system);
  double last = island.evaluate();
  const double first = last;
  EXPECT_TRUE(island.rehearse(Effort::renew));
  EXPECT_TRUE(island.rehearse(Effort::solve));
  island.solver().begin();
  for (int k = 0; k < 4; ++k) {
    island.judge(last, Effort::solve);
    EXPECT_NE(island.done, Effort::renew);
    island.adopt();
    last = island.evaluate();
  }
  EXPECT_EQ(island.solver().linearisation_evaluations(), 0);
  EXPECT_LT(last, 1e-6 * first);
}

TEST(InterfaceSolver, TellsThatASolveHasTakenAnLU) {
  // Whoever times solves must not take these for usual ones.
  using Effort = InterfaceSolver::Effort;
  const System system = testing::duffing_linear_pair();
  ByHand island(system);
  double last = island.evaluate();
  ASSERT_TRUE(island.rehearse(Effort::renew));
  island.solver().begin();
  const auto solved = [&] {
    island.judge(last, Effort::renew);
    island.adopt();
    last = island.evaluate();
    return island.done;
  };
  EXPECT_EQ(solved(), Effort::solve) << "control: with the factors there are";
  island.solver().begin();
  island.solver().take_over_part(1, InterfaceSolver::Derivatives::kept);  // the linear one
  EXPECT_EQ(solved(), Effort::renew);
  EXPECT_EQ(island.solver().linearisation_evaluations(), 0) << "an LU is all there was";
  island.solver().begin();
  EXPECT_NE(solved(), Effort::renew);
}

// A rule of impedances makes the wave of one port 0, up to rounding, and so no entry of the equation. Another mass of
// the body makes it another number, and must not ask for another pattern: in large islands the body is taken by its
// one velocity, in small ones zeros are kept.
TEST(InterfaceEquation, FindsPlacesForTheNextMassOfABody) {
  const auto D_of = [](double lightness) {  // I − c cᵀ of eight ports
    std::vector<double> D;
    for (int i = 0; i < 8; ++i) {
      for (int j = 0; j < 8; ++j) {
        D.push_back((i == j ? 1.0 : 0.0) - lightness * (i == 0 ? 1.0 : 0.2) * (j == 0 ? 1.0 : 0.2));
      }
    }
    return D;
  };
  const std::vector<double> matched = D_of(1.0), other = D_of(1.3);
  ASSERT_EQ(matched[0], 0.0);
  for (const bool is_large : {false, true}) {
    const System system = ring_of_bodies(is_large ? 60 : 2);
    const IslandNetworks networks(system);
    ASSERT_EQ(networks.of[0].ports.size() >= 512, is_large);
    const int body = system.find_part("body1");
    const std::vector<double> none(64, 0.0);
    const auto D = [&](int part) { return part == body ? matched.data() : none.data(); };
    const std::vector<double> impedance(system.scalar_ports().size(), 1.0);
    const Interconnection coupling(system.junctions(), impedance);
    InterfaceEquation equation(system, networks, 0);
    ASSERT_TRUE(equation.factorise(coupling, D));
    EXPECT_TRUE(equation.fits(body, matched.data(), matched.data()));
    EXPECT_EQ(equation.fits(body, matched.data(), other.data()), is_large);
    EXPECT_FALSE(equation.fits(body, matched.data(), none.data())) << "control: not one motion";
    ASSERT_TRUE(equation.factorise(coupling, D, {}, {}, true));
    EXPECT_TRUE(equation.fits(body, matched.data(), other.data()));
  }
}

TEST(InterfaceSolver, GoesBackToTheLastEvaluationThatStands) {
  const System system = testing::duffing_grid(2, 2);
  ByHand island(system);
  const double first = island.evaluate();
  EXPECT_TRUE(island.judge(first));
  const AlignedVector start = island.u();
  island.adopt();
  const AlignedVector full = island.u();
  EXPECT_TRUE(island.solver().on_trial(0));
  // Whatever the next ones are said to be, the steps from the first get shorter; then one is
  // averaged.
  const auto distance = [&] {
    double square = 0.0;
    for (std::size_t w = 0; w < start.size(); ++w) {
      square += (island.u()[w] - start[w]) * (island.u()[w] - start[w]);
    }
    return std::sqrt(square);
  };
  double last = distance();
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  for (const double square : {nothing, 2.0 * first, nothing, 2.0 * first}) {
    EXPECT_FALSE(island.judge(square));
    EXPECT_TRUE(island.solver().on_trial(0));
    island.adopt();
    EXPECT_NEAR(distance(), 0.5 * last, 1e-12 * last);
    last = distance();
  }
  EXPECT_FALSE(island.judge(2.0 * first));
  EXPECT_FALSE(island.solver().on_trial(0));
  island.adopt();
  EXPECT_TRUE(island.judge(island.evaluate()));
  EXPECT_GT(island.solver().linearisation_evaluations(), 0);
}

// Its evaluations go on beside those of other islands of a task.
TEST(InterfaceSolver, AnIslandThatStopsStaysWhereItIs) {
  const System system = testing::duffing_grid(2, 2);
  for (const bool stands : {true, false}) {
    ByHand island(system);
    const double first = island.evaluate();
    island.judge(first);
    island.adopt();
    island.evaluate();
    EXPECT_EQ(island.accept(stands ? 0.1 * first : 2.0 * first), stands);
    const AlignedVector end = island.u();
    for (int k = 0; k < 3; ++k) {
      island.adopt();
      EXPECT_EQ(island.u(), end) << k;
      island.evaluate();
      island.solver().measure(0, island.u().data(), island.exchanged().data());
    }
  }
}

TEST(InterfaceSolver, GoesOnFromTrialsThatAreWorseButNotForEver) {
  const System system = testing::duffing_grid(2, 2);
  ByHand island(system);
  const double first = island.evaluate();
  EXPECT_TRUE(island.judge(first));
  const AlignedVector start = island.u();
  island.adopt();
  const AlignedVector full = island.u();
  // Whatever they are said to be: none is taken, and each leads on from where it is.
  AlignedVector before = full;
  for (int k = 0; k < 8; ++k) {
    island.evaluate();
    EXPECT_FALSE(island.judge((2.0 + k) * first)) << k;
    EXPECT_TRUE(island.solver().on_trial(0));
    island.adopt();
    EXPECT_NE(island.u(), before) << k;
    before = island.u();
  }
  // Then half of the first update takes the place of all.
  island.evaluate();
  EXPECT_FALSE(island.judge(2.0 * first));
  island.adopt();
  for (std::size_t w = 0; w < start.size(); ++w) {
    EXPECT_NEAR(island.u()[w], start[w] + 0.5 * (full[w] - start[w]), 1e-6) << w;
  }
  EXPECT_TRUE(island.judge(0.5 * first)) << "one that is better stands";
}

TEST(InterfaceSolver, DoesNotGoRoundInCirclesNorTakeWhatIsHardlyBetter) {
  const System system = testing::duffing_grid(2, 2);
  ByHand island(system);
  const double first = island.evaluate();
  EXPECT_TRUE(island.judge(first));
  const AlignedVector start = island.u();
  island.adopt();
  const AlignedVector full = island.u();
  for (const double square : {2.0, 0.9, 2.0}) {
    island.evaluate();
    EXPECT_FALSE(island.judge(square * first)) << square;
    island.adopt();
  }
  for (std::size_t w = 0; w < start.size(); ++w) {
    EXPECT_NEAR(island.u()[w], start[w] + 0.5 * (full[w] - start[w]), 1e-6) << w;
  }
}

}  // namespace
}  // namespace portwave::test_interface_solver
