#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include <portwave/coupling/network/collocation.hpp>
#include <portwave/coupling/network/splitting.hpp>

#include "network/block_groups.hpp"
#include "support/systems/linear_networks.hpp"
#include "support/systems/random_linear.hpp"
#include "support/systems/systems.hpp"
#include "support/systems/whole_system.hpp"

namespace portwave::test_splitting_laws {
namespace {

using testing::RandomLinear;

/// The splitting methods there are, on parts named part0, part1, …
struct Variant {
  std::string name;
  Splitting method;
};

std::vector<Variant> variants() {
  Splitting strang;
  strang.kind = SplittingKind::strang;
  Splitting split = strang;
  split.split_dissipation = true;
  Splitting impulse;
  impulse.kind = SplittingKind::impulse;
  impulse.factor = 5;
  impulse.fast = {"part0"};
  return {{"strang", strang}, {"strang, local flows split", split}, {"impulse", impulse}};
}

/// The fine solution of a network at the end of a time: third order at a step that is far smaller.
Eigen::VectorXd fine_solution(const CondensedSystem& system, double end_s) {
  constexpr int kSteps = 4000;
  CollocationReference fine(system, end_s / kSteps, Integrator::radau_iia);
  for (int n = 0; n < kSteps; ++n) fine.step();
  return Eigen::Map<const Eigen::VectorXd>(fine.state().data(), system.size());
}

double error_of(const CondensedSystem& system, const Splitting& method, double end_s, int steps,
                const Eigen::VectorXd& exact) {
  SplittingMethod splitting(system, end_s / steps, method);
  for (int n = 0; n < steps; ++n) splitting.step(ForEach());
  return (Eigen::Map<const Eigen::VectorXd>(splitting.state().data(), system.size()) - exact)
      .norm();
}

TEST(SplittingLaw, SecondOrderOnRandomNetworks) {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    const auto kind = seed % 2 == 0 ? RandomLinear::E::regular : RandomLinear::E::identity;
    const System network =
        testing::random_linear_network({.kind = kind, .driven = seed % 3 == 0}, seed);
    const CondensedSystem system(network);
    const Eigen::VectorXd exact = fine_solution(system, 1.0);
    for (const Variant& variant : variants()) {
      const double coarse = error_of(system, variant.method, 1.0, 100, exact);
      const double fine = error_of(system, variant.method, 1.0, 200, exact);
      EXPECT_NEAR(std::log2(coarse / fine), 2.0, 0.15)
          << variant.name << ", seed " << seed << ": " << coarse << ", " << fine;
    }
  }
}

/// The largest ΔH − supply over the steps, in units of the energies it is formed of; H itself is
/// formed anew from the states.
double worst_energy_excess(const CondensedSystem& system, const Splitting& method, double step_s,
                           int steps) {
  SplittingMethod splitting(system, step_s, method);
  double before = testing::stored_energy(system, splitting.state().data()), worst = -1.0;
  for (int n = 0; n < steps; ++n) {
    const NetworkStep step = splitting.step(ForEach());
    const double after = testing::stored_energy(system, splitting.state().data());
    EXPECT_NEAR(step.energy.stored_J, after, 1e-12 * (after + before));
    // The ledger closes: what is not dissipated or supplied stays.
    EXPECT_NEAR(step.energy.mismatch_J, 0.0, 1e-12 * step.energy_scale_J);
    if (!system.has_active()) {
      EXPECT_GE(step.energy.dissipated_J, -1e-12 * step.energy_scale_J);
    }
    worst = std::max(worst, (after - before - step.energy.supplied_J) /
                                (after + before + std::abs(step.energy.supplied_J)));
    before = after;
  }
  return worst;
}

TEST(SplittingLaw, StoresNoMoreEnergyThanItReceivesAtEveryStep) {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    const auto kind = seed % 2 == 0 ? RandomLinear::E::regular : RandomLinear::E::identity;
    const System network = testing::random_linear_network(
        {.kind = kind, .driven = seed % 3 == 0, .lossless = seed % 4 == 0}, seed);
    const CondensedSystem system(network);
    for (const double h : {1e-3, 0.1, 10.0}) {
      for (const Variant& variant : variants()) {
        EXPECT_LT(worst_energy_excess(system, variant.method, h, 60), 1e-12)
            << variant.name << ", h " << h << ", seed " << seed;
      }
    }
  }
}

