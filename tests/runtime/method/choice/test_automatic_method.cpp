#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <portwave/coupling/reference/monolithic.hpp>
#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/runtime/step/stepper.hpp>
#include <portwave/runtime/study/study.hpp>
#include <portwave/subsystems/nonlinear/nonlinear_part.hpp>

#include "support/systems/coupled_systems.hpp"
#include "support/systems/networks.hpp"
#include "support/systems/oscillator_pair.hpp"
#include "support/systems/systems.hpp"

namespace portwave::test_automatic_method {
namespace {

StepperOptions automatic(double step_s) {
  StepperOptions options;
  options.start = Start::as_given;
  options.step_s = step_s;
  options.method = CouplingMethod::automatic();
  return options;
}

// The benchmark of arXiv 2603.16424: Douglas–Rachford at its impedance needs K = 40 for 3.1e-10.
TEST(AutomaticMethod, ThePairIsAccurateWithThreeEvaluations) {
  Scenario scenario = testing::pair_scenario();
  const double published = study_budget(scenario, {3}).front().rms;
  EXPECT_GT(published, 0.3) << "control";
  scenario.options.method = CouplingMethod::automatic();
  for (const BudgetRow& row : study_budget(scenario, {2, 3})) {
    EXPECT_LE(row.rms, 1e-9) << "K=" << row.iterations;
    EXPECT_NE(row.status, CertificateStatus::violated) << "K=" << row.iterations;
  }
}

TEST(AutomaticMethod, IsWhatAStepperDoesThatIsToldNothing) {
  const System system = testing::chain_of_blocks(16, 5);
  const auto states_with = [&system](const StepperOptions& options) {
    Stepper stepper(system, options);
    stepper.step(20);
    std::vector<double> states;
    for (int part = 0; part < static_cast<int>(system.parts().size()); ++part) {
      const auto x = stepper.state(part);
      states.insert(states.end(), x.begin(), x.end());
    }
    return std::pair(states, stepper.iterations().not_converged);
  };
  const auto untold = states_with({.step_s = 0.01});
  EXPECT_EQ(untold, states_with({.step_s = 0.01, .method = CouplingMethod::automatic()}));
  EXPECT_EQ(untold.second, 0);
  // The control: what the default was, and what it left.
  EXPECT_NE(untold.first, states_with({.step_s = 0.01, .method = WaveCoupling{}}).first);
}

struct Case {
  std::string name;
  std::function<System()> make;
  int evaluations;  ///< at most
};

std::vector<Case> cases() {
  std::vector<Case> out = {
      {"chain64", [] { return testing::chain_of_blocks(64, 5); }, 4},
      {"chain1024", [] { return testing::chain_of_blocks(1024, 5); }, 4},
      {"star", [] { return testing::star_on_hub(64, 1.0); }, 15},
      {"spread_star", [] { return testing::star_on_hub(64, 100.0); }, 15},
      {"grid", [] { return testing::duffing_grid(32, 32); }, 15},
      {"stiff_soft", [] { return testing::stiff_soft_pair(1e8, 1e6, false); }, 15},
      {"stiff_soft_duffing", [] { return testing::stiff_soft_pair(1e8, 1e6, true); }, 15},
      {"motors", [] { return testing::dc_motors(16, true); }, 15},
  };
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    out.push_back({fmt::format("tree{}", seed),
                   [seed] { return testing::random_mass_tree(40, 100.0, seed); }, 20});
    out.push_back({fmt::format("dense_tree{}", seed),
                   [seed] { return testing::random_dense_tree(40, 10.0, seed); }, 20});
  }
  return out;
}

/// The largest difference of a part's states after `steps`, each relative to the largest size that
/// this state has had; parts that have stored less than 1e-20 of all energy have not been reached
/// yet.
double worst_difference(Stepper& stepper, MonolithicReference& reference, int steps) {
  const System& system = stepper.system();
  const int parts = static_cast<int>(system.parts().size());
  std::vector<std::vector<double>> size(static_cast<std::size_t>(parts));
  double worst = 0.0;
  for (int n = 0; n <= steps; ++n) {
    double stored = 0.0;
    for (int i = 0; i < parts; ++i) stored += std::abs(stepper.storage(i));
    for (int i = 0; i < parts; ++i) {
      const auto x = stepper.state(i), y = reference.state(i);
      auto& own = size[static_cast<std::size_t>(i)];
      own.resize(x.size(), 0.0);
      for (std::size_t j = 0; j < x.size(); ++j) own[j] = std::max(own[j], std::abs(y[j]));
      if (std::abs(stepper.storage(i)) < 1e-20 * stored) continue;
      double difference = 0.0, scale = 0.0;
      for (std::size_t j = 0; j < x.size(); ++j) {
        difference = std::hypot(difference, x[j] - y[j]);
        scale = std::hypot(scale, own[j]);
      }
      if (scale > 0.0) worst = std::max(worst, difference / scale);
    }
    if (n == steps) break;
    stepper.step();
    reference.step();
  }
  return worst;
}

class AutomaticRun : public ::testing::TestWithParam<Case> {};

TEST_P(AutomaticRun, ConvergesInFewEvaluationsToTheMonolithicStep) {
  for (const double h : {1e-4, 1e-3, 1e-2}) {
    const System system = GetParam().make();
    StepperOptions options = automatic(h);
    options.method.waves().integrator = StageKind::gauss;  // as the reference
    Stepper stepper(system, options);
    MonolithicReference reference(system, h);
    const double worst = worst_difference(stepper, reference, 6);
    const std::string what =
        fmt::format("{} h={}: {}", GetParam().name, h, stepper.method().reason);
    EXPECT_LE(stepper.iterations().max, GetParam().evaluations) << what;
    EXPECT_EQ(stepper.iterations().not_converged, 0) << what;
    EXPECT_LE(worst, 1e-8) << what;
    EXPECT_NE(stepper.certificate().status, CertificateStatus::violated) << what;
    RecordProperty(fmt::format("evaluations_h{}", h), stepper.iterations().max);
  }
}

INSTANTIATE_TEST_SUITE_P(Systems, AutomaticRun, ::testing::ValuesIn(cases()),
                         [](const auto& param) { return param.param.name; });

// The impedance of a hardening spring grows with its elongation.
TEST(Retuning, FollowsTheStateAndChangesNoResult) {
  SystemBuilder builder;
  builder.add("A",
              duffing_oscillator({.mass_kg = 0.02,
                                  .stiffness_N_per_m = 1,
                                  .cubic_stiffness_N_per_m3 = 2e3,
                                  .coupling_stiffness_N_per_m = 120,
                                  .coupling_damping_Ns_per_m = 0.5}),
              {.initial_state = {0.4, 0, -0.4}});
  builder.add("B", linear_oscillator({.mass_kg = 4, .stiffness_N_per_m = 50}));
  builder.connect("A.coupling", "B.coupling");
  const System system = builder.build();
  StepperOptions follows = automatic(0.01), stays = automatic(0.01);
  follows.method.waves().kind = stays.method.waves().kind = WaveUpdate::peaceman_rachford;
  follows.method.waves().impedance_kind = stays.method.waves().impedance_kind =
      ImpedanceKind::matched;
  follows.method.waves().retune_factor = 1.05;
  stays.method.waves().retune_factor = 0.0;
  follows.method.waves().iterations = stays.method.waves().iterations = 200;
  Stepper one(system, follows), other(system, stays);
  for (int n = 0; n < 200; ++n) {
    const double energy = one.energy().final_J;
    const double tank = one.waves()->tank(0);
    const auto changes = one.waves()->tuning().changes;
    one.step();
    other.step();
    if (one.waves()->tuning().changes == changes) continue;
    EXPECT_EQ(one.waves()->tuning().changes, changes + 1);
    EXPECT_LE(one.energy().final_J, energy + tank + 1e-12 * energy) << n;
  }
  EXPECT_GT(one.waves()->tuning().changes, 0);
  EXPECT_EQ(other.waves()->tuning().changes, 0);
  EXPECT_NEAR(one.state(0)[0], other.state(0)[0], 1e-7);
  EXPECT_NEAR(one.state(1)[0], other.state(1)[0], 1e-7);
}

// A change of impedance keeps effort and flow of the last step, and the tanks.
TEST(Retuning, KeepsEffortFlowAndTank) {
  const System system = testing::duffing_linear_pair();
  StepperOptions options = automatic(0.01);
  options.method = WaveCoupling{};
  options.method.waves().iterations = 3;
  Stepper stepper(system, options);
  stepper.step(5);
  const double tank = stepper.waves()->tank(0);
  const double effort[] = {stepper.effort(0), stepper.effort(1)};
  const double flow[] = {stepper.flow(0), stepper.flow(1)};
  stepper.waves()->set_impedance(std::vector<double>{7.0, 0.03});
  EXPECT_EQ(stepper.waves()->impedance(0), 7.0);
  EXPECT_EQ(stepper.waves()->impedance(1), 0.03);
  EXPECT_EQ(stepper.waves()->tank(0), tank);
  for (int port : {0, 1}) {
    EXPECT_NEAR(stepper.effort(port), effort[port], 1e-13 * std::abs(effort[port]));
    EXPECT_NEAR(stepper.flow(port), flow[port], 1e-13 * std::abs(flow[port]));
  }
  EXPECT_NE(stepper.waves()->tuning().rescattered_J, 0.0);
  EXPECT_THROW(stepper.waves()->set_impedance(std::vector<double>{1.0}), ConfigError);
  EXPECT_THROW(stepper.waves()->set_impedance(std::vector<double>{1.0, -1.0}), ConfigError);
  EXPECT_EQ(stepper.waves()->impedance(1), 0.03);
  stepper.step(5);
  EXPECT_GE(stepper.waves()->tank(0), -1e-13);
}

// Impedances that no step can be made with: the engine goes on as if they had never been asked for.
TEST(Retuning, GoesOnAsBeforeWhereMapsCannotBeMade) {
  const System system = testing::net(6, 7);
  for (const int threads : {1, 2}) {
    StepperOptions options{.method = WaveCoupling{}};
    options.start = Start::as_given;
    options.step_s = 0.01;
    options.threads = threads;
    options.method.waves().impedance = {0.2};
    Stepper stepper(system, options), other(system, options);
    std::vector<double> wanted(system.scalar_ports().size(), 0.3);
    for (int round = 0; round < 3; ++round) {
      stepper.step(3);
      other.step(3);
      const auto last = static_cast<std::size_t>(system.first_scalar_port(41));
      wanted[last + 2] = wanted[last + 3] = 1e308;
      EXPECT_THROW(stepper.waves()->set_impedance(wanted), ConfigError);
      EXPECT_EQ(stepper.waves()->tuning().changes, other.waves()->tuning().changes);
      stepper.step(3);
      other.step(3);
      for (int part = 0; part < 42; ++part) {
        EXPECT_TRUE(std::ranges::equal(stepper.state(part), other.state(part)))
            << part << ", round " << round << ", threads " << threads;
      }
      wanted[last + 2] = wanted[last + 3] = 0.5 + round;
      stepper.waves()->set_impedance(wanted);
      other.waves()->set_impedance(wanted);
    }
  }
}

/// A Duffing oscillator that, once told to, cannot be looked at: linearised at a state (both states
/// are then the same memory, as they never are in a step).
class Shy final : public Subsystem {
 public:
  explicit Shy(const bool& shy)
      : Shy(duffing_oscillator({.mass_kg = 0.02,
                                .stiffness_N_per_m = 1,
                                .cubic_stiffness_N_per_m3 = 2e3,
                                .coupling_stiffness_N_per_m = 120,
                                .coupling_damping_Ns_per_m = 0.5}),
            shy) {}
  double storage(const double* x) const override { return honest_->storage(x); }
  void gradient(const double* x, double* g) const override { honest_->gradient(x, g); }
  void discrete_gradient(const double* x, const double* y, double* g) const override {
    honest_->discrete_gradient(x, y, g);
  }
  void discrete_gradient_jacobian(const double* x, const double* y,
                                  std::vector<Eigen::Triplet<double>>& out) const override {
    if (shy_ && x == y) throw std::runtime_error("not now");
    honest_->discrete_gradient_jacobian(x, y, out);
  }
  const Structure& structure() const override { return honest_->structure(); }

