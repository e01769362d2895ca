// Laws of the wave coupling, against evidence that does not use waves.

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/coupling/certificate.hpp"
#include "portwave/coupling/energy_book.hpp"
#include "portwave/coupling/monolithic.hpp"
#include "portwave/coupling/wave_discretisation.hpp"
#include "portwave/subsystems/wave.hpp"
#include "support/systems.hpp"

namespace portwave {
namespace {

using testing::NamedSystem;
using testing::sample_systems;

std::vector<double> uniform(const System& system, double gamma) {
  return std::vector<double>(system.scalar_ports().size(), gamma);
}

/// Freezes every part at x with the inputs of the step from t = 0.
void freeze_all(WaveDiscretisation& waves, const std::vector<double>& x,
                std::vector<double>& input) {
  input.assign(static_cast<std::size_t>(waves.input_size()), 0.0);
  ASSERT_TRUE(waves.sample_inputs(0.0, input.data()).ok());
  for (int i = 0; i < static_cast<int>(waves.batches().size()); ++i) {
    const int lanes = waves.batches()[static_cast<std::size_t>(i)].batch->lanes();
    ASSERT_TRUE(
        waves.freeze(i, {0, lanes}, x.data(), waves.driven() ? input.data() : nullptr).ok());
  }
}

/// A frozen system and the fixed point of its inner iteration.
struct Frozen {
  Frozen(const System& system, double h, double gamma, double relaxation = 1.0)
      : waves(system, h, uniform(system, gamma)), x(waves.initial_state()) {
    freeze_all(waves, x, input);
    FixedPointSolver solver(waves, relaxation);
    const std::vector<double> zero(static_cast<std::size_t>(waves.wave_size()), 0.0);
    const auto found = solver.solve(waves, zero);
    fixed_point.assign(found.begin(), found.end());
  }
  WaveDiscretisation waves;
  std::vector<double> x, input, fixed_point;
};

/// |effort and flow of the fixed point − those of the monolithic step|, relative.
double distance_to_monolithic(const System& system, Frozen& frozen, double h,
                              const System& reference_system) {
  MonolithicReference reference(reference_system, h);
  reference.step();
  std::vector<double> b(frozen.fixed_point.size());
  EXPECT_TRUE(frozen.waves.scatter_all(frozen.fixed_point.data(), b.data()).ok());
  double gap = 0.0, scale = 0.0;
  for (int j = 0; j < static_cast<int>(system.scalar_ports().size()); ++j) {
    const auto place = static_cast<std::size_t>(frozen.waves.wave_of_port(j));
    const WaveTransform transform(frozen.waves.impedance()[place], h);
    const WavePair expected = transform.to_waves({reference.effort()[static_cast<std::size_t>(j)],
                                                  reference.flow()[static_cast<std::size_t>(j)]});
    gap = std::max({gap, std::abs(expected.incident - frozen.fixed_point[place]),
                    std::abs(expected.outgoing - b[place])});
    scale = std::max({scale, std::abs(expected.incident), std::abs(expected.outgoing)});
  }
  return gap / scale;
}

TEST(Theorem2, FixedPointIsTheMonolithicInterface) {
  for (const NamedSystem& sample : sample_systems()) {
    const System system = sample.make();
    for (const double h : {1e-3, 1e-2}) {
      for (const double factor : {0.5, 1.0}) {
        Frozen frozen(system, h, factor * sample.impedance);
        ASSERT_FALSE(frozen.fixed_point.empty()) << sample.name << " h=" << h;
        EXPECT_LT(distance_to_monolithic(system, frozen, h, system), 1e-11)
            << sample.name << " h=" << h << " gamma=" << factor * sample.impedance;
      }
    }
  }
}

TEST(Theorem2, FixedPointDoesNotDependOnTheRelaxation) {
  const System system = testing::ring_of_junctions();
  const Frozen plain(system, 0.01, 0.1, 1.0);
  for (const double relaxation : {0.5, 1.5, 1.9}) {
    const Frozen relaxed(system, 0.01, 0.1, relaxation);
    ASSERT_EQ(relaxed.fixed_point.size(), plain.fixed_point.size()) << relaxation;
    for (std::size_t j = 0; j < plain.fixed_point.size(); ++j) {
      EXPECT_NEAR(relaxed.fixed_point[j], plain.fixed_point[j], 1e-11) << relaxation;
    }
  }
}

TEST(Theorem2Control, AnotherSystemHasAnotherInterface) {
  const System system = testing::lossless_pair();
  SystemBuilder builder;  // as lossless_pair, B's spring stiffer by 1e-4
  builder.add("A", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 10}),
              {.initial_state = {1, 0}});
  builder.add("B", linear_oscillator({.mass_kg = 1.5, .stiffness_N_per_m = 20.002}),
              {.initial_state = {-1, 0}});
  builder.connect("A.coupling", "B.coupling");
  const System other = builder.build();
  Frozen frozen(system, 0.01, 20.0);
  ASSERT_FALSE(frozen.fixed_point.empty());
  EXPECT_LT(distance_to_monolithic(system, frozen, 0.01, system), 1e-11);
  EXPECT_GT(distance_to_monolithic(system, frozen, 0.01, other), 1e-6);
}