TEST(SplittingLawControl, ANegativeDamperBreaksTheEnergyLaw) {
  SystemBuilder builder;
  const auto mass = [](double damping) {
    return linear_oscillator({.mass_kg = 1.0,
                              .stiffness_N_per_m = 4.0,
                              .damping_Ns_per_m = damping,
                              .allow_active = true});
  };
  builder.add("part0", mass(-0.1), {.initial_state = {1.0, 0.0}});
  builder.join(joint::Free{}, {"part0.coupling"});
  const System parts = builder.build();
  const CondensedSystem system(parts);
  Splitting strang;
  strang.kind = SplittingKind::strang;
  EXPECT_GT(worst_energy_excess(system, strang, 0.1, 10), 1e-4);
}

/// Two free masses on a spring, far from the origin: H is a difference of large terms.
System drifting_pair(double position) {
  Structure s = Structure::zero(4, 0);
  s.J = testing::sparse(4, 4, {{0, 2, 1.0}, {2, 0, -1.0}, {1, 3, 1.0}, {3, 1, -1.0}});
  const SparseMatrix Q = testing::sparse(
      4, 4,
      {{0, 0, 100.0}, {1, 1, 100.0}, {0, 1, -100.0}, {1, 0, -100.0}, {2, 2, 1.0}, {3, 3, 1.0}});
  SystemBuilder builder;
  builder.add(
      "pair",
      std::make_shared<LinearPortHamiltonian>(
          Signature{"pair", {{"q1", "m"}, {"q2", "m"}, {"p1", ""}, {"p2", ""}}, {}, {}}, s, Q),
      {.initial_state = {position, position, 0.01, 0.0}});
  return builder.build();
}

TEST(SplittingLaw, EnergiesThatCancelAreJudgedByTheirTerms) {
  for (const double position : {1e3, 1e6}) {
    const System parts = drifting_pair(position);
    const CondensedSystem system(parts);
    SplittingMethod splitting(system, 0.01, variants()[0].method);
    double worst = 0.0;
    for (int n = 0; n < 500; ++n) {
      const NetworkStep step = splitting.step(ForEach());
      worst = std::max(worst, step.energy.max_passivity_residual_J / step.energy_scale_J);
    }
    EXPECT_LT(worst, 1e-12) << position;
  }
}

TEST(SplittingLaw, WithoutLossesEnergyIsKeptToRoundOff) {
  const System network = testing::random_linear_network({.lossless = true}, 3);
  const CondensedSystem system(network);
  for (const Variant& variant : variants()) {
    SplittingMethod splitting(system, 0.05, variant.method);
    const double start = testing::stored_energy(system, splitting.state().data());
    for (int n = 0; n < 1000; ++n) splitting.step(ForEach());
    EXPECT_NEAR(testing::stored_energy(system, splitting.state().data()), start, 1e-11 * start)
        << variant.name;
  }
}

TEST(Splitting, ScalarAndLowRankCouplingFlowsAreTheSameMap) {
  const System chain = testing::chain_of_blocks(6, 4);
  const CondensedSystem system(chain);
  Splitting scalar, low_rank;
  scalar.kind = low_rank.kind = SplittingKind::strang;
  scalar.coupling_flow = CouplingFlow::scalar;
  low_rank.coupling_flow = CouplingFlow::low_rank;
  SplittingMethod a(system, 0.01, scalar), b(system, 0.01, low_rank);
  for (int n = 0; n < 200; ++n) {
    a.step(ForEach());
    b.step(ForEach());
  }
  double moved = 0.0;
  for (int i = 0; i < system.size(); ++i) {
    const auto k = static_cast<std::size_t>(i);
    EXPECT_NEAR(a.state()[k], b.state()[k], 1e-13);
    moved = std::max(moved, std::abs(a.state()[k] - system.initial_state()[i]));
  }
  EXPECT_GT(moved, 1e-3);
}

/// Backwards, and some on another thread.
class ScatteredForEach : public ForEach {
  void run(int count, void (*call)(const void*, int), const void* body) const override {
    std::thread other([&] {
      for (int i = count - 1; i >= count / 2; --i) call(body, i);
    });
    for (int i = count / 2 - 1; i >= 0; --i) call(body, i);
    other.join();
  }
};

