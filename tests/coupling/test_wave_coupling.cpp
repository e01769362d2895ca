// Laws of the wave coupling, against evidence that does not use waves.

#include <algorithm>
#include <cmath>
#include <random>
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

/// Runs `steps` explicit (K = 0) steps and books them.
EnergyTotals book_run(const System& system, double h, double gamma, int steps, bool& violated,
                      double tamper = 0.0) {
  WaveDiscretisation waves(system, h, uniform(system, gamma));
  std::vector<double> x = waves.initial_state(), x_next(x.size());
  std::vector<double> b(static_cast<std::size_t>(waves.wave_size()), 0.0), a(b.size());
  std::vector<double> input(static_cast<std::size_t>(waves.input_size()), 0.0);
  std::vector<StepEnergy> energy(system.parts().size());
  EnergyBook book(waves, x.data(), b.data());
  for (int n = 0; n < steps; ++n) {
    EXPECT_TRUE(waves.sample_inputs(n * h, input.data()).ok());
    waves.interconnection().exchange(waves.interconnection().all(), b.data(), a.data());
    for (int i = 0; i < static_cast<int>(waves.batches().size()); ++i) {
      const LaneRange all{0, waves.batches()[static_cast<std::size_t>(i)].batch->lanes()};
      EXPECT_TRUE(waves.freeze(i, all, x.data(), input.data()).ok());
      EXPECT_TRUE(waves.advance(i, all, a.data(), x_next.data(), b.data(), energy.data()).ok());
    }
    energy[0].dissipated_J += tamper;
    energy[0].storage_J += tamper;
    book.book(a.data(), b.data(), energy.data());
    x.swap(x_next);
  }
  violated = book.violated();
  return book.totals();
}

TEST(EnergyLedger, BalancesToRoundOff) {
  for (const NamedSystem& sample : sample_systems()) {
    const System system = sample.make();
    bool violated = true;
    const EnergyTotals t = book_run(system, 0.01, sample.impedance, 200, violated);
    const double balance =
        (t.final_J - t.initial_J) - (t.supplied_J - t.dissipated_J - t.mismatch_J);
    EXPECT_NEAR(balance, 0.0, 1e-11 * (t.initial_J + std::abs(t.mismatch_J) + 1.0)) << sample.name;
    EXPECT_FALSE(violated) << sample.name;
    EXPECT_NEAR(t.tank_J - t.initial_tank_J, t.mismatch_J, 1e-11 * (1.0 + std::abs(t.mismatch_J)));
    EXPECT_GE(t.dissipated_J, 0.0);
  }
}

TEST(EnergyLedgerControl, CatchesEnergyFromNowhere) {
  bool violated = true;
  book_run(testing::lossless_pair(), 0.01, 20.0, 1, violated, 0.0);
  EXPECT_FALSE(violated);
  book_run(testing::lossless_pair(), 0.01, 20.0, 1, violated, 1e-9);
  EXPECT_TRUE(violated);
}

}  // namespace
}  // namespace portwave