 private:
  Shy(std::unique_ptr<Subsystem> honest, const bool& shy)
      : Subsystem(honest->signature()), honest_(std::move(honest)), shy_(shy) {}
  std::unique_ptr<Subsystem> honest_;
  const bool& shy_;
};

// A look that fails is no fault of the step: the impedances in force are as good as before.
TEST(Retuning, GoesOnWithWhatThereIsWhenALookFails) {
  bool shy = false;
  SystemBuilder builder;
  builder.add("A", std::make_shared<Shy>(shy), {.initial_state = {0.4, 0, -0.4}});
  builder.add("B", linear_oscillator({.mass_kg = 4, .stiffness_N_per_m = 50}));
  builder.connect("A.coupling", "B.coupling");
  const System system = builder.build();
  Stepper stepper(system, automatic(0.01));
  StepperOptions stays = automatic(0.01);
  stays.method.waves().retune_factor = 0.0;
  Stepper other(system, stays);
  shy = true;
  for (int n = 0; n < 50; ++n) {
    stepper.step();
    other.step();
  }
  EXPECT_GT(stepper.waves()->tuning().failures, 0);
  EXPECT_EQ(stepper.waves()->tuning().changes, 0);
  EXPECT_EQ(stepper.state(0)[0], other.state(0)[0]);
  EXPECT_EQ(stepper.state(1)[0], other.state(1)[0]);
}

// Impedances that somebody sets are not tuned any more.
TEST(Retuning, LeavesAloneWhatIsSet) {
  const System system = testing::duffing_linear_pair();
  StepperOptions options = automatic(0.01);
  options.method.waves().retune_factor = 1.0001;
  Stepper stepper(system, options);
  EXPECT_TRUE(stepper.waves()->follows_state());
  stepper.step(3);
  stepper.waves()->set_impedance(std::vector<double>{0.4, 0.4});
  EXPECT_FALSE(stepper.waves()->follows_state());
  const std::int64_t changes = stepper.waves()->tuning().changes;
  stepper.step(50);
  EXPECT_EQ(stepper.waves()->tuning().changes, changes);
  EXPECT_EQ(stepper.waves()->impedance(0), 0.4);
  EXPECT_EQ(stepper.method().method.waves().impedance, (std::vector<double>{0.4, 0.4}));
}

// Nothing says that energies are positive.
TEST(GuardedRun, StoredEnergyMayBeNegative) {
  Signature signature{"weight",
                      {{"q", "m"}, {"p", "kg m/s"}},
                      {{"push", Causality::effort_in, Domain::translation, 1}},
                      {}};
  Structure structure = Structure::zero(2, 1);
  structure.J.insert(0, 1) = 1.0;
  structure.J.insert(1, 0) = -1.0;
  structure.G.insert(1, 0) = 1.0;
  const auto H = [](const double* x) { return 5.0 * x[0] * x[0] + 0.5 * x[1] * x[1] - 1000.0; };
  const auto gradient = [](const double* x, double* g) {
    g[0] = 10.0 * x[0];
    g[1] = x[1];
  };
  for (const double fraction : {0.0, 0.01}) {
    SystemBuilder builder;
    builder.add("weight",
                std::make_shared<NonlinearPortHamiltonian>(signature, structure,
                                                           Hamiltonian{H, gradient, {}},
                                                           NonlinearPortHamiltonian::Options{}),
                {.initial_state = {1.0, 0.0}});
    builder.add("B", linear_oscillator({.mass_kg = 1.5, .stiffness_N_per_m = 20}));
    builder.connect("weight.push", "B.coupling");
    const System system = builder.build();
    for (const int iterations : {1, 3, 30}) {
      StepperOptions options{.method = WaveCoupling{}};
      options.start = Start::as_given;
      options.step_s = 0.01;
      options.method.waves().iterations = iterations;
      options.method.waves().impedance = {20.0};
      options.method.waves().tank.initial_fraction = fraction;
      Stepper stepper(system, options);
      EXPECT_GE(stepper.waves()->tank(0), 0.0);
      stepper.step(300);
      EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds)
          << "K=" << iterations << " fraction=" << fraction;
      EXPECT_LE(stepper.energy().final_J, stepper.energy().initial_J + 1e-9);
    }
  }
}

