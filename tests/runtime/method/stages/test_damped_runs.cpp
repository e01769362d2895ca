// Laws of runs with damped stages, whatever the method, the budget and the number of stages: the account closes with the
// numerical dissipation in it, methods find the same steps, and a run goes on from where it was.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/snapshot.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/chain.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/catalogue/parts.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "support/energy_laws.hpp"
#include "support/systems/descriptor_parts.hpp"
#include "support/systems/linear_networks.hpp"
#include "support/systems/nonlinear_parts.hpp"
#include "support/systems/random_networks.hpp"
#include "support/systems/systems.hpp"

namespace portwave::test_damped_runs {
namespace {

/// A chain of the matrices of another one, by sparse step maps.
std::shared_ptr<const Subsystem> sparse_chain(const ChainParameters& parameters) {
  const auto chain = mass_spring_damper_chain(parameters);
  return std::make_shared<LinearPortHamiltonian>(
      chain->signature(), chain->structure(), *chain->linear_form().Q,
      LinearPortHamiltonian::Options{.storage = StepMapStorage::sparse});
}

/// Every kind of part that has stages: dense and sparse linear ones, descriptor, Duffing in closed form, by callbacks
///, by expressions of the catalogue. Two islands. `substeps`: of those that take them.
System all_kinds(int substeps = 1) {
  SystemBuilder builder;
  const ChainParameters chain{.masses = 2,
                              .mass_kg = 0.7,
                              .stiffness_N_per_m = 60.0,
                              .damping_Ns_per_m = 0.2,
                              .coupling_stiffness_N_per_m = 50.0};
  builder.add("dense", mass_spring_damper_chain(chain),
              {.initial_state = {0.2, 0, 0.1, 0.5, 0}, .substeps = substeps});
  builder.add("sparse", sparse_chain(chain),
              {.initial_state = {0, 0.3, 0, 0, 0.1},
               .inputs = {{"force_1", Signal::sine_product(3.0, {{1.5, 0.2}})}}});
  builder.add("duffing",
              duffing_oscillator({.mass_kg = 2,
                                  .stiffness_N_per_m = 20,
                                  .cubic_stiffness_N_per_m3 = 300,
                                  .coupling_stiffness_N_per_m = 10,
                                  .coupling_damping_Ns_per_m = 0.1}),
              {.initial_state = {0.3, 0.2, 0.05}, .substeps = substeps});
  builder.add("quartic", testing::coupled_quartic(),
              {.initial_state = {0.4, -0.3, 0.5, 0.2},
               .inputs = {{"force", Signal::sine_product(0.5, {{2.0, 0.1}})}},
               .substeps = substeps});
  builder.join(joint::Free{}, {"dense.left"});
  builder.connect("dense.right", "sparse.left");
  builder.join(joint::CommonFlow{}, {"sparse.right", "quartic.push"});
  builder.join(joint::Fixed{}, {"duffing.coupling"});
  builder.add("ladder", testing::rc_ladder(3),
              {.inputs = {{"source", Signal::sine_product(2.0, {{3.0, 0.3}})}}});
  builder.add("coil",
              parts::saturating_inductor(
                  {.inductance_H = 0.5, .saturation_flux_Vs = 0.1, .resistance_ohm = 2.0}),
              {.initial_state = {0.2}});
  builder.join(joint::Resistive{1.0}, {"ladder.left"});
  builder.connect("ladder.right", "coil.terminals");
  return builder.build();
}

StepperOptions options_of(const WaveCoupling& method, int stages, double step_s = 0.02) {
  StepperOptions options;
  options.step_s = step_s;
  options.start = Start::as_given;
  options.method = method;
  options.method.waves().stages = stages;
  options.method.waves().integrator = StageKind::damped;
  return options;
}

WaveCoupling with_budget(WaveUpdate kind, int iterations, double tolerance = 0.0) {
  WaveCoupling out;
  out.kind = kind;
  out.iterations = iterations;
  out.tolerance = tolerance;
  out.impedance_kind = ImpedanceKind::matched;
  if (kind == WaveUpdate::peaceman_rachford) out.relaxation = 0.8;
  return out;
}

std::vector<double> states_of(const Stepper& stepper) {
  std::vector<double> out;
  for (int part = 0; part < static_cast<int>(stepper.system().parts().size()); ++part) {
    out.insert(out.end(), stepper.state(part).begin(), stepper.state(part).end());
  }
  return out;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

/// What the account of a run leaves open, of the energies in it.
double open_share(const EnergyTotals& e) {
  const double open = e.final_J - e.initial_J - e.supplied_J + e.dissipated_J + e.mismatch_J +
                      e.numerical_dissipation_J;
  return std::abs(open) / (e.max_J + e.dissipated_J + std::abs(e.supplied_J));
}

class DampedRuns : public ::testing::TestWithParam<int> {
 protected:
  int stages() const { return GetParam(); }
};

/// Of the run, and of each part in each step, and both are of one sum.
TEST_P(DampedRuns, CloseTheirAccountAtEveryBudget) {
  for (const int substeps : {1, 3}) {
    const System system = all_kinds(substeps);
    for (const WaveUpdate kind : {WaveUpdate::peaceman_rachford, WaveUpdate::douglas_rachford}) {
      for (const int budget : {0, 1, 3, 10}) {
        for (const bool guard : {true, false}) {
          const std::string where = fmt::format("{}, K = {}, guard {}, {} substeps",
                                                to_string(kind), budget, guard, substeps);
          StepperOptions options = options_of(with_budget(kind, budget), stages());
          options.method.waves().guard = guard;
          options.method.waves().tank.initial_fraction = 0.01;
          Stepper stepper(system, options);
          EXPECT_EQ(stepper.waves()->damped_parts(), 6) << where;
          testing::EnergyLaws laws(stepper);
          double of_parts = 0.0, of_steps = 0.0, worst = 0.0;
          for (int n = 0; n < 60; ++n) {
            const StepReport report = stepper.step();
            if (guard) laws.observe(stepper, report);
            of_steps += report.energy.numerical_dissipation_J;
            for (int part = 0; part < static_cast<int>(system.parts().size()); ++part) {
              const PartEnergies e = stepper.waves()->energies_of(part);
              of_parts += e.numerical_dissipation_J;
              EXPECT_GE(e.numerical_dissipation_J, 0.0) << where << ", part " << part;
              const double open = e.changed_J - e.supplied_J - e.through_ports_J + e.dissipated_J +
                                  e.numerical_dissipation_J;
              worst = std::max(worst, std::abs(open));
            }
          }
          const EnergyTotals e = stepper.energy();
          EXPECT_LT(open_share(e), 3e-13) << where;
          EXPECT_LT(worst, 1e-12 * e.max_J) << where;
          EXPECT_NEAR(of_parts, e.numerical_dissipation_J, 1e-12 * e.numerical_dissipation_J);
          EXPECT_NEAR(of_steps, e.numerical_dissipation_J, 1e-12 * e.numerical_dissipation_J);
          if (guard) {
            EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds) << where;
          } else {  // energy may come from what is not converged, but not from a part
            EXPECT_NE(stepper.certificate().status, CertificateStatus::violated) << where;
          }
          EXPECT_EQ(laws.first_breach(), "") << where;
          // Control: without the new entry it does not close.
          EnergyTotals without = e;
          without.numerical_dissipation_J = 0.0;
          EXPECT_GT(open_share(without), 1e-9) << where;
        }
      }
    }
  }
}

TEST_P(DampedRuns, AreTheSameByEveryMethod) {
  const System system = all_kinds();
  Stepper automatic(system, options_of(WaveCoupling::automatic(1e-13), stages()));
  automatic.step(50);
  const std::vector<double> expected = states_of(automatic);
  const double numerical_J = automatic.energy().numerical_dissipation_J;
  EXPECT_GT(numerical_J, 0.0);
  for (const WaveCoupling& method : {with_budget(WaveUpdate::peaceman_rachford, 5000, 1e-13),
                                     with_budget(WaveUpdate::douglas_rachford, 5000, 1e-13),
                                     with_budget(WaveUpdate::interface, 100, 1e-13)}) {
    Stepper stepper(system, options_of(method, stages()));
    stepper.step(50);
    EXPECT_LT(distance(states_of(stepper), expected), 1e-10) << to_string(method.kind);
    EXPECT_NEAR(stepper.energy().numerical_dissipation_J, numerical_J, 1e-9 * numerical_J)
        << to_string(method.kind);
    EXPECT_EQ(stepper.iterations().not_converged, 0) << to_string(method.kind);
  }
  // Control: conserving steps are others.
  StepperOptions conserving = options_of(WaveCoupling::automatic(1e-13), stages());
  conserving.method.waves().integrator = StageKind::gauss;
  Stepper gauss(system, conserving);
  gauss.step(50);
  EXPECT_GT(distance(states_of(gauss), expected), 1e-7);
  EXPECT_EQ(gauss.energy().numerical_dissipation_J, 0.0);
}

/// States, waves and accounts after each of some steps.
std::vector<std::vector<double>> go_on(Stepper& stepper, int steps) {
  std::vector<std::vector<double>> out;
  for (int n = 0; n < steps; ++n) {
    stepper.step();
    out.push_back(states_of(stepper));
    const EnergyTotals e = stepper.energy();
    out.back().insert(out.back().end(), {e.final_J, e.dissipated_J, e.numerical_dissipation_J,
                                         e.mismatch_J, e.tank_J, e.supplied_J});
    for (int port = 0; port < static_cast<int>(stepper.system().scalar_ports().size()); ++port) {
      for (int stage = 0; stage < stepper.waves()->stages(); ++stage) {
        const WavePair wave = stepper.waves()->waves_at(port, stage);
        out.back().insert(out.back().end(), {wave.incident, wave.outgoing});
      }
    }
  }
  return out;
}

TEST_P(DampedRuns, GoOnFromSnapshotsAndInClones) {
  const System system = all_kinds();
  for (const WaveCoupling& method :
       {WaveCoupling::automatic(1e-10), with_budget(WaveUpdate::douglas_rachford, 3)}) {
    const StepperOptions options = options_of(method, stages());
    Stepper stepper(system, options);
    stepper.step(17);
    const Snapshot snapshot = stepper.snapshot();
    Stepper clone = stepper.clone();
    const auto first = go_on(stepper, 40);
    EXPECT_EQ(go_on(clone, 40), first);
    stepper.restore(snapshot);
    EXPECT_EQ(go_on(stepper, 40), first);
    Stepper fresh(system, options);
    fresh.restore(snapshot);
    EXPECT_EQ(go_on(fresh, 40), first);
    // Control: it goes on from there, and a run that conserves cannot.
    EXPECT_NE(go_on(fresh, 40), first);
    StepperOptions conserving = options;
    conserving.method.waves().integrator = StageKind::gauss;
    Stepper gauss(system, conserving);
    EXPECT_THROW(gauss.restore(snapshot), std::invalid_argument);
  }
}

std::int64_t evaluations(const System& system, const WaveCoupling& method, int stages,
                         double step_s, int steps, StageKind integrator) {
  StepperOptions options = options_of(method, stages, step_s);
  options.method.waves().integrator = integrator;
  Stepper stepper(system, options);
  stepper.step(steps);
  EXPECT_EQ(stepper.iterations().not_converged, 0);
  return stepper.iterations().total;
}

/// The port relation of an implicit Euler step of h is that of a midpoint step of 2h, of linear parts: z = Q(x + hẋ), and
/// so is how far waves travel in it. One damped stage therefore takes the evaluations of a conserving step of twice the
/// length, which is a third one for blocks of a few masses; impedances change nothing of that. More stages take no more
/// than conserving ones.
TEST_P(DampedRuns, NeedNoMoreEvaluationsThanConservingOnes) {
  const WaveCoupling automatic = WaveCoupling::automatic(1e-10);
  constexpr int kSteps = 60;
  const auto of_gauss = [&](const System& system, double step_s) {
    return evaluations(system, automatic, stages(), step_s, kSteps, StageKind::gauss);
  };
  const auto expect_no_more = [&](const System& system, double step_s, const std::string& name,
                                  bool is_linear) {
    const std::int64_t damped =
        evaluations(system, automatic, stages(), step_s, kSteps, StageKind::damped);
    std::int64_t conserving = of_gauss(system, step_s);
    if (stages() == 1 || !is_linear)
      conserving = std::max(conserving, of_gauss(system, 2 * step_s));
    // A step in a hundred may meet the tolerance by a hair, or not.
    EXPECT_LE(damped, conserving + conserving / 100 + 1) << name << ", h = " << step_s;
  };
  for (const double step_s : {1e-3, 1e-2, 0.1, 1.0}) {
    expect_no_more(testing::chain_of_blocks(16, 3), step_s, "chain", true);
    expect_no_more(testing::ring_of_junctions(), step_s, "ring", true);
    expect_no_more(testing::circuit(), step_s, "circuit", true);
    if (step_s > 0.05) continue;
    expect_no_more(testing::duffing_linear_pair(), step_s, "pair", false);
    expect_no_more(testing::star(), step_s, "star", false);
    expect_no_more(all_kinds(), step_s, "all kinds", false);
  }
  for (unsigned seed = 1; seed <= 10; ++seed) {
    const System system = testing::random_network({}, seed);
    for (const double step_s : {0.01, 0.3, 10.0}) {
      expect_no_more(system, step_s, fmt::format("seed {}", seed), true);
    }
  }
  WaveCoupling from_last =
      automatic;  // of continuations some nodes give better ones, by one step in fifty
  from_last.start = InnerStart::last;
  for (const char* name : {"battery", "drive_pid", "full_car", "power_line"}) {  // the catalogue
    const Scenario example = load_scenario(fmt::format("examples/{}.json", name));
    const double step_s = example.options.step_s;
    EXPECT_LE(evaluations(example.system, from_last, stages(), step_s, kSteps, StageKind::damped),
              evaluations(example.system, from_last, stages(), step_s, kSteps, StageKind::gauss))
        << name;
  }
}

/// With the impedances of conserving steps the waves of damped ones are reflected, and need more.
TEST(DampedRunsControl, ImpedancesOfConservingStepsNeedMoreEvaluations) {
  const System system = testing::chain_of_blocks(16, 3);
  StepperOptions conserving = options_of(WaveCoupling::automatic(1e-10), 1);
  conserving.method.waves().integrator = StageKind::gauss;
  WaveCoupling given;
  given.kind = WaveUpdate::peaceman_rachford;
  given.iterations = 5000;
  given.tolerance = 1e-10;
  given.impedance.clear();
  const Stepper gauss(system, conserving);
  for (int port = 0; port < static_cast<int>(system.scalar_ports().size()); ++port) {
    given.impedance.push_back(gauss.waves()->impedance(port));
  }
  const auto total = [&](const WaveCoupling& method) {
    return evaluations(system, method, 1, 0.02, 60, StageKind::damped);
  };
  EXPECT_GT(total(given), 2 * total(WaveCoupling::automatic(1e-10)));
}

INSTANTIATE_TEST_SUITE_P(Stages, DampedRuns, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace portwave::test_damped_runs