/// Certifies one step from the initial state with `iterations` Douglas–Rachford iterations.
Certificate certify(Frozen& frozen, double relaxation, int iterations, double u_scale) {
  const auto size = static_cast<std::size_t>(frozen.waves.wave_size());
  std::mt19937_64 generator(7);
  std::normal_distribution<double> normal(0.0, u_scale);
  std::vector<double> u(size);
  for (double& value : u) value = normal(generator);
  Certificate certificate;
  StepCertifier certifier(frozen.waves, relaxation);
  certifier.examine(frozen.waves, {.index = 0, .iterations = iterations, .u_start = u},
                    certificate);
  return certificate;
}

TEST(Fejer, DistanceToTheFixedPointFallsByAtLeastTheStep) {
  for (const NamedSystem& sample : sample_systems()) {
    const System system = sample.make();
    Frozen frozen(system, 0.01, sample.impedance);
    for (const double relaxation : {0.5, 1.0, 1.8}) {
      for (const double u_scale : {1e-3, 1.0, 10.0}) {
        const Certificate c = certify(frozen, relaxation, 30, u_scale);
        ASSERT_TRUE(c.max_fejer_residual_J.has_value()) << sample.name;
        ASSERT_TRUE(c.min_fne_margin.has_value()) << sample.name;
        EXPECT_EQ(c.status, CertificateStatus::holds) << sample.name << " " << *c.min_fne_margin;
        EXPECT_LE(*c.max_fejer_residual_J, 1e-11 * (1.0 + u_scale * u_scale))
            << sample.name << " lambda=" << relaxation << " scale=" << u_scale;
      }
    }
  }
}

TEST(FejerControl, LargeImpedanceBreaksFirmNonexpansivenessAndFejer) {
  const System system = testing::duffing_linear_pair();
  Frozen frozen(system, 0.01, 40.0);
  ASSERT_FALSE(frozen.fixed_point.empty());
  const Certificate c = certify(frozen, 1.0, 30, 1.0);
  EXPECT_EQ(c.status, CertificateStatus::conditional);
  EXPECT_LT(*c.min_fne_margin, 0.0);
  EXPECT_GT(*c.max_fejer_residual_J, 1e-6);
}

/// One macro-step from the frozen state, by hand: K Douglas–Rachford iterations, shadow, commit.
struct HandStep {
  HandStep(const System& system, Frozen& frozen, double relaxation, int iterations,
           std::vector<double> start)
      : u_start(std::move(start)), u_end(u_start) {
    WaveDiscretisation& waves = frozen.waves;
    const Interconnection& coupling = waves.interconnection();
    std::vector<double> a = u_start, b(a.size());
    for (int k = 0; k < iterations; ++k) {
      EXPECT_TRUE(waves.scatter_all(u_end.data(), b.data()).ok());
      coupling.exchange(coupling.all(), b.data(), a.data());
      coupling.douglas_rachford(coupling.all(), relaxation, b.data(), u_end.data());
    }
    x_next.resize(frozen.x.size());
    std::vector<StepEnergy> energy(system.parts().size());
    for (int i = 0; i < static_cast<int>(waves.batches().size()); ++i) {
      const LaneRange all{0, waves.batches()[static_cast<std::size_t>(i)].batch->lanes()};
      EXPECT_TRUE(waves.advance(i, all, a.data(), x_next.data(), b.data(), energy.data()).ok());
    }
    for (std::size_t i = 0; i < system.parts().size(); ++i) {
      const Subsystem& part = *system.parts()[i].subsystem;
      const int state = waves.places()[i].state;
      stored_change_J += part.storage(x_next.data() + state) - part.storage(&frozen.x[0] + state);
    }
    for (const StepEnergy& e : energy) supplied_J += e.external_supply_J;
    for (std::size_t j = 0; j < a.size(); ++j) mismatch_J += 0.5 * (b[j] * b[j] - a[j] * a[j]);
    evidence = {.index = 0,
                .iterations = iterations,
                .u_start = u_start,
                .stored_change_J = stored_change_J,
                .mismatch_J = mismatch_J,
                .supplied_J = supplied_J};
  }
  HandStep(const HandStep&) = delete;
  HandStep& operator=(const HandStep&) = delete;