/// Two parts of one state and two ports each, one end held: seen from the other port the first is
/// rigid.
constexpr const char* kRigidEnd = R"({
  "name": "rigid_end", "time": {"start": "as_given", "step_s": 0.341, "steps": 1000},
  "subsystems": [
    {"name": "p7", "type": "linear_port_hamiltonian", "initial_state": {"a": 1},
     "parameters": {"states": [{"name": "a", "unit": "C"}],
       "ports": [{"name": "x", "domain": "translation", "causality": "effort_in"},
                 {"name": "y", "domain": "translation", "causality": "effort_in"}],
       "J": [[0]], "R": [[0.057]], "G": [[1, 0.8130486727897331]], "Q": [[0.5192362136039975]]}},
    {"name": "p9", "type": "linear_port_hamiltonian", "initial_state": {"a": 1},
     "parameters": {"states": [{"name": "a", "unit": "C"}],
       "ports": [{"name": "x", "domain": "translation", "causality": "effort_in"},
                 {"name": "y", "domain": "translation", "causality": "flow_in"}],
       "J": [[0]], "R": [[0.06]], "G": [[1, 2.0]], "Q": [[0.5]]}}],
  "couplings": [{"kind": "resistive", "ports": ["p9.x"], "resistance": 0.8},
                {"kind": "fixed", "ports": ["p7.y"]},
                {"kind": "connection", "ports": ["p7.x", "p9.y"]}],
  "method": {"kind": "douglas-rachford", "iterations": 3, "impedance": {"kind": "adapted"}}
})";