/// Every lane group a task of its own, while it lives.
class SmallTasks {
 public:
  SmallTasks() { set_task_nanoseconds(0.0); }
  ~SmallTasks() { set_task_nanoseconds(kDefaultTask_ns); }
  SmallTasks(const SmallTasks&) = delete;
  SmallTasks& operator=(const SmallTasks&) = delete;
};

TEST(Splitting, ResultsDoNotDependOnWhoRunsTheTasks) {
  const SmallTasks small;
  const System chain = testing::chain_of_blocks(40, 20);
  const CondensedSystem system(chain);
  Splitting impulse;
  impulse.kind = SplittingKind::impulse;
  impulse.fast = {chain.parts()[0].name, chain.parts()[7].name};
  Splitting strang;
  strang.kind = SplittingKind::strang;
  for (const Splitting& method : {strang, impulse}) {
    SplittingMethod a(system, 0.01, method), b(system, 0.01, method);
    if (method.kind == SplittingKind::strang) {
      EXPECT_GT(a.tasks(), 4);
    }
    for (int n = 0; n < 20; ++n) {
      const NetworkStep s = a.step(ForEach()), t = b.step(ScatteredForEach());
      EXPECT_EQ(s.energy.stored_J, t.energy.stored_J);
      EXPECT_EQ(s.energy.dissipated_J, t.energy.dissipated_J);
    }
    EXPECT_TRUE(std::equal(a.state().begin(), a.state().end(), b.state().begin()));
  }
}

std::vector<std::string> reasons(const System& parts, const Splitting& method, double h = 0.01) {
  std::vector<std::string> out;
  const CondensedSystem system(parts);
  try {
    const SplittingMethod splitting(system, h, method);
  } catch (const ConfigError& error) {
    for (const Issue& issue : error.issues()) out.push_back(issue.where + ": " + issue.what);
  }
  return out;
}

TEST(Splitting, RefusesWhatItCannotTreatWithTheReason) {
  Splitting scalar;
  scalar.kind = SplittingKind::strang;
  scalar.coupling_flow = CouplingFlow::scalar;
  const System dense = testing::random_linear_network({}, 1);
  const auto overlap = reasons(dense, scalar);
  ASSERT_EQ(overlap.size(), 1u);
  EXPECT_NE(overlap[0].find("/method/coupling_flow: the coupling is not scalar: "),
            std::string::npos)
      << overlap[0];
  EXPECT_NE(overlap[0].find("\"low-rank\" takes it"), std::string::npos);

  Splitting impulse;
  impulse.kind = SplittingKind::impulse;
  impulse.factor = 0;
  impulse.fast = {"prat0"};
  const auto bad = reasons(dense, impulse, -1.0);
  ASSERT_EQ(bad.size(), 3u);
  EXPECT_EQ(bad[0], "/time/step_s: must be > 0 and finite, got -1");
  EXPECT_EQ(bad[1], "/method/factor: must be >= 1, got 0");
  EXPECT_EQ(bad[2], "/method/fast/0: there is no part \"prat0\". Did you mean \"part0\"?");

  impulse = {
      .kind = SplittingKind::impulse, .coupling_flow = CouplingFlow::scalar, .fast = {"part0"}};
  ASSERT_EQ(reasons(dense, impulse).size(), 1u);
  EXPECT_EQ(reasons(dense, impulse)[0].find("/method/coupling_flow: only \"strang\""), 0u);
  impulse = {.kind = SplittingKind::impulse, .factor = 2, .fast = {}};
  for (const Part& part : dense.parts()) impulse.fast.push_back(part.name);
  ASSERT_EQ(reasons(dense, impulse).size(), 1u);
  EXPECT_EQ(reasons(dense, impulse)[0],
            "/method/fast: every part is fast; at least one must be slow");

  const System singular = testing::random_linear_network({.kind = RandomLinear::E::singular}, 2);
  scalar.coupling_flow = CouplingFlow::automatic;
  ASSERT_FALSE(reasons(singular, scalar).empty());
  EXPECT_NE(reasons(singular, scalar)[0].find(
                "has algebraic equations (E is singular), which cannot be split"),
            std::string::npos);
}