  std::vector<double> u_start, u_end, x_next;
  double stored_change_J = 0.0, mismatch_J = 0.0, supplied_J = 0.0;
  StepCertifier::Step evidence;
};

double theorem_1_residual(Frozen& frozen, double relaxation, const StepCertifier::Step& step) {
  Certificate certificate;
  StepCertifier(frozen.waves, relaxation).examine(frozen.waves, step, certificate);
  EXPECT_TRUE(certificate.max_augmented_residual_J.has_value());
  return certificate.max_augmented_residual_J.value_or(NAN);
}

double half_square_distance(const std::vector<double>& u, const std::vector<double>& v) {
  double sum = 0.0;
  for (std::size_t j = 0; j < u.size(); ++j) sum += (u[j] - v[j]) * (u[j] - v[j]);
  return 0.5 * sum;
}

std::vector<double> random_waves(const Frozen& frozen, double scale) {
  std::mt19937_64 generator(11);
  std::normal_distribution<double> normal(0.0, scale);
  std::vector<double> u(static_cast<std::size_t>(frozen.waves.wave_size()));
  for (double& value : u) value = normal(generator);
  return u;
}

TEST(Theorem1, ResidualIsItsFormulaAndNotPositive) {
  for (const NamedSystem& sample : sample_systems()) {
    const System system = sample.make();
    Frozen frozen(system, 0.01, sample.impedance);
    ASSERT_FALSE(frozen.fixed_point.empty()) << sample.name;
    for (const double relaxation : {0.5, 1.0, 1.8}) {
      for (const int iterations : {0, 1, 3, 30}) {
        for (const double u_scale : {1e-3, 1.0, 10.0}) {
          const HandStep step(system, frozen, relaxation, iterations,
                              random_waves(frozen, u_scale));
          const double approach = half_square_distance(step.u_end, frozen.fixed_point) -
                                  half_square_distance(step.u_start, frozen.fixed_point);
          const double by_hand =
              step.stored_change_J + approach + step.mismatch_J - step.supplied_J;
          const double scale =
              1.0 + half_square_distance(step.u_start, frozen.fixed_point) + u_scale * u_scale;
          const double residual = theorem_1_residual(frozen, relaxation, step.evidence);
          EXPECT_NEAR(residual, by_hand, 1e-11 * scale)
              << sample.name << " lambda=" << relaxation << " K=" << iterations
              << " scale=" << u_scale << " seed=11";
          EXPECT_LE(residual, 1e-11 * scale)
              << sample.name << " lambda=" << relaxation << " K=" << iterations
              << " scale=" << u_scale << " seed=11";
        }
      }
    }
  }
}

/// A linear oscillator with a damper c, in motion, on a lossless one.
System pair_with_damper(double c) {
  SystemBuilder builder;
  builder.add("A", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 10}),
              {.initial_state = {1, 0}});
  builder.add(
      "B",
      linear_oscillator(
          {.mass_kg = 1.5, .stiffness_N_per_m = 20, .damping_Ns_per_m = c, .allow_active = true}),
      {.initial_state = {0, 2}});
  builder.connect("A.coupling", "B.coupling");
  return builder.build();
}

// At u⁰ = u† the waves stay there, and the residual is what the parts created: −h c v̄².
TEST(Theorem1Control, AnActivePartMakesItPositiveByWhatItCreates) {
  constexpr double h = 0.01;
  for (const double c : {-0.5, 0.0, 0.5}) {
    const System system = pair_with_damper(c);
    Frozen frozen(system, h, 1.0);
    ASSERT_FALSE(frozen.fixed_point.empty());
    const HandStep step(system, frozen, 1.0, 5, frozen.fixed_point);
    const auto v = static_cast<std::size_t>(frozen.waves.places()[1].state) + 1;
    const double mean_velocity = 0.5 * (frozen.x[v] + step.x_next[v]);
    EXPECT_GT(mean_velocity, 0.1);
    const double residual = theorem_1_residual(frozen, 1.0, step.evidence);
    EXPECT_NEAR(residual, -h * c * mean_velocity * mean_velocity, 1e-11) << "c=" << c;
    if (c < 0.0) {
      EXPECT_GT(residual, 1e-5);
    }
  }
}

