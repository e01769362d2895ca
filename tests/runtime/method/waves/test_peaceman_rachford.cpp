// The Peaceman–Rachford iteration: its certificates, and its numbers on the published benchmark.

#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/coupling/impedance/tuning.hpp"
#include "portwave/runtime/study/study.hpp"
#include "support/systems/coupled_systems.hpp"
#include "support/systems/networks.hpp"
#include "support/systems/oscillator_pair.hpp"

namespace portwave::test_peaceman_rachford {
namespace {

using testing::kPairEnergy_J;

struct Certified {
  Certificate certificate;
  EnergyTotals energy;
};

Certified certified_run(const System& system, double theta, double gamma, int iterations,
                        bool guard) {
  StepperOptions o{.method = WaveCoupling{}};
  o.start = Start::as_given;
  o.method.waves().kind = WaveUpdate::peaceman_rachford;
  o.method.waves().relaxation = theta;
  o.method.waves().impedance = {gamma};
  o.method.waves().iterations = iterations;
  o.method.waves().guard = guard;
  o.certify = Certify::full;
  Stepper stepper(system, o);
  stepper.step(60);
  return {stepper.certificate(), stepper.energy()};
}

// S nonexpansive at every impedance: no condition on γ.
TEST(PeacemanRachford, CertificatesHoldAtEveryImpedance) {
  for (const testing::NamedSystem& sample : testing::sample_systems()) {
    const System system = sample.make();
    for (const double theta : {0.3, 0.5, 1.0}) {
      for (const double factor : {0.01, 1.0, 100.0}) {
        for (const int iterations : {1, 4, 12}) {
          for (const bool guard : {false, true}) {
            const auto [c, energy] =
                certified_run(system, theta, factor * sample.impedance, iterations, guard);
            const std::string where =
                fmt::format("{} theta {} gamma {} K={} guard {}", sample.name, theta,
                            factor * sample.impedance, iterations, guard);
            // Without the guard energy may come from a coupling that is stopped early.
            EXPECT_EQ(c.status, !guard && c.growth ? CertificateStatus::conditional
                                                   : CertificateStatus::holds)
                << where;
            ASSERT_TRUE(c.min_nonexpansiveness_margin) << where;
            EXPECT_FALSE(c.min_fne_margin) << where;
            // Waves are N(0, 1): |α − β|² is of the order of the ports of a part.
            EXPECT_GE(*c.min_nonexpansiveness_margin, -1e-11) << where;
            EXPECT_EQ(c.steps_without_margin, 0) << where;
            ASSERT_TRUE(c.max_fejer_residual_J && c.max_augmented_residual_J) << where;
            const double scale = energy.max_J + std::abs(energy.tank_J) + 1.0;
            EXPECT_LE(*c.max_fejer_residual_J, 1e-11 * scale) << where;
            EXPECT_LE(*c.max_augmented_residual_J, 1e-11 * scale) << where;
            EXPECT_LE(c.steps_without_fixed_point, 0) << where;
          }
        }
      }
    }
  }
}

// A damper that outweighs the mass over a step, 2m/h: the port relation of the step is not
// monotone.
TEST(PeacemanRachfordControl, AnActivePartHasANegativeMargin) {
  SystemBuilder builder;
  builder.add("A",
              linear_oscillator({.mass_kg = 1,
                                 .stiffness_N_per_m = 10,
                                 .damping_Ns_per_m = -1000.0,
                                 .allow_active = true}),
              {.initial_state = {0.1, 0.0}});
  builder.add("B", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 10}));
  builder.connect("A.coupling", "B.coupling");
  const System system = builder.build();
  const Certificate c = certified_run(system, 1.0, 1.0, 2, false).certificate;
  EXPECT_LT(*c.min_nonexpansiveness_margin, -1e-6);
}

/// RMS against the monolithic step over 10 s of the Duffing–linear pair.
std::vector<BudgetRow> pair_study(const std::vector<double>& impedance,
                                  const std::vector<int>& budgets) {
  Scenario scenario = testing::pair_scenario();
  scenario.options.method.waves().kind = WaveUpdate::peaceman_rachford;
  scenario.options.method.waves().relaxation = 1.0;
  scenario.options.method.waves().impedance = impedance;
  return study_budget(scenario, budgets);
}

// Source: the pair of arXiv 2603.16424 with γ at the match of the Duffing side, Z_A(q = 0) =
// 0.64974; independently computed in double precision, to two digits.
TEST(PeacemanRachford, ReproducesTheNumbersOfThePairAtItsMatch) {
  const std::vector<BudgetRow> rows = pair_study({0.649}, {2, 4, 6, 8});
  const double golden[] = {8.4e-4, 4.8e-7, 2.7e-10};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(rows[i].rms, golden[i], 0.02 * golden[i])
        << fmt::format("K={} rms {:.4e}", rows[i].iterations, rows[i].rms);
  }
  EXPECT_LT(rows[3].rms, 1e-12);
  for (const BudgetRow& row : rows) {
    EXPECT_LE(*row.max_augmented_residual_J, 1e-12 * kPairEnergy_J) << "K=" << row.iterations;
  }
}

// Same source: with the match of each port by itself two evaluations are enough.
TEST(PeacemanRachford, TwoEvaluationsAreEnoughWithEachPortAtItsMatch) {
  const System system = testing::duffing_linear_pair();
  std::vector<double> matched;
  for (const Part& part : system.parts()) {
    matched.push_back(matched_impedances(*part.port_hamiltonian(), 0.01).front());
  }
  EXPECT_NEAR(matched[0], 0.64974, 5e-6);
  EXPECT_NEAR(matched[1], 800.25, 5e-3);
  const std::vector<BudgetRow> rows = pair_study(matched, {2});
  // How impedances are rounded shows in its second digit.
  EXPECT_NEAR(rows[0].rms, 1.3e-11, 0.1e-11) << fmt::format("{:.4e}", rows[0].rms);
}

TEST(PeacemanRachfordControl, DouglasRachfordNeedsFortyEvaluationsForThat) {
  const std::vector<BudgetRow> rows = study_budget(testing::pair_scenario(), {6, 40});
  EXPECT_GT(rows[0].rms, 1e-2);
  EXPECT_NEAR(rows[1].rms, 3.1e-10, 0.06e-10) << fmt::format("{:.4e}", rows[1].rms);
}

// Long chains of like blocks at their match, whose step is short: the same source.
TEST(PeacemanRachford, TwoEvaluationsAreEnoughForALongChain) {
  const System system = testing::chain_of_blocks(64, 5);
  StepperOptions o{.method = WaveCoupling{}};
  o.start = Start::as_given;
  o.method.waves().kind = WaveUpdate::peaceman_rachford;
  o.method.waves().impedance_kind = ImpedanceKind::matched;
  o.method.waves().iterations = 50;
  o.method.waves().tolerance = 1e-10;
  Stepper stepper(system, o);
  stepper.step(5);
  EXPECT_LE(stepper.iterations().max, 3);
  EXPECT_EQ(stepper.iterations().not_converged, 0);
}

}  // namespace
}  // namespace portwave::test_peaceman_rachford