TEST(Splitting, RefusesAnEThatIsSingularButForRounding) {
  SystemBuilder builder;
  DescriptorForm form;
  form.E = testing::sparse(2, 2, {{0, 0, 0.1}, {0, 1, 0.3}, {1, 0, 0.3}, {1, 1, 0.9}});
  form.J = testing::sparse(2, 2, {{0, 1, 20.0}, {1, 0, -20.0}});
  form.R = testing::sparse(2, 2, {{0, 0, 0.1}, {1, 1, 0.2}});
  form.Q = testing::sparse(2, 2, {{0, 0, 1.0}, {1, 1, 1.0}});
  form.B = testing::sparse(2, 1, {{0, 0, 1.0}, {1, 0, 1.0}});
  builder.add("part0", std::make_shared<DescriptorPortHamiltonian>(
                           Signature{"rank_1",
                                     {{"x1", ""}, {"x2", ""}},
                                     {{"p", Causality::effort_in, Domain::generic, 1}},
                                     {}},
                           form));
  builder.add("m", linear_oscillator({.mass_kg = 1.0, .stiffness_N_per_m = 4.0}));
  Eigen::MatrixXd gain(2, 2);
  gain << 0.0, 1.0, -1.0, 0.0;
  builder.join(joint::SkewGain{gain}, {"part0.p", "m.coupling"});
  const System parts = builder.build();
  for (const Variant& variant : variants()) {
    const auto why = reasons(parts, variant.method);
    ASSERT_EQ(why.size(), 1u) << variant.name;
    EXPECT_NE(why[0].find("has algebraic equations"), std::string::npos) << why[0];
  }
}

TEST(Splitting, AFaultLeavesTheLastState) {
  SystemBuilder builder;
  bool broken = false;
  builder.add("part0", linear_oscillator({.mass_kg = 1.0, .stiffness_N_per_m = 4.0}),
              {.initial_state = {1.0, 0.0}});
  builder.add("chain", mass_spring_damper_chain({.masses = 1}),
              {.inputs = {{"force_1", Signal::callback([&broken](double t) -> double {
                             if (broken && t > 0.36) throw std::runtime_error("sensor lost");
                             return 1.0;
                           })}}});
  builder.join(joint::Free{}, {"part0.coupling"});
  builder.join(joint::Free{}, {"chain.left"});
  builder.join(joint::Fixed{}, {"chain.right"});
  const System parts = builder.build();
  const CondensedSystem system(parts);
  Splitting strang;
  strang.kind = SplittingKind::strang;
  SplittingMethod splitting(system, 0.1, strang), sound(system, 0.1, strang);
  for (int n = 0; n < 3; ++n) {
    splitting.step(ForEach());
    sound.step(ForEach());
  }
  const std::vector<double> before(splitting.state().begin(), splitting.state().end());
  broken = true;  // the second half of the fourth step
  try {
    splitting.step(ForEach());
    ADD_FAILURE() << "the step must fail";
  } catch (const NetworkFault& fault) {
    EXPECT_EQ(fault.part(), 1);
    EXPECT_EQ(fault.fault(), StepFault::threw);
    EXPECT_STREQ(fault.what(), "sensor lost");
  }
  EXPECT_EQ(splitting.step_index(), 3);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), splitting.state().begin()));
  broken = false;
  splitting.step(ForEach());
  sound.step(ForEach());
  EXPECT_TRUE(std::equal(sound.state().begin(), sound.state().end(), splitting.state().begin()));
}

// The paper counts n² for a flow of n states: the example of two chains needs half of midpoint's.
TEST(Splitting, CountsOperationsAsThePaperDoes) {
  const System chains = testing::single_rate_chains();
  const CondensedSystem system(chains);
  Splitting strang;
  strang.kind = SplittingKind::strang;
  EXPECT_DOUBLE_EQ(SplittingMethod(system, 0.01, strang).operations().dense,
                   51.0 * 51.0 + 50.0 * 50.0 + 8.0);
  Splitting impulse;
  impulse.kind = SplittingKind::impulse;
  impulse.fast = {"chain_1"};
  const System multirate = testing::multirate_chains();
  const CondensedSystem other(multirate);
  EXPECT_DOUBLE_EQ(SplittingMethod(other, 0.01, impulse).operations().dense,
                   2.0 * 101.0 * 101.0 + 10.0 * 11.0 * 11.0);
}

}  // namespace
}  // namespace portwave::test_splitting_laws