// Waves so large that the energy of a step is lost in their rounding.
TEST(GuardedRun, IsSafeAtImpedancesFarFromThoseOfTheParts) {
  bool control = false;
  for (const double large : {1e10, 1e12, 1e14, 1e16, 1e20}) {
    for (const bool guard : {true, false}) {
      Scenario scenario = parse_scenario(kRigidEnd, "rigid_end.json", ".");
      scenario.options.method.waves().impedance_kind = ImpedanceKind::given;
      scenario.options.method.waves().impedance = {large, large, 0.8, large, 0.8};
      scenario.options.method.waves().guard = guard;
      Stepper stepper(scenario.system, scenario.options);
      double most = 0.0;
      try {
        for (int n = 0; n < 1000; ++n) most = std::max(most, stepper.step().energy.stored_J);
      } catch (const StepError&) {  // overflow
        EXPECT_FALSE(guard) << large;
        most = std::numeric_limits<double>::infinity();
      }
      if (guard) {
        EXPECT_LE(most, (1.0 + 1e-6) * stepper.energy().initial_J) << "impedance " << large;
        EXPECT_FALSE(stepper.certificate().broken_law) << "impedance " << large;
      } else {
        control = control || most > 2.0 * stepper.energy().initial_J;
      }
    }
  }
  EXPECT_TRUE(control) << "nothing was tested";
}

TEST(TunedImpedances, OfARigidEndAreThoseOfOtherRules) {
  const Scenario scenario = parse_scenario(kRigidEnd, "rigid_end.json", ".");
  Stepper stepper(scenario.system, scenario.options);
  for (int port = 0; port < 5; ++port) {
    EXPECT_LT(stepper.waves()->impedance(port), 1e4) << port;
    EXPECT_GT(stepper.waves()->impedance(port), 1e-4) << port;
  }
  stepper.step(200);
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  EXPECT_LE(stepper.energy().max_energy_ratio, 1.0 + 1e-12);
}

}  // namespace
}  // namespace portwave::test_automatic_method