TEST(Theorem1Control, EveryTermCountsInFullAndWithItsSign) {
  constexpr double tamper = 0.125;
  const System system = testing::lossless_pair();
  Frozen frozen(system, 0.01, 20.0);
  ASSERT_FALSE(frozen.fixed_point.empty());
  const HandStep step(system, frozen, 1.0, 5, frozen.fixed_point);
  EXPECT_NEAR(theorem_1_residual(frozen, 1.0, step.evidence), 0.0, 1e-12);
  StepCertifier::Step tampered = step.evidence;
  tampered.stored_change_J += tamper;
  EXPECT_NEAR(theorem_1_residual(frozen, 1.0, tampered), tamper, 1e-12);
  tampered = step.evidence;
  tampered.mismatch_J += tamper;
  EXPECT_NEAR(theorem_1_residual(frozen, 1.0, tampered), tamper, 1e-12);
  tampered = step.evidence;
  tampered.supplied_J -= tamper;
  EXPECT_NEAR(theorem_1_residual(frozen, 1.0, tampered), tamper, 1e-12);
  // ½|u⁰ − u†|²: away from the fixed point, and no iteration to come nearer than u⁰ is.
  const HandStep far(system, frozen, 1.0, 0, random_waves(frozen, 1.0));
  const HandStep nearer(system, frozen, 1.0, 1, far.u_start);
  StepCertifier::Step unmoved = nearer.evidence;
  unmoved.iterations = 0;
  EXPECT_GT(theorem_1_residual(frozen, 1.0, unmoved),
            theorem_1_residual(frozen, 1.0, nearer.evidence) + 1e-3);
}

/// The sampled margin of a lone part with its port closed by a free end.
double margin_of(std::unique_ptr<Subsystem> part, std::vector<double> x, double gamma) {
  SystemBuilder builder;
  builder.add("part", std::move(part), {.initial_state = std::move(x)});
  builder.join(joint::Free{}, {"part.coupling"});
  const System system = builder.build();
  WaveDiscretisation waves(system, 0.01, uniform(system, gamma));
  std::vector<double> input;
  const std::vector<double> state = waves.initial_state();
  freeze_all(waves, state, input);
  FneSampler sampler(waves);
  const auto result = sampler.sample(waves, 0);
  EXPECT_TRUE(result.has_value());
  return result->min_margin;
}

// Discrete port impedances at h = .01 (method of arXiv 2603.16424, own computation):
// B: 2m/h + kh/2 = 800.25; A at q = 0: .64974.
TEST(FirmNonexpansiveness, HoldsUpToTheDiscretePortImpedance) {
  const auto B = [] { return linear_oscillator({.mass_kg = 4, .stiffness_N_per_m = 50}); };
  EXPECT_GE(margin_of(B(), {0, 0}, 800.24), 0.0);
  EXPECT_LT(margin_of(B(), {0, 0}, 800.26), -1e-9);
  const auto A = [] {
    return duffing_oscillator({.mass_kg = 8,
                               .stiffness_N_per_m = 100,
                               .cubic_stiffness_N_per_m3 = 8000,
                               .coupling_stiffness_N_per_m = 120,
                               .coupling_damping_Ns_per_m = 0.05});
  };
  EXPECT_GE(margin_of(A(), {0, 0, 0}, 0.64973), 0.0);
  EXPECT_LT(margin_of(A(), {0, 0, 0}, 0.64976), -1e-9);
}

/// What is added to the entries of part 0 before they are booked, and a gain on all outgoing waves.
struct Tamper {
  StepEnergy energy = {};
  double wave_gain = 1.0;
};

struct BookRun {
  EnergyTotals totals;
  bool violated = false;
  double outgoing_J = 0.0;  ///< Σ over steps of ½|b|², untampered

  /// Zero for a ledger that balances.
  double imbalance() const {
    return (totals.final_J - totals.initial_J) -
           (totals.supplied_J - totals.dissipated_J - totals.mismatch_J);
  }
};

