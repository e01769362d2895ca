// Laws of the wave coupling, against evidence that does not use waves.

#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/coupling/energy/step_certifier.hpp"
#include "portwave/coupling/reference/monolithic.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/coupling/waves/wave_iteration.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/port.hpp"
#include "portwave/subsystems/core/step_batch.hpp"
#include "support/systems/coupled_systems.hpp"
#include "support/systems/networks.hpp"
#include "support/systems/systems.hpp"

namespace portwave::test_wave_coupling {
namespace {

using testing::NamedSystem;
using testing::sample_systems;

std::vector<double> uniform(const System& system, double gamma) {
  return std::vector<double>(system.scalar_ports().size(), gamma);
}

/// Every part frozen at its initial state with the inputs of the step from t = 0.
AlignedVector frozen_record(WaveDiscretisation& waves) {
  AlignedVector record = waves.initial_record(), input(waves.input_size(), 0.0);
  PhaseStatus failure;
  EXPECT_TRUE(waves.sample_inputs(0.0, input.data(), failure));
  EXPECT_TRUE(waves.freeze_all(record.data(), input.data()).ok());
  return record;
}

std::vector<double> state_of(const WaveDiscretisation& waves, int part,
                             const AlignedVector& record) {
  const Part& own = waves.system().parts()[static_cast<std::size_t>(part)];
  std::vector<double> x(own.initial_state.size());
  waves.get_state(part, record.data(), x.data());
  return x;
}

/// A frozen system and the fixed point of its inner iteration.
struct Frozen {
  Frozen(const System& system, double h, double gamma, double relaxation = 1.0)
      : waves(system, h, uniform(system, gamma)), record(frozen_record(waves)) {
    FixedPointSolver solver(waves, {&douglas_rachford(), relaxation});
    const AlignedVector zero(static_cast<std::size_t>(waves.wave_size()), 0.0);
    const auto found = solver.solve(record.data(), zero);
    fixed_point.assign(found.begin(), found.end());
  }
  /// The same waves at every scalar port, zeros at padding.
  AlignedVector random_waves(std::uint64_t seed, double scale) const {
    std::mt19937_64 generator(seed);
    std::normal_distribution<double> normal(0.0, scale);
    AlignedVector u(static_cast<std::size_t>(waves.wave_size()), 0.0);
    for (std::size_t j = 0; j < waves.system().scalar_ports().size(); ++j) {
      u[static_cast<std::size_t>(waves.wave_of_port(static_cast<int>(j)))] = normal(generator);
    }
    return u;
  }
  std::vector<int> iterations(int count) const {
    return std::vector<int>(static_cast<std::size_t>(waves.system().island_count()), count);
  }
  WaveDiscretisation waves;
  AlignedVector record, fixed_point;
};

/// |effort and flow of the fixed point − those of the monolithic step|, relative.
double distance_to_monolithic(const System& system, Frozen& frozen, double h,
                              const System& reference_system) {
  MonolithicReference reference(reference_system, h);
  reference.step();
  AlignedVector b(frozen.fixed_point.size());
  EXPECT_TRUE(
      frozen.waves.scatter_all(frozen.record.data(), frozen.fixed_point.data(), b.data()).ok());
  double gap = 0.0, scale = 0.0;
  for (int j = 0; j < static_cast<int>(system.scalar_ports().size()); ++j) {
    const auto slot = static_cast<std::size_t>(frozen.waves.wave_of_port(j));
    const WaveTransform transform(frozen.waves.impedance()[slot], h);
    const WavePair expected = transform.to_waves({reference.effort()[static_cast<std::size_t>(j)],
                                                  reference.flow()[static_cast<std::size_t>(j)]});
    gap = std::max({gap, std::abs(expected.incident - frozen.fixed_point[slot]),
                    std::abs(expected.outgoing - b[slot])});
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
  const AlignedVector u = frozen.random_waves(7, u_scale);
  const std::vector<int> by_island = frozen.iterations(iterations);
  Certificate certificate;
  StepCertifier(frozen.waves, {&douglas_rachford(), relaxation})
      .examine(frozen.record.data(), {.index = 0, .iterations = by_island, .u_start = u},
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

/// Energies by entry.
class Columns {
 public:
  explicit Columns(const WaveDiscretisation& waves) {
    for (AlignedVector& column : columns_) {
      column.resize(static_cast<std::size_t>(waves.entry_count()), 0.0);
    }
  }
  EnergyColumns pointers() { return {columns_[0].data(), columns_[1].data(), columns_[2].data()}; }

 private:
  AlignedVector columns_[3];
};

/// One macro-step from the frozen state: K Douglas–Rachford iterations, shadow, commit.
struct HandStep {
  HandStep(const System& system, Frozen& frozen, double relaxation, int count, AlignedVector start)
      : u_start(std::move(start)), u_end(u_start), iterations(frozen.iterations(count)) {
    const WaveDiscretisation& waves = frozen.waves;
    WaveIteration iteration(waves, {&douglas_rachford(), relaxation});
    iteration.start_at(u_start);
    for (int k = 0; k < count; ++k) {
      EXPECT_TRUE(iteration.evaluate(frozen.record.data()).ok());
      iteration.update();
    }
    std::ranges::copy(iteration.u(), u_end.begin());
    const std::span<const double> a = iteration.shadow();
    AlignedVector b(u_start.size(), 0.0);
    next.resize(frozen.record.size());
    Columns energy(waves);
    EXPECT_TRUE(
        iteration.commit(frozen.record.data(), next.data(), b.data(), energy.pointers()).ok());
    for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
      const Subsystem& part = *system.parts()[static_cast<std::size_t>(i)].port_hamiltonian();
      stored_change_J += part.storage(state_of(waves, i, next).data()) -
                         part.storage(state_of(waves, i, frozen.record).data());
      supplied_J += energy.pointers().at(waves.slot(i).entry).external_supply_J;
    }
    for (std::size_t j = 0; j < system.scalar_ports().size(); ++j) {
      const auto slot = static_cast<std::size_t>(waves.wave_of_port(static_cast<int>(j)));
      mismatch_J += 0.5 * (b[slot] * b[slot] - a[slot] * a[slot]);
    }
    evidence = {.index = 0,
                .iterations = iterations,
                .u_start = u_start,
                .stored_change_J = stored_change_J,
                .mismatch_J = mismatch_J,
                .supplied_J = supplied_J};
  }
  HandStep(const HandStep&) = delete;
  HandStep& operator=(const HandStep&) = delete;

  AlignedVector u_start, u_end, next;
  std::vector<int> iterations;
  double stored_change_J = 0.0, mismatch_J = 0.0, supplied_J = 0.0;
  StepCertifier::Step evidence;
};

double theorem_1_residual(Frozen& frozen, double relaxation, const StepCertifier::Step& step) {
  Certificate certificate;
  StepCertifier(frozen.waves, {&douglas_rachford(), relaxation})
      .examine(frozen.record.data(), step, certificate);
  EXPECT_TRUE(certificate.max_augmented_residual_J.has_value());
  return certificate.max_augmented_residual_J.value_or(NAN);
}

double half_square_distance(const AlignedVector& u, const AlignedVector& v) {
  double sum = 0.0;
  for (std::size_t j = 0; j < u.size(); ++j) sum += (u[j] - v[j]) * (u[j] - v[j]);
  return 0.5 * sum;
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
                              frozen.random_waves(11, u_scale));
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
    const double mean_velocity = 0.5 * (state_of(frozen.waves, 1, frozen.record)[1] +
                                        state_of(frozen.waves, 1, step.next)[1]);
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
  const HandStep far(system, frozen, 1.0, 0, frozen.random_waves(11, 1.0));
  const HandStep nearer(system, frozen, 1.0, 1, far.u_start);
  StepCertifier::Step unmoved = nearer.evidence;
  const std::vector<int> none = frozen.iterations(0);
  unmoved.iterations = none;
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
  AlignedVector record = frozen_record(waves);
  MarginSampler sampler(waves, douglas_rachford());
  const auto result = sampler.sample(waves, record.data(), 0);
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

/// Maps are made anew where impedances differ, and nowhere else; what comes of it is what there would be
/// from the beginning.
TEST(OtherImpedances, AreThoseOfADiscretisationMadeWithThem) {
  for (const NamedSystem& sample : sample_systems()) {
    const System system = sample.make();
    const std::size_t ports = system.scalar_ports().size();
    const std::vector<double> before = uniform(system, sample.impedance);
    for (std::size_t other = 0; other < ports; ++other) {
      std::vector<double> wanted = before;
      wanted[other] *= 1.5;
      WaveDiscretisation changed(system, 1e-2, before), fresh(system, 1e-2, wanted);
      const AlignedVector zero(static_cast<std::size_t>(fresh.wave_size()), 0.0);
      const auto found = [&](WaveDiscretisation& waves) {
        FixedPointSolver solver(waves, {&douglas_rachford(), 1.0});
        AlignedVector record = frozen_record(waves);
        const auto u = solver.solve(record.data(), zero);
        return std::vector<double>(u.begin(), u.end());
      };
      const std::vector<double> old = found(changed);
      changed.set_impedance(wanted);
      EXPECT_EQ(found(changed), found(fresh)) << sample.name << " port " << other;
      std::vector<double> wrong = wanted;
      wrong[0] = -1.0;
      EXPECT_THROW(changed.set_impedance(wrong), ConfigError);
      EXPECT_EQ(found(changed), found(fresh)) << sample.name << ", after an error";
      changed.set_impedance(before);
      EXPECT_EQ(found(changed), old) << sample.name << " and back";
    }
  }
}

// Lane groups whose lanes have everything in common hold one set of coefficients, and equal ones share
// it; which do changes with the impedances.
TEST(OtherImpedances, OfEqualPartsMayBeAlikeOrNot) {
  const System system = testing::duffing_grid(8, 9);
  const std::size_t ports = system.scalar_ports().size();
  std::mt19937_64 generator(3);
  std::uniform_real_distribution<double> near(0.1, 0.4);
  std::vector<double> alike(ports, 0.2), different(ports), mixed = alike;
  for (double& gamma : different) gamma = near(generator);
  std::copy_n(different.begin(), ports / 3, mixed.begin());
  WaveDiscretisation changed(system, 1e-2, alike);
  std::vector<double> by_group(ports);  // alike within lane groups, some of which are alike
  for (std::size_t j = 0; j < ports; ++j) {
    const int group = changed.slot(system.scalar_ports()[j].part).lane / kLaneGroup;
    by_group[j] = 0.1 + 0.05 * (group % 4);
  }
  for (const auto& wanted : {different, by_group, mixed, alike, by_group, different}) {
    changed.set_impedance(wanted);
    WaveDiscretisation fresh(system, 1e-2, wanted);
    WaveDiscretisation alone(system, 1e-2, wanted, WaveDiscretisation::Grouping::none);
    const auto next = [&](WaveDiscretisation& waves) {
      AlignedVector record = frozen_record(waves), committed(record.size(), 0.0);
      const auto size = static_cast<std::size_t>(waves.wave_size());
      AlignedVector a(size, 0.1), b(size, 0.0);
      EXPECT_TRUE(waves.scatter_all(record.data(), a.data(), b.data()).ok());
      waves.interconnection().exchange(b.data(), a.data());
      EXPECT_TRUE(waves.advance_all(record.data(), a.data(), committed.data(), b.data(), {}).ok());
      std::vector<double> out;
      for (std::size_t j = 0; j < ports; ++j)
        out.push_back(b[at(waves.wave_of_port(static_cast<int>(j)))]);
      for (int part = 0; part < 72; ++part) {
        for (const double x : state_of(waves, part, committed)) out.push_back(x);
      }
      return out;
    };
    const std::vector<double> expected = next(alone);
    EXPECT_EQ(next(changed), expected);
    EXPECT_EQ(next(fresh), expected);
  }
}

// Impedances that pass every check, but not the preparation of one batch, the others being prepared
// already: everything is as before, weights of junctions included.
TEST(OtherImpedances, LeaveEverythingAsItWasWhereABatchCannotBePrepared) {
  const System system = testing::net(3, 5);
  const std::size_t ports = system.scalar_ports().size();
  for (const auto grouping :
       {WaveDiscretisation::Grouping::by_shape, WaveDiscretisation::Grouping::none}) {
    std::vector<double> before(ports);
    for (std::size_t j = 0; j < ports; ++j) before[j] = 0.1 + 0.01 * static_cast<double>(j % 7);
    WaveDiscretisation changed(system, 1e-2, before, grouping);
    WaveDiscretisation same(system, 1e-2, before, grouping);
    const auto found = [&](WaveDiscretisation& waves) {
      FixedPointSolver solver(waves, {&douglas_rachford(), 1.0});
      AlignedVector record = frozen_record(waves);
      const AlignedVector zero(static_cast<std::size_t>(waves.wave_size()), 0.0);
      const auto u = solver.solve(record.data(), zero);
      return std::vector<double>(u.begin(), u.end());
    };
    std::vector<double> wanted = before;
    for (double& gamma : wanted) gamma *= 1.5;
    const std::size_t last = at(system.first_scalar_port(14));
    wanted[last + 2] = wanted[last + 3] = 1e308;  // on the mass: their sum overflows
    EXPECT_THROW(changed.set_impedance(wanted), ConfigError);
    EXPECT_EQ(found(changed), found(same));
    EXPECT_TRUE(std::ranges::equal(changed.impedance(), same.impedance()));
    for (double& gamma : wanted) gamma = 0.3;
    changed.set_impedance(wanted);
    WaveDiscretisation fresh(system, 1e-2, wanted, grouping);
    EXPECT_EQ(found(changed), found(fresh));
  }
}

}  // namespace
}  // namespace portwave::test_wave_coupling
