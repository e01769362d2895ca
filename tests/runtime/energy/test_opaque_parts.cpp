// Parts that show nothing but ports and a step that can be taken back, beside ordinary ones.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/coupling/energy/step_certifier.hpp"
#include "portwave/coupling/impedance/tuning.hpp"
#include "portwave/coupling/network/condensed.hpp"
#include "portwave/coupling/reference/monolithic.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/runtime/output/recorder.hpp"
#include "portwave/runtime/output/summary.hpp"
#include "portwave/runtime/parallel/partition.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/conformance/conformance.hpp"
#include "support/systems/opaque_parts.hpp"
#include "support/trace.hpp"

namespace portwave::test_opaque_parts {
namespace {

using testing::MassProgram;
using testing::OpaqueMass;
using testing::same_bits;

constexpr double kStep = 0.01;

const MassProgram::Parameters kMass = {
    .mass_kg = 4.0, .stiffness_N_per_m = 50.0, .damping_Ns_per_m = 0.3};

std::shared_ptr<const Component> ordinary(const MassProgram::Parameters& p) {
  return linear_oscillator({.mass_kg = p.mass_kg,
                            .stiffness_N_per_m = p.stiffness_N_per_m,
                            .damping_Ns_per_m = p.damping_Ns_per_m,
                            .allow_active = p.damping_Ns_per_m < 0.0});
}
std::shared_ptr<const Component> opaque(const MassProgram::Parameters& p) {
  return std::make_shared<OpaqueMass>(p);
}

/// "A", a mass with a spring at whose end hangs "B".
System pair_with(std::shared_ptr<const Component> b, std::vector<double> start_of_a,
                 std::vector<double> start_of_b = {}) {
  SystemBuilder builder;
  builder.add("A",
              duffing_oscillator({.mass_kg = 1.0,
                                  .stiffness_N_per_m = 40.0,
                                  .damping_Ns_per_m = 0.1,
                                  .coupling_stiffness_N_per_m = 30.0,
                                  .coupling_damping_Ns_per_m = 0.2}),
              {.initial_state = std::move(start_of_a)});
  builder.add("B", std::move(b), {.initial_state = std::move(start_of_b)});
  builder.connect("A.coupling", "B.coupling");
  return builder.build();
}
System opaque_pair(MassProgram::Parameters p = kMass, double start_m = 0.2) {
  p.start_m = -0.5 * start_m;
  return pair_with(opaque(p), {start_m, 0.0, 0.0});
}
System ordinary_pair(const MassProgram::Parameters& p = kMass, double start_m = 0.2) {
  return pair_with(ordinary(p), {start_m, 0.0, 0.0}, {-0.5 * start_m, 0.0});
}

/// The default impedance is matched to A: the iteration converges at once. Others do not.
StepperOptions options(int iterations, double tolerance = 0.0, double gamma = 0.35) {
  StepperOptions o{.method = WaveCoupling{}};
  o.step_s = kStep;
  o.method.waves().kind = WaveUpdate::peaceman_rachford;
  o.method.waves().iterations = iterations;
  o.method.waves().tolerance = tolerance;
  o.method.waves().impedance = {gamma};
  return o;
}

std::string failure_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(OpaquePart, MovesLikeTheSamePhysicsInSight) {
  constexpr int kSteps = 20000;
  for (const double start_m : {0.2, 1e5}) {
    const System hidden = opaque_pair(kMass, start_m), seen = ordinary_pair(kMass, start_m);
    for (const int iterations : {1, 8}) {
      StepperOptions o = options(iterations);
      o.method.waves().tank.initial_fraction =
          10.0;  // so much that the guard never decides anything
      Stepper a(hidden, o), b(seen, o);
      double worst = 0.0;
      for (int n = 0; n < kSteps; ++n) {
        a.step();
        b.step();
        for (std::size_t k = 0; k < 3; ++k) {
          worst = std::max(worst, std::abs(a.state(0)[k] - b.state(0)[k]));
        }
        for (int port = 0; port < 2; ++port) {
          worst = std::max(worst, std::abs(a.waves()->incident(port) - b.waves()->incident(port)));
          worst = std::max(worst, std::abs(a.waves()->outgoing(port) - b.waves()->outgoing(port)));
        }
      }
      EXPECT_LE(worst, 1e-9 * start_m) << "start " << start_m << ", K " << iterations;
    }
  }
}

TEST(OpaquePartControl, OtherPhysicsMovesElsewhere) {
  MassProgram::Parameters other = kMass;
  other.stiffness_N_per_m *= 1.0 + 1e-6;
  const System hidden = opaque_pair(other), seen = ordinary_pair();
  Stepper a(hidden, options(8)), b(seen, options(8));
  a.step(20000);
  b.step(20000);
  EXPECT_GT(std::abs(a.state(0)[0] - b.state(0)[0]), 1e-9);
}

/// The closer its own integration, the closer to the motion that the equations have: there is no
/// ordinary part to compare with.
TEST(OpaquePart, MayIntegrateAsItLikes) {
  MassProgram::Parameters hard = kMass;
  hard.cubic_stiffness_N_per_m3 = 400.0;
  const auto end_of = [&](int substeps) {
    hard.substeps = substeps;
    const System system = opaque_pair(hard);
    Stepper stepper(system, options(60, 1e-12));
    stepper.step(400);
    EXPECT_EQ(stepper.iterations().not_converged, 0);
    return stepper.state(0)[0];
  };
  const double best = end_of(256);
  const double coarse = std::abs(end_of(2) - best), fine = std::abs(end_of(8) - best);
  EXPECT_GT(coarse, 8.0 * fine);  // order 2: 16
  EXPECT_LT(coarse, 32.0 * fine);
}

TEST(OpaquePart, GivesTheSameBitsWithAnyExecutor) {
  SystemBuilder builder;
  constexpr int kPairs = 6;
  for (int i = 0; i < kPairs; ++i) {
    MassProgram::Parameters p = kMass;
    p.mass_kg += i;
    p.start_m = 0.1 * i;
    p.cubic_stiffness_N_per_m3 = 10.0 * i;
    builder.add("spring" + std::to_string(i),
                duffing_oscillator({.mass_kg = 1.0 + i, .coupling_stiffness_N_per_m = 30.0}));
    builder.add("mass" + std::to_string(i), i % 3 == 2 ? ordinary(p) : opaque(p));
    builder.connect("spring" + std::to_string(i) + ".coupling",
                    "mass" + std::to_string(i) + ".coupling");
  }
  const System system = builder.build();
  StepperOptions o = options(30, 1e-9);
  o.executor = ExecutorKind::serial;
  const std::vector<double> expected = testing::trace(system, o, 60);
  for (const ExecutorKind kind :
       {ExecutorKind::async, ExecutorKind::graph, ExecutorKind::automatic}) {
    o.executor = kind;
    o.threads = 3;
    for (const Grain grain : {Grain::per_part(), Grain::automatic()}) {
      o.grain = grain;
      EXPECT_TRUE(same_bits(testing::trace(system, o, 60), expected)) << to_string(kind);
    }
  }
}

TEST(OpaquePart, IsTunedAsIfItsEquationsWereKnown) {
  const System hidden = opaque_pair(), seen = ordinary_pair();
  for (const double h : {1e-4, 1e-2, 1.0}) {
    const PortResponses probed(hidden, h), known(seen, h);
    EXPECT_EQ(probed.problem(), "");
    EXPECT_NEAR(probed.of(1)(0, 0) / known.of(1)(0, 0), 1.0, 1e-6) << h;
    for (const ImpedanceKind kind : {ImpedanceKind::matched, ImpedanceKind::fne}) {
      const TunedImpedance a = tune_impedance(probed, kind), b = tune_impedance(known, kind);
      ASSERT_EQ(a.by_port.size(), b.by_port.size()) << a.problem;
      for (std::size_t j = 0; j < a.by_port.size(); ++j) {
        EXPECT_NEAR(a.by_port[j] / b.by_port[j], 1.0, 1e-5) << to_string(kind) << " h=" << h;
      }
    }
  }
  StepperOptions o = options(0);
  o.method = CouplingMethod::automatic();
  Stepper a(hidden, o), b(seen, o);
  a.step(2000);
  b.step(2000);
  EXPECT_EQ(a.iterations().not_converged, 0);
  EXPECT_LE(a.iterations().mean(), 6.0);
  EXPECT_NEAR(a.state(0)[0], b.state(0)[0], 1e-7);
}

TEST(OpaquePart, IsProbedWhateverItsImpedance) {
  for (const double scale : {1e-9, 1e-4, 1.0, 1e6, 1e12}) {
    const OpaqueMass part({.mass_kg = 2.0 * scale, .stiffness_N_per_m = 5.0 * scale});
    const auto response = probed_response(part, kStep, nullptr);
    ASSERT_TRUE(response.has_value()) << scale;
    // f̄ = −v̄, 2m v̄/h + k h v̄/2 = −e
    const double expected = 1.0 / (2.0 * 2.0 * scale / kStep + 0.5 * 5.0 * scale * kStep);
    EXPECT_NEAR((*response)(0, 0) / expected, 1.0, 1e-6) << scale;
  }
}

TEST(OpaquePart, IsAccountedForByWhatWentThroughItsPorts) {
  const System system = opaque_pair();
  Stepper stepper(system, options(2, 0.0, 3.0));
  const double start = stepper.storage(0);
  EXPECT_EQ(stepper.storage(1), 0.0);
  long double through = 0.0L, moved = 0.0L, tank = 0.0L, lost = 0.0L;
  for (int n = 0; n < 3000; ++n) {
    const StepReport report = stepper.step();
    for (int port = 0; port < 2; ++port) {
      const long double a = stepper.waves()->incident(port), b = stepper.waves()->outgoing(port);
      const long double in = 0.5L * (a - b) * (a + b);
      tank -= in;
      moved += 0.5L * (a * a + b * b);
      if (port == 1) through += in;
    }
    lost += report.energy.dissipated_J;
    const double rounding = 1e-13 + 1e-12 * static_cast<double>(moved);
    ASSERT_NEAR(stepper.storage(1), static_cast<double>(through), rounding) << n;
    ASSERT_NEAR(report.energy.stored_J, stepper.storage(0) + stepper.storage(1), rounding) << n;
    ASSERT_NEAR(stepper.storage(0) + static_cast<double>(through + tank + lost), start, rounding);
    ASSERT_NEAR(stepper.waves()->tank(0), static_cast<double>(tank), rounding) << n;
    ASSERT_GE(stepper.waves()->tank(0), -rounding) << n;
  }
  EXPECT_GT(stepper.waves()->guard()->steps, 0);
  // One is summed over the steps, the other is the difference of two sums.
  EXPECT_NEAR(stepper.energy().metered_J, stepper.storage(1), 1e-14 * static_cast<double>(moved));
  Quantity stored;
  Issues issues;
  ASSERT_TRUE(resolve_quantity(system, "B.storage", "", stored, issues));
  EXPECT_EQ(observe(stepper, stored), stepper.storage(1));
}

TEST(OpaquePart, IsAccountedForWithoutCertificateToo) {
  const System system = opaque_pair();
  StepperOptions o = options(8);
  Stepper with(system, o);
  with.step(200);
  o.certify = Certify::none;
  o.method.waves().guard = false;
  Stepper without(system, o);
  without.step(200);
  EXPECT_TRUE(without.keeps_ledger());
  EXPECT_NEAR(without.storage(1), with.storage(1), 1e-9);
}

/// With few evaluations and a far impedance the coupling makes energy; the guard does not let it.
TEST(OpaquePart, IsKeptSafeByTheGuard) {
  for (const bool guard : {true, false}) {
    const System system = opaque_pair();
    StepperOptions o = options(2, 0.0, 100.0);
    o.method.waves().guard = guard;
    Stepper stepper(system, o);
    const double start = stepper.storage(0);
    double most = 0.0;
    for (int n = 0; n < 4000; ++n) {
      stepper.step();
      most = std::max(most, stepper.storage(0) + stepper.storage(1));
    }
    EXPECT_EQ(most <= start * (1.0 + 1e-9), guard) << most << " of " << start;
    EXPECT_EQ(stepper.certificate().growth.has_value(), !guard);
  }
}

TEST(OpaquePart, IsNotCalledPassive) {
  const System hidden = opaque_pair(), seen = ordinary_pair();
  const auto summary_of = [](const System& system) {
    StepperOptions o = options(8);
    Stepper stepper(system, o);
    stepper.step(50);
    return summarize("pair", o, stepper, 1.0);
  };
  const RunSummary said = summary_of(hidden), usual = summary_of(seen);
  EXPECT_EQ(said.certificate.status, CertificateStatus::conditional);
  EXPECT_EQ(said.certificate.unjudged_parts, std::vector<int>{1});
  const std::string text = summary_text(said);
  EXPECT_NE(text.find("whether subsystem \"B\" is passive is not judged: its energy is not known"),
            std::string::npos)
      << text;
  EXPECT_LT(said.energy.metered_J, 0.0);
  EXPECT_NE(text.find(fmt::format("\"B\" gave {:.6g} J net", -said.energy.metered_J)),
            std::string::npos)
      << text;
  EXPECT_EQ(usual.certificate.status, CertificateStatus::holds);
  EXPECT_EQ(summary_text(usual).find("not judged"), std::string::npos);
}

/// A program that pours out energy without end. Nobody can forbid that; it shows as what B gave,
/// and no part has more than that and what there was.
TEST(OpaquePartControl, EnergyFromNowhereIsMetered) {
  MassProgram::Parameters source = kMass;
  source.damping_Ns_per_m = -2.0;
  const System system = opaque_pair(source);
  StepperOptions o = options(8);
  Stepper stepper(system, o);
  const double start = stepper.storage(0);
  for (int n = 0; n < 4000; ++n) {
    stepper.step();
    const double given = -stepper.energy().metered_J;
    ASSERT_LE(stepper.storage(0), (start + given) * (1.0 + 1e-9)) << n;
  }
  EXPECT_LT(stepper.energy().metered_J, -100.0 * start);
  EXPECT_GT(stepper.storage(0), 10.0 * start);
  const std::string text = summary_text(summarize("pair", o, stepper, 1.0));
  EXPECT_NE(text.find("\"B\" gave "), std::string::npos) << text;
  EXPECT_NE(text.find("what was supplied, by subsystem \"B\" too"), std::string::npos) << text;
}

TEST(OpaquePart, HasMarginsAndFixedPointsIfItsStepsRepeat) {
  const System system = opaque_pair();
  StepperOptions o = options(3);
  o.certify = Certify::full;
  Stepper stepper(system, o);
  stepper.step(30);
  const Certificate& certificate = stepper.certificate();
  ASSERT_TRUE(certificate.min_nonexpansiveness_margin.has_value());
  EXPECT_GT(*certificate.min_nonexpansiveness_margin, 0.0);
  ASSERT_TRUE(certificate.max_augmented_residual_J.has_value());
  EXPECT_LE(*certificate.max_augmented_residual_J, 1e-9);
  EXPECT_EQ(certificate.steps_without_fixed_point, 0);
  EXPECT_TRUE(certificate.unrepeatable_parts.empty());
}

TEST(UnrepeatablePart, IsSteppedByOneThreadAndClaimsNothing) {
  testing::ProgramCalls calls;
  MassProgram::Parameters p = kMass;
  p.jitter_m = 1e-13;
  SystemBuilder builder;
  for (int i = 0; i < 4; ++i) {
    const std::string number = std::to_string(i);
    builder.add("A" + number, duffing_oscillator({.coupling_stiffness_N_per_m = 30.0}),
                {.initial_state = {0.1, 0.0, 0.2}});
    builder.add("B" + number, std::make_shared<OpaqueMass>(p, Capabilities{}, &calls));
    builder.connect("A" + number + ".coupling", "B" + number + ".coupling");
  }
  const System system = builder.build();
  for (const ExecutorKind kind :
       {ExecutorKind::automatic, ExecutorKind::async, ExecutorKind::graph}) {
    StepperOptions o = options(60, 1e-6);
    o.certify = Certify::full;
    o.threads = 4;
    o.executor = kind;
    o.grain = Grain::per_part();
    calls.most = 0;
    Stepper stepper(system, o);
    stepper.step(100);
    EXPECT_EQ(stepper.execution(), "serial (subsystem \"B0\" is not thread-safe)");
    EXPECT_EQ(stepper.threads(), 1);
    EXPECT_EQ(calls.most, 1);
    EXPECT_EQ(stepper.iterations().not_converged, 0);
    const Certificate& certificate = stepper.certificate();
    EXPECT_EQ(certificate.unrepeatable_parts, (std::vector<int>{1, 3, 5, 7}));
    EXPECT_FALSE(certificate.max_augmented_residual_J.has_value());
    EXPECT_TRUE(certificate.min_nonexpansiveness_margin.has_value());  // of the others
    const std::string text = summary_text(summarize("four", o, stepper, 1.0));
    EXPECT_NE(text.find("the steps of subsystems \"B0\", \"B1\", \"B2\", \"B3\" do not repeat"),
              std::string::npos)
        << text;
  }
}

TEST(UnrepeatablePart, KeepsItsDeclaredCost) {
  for (const bool repeatable : {false, true}) {
    testing::ProgramCalls calls;
    const System system = pair_with(
        std::make_shared<OpaqueMass>(kMass, Capabilities{.repeatable = repeatable}, &calls),
        {0.1, 0.0, 0.0});
    const std::vector<double> impedance(2, 1.0);
    const WaveDiscretisation waves(system, kStep, impedance);
    const AlignedVector record = waves.initial_record();
    (void)measured_costs(waves, record.data());
    EXPECT_EQ(calls.solves > 0, repeatable);
  }
}

TEST(OpaquePart, IsRefusedWhereEquationsAreNeeded) {
  const System system = opaque_pair();
  const std::string reason =
      "subsystem \"B\" (opaque_mass) is opaque: it has ports and a step, but shows no equations";
  for (const MethodKind kind : std::initializer_list<MethodKind>{
           SplittingKind::strang, SplittingKind::impulse, IterationKind::lions_mercier,
           IterationKind::jacobi, IterationKind::gauss_seidel}) {
    StepperOptions o = options(10);
    o.method = CouplingMethod::of_kind(kind);
    if (kind == MethodKind(SplittingKind::impulse)) o.method.splitting().fast = {"A"};
    const std::string text = failure_of([&] { Stepper stepper(system, o); });
    EXPECT_NE(text.find(reason), std::string::npos) << to_string(kind) << ": " << text;
  }
  EXPECT_NE(failure_of([&] { MonolithicReference reference(system, kStep); }).find(reason),
            std::string::npos);
}

TEST(OpaquePart, HasToBeGivenImpedancesIfItCannotBeLinearised) {
  const System system = pair_with(
      std::make_shared<OpaqueMass>(kMass, Capabilities{.repeatable = true}), {0.1, 0.0, 0.0});
  StepperOptions o = options(10);
  o.method = CouplingMethod::automatic();
  const std::string text = failure_of([&] { Stepper stepper(system, o); });
  EXPECT_NE(text.find("the impedances at subsystem \"B\" (opaque_mass) have to be given: it is "
                      "opaque and cannot be linearised"),
            std::string::npos)
      << text;
  o = options(10);
  o.method.waves().impedance_kind = ImpedanceKind::matched;
  EXPECT_NE(failure_of([&] { Stepper stepper(system, o); }).find("have to be given"),
            std::string::npos);
  o = options(10);
  o.method.waves().kind = WaveUpdate::interface;
  EXPECT_NE(failure_of([&] {
              Stepper stepper(system, o);
            }).find("\"interface\" needs derivatives, and subsystem \"B\" (opaque_mass) cannot"),
            std::string::npos);
  o = options(30, 1e-9);
  Stepper stepper(system, o);  // with impedances that are given it runs
  stepper.step(100);
  EXPECT_EQ(stepper.iterations().not_converged, 0);
}

TEST(OpaquePart, TakesTheInterfaceUpdateIfItCanBeLinearised) {
  const System hidden = opaque_pair(), seen = ordinary_pair();
  StepperOptions o = options(20, 1e-11);
  o.method.waves().kind = WaveUpdate::interface;
  Stepper a(hidden, o), b(seen, o);
  a.step(500);
  b.step(500);
  EXPECT_EQ(a.iterations().not_converged, 0);
  EXPECT_NEAR(a.state(0)[0], b.state(0)[0], 1e-8);
}

TEST(Rollback, HoldsForAProgramWithItsStatesInSlots) {
  MassProgram::Parameters hard = kMass;
  hard.cubic_stiffness_N_per_m3 = 400.0;
  hard.start_m = 0.3;
  for (const MassProgram::Parameters& p : {kMass, hard}) {
    const LawReport report = check_rollback(OpaqueMass(p));
    EXPECT_TRUE(report.holds) << report.worst << ": " << report.detail;
    EXPECT_NE(report.detail, "");
  }
}

TEST(RollbackControl, CatchesAProgramWhoseStepsDoNotRepeat) {
  MassProgram::Parameters p = kMass;
  p.jitter_m = 1e-9;
  EXPECT_FALSE(check_rollback(OpaqueMass(p)).holds);
}

/// What a step needs of a component: it can be taken back.
TEST(ProgramBatch, TakesStepsBack) {
  const OpaqueMass part(kMass);
  const Component* parts[] = {&part};
  const auto batch = part.make_batch(parts);
  const double gamma = 2.0;
  batch->prepare(kStep, &gamma);
  AlignedVector record(batch->record_size(), 0.0), next(record.size()), later(record.size());
  batch->set_state(0, nullptr, record.data());
  batch->freeze({0, 1}, record.data(), nullptr);
  const auto scatter = [&](AlignedVector& from, double a) {
    double b = 0.0;
    EXPECT_TRUE(batch->scatter({0, 1}, from.data(), &a, &b).ok());
    return b;
  };
  const double before = scatter(record, 0.7);
  double a = 0.3, b = 0.0;
  EXPECT_TRUE(batch->advance({0, 1}, record.data(), &a, next.data(), &b, {}).ok());
  EXPECT_NE(scatter(next, 0.7), before);
  EXPECT_EQ(scatter(record, 0.7), before);
  a = 0.4;  // the step again, with another wave
  EXPECT_TRUE(batch->advance({0, 1}, record.data(), &a, next.data(), &b, {}).ok());
  AlignedVector copy = next;
  EXPECT_EQ(scatter(copy, 0.7), scatter(next, 0.7));
  EXPECT_TRUE(batch->advance({0, 1}, next.data(), &a, later.data(), &b, {}).ok());
  EXPECT_THROW(scatter(record, 0.7), std::logic_error);  // two steps ago
}

}  // namespace
}  // namespace portwave::test_opaque_parts