/// Runs `steps` explicit (K = 0) steps and books them.
BookRun book_run(const System& system, double h, double gamma, int steps,
                 const Tamper& tamper = {}) {
  WaveDiscretisation waves(system, h, uniform(system, gamma));
  std::vector<double> x = waves.initial_state(), x_next(x.size());
  std::vector<double> b(static_cast<std::size_t>(waves.wave_size()), 0.0), a(b.size());
  std::vector<double> input(static_cast<std::size_t>(waves.input_size()), 0.0);
  std::vector<StepEnergy> energy(system.parts().size());
  EnergyBook book(waves, x.data(), b.data());
  BookRun run;
  for (int n = 0; n < steps; ++n) {
    EXPECT_TRUE(waves.sample_inputs(n * h, input.data()).ok());
    waves.interconnection().exchange(waves.interconnection().all(), b.data(), a.data());
    for (int i = 0; i < static_cast<int>(waves.batches().size()); ++i) {
      const LaneRange all{0, waves.batches()[static_cast<std::size_t>(i)].batch->lanes()};
      EXPECT_TRUE(waves.freeze(i, all, x.data(), input.data()).ok());
      EXPECT_TRUE(waves.advance(i, all, a.data(), x_next.data(), b.data(), energy.data()).ok());
    }
    energy[0].storage_J += tamper.energy.storage_J;
    energy[0].external_supply_J += tamper.energy.external_supply_J;
    energy[0].dissipated_J += tamper.energy.dissipated_J;
    std::vector<double> booked_b = b;
    for (double& value : booked_b) {
      run.outgoing_J += 0.5 * value * value;
      value *= tamper.wave_gain;
    }
    book.book(a.data(), booked_b.data(), energy.data());
    x.swap(x_next);
  }
  run.totals = book.totals();
  run.violated = book.violated();
  return run;
}

TEST(EnergyLedger, BalancesToRoundOff) {
  for (const NamedSystem& sample : sample_systems()) {
    const System system = sample.make();
    const BookRun run = book_run(system, 0.01, sample.impedance, 200);
    const EnergyTotals& t = run.totals;
    EXPECT_NEAR(run.imbalance(), 0.0, 1e-11 * (t.initial_J + std::abs(t.mismatch_J) + 1.0))
        << sample.name;
    EXPECT_FALSE(run.violated) << sample.name;
    EXPECT_NEAR(t.tank_J - t.initial_tank_J, t.mismatch_J, 1e-11 * (1.0 + std::abs(t.mismatch_J)));
    EXPECT_GE(t.dissipated_J, 0.0);
  }
}

TEST(EnergyLedgerControl, ATamperedEntryBreaksTheBalanceByJustThat) {
  constexpr int steps = 20;
  constexpr double tamper = 1e-6, round_off = 1e-12;
  for (const NamedSystem& sample : sample_systems()) {
    const System system = sample.make();
    const auto run = [&](const Tamper& t) {
      return book_run(system, 0.01, sample.impedance, steps, t);
    };
    const BookRun honest = run({});
    const auto imbalance = [&](const StepEnergy& energy) {
      return run({.energy = energy}).imbalance() - honest.imbalance();
    };
    // H enters by its difference over the run, the others by their sum over the steps.
    EXPECT_NEAR(imbalance({.storage_J = tamper}), tamper, round_off) << sample.name;
    EXPECT_NEAR(imbalance({.external_supply_J = tamper}), -steps * tamper, round_off)
        << sample.name;
    EXPECT_NEAR(imbalance({.dissipated_J = tamper}), steps * tamper, round_off) << sample.name;
    // ½|b|² of every part and step.
    constexpr double gain = 1.0 + 1e-6;
    const double louder = run({.wave_gain = gain}).imbalance() - honest.imbalance();
    EXPECT_GT(honest.outgoing_J, 1e-4) << sample.name;
    EXPECT_NEAR(louder, (gain * gain - 1.0) * honest.outgoing_J, 1e-12 * (1.0 + honest.outgoing_J))
        << sample.name;
  }
}

TEST(EnergyLedgerControl, CatchesEnergyFromNowhere) {
  const System system = testing::lossless_pair();
  EXPECT_FALSE(book_run(system, 0.01, 20.0, 1).violated);
  EXPECT_TRUE(book_run(system, 0.01, 20.0, 1, {.energy = {.storage_J = 1e-9}}).violated);
}

}  // namespace
}  // namespace portwave
