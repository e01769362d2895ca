#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include <gtest/gtest.h>

#include <portwave/coupling/network/dynamic_iteration.hpp>

#include "network/block_groups.hpp"
#include "support/systems/linear_networks.hpp"
#include "support/systems/random_linear.hpp"
#include "support/systems/systems.hpp"
#include "support/systems/whole_system.hpp"

namespace portwave::test_dynamic_laws {
namespace {

using testing::RandomLinear;
using testing::RandomNumbers;
using Waveform = std::vector<double>;

Waveform solution(const CondensedSystem& system, double step_s,
                  const WaveformIteration& iteration) {
  CollocationReference reference(system, step_s, iteration.parameters().integrator);
  Waveform out;
  for (int n = 0; n < iteration.window_steps(); ++n) {
    reference.step();
    out.insert(out.end(), reference.stages().begin(), reference.stages().end());
  }
  return out;
}

/// A random iteration on a random network, and how its weighted norm went.
struct RandomRun {
  bool is_radau = false;
  bool monotone_by_theory = false;
  double largest_rise = 0.0;  ///< of ‖Δzᵏ‖ from one iteration to the next, above 1e-11 of the start
  double fall = 1.0;          ///< last over first
};

/// `decay` is hω; hμ follows from `mu_share` of it.
RandomRun random_run(unsigned seed, double decay_from, double decay_to, double share_from,
                     double share_to) {
  RandomNumbers random(1000 + seed);
  const auto kind = seed % 4 == 0   ? RandomLinear::E::identity
                    : seed % 4 == 1 ? RandomLinear::E::regular
                                    : RandomLinear::E::singular;
  const System network =
      testing::random_linear_network({.kind = kind, .driven = seed % 3 == 0}, seed);
  const CondensedSystem system(network);
  const double h = random.logarithmic(1e-3, 0.3);
  DynamicIteration method;
  method.kind = IterationKind::lions_mercier;
  DynamicIteration& d = method;
  d.omega = random.uniform(decay_from, decay_to) / h;
  d.mu = random.uniform(share_from, share_to) * *d.omega;
  d.alpha = random.uniform(0.05, 0.95);
  d.lambda = random.logarithmic(0.05, 20.0);
  d.window_steps = random.integer(1, 30);
  d.integrator = kind == RandomLinear::E::singular || seed % 8 >= 4 ? Integrator::radau_iia
                                                                    : Integrator::midpoint;
  d.metric = kind == RandomLinear::E::identity && seed % 8 == 0 ? IterationMetric::energy
                                                                : IterationMetric::identity;
  WaveformIteration iteration(system, h, method);
  RandomRun run;
  run.is_radau = d.integrator == Integrator::radau_iia;
  run.monotone_by_theory = iteration.parameters().bounds.monotone;
  const Eigen::VectorXd start = system.initial_state();
  iteration.begin(0.0, {start.data(), static_cast<std::size_t>(start.size())});
  const Waveform x = solution(system, h, iteration);
  Waveform exact(x.size()), z(x.size());
  iteration.z_of_solution(x, exact);
  double first = 0.0, before = 0.0;
  for (int k = 0; k < 60; ++k) {
    iteration.z(z);
    for (std::size_t i = 0; i < z.size(); ++i) z[i] -= exact[i];
    const double norm = iteration.weighted_norm(z);
    if (k == 0) first = norm;
    if (k > 0) run.largest_rise = std::max(run.largest_rise, norm / before);
    if (norm <= 1e-11 * first) break;
    run.fall = norm / first;
    before = norm;
    iteration.iterate(ForEach());
  }
  return run;
}

// Theorem 24(d) of Bartel et al., for the discretised iteration: method.md's conditions are 0 < α <
// 1, 0 < μ ≤ .9 ω, hω ≤ .1.
TEST(LionsMercierLaw, TheWeightedNormNeverRises) {
  int radau = 0, midpoint = 0;
  double fall = 1.0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    const RandomRun run = random_run(seed, 0.005, 0.1, 0.05, 0.9);
    EXPECT_TRUE(run.monotone_by_theory) << "seed " << seed;
    EXPECT_LE(run.largest_rise, 1.0 + 1e-10) << "seed " << seed;
    ++(run.is_radau ? radau : midpoint);
    fall = std::min(fall, run.fall);
  }
  EXPECT_GT(radau, 50);
  EXPECT_GT(midpoint, 40);
  EXPECT_LT(fall, 1e-3);
}

TEST(LionsMercierLawControl, BeyondTheConditionsItMayRise) {
  int rises = 0, warned = 0;
  for (unsigned seed = 1; seed <= 100; ++seed) {
    const RandomRun run = random_run(seed, 2.0, 6.0, 0.9, 1.0);  // hμ > 1
    if (run.largest_rise > 1.0 + 1e-6) ++rises;
    if (!run.monotone_by_theory) ++warned;
  }
  EXPECT_GT(rises, 0);
  EXPECT_EQ(warned, 100);
}

/// Steps by dynamic iteration in windows beside the monolithic solution; the largest difference.
double difference_from_monolithic(const CondensedSystem& system, double step_s,
                                  const DynamicIteration& method, int steps) {
  DynamicIterationMethod iteration(system, step_s, method);
  CollocationReference reference(system, step_s, iteration.parameters().integrator);
  double worst = 0.0;
  for (int n = 0; n < steps; ++n) {
    iteration.step(ForEach());
    reference.step();
    for (std::size_t i = 0; i < reference.state().size(); ++i) {
      worst = std::max(worst, std::abs(iteration.state()[i] - reference.state()[i]));
    }
  }
  return worst;
}

DynamicIteration to_tolerance(IterationKind kind, int window_steps, int iterations = 5000,
                              double tolerance = 1e-13) {
  DynamicIteration method;
  method.kind = kind;
  method.iterations = iterations;
  method.tolerance = tolerance;
  method.window_steps = window_steps;
  return method;
}

TEST(LionsMercierLaw, ItsFixedPointIsTheMonolithicSolution) {
  const System masses = testing::two_masses();
  DynamicIteration paper = to_tolerance(IterationKind::lions_mercier, 50);
  paper.metric = IterationMetric::identity;
  paper.lambda = 1.5;
  paper.mu = 2.0;
  paper.omega = 2.2;
  EXPECT_LT(difference_from_monolithic(CondensedSystem(masses), 0.02, paper, 200), 1e-10);
  paper.integrator = Integrator::radau_iia;
  EXPECT_LT(difference_from_monolithic(CondensedSystem(masses), 0.02, paper, 200), 1e-10);

  const System chains = testing::single_rate_chains();
  EXPECT_LT(difference_from_monolithic(CondensedSystem(chains), 1e-3,
                                       to_tolerance(IterationKind::lions_mercier, 10), 200),
            1e-10);
  // Free chains: Q is singular, which the energy metric takes.
  const System blocks = testing::chain_of_blocks(8, 5);
  EXPECT_LT(difference_from_monolithic(CondensedSystem(blocks), 0.01,
                                       to_tolerance(IterationKind::lions_mercier, 4), 100),
            1e-10);
  for (unsigned seed = 1; seed <= 10; ++seed) {
    const auto kind = seed % 2 == 0 ? RandomLinear::E::singular : RandomLinear::E::identity;
    const System network =
        testing::random_linear_network({.kind = kind, .driven = seed % 3 == 0}, seed);
    DynamicIteration method = to_tolerance(IterationKind::lions_mercier, 5);
    if (seed % 4 == 1) method.integrator = Integrator::radau_iia;
    EXPECT_LT(difference_from_monolithic(CondensedSystem(network), 0.02, method, 30), 1e-10)
        << "seed " << seed;
  }
}

TEST(LionsMercierLawControl, AFewIterationsAreNotTheMonolithicSolution) {
  const System masses = testing::two_masses();
  EXPECT_GT(difference_from_monolithic(CondensedSystem(masses), 0.02,
                                       to_tolerance(IterationKind::lions_mercier, 50, 1), 50),
            1e-6);
}

TEST(Relaxation, ConvergesToTheMonolithicSolutionOverShortWindows) {
  const System chains = testing::single_rate_chains();
  const System pair = testing::rotation(15.0, 0.01, 2.0);
  for (const IterationKind kind : {IterationKind::jacobi, IterationKind::gauss_seidel}) {
    EXPECT_LT(
        difference_from_monolithic(CondensedSystem(chains), 1e-3, to_tolerance(kind, 20), 200),
        1e-10);
    EXPECT_LT(difference_from_monolithic(CondensedSystem(pair), 1e-3, to_tolerance(kind, 10), 200),
              1e-10);
    for (unsigned seed = 1; seed <= 6; ++seed) {
      const System network = testing::random_linear_network({.driven = seed % 2 == 0}, seed);
      EXPECT_LT(
          difference_from_monolithic(CondensedSystem(network), 0.01, to_tolerance(kind, 5), 50),
          1e-10)
          << to_string(kind) << seed;
    }
  }
}

TEST(Relaxation, GaussSeidelNeedsFewerIterationsThanJacobi) {
  const System pair = testing::rotation(15.0, 0.01, 2.0);
  const CondensedSystem system(pair);
  const auto iterations = [&](IterationKind kind) {
    DynamicIterationMethod iteration(system, 1e-3, to_tolerance(kind, 100, 200, 1e-12));
    return iteration.step(ForEach()).iterations;
  };
  EXPECT_LT(iterations(IterationKind::gauss_seidel), iterations(IterationKind::jacobi));
}

TEST(Relaxation, DivergenceIsSeenAndSaid) {
  const System pair = testing::rotation(15.0, 0.01, 2.0);
  const CondensedSystem system(pair);
  DynamicIterationMethod iteration(system, 1e-3, to_tolerance(IterationKind::jacobi, 10000, 500));
  try {
    iteration.step(ForEach());
    ADD_FAILURE() << "Jacobi over ten seconds must be given up";
  } catch (const NetworkFault& fault) {
    EXPECT_EQ(fault.fault(), StepFault::not_converged);
    EXPECT_NE(std::string(fault.what()).find("the iteration diverges"), std::string::npos)
        << fault.what();
    EXPECT_GT(fault.iteration(), 5);
    EXPECT_LT(fault.iteration(), 60);
  }
  EXPECT_EQ(iteration.step_index(), 0);
  EXPECT_DOUBLE_EQ(iteration.state()[0], 2.0);

  // Without a limit it goes on to the overflow of double precision: ν T = 1500 would peak near
  // 1e650.
  DynamicIteration endless = to_tolerance(IterationKind::jacobi, 20000, 3000);
  endless.divergence_limit = std::numeric_limits<double>::infinity();
  const System fast = testing::rotation(150.0, 0.01, 2.0);
  const CondensedSystem fast_system(fast);
  DynamicIterationMethod overflowing(fast_system, 5e-4, endless);
  try {
    overflowing.step(ForEach());
    ADD_FAILURE() << "it must overflow";
  } catch (const NetworkFault& fault) {
    EXPECT_EQ(fault.fault(), StepFault::not_finite);
  }
}

std::vector<std::string> reasons(const System& parts, double step_s,
                                 const DynamicIteration& method) {
  std::vector<std::string> out;
  const CondensedSystem system(parts);
  try {
    const DynamicIterationMethod iteration(system, step_s, method);
  } catch (const ConfigError& error) {
    for (const Issue& issue : error.issues()) out.push_back(issue.where + ": " + issue.what);
  }
  return out;
}

/// Two parts d/dt(0) = Jx + u of two states: Remark 27's example twice, E = R = 0.
System nothing_but_structure() {
  SystemBuilder builder;
  std::vector<std::string> ports;
  for (const char* name : {"a", "b"}) {
    DescriptorForm form{SparseMatrix(2, 2), testing::sparse(2, 2, {{0, 1, 1.0}, {1, 0, -1.0}}),
                        SparseMatrix(2, 2), testing::sparse(2, 2, {{0, 0, 1.0}, {1, 1, 1.0}}),
                        testing::sparse(2, 1, {{0, 0, 1.0}})};
    builder.add(name, std::make_shared<DescriptorPortHamiltonian>(
                          Signature{"structure",
                                    {{"x1", ""}, {"x2", ""}},
                                    {{"p", Causality::effort_in, Domain::generic, 1}},
                                    {}},
                          form));
  }
  Eigen::MatrixXd gain(2, 2);
  gain << 0.0, 1.0, -1.0, 0.0;
  builder.join(joint::SkewGain{gain}, {"a.p", "b.p"});
  return builder.build();
}

TEST(LionsMercier, RefusesSystemsThatViolateTheRankConditions) {
  DynamicIteration method = to_tolerance(IterationKind::lions_mercier, 1);
  const auto rank = reasons(nothing_but_structure(), 0.1, method);
  ASSERT_EQ(rank.size(), 1u);
  EXPECT_EQ(rank[0],
            "/subsystems/0: the iteration need not converge: in \"a\" neither rank[mu E, (1-alpha) "
            "R] nor "
            "rank[E, alpha R] is full (mu = 9, alpha = 0.5): it has states that neither store nor "
            "dissipate "
            "energy");
  // α = 0 leaves R to K, α = 1 to the parts; with μ = 0, an undamped state and α = 1 only x
  // converges.
  const System masses = testing::two_masses();
  const CondensedSystem system(masses);
  const auto bounds = [&](double mu, double alpha) {
    return lions_mercier_bounds(system, 1e-3, 1.0, mu, 2.2, alpha, Integrator::midpoint,
                                IterationMetric::identity);
  };
  EXPECT_TRUE(bounds(2.0, 1.0).rank_mu);
  EXPECT_FALSE(bounds(0.0, 0.5).rank_mu);
  EXPECT_TRUE(bounds(0.0, 0.5).x_converges());
  EXPECT_EQ(bounds(0.0, 0.5).rate, 1.0);
}

// The norm cannot rise where hμ ≤ tanh(hω) with midpoint, hμ ≤ 1 − e^(−hω) with Radau IIA: a run
// takes no more, says what it would take, and takes that. Iterations for studies go on.
TEST(LionsMercier, RefusesAShiftWithWhichTheNormMayRise) {
  const System parts = testing::two_masses();
  const CondensedSystem system(parts);
  for (const Integrator integrator : {Integrator::midpoint, Integrator::radau_iia}) {
    for (const double decay : {1e-3, 0.1, 1.0, 10.0}) {
      const double h = 0.05, omega = decay / h;
      const double most =
          (integrator == Integrator::midpoint ? std::tanh(decay) : -std::expm1(-decay)) / h;
      DynamicIteration method = to_tolerance(IterationKind::lions_mercier, 3);
      method.integrator = integrator;
      method.omega = omega;
      method.mu = most;
      EXPECT_TRUE(reasons(parts, h, method).empty()) << decay;
      method.mu = std::min(1.001 * most, 0.5 * (most + omega));  // no more than omega
      const auto refused = reasons(parts, h, method);
      ASSERT_EQ(refused.size(), 1u) << decay;
      EXPECT_EQ(refused[0].substr(0, 12), "/method/mu: ") << refused[0];
      // It names a value that will do.
      const auto at = refused[0].find("Take mu <= ");
      ASSERT_NE(at, std::string::npos) << refused[0];
      method.mu = std::stod(refused[0].substr(at + 11)) * (1.0 - 1e-5);
      EXPECT_TRUE(reasons(parts, h, method).empty()) << refused[0];
      method.mu = 0.5 * (most + omega);
      EXPECT_FALSE(WaveformIteration(system, h, method).parameters().bounds.monotone);
    }
  }
}

TEST(LionsMercier, StopsWithAReasonWhereWaveformsGrow) {
  const System parts = testing::two_masses();
  const CondensedSystem system(parts);
  DynamicIteration method = to_tolerance(IterationKind::lions_mercier, 10);
  method.divergence_limit = 1e-6;  // control of the limit itself: any change is too much
  DynamicIterationMethod iteration(system, 0.01, method);
  try {
    iteration.step(ForEach());
    ADD_FAILURE() << "it must stop";
  } catch (const NetworkFault& fault) {
    EXPECT_EQ(fault.fault(), StepFault::not_converged);
    EXPECT_NE(std::string(fault.what()).find("the iteration diverges"), std::string::npos)
        << fault.what();
  }
}

TEST(LionsMercier, RefusesBadSettingsAllAtOnce) {
  DynamicIteration method;
  method.kind = IterationKind::lions_mercier;
  method = {.window_steps = 0, .lambda = -1.0, .mu = 3.0, .omega = 2.0, .alpha = 1.5};
  const auto bad = reasons(testing::two_masses(), 0.1, method);
  ASSERT_EQ(bad.size(), 4u);
  EXPECT_EQ(bad[0], "/method/window_steps: must be >= 1, got 0");
  EXPECT_EQ(bad[1], "/method/lambda: must be > 0 and finite, got -1");
  EXPECT_EQ(bad[2],
            "/method/omega: must not be below mu (2 < 3): the iteration then need not converge");
  EXPECT_EQ(bad[3], "/method/alpha: must be between 0 and 1, got 1.5");

  method = {.integrator = Integrator::midpoint, .metric = IterationMetric::energy};
  const auto singular =
      reasons(testing::random_linear_network({.kind = RandomLinear::E::singular}, 2), 0.1, method);
  ASSERT_EQ(singular.size(), 2u);
  EXPECT_EQ(
      singular[0],
      "/method/integrator: the system has algebraic equations (E is singular): take \"radau-iia\"");
  EXPECT_EQ(
      singular[1],
      "/method/metric: \"energy\" needs E = I, and there are descriptor parts: take \"identity\"");

  method = {.metric = IterationMetric::identity};
  const auto free_chain = reasons(testing::chain_of_blocks(2, 3), 0.1, method);
  ASSERT_FALSE(free_chain.empty());
  EXPECT_NE(free_chain[0].find("has a singular Q"), std::string::npos) << free_chain[0];
}

/// Leaves that differ a little and a hub that all of them are coupled to, added last: Gauss–Seidel
/// takes the leaves at once.
System star_of_leaves(int leaves) {
  SystemBuilder builder;
  RandomNumbers random(11);
  const auto part = [&](int n, int ports) {
    Structure s = Structure::zero(n, ports);
    Signature signature{"leaf", {}, {}, {}};
    for (int k = 0; k < n; ++k) signature.states.push_back({"x" + std::to_string(k), ""});
    for (int k = 0; k < ports; ++k) {
      signature.ports.push_back(
          {"p" + std::to_string(k), Causality::effort_in, Domain::generic, 1});
    }
    s.J = SparseMatrix(random.skew(n).sparseView());
    s.R = SparseMatrix(random.semidefinite(n, 1).sparseView());
    s.G = SparseMatrix(random.matrix(n, ports).sparseView());
    const Eigen::MatrixXd Q = random.semidefinite(n, n) + Eigen::MatrixXd::Identity(n, n);
    return std::make_shared<LinearPortHamiltonian>(
        signature, s, SparseMatrix((0.5 * (Q + Q.transpose())).sparseView()));
  };
  for (int i = 0; i < leaves; ++i) {
    builder.add("leaf" + std::to_string(i), part(4, 1),
                {.initial_state = {0.1 * i, 1.0, -0.5, 0.2}});
  }
  builder.add("hub", part(6, leaves));
  Eigen::MatrixXd gain(2, 2);
  gain << 0.0, 0.7, -0.7, 0.0;
  for (int i = 0; i < leaves; ++i) {
    builder.join(joint::SkewGain{gain},
                 {"hub.p" + std::to_string(i), "leaf" + std::to_string(i) + ".p0"});
  }
  return builder.build();
}

/// Counts how many bodies were run at once at the most; backwards, half of them on another thread.
class ScatteredForEach : public ForEach {
 public:
  mutable int most = 0;

 private:
  void run(int count, void (*call)(const void*, int), const void* body) const override {
    most = std::max(most, count);
    std::thread other([&] {
      for (int i = count - 1; i >= count / 2; --i) call(body, i);
    });
    for (int i = count / 2 - 1; i >= 0; --i) call(body, i);
    other.join();
  }
};

class SmallTasks {
 public:
  SmallTasks() { set_task_nanoseconds(0.0); }
  ~SmallTasks() { set_task_nanoseconds(kDefaultTask_ns); }
  SmallTasks(const SmallTasks&) = delete;
  SmallTasks& operator=(const SmallTasks&) = delete;
};

TEST(DynamicIteration, ResultsDoNotDependOnWhoRunsTheTasks) {
  const SmallTasks small;
  const System star = star_of_leaves(6), chain = testing::chain_of_blocks(20, 3);
  for (const System* parts : {&star, &chain}) {
    const CondensedSystem system(*parts);
    for (const IterationKind kind :
         {IterationKind::lions_mercier, IterationKind::jacobi, IterationKind::gauss_seidel}) {
      const DynamicIteration method = to_tolerance(kind, 4, 12, 0.0);
      DynamicIterationMethod a(system, 0.01, method), b(system, 0.01, method);
      const ForEach serial;
      const ScatteredForEach scattered;
      for (int n = 0; n < 12; ++n) {
        a.step(serial);
        b.step(scattered);
        EXPECT_TRUE(std::equal(a.state().begin(), a.state().end(), b.state().begin()))
            << to_string(kind);
      }
      EXPECT_GT(scattered.most, 2) << to_string(kind);
    }
  }
}

TEST(LionsMercier, WeightsThatAreChosenKeepTheNormFromRising) {
  const System masses = testing::two_masses();
  const CondensedSystem system(masses);
  for (const Integrator integrator : {Integrator::midpoint, Integrator::radau_iia}) {
    for (const int window : {1, 7, 500}) {
      for (const double omega : {0.0, 0.1, 5.0, 50.0, 1e4}) {
        DynamicIteration method = to_tolerance(IterationKind::lions_mercier, window);
        method.integrator = integrator;
        if (omega > 0.0) method.omega = omega;
        EXPECT_TRUE(WaveformIteration(system, 0.02, method).parameters().bounds.monotone)
            << to_string(integrator) << ", window " << window << ", omega " << omega;
      }
    }
  }
}

TEST(DynamicIteration, SlowConvergenceIsNotTakenForConvergence) {
  const System masses = testing::two_masses();
  const CondensedSystem system(masses);
  for (const double lambda : {1e-12, 1.5, 1e12}) {
    DynamicIteration method = to_tolerance(IterationKind::lions_mercier, 1, 400, 1e-3);
    method.lambda = lambda;
    DynamicIterationMethod iteration(system, 0.01, method);
    CollocationReference exact(system, 0.01, Integrator::midpoint);
    const NetworkStep step = iteration.step(ForEach());
    exact.step();
    const double error =
        (Eigen::Map<const Eigen::VectorXd>(iteration.state().data(), system.size()) -
         Eigen::Map<const Eigen::VectorXd>(exact.state().data(), system.size()))
            .norm();
    EXPECT_TRUE(!step.converged || error < 0.02 * system.initial_state().norm())
        << lambda << ": " << error;
  }
}

// A skew gain between the ports of one lossless part must not leave negative dampers of rounding.
TEST(LionsMercier, TakesLosslessPartsCoupledWithThemselves) {
  SystemBuilder builder;
  Structure s = Structure::zero(1, 3);
  s.G = testing::sparse(1, 3, {{0, 0, 0.3}, {0, 1, 0.7}, {0, 2, 1.1}});
  Signature signature{"self", {{"x", ""}}, {}, {}};
  for (const char* name : {"p0", "p1", "p2"})
    signature.ports.push_back({name, Causality::effort_in, Domain::generic, 1});
  builder.add(
      "a",
      std::make_shared<LinearPortHamiltonian>(signature, s, testing::sparse(1, 1, {{0, 0, 0.4}})),
      {.initial_state = {1.0}});
  Eigen::MatrixXd gain(3, 3);
  gain << 0.0, 0.1, -0.3, -0.1, 0.0, 0.7, 0.3, -0.7, 0.0;
  builder.join(joint::SkewGain{gain}, {"a.p0", "a.p1", "a.p2"});
  EXPECT_TRUE(
      reasons(builder.build(), 0.01, to_tolerance(IterationKind::lions_mercier, 1)).empty());
}

TEST(DynamicIteration, AWindowCanBeInterrupted) {
  const System masses = testing::two_masses();
  const CondensedSystem system(masses);
  DynamicIterationMethod iteration(system, 0.01,
                                   to_tolerance(IterationKind::lions_mercier, 10, 100, 0.0));
  int asked = 0;
  iteration.set_interrupted([&asked] { return ++asked > 5; });
  try {
    iteration.step(ForEach());
    ADD_FAILURE() << "it must stop";
  } catch (const NetworkFault& fault) {
    EXPECT_STREQ(fault.what(), "interrupted");
    EXPECT_EQ(fault.iteration(), 5);
  }
  EXPECT_EQ(iteration.step_index(), 0);
  iteration.set_interrupted({});
  EXPECT_EQ(iteration.step(ForEach()).iterations, 100);
}

TEST(DynamicIteration, AToleranceBelowRoundOffStallsAndSaysSo) {
  const System chains = testing::single_rate_chains();
  const CondensedSystem system(chains);
  DynamicIterationMethod iteration(system, 1e-3,
                                   to_tolerance(IterationKind::lions_mercier, 10, 5000, 1e-20));
  const NetworkStep step = iteration.step(ForEach());
  EXPECT_TRUE(step.stalled);
  EXPECT_FALSE(step.converged);
  EXPECT_LT(step.iterations, 500);
  EXPECT_LT(step.residual, 1e-11);
  EXPECT_FALSE(iteration.remarks().empty());
}

TEST(DynamicIteration, StoresNoMoreEnergyThanItReceivesAtEveryStepOnceConverged) {
  for (unsigned seed = 1; seed <= 8; ++seed) {
    const auto kind = seed % 2 == 0 ? RandomLinear::E::singular : RandomLinear::E::identity;
    const System network = testing::random_linear_network(
        {.kind = kind, .driven = seed % 3 == 0, .lossless = seed == 5}, seed);
    const CondensedSystem system(network);
    DynamicIterationMethod iteration(system, 0.02, to_tolerance(IterationKind::lions_mercier, 5));
    double before = testing::stored_energy(system, iteration.state().data());
    for (int n = 0; n < 40; ++n) {
      const NetworkStep step = iteration.step(ForEach());
      const double after = testing::stored_energy(system, iteration.state().data());
      EXPECT_NEAR(step.energy.stored_J, after, 1e-12 * (after + before));
      EXPECT_LE(after - before - step.energy.supplied_J, 1e-10 * (after + before))
          << "seed " << seed << ", step " << n;
      EXPECT_GE(step.energy.mismatch_J, -1e-10 * step.energy_scale_J);
      before = after;
    }
  }
}

// Beyond 400 states norms come from power iterations.
TEST(DynamicIteration, NormsOfLargeSystemsAreEstimatedWell) {
  const System parts = testing::chain_pair({102, 50.0, 0.3, 0.1}, {102, 40.0, 0.4, 0.2}, 50.0);
  const CondensedSystem system(parts);
  ASSERT_GT(system.size(), 400);
  constexpr double mu = 2.0, alpha = 0.5;
  const LionsMercierBounds bounds = lions_mercier_bounds(
      system, 1e-3, 0.0, mu, 2.2, alpha, Integrator::midpoint, IterationMetric::identity);
  EXPECT_TRUE(bounds.estimated);
  const Eigen::MatrixXd S =
      (1.0 - alpha) * Eigen::MatrixXd(system.R()) + mu * Eigen::MatrixXd(system.Q()).inverse();
  const Eigen::MatrixXd K = S - Eigen::MatrixXd(system.J_coupling());
  const double norm = std::sqrt(
      Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(K.transpose() * K, Eigen::EigenvaluesOnly)
          .eigenvalues()
          .maxCoeff());
  EXPECT_NEAR(bounds.norm_K, norm, 1e-6 * norm);
  const double smallest = Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(S, Eigen::EigenvaluesOnly)
                              .eigenvalues()
                              .minCoeff();
  EXPECT_NEAR(bounds.norm_inverse, 1.0 / smallest, 1e-3 / smallest);
}

TEST(DynamicIteration, BoundsOfLargeSystemsAreThoseOfSmallOnes) {
  // Beyond 400 states norms come from power iteration.
  const System small = testing::chain_of_blocks(8, 10), large = testing::chain_of_blocks(30, 10);
  const auto bounds = [](const System& parts) {
    return lions_mercier_bounds(CondensedSystem(parts), 0.01, 0.0, 50.0, 60.0, 0.5,
                                Integrator::midpoint, IterationMetric::energy);
  };
  const LionsMercierBounds a = bounds(small), b = bounds(large);
  EXPECT_NEAR(a.norm_K, b.norm_K, 1e-3 * a.norm_K);
  EXPECT_NEAR(a.optimal_rate, b.optimal_rate, 1e-2);
}

}  // namespace
}  // namespace portwave::test_dynamic_laws
