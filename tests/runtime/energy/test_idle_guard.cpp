// The guard leaves converged steps alone: far from the origin, coasting, driven from rest, with
// free ends. And what the summary's verdict says when it is off and energy grows.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/runtime/output/summary.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/chain.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "support/guard_of.hpp"
#include "support/systems/systems.hpp"

namespace portwave::test_idle_guard {
namespace {

/// Blocks of masses on springs without walls, at `offset_m` and `speed_m_per_s`, one mass displaced
/// by 1 cm.
struct Coasting {
  int blocks = 4;
  double stiffness_N_per_m = 50.0;
  double offset_m = 0.0;
  double speed_m_per_s = 1.0;
};

/// A block in absolute positions: q (masses), p; both ends take an effort and give a velocity.
std::unique_ptr<LinearPortHamiltonian> absolute_block(double mass, double stiffness) {
  constexpr int kMasses = 3;
  Structure structure = Structure::zero(2 * kMasses, 2);
  SparseMatrix Q(2 * kMasses, 2 * kMasses);
  std::vector<Eigen::Triplet<double>> entries;
  for (int i = 0; i < kMasses; ++i) {
    structure.J.insert(i, kMasses + i) = 1.0;
    structure.J.insert(kMasses + i, i) = -1.0;
    entries.emplace_back(kMasses + i, kMasses + i, 1.0 / mass);
  }
  for (int i = 0; i + 1 < kMasses; ++i) {
    entries.emplace_back(i, i, stiffness);
    entries.emplace_back(i + 1, i + 1, stiffness);
    entries.emplace_back(i, i + 1, -stiffness);
    entries.emplace_back(i + 1, i, -stiffness);
  }
  Q.setFromTriplets(entries.begin(), entries.end());
  structure.G.insert(kMasses, 0) = 1.0;
  structure.G.insert(2 * kMasses - 1, 1) = -1.0;  // what pulls it pushes its neighbour
  Signature signature{"block", {}, {}, {}};
  for (int i = 0; i < kMasses; ++i) signature.states.push_back({"q" + std::to_string(i), "m"});
  for (int i = 0; i < kMasses; ++i) signature.states.push_back({"p" + std::to_string(i), "kg m/s"});
  signature.ports = {{"left", Causality::effort_in, Domain::translation, 1},
                     {"right", Causality::effort_in, Domain::translation, 1}};
  return std::make_unique<LinearPortHamiltonian>(std::move(signature), std::move(structure), Q,
                                                 LinearPortHamiltonian::Options{});
}

/// Blocks joined mass to mass: every joint is rigid, both ends of the chain are free.
System coasting_chain(const Coasting& c) {
  constexpr double kMass = 0.3;
  SystemBuilder builder;
  for (int i = 0; i < c.blocks; ++i) {
    std::vector<double> x(6, c.offset_m);
    for (int k = 3; k < 6; ++k) x[static_cast<std::size_t>(k)] = kMass * c.speed_m_per_s;
    if (i == 0) x[1] += 0.01;
    builder.add("b" + std::to_string(i), absolute_block(kMass, c.stiffness_N_per_m),
                {.initial_state = x});
  }
  for (int i = 0; i + 1 < c.blocks; ++i) {
    builder.connect("b" + std::to_string(i) + ".right", "b" + std::to_string(i + 1) + ".left");
  }
  builder.join(joint::Free{}, {"b0.left"});
  builder.join(joint::Free{}, {"b" + std::to_string(c.blocks - 1) + ".right"});
  return builder.build();
}

struct Ends {
  std::vector<double> x;
  double momentum = 0.0;
  CertificateStatus status;
  bool is_known = true;  ///< rounding is less than a millionth of what there was at the start
  GuardStatistics guard;
};

Ends run(const System& system, bool guarded, int steps, double h) {
  StepperOptions options{.step_s = h, .method = CouplingMethod::automatic()};
  options.method.waves().guard = guarded;
  Stepper stepper(system, options);
  stepper.step(steps);
  Ends out;
  for (int part = 0; part < static_cast<int>(system.parts().size()); ++part) {
    const auto x = stepper.state(part);
    out.x.insert(out.x.end(), x.begin(), x.end());
    for (std::size_t k = 3; k < 6 && x.size() == 6; ++k) out.momentum += x[k];
  }
  out.status = stepper.certificate().status;
  out.is_known = stepper.energy().rounding_J <= 1e-6 * stepper.energy().initial_J;
  out.guard = testing::guard_of(stepper);
  return out;
}

TEST(IdleGuard, LeavesChainsThatCoastFarFromTheOriginAlone) {
  for (const double offset : {0.0, 10.0, 1e3, 1e6}) {  // elongations are 1 cm: up to 1e8 of them
    for (const double speed : {0.0, 1.0, 100.0}) {
      for (const double stiffness : {50.0, 1e6}) {
        const System system = coasting_chain(
            {.stiffness_N_per_m = stiffness, .offset_m = offset, .speed_m_per_s = speed});
        const std::string where = "offset " + std::to_string(offset) + " speed " +
                                  std::to_string(speed) + " stiffness " + std::to_string(stiffness);
        const double h = 0.3 / std::sqrt(stiffness);
        const Ends guarded = run(system, true, 2000, h);
        const Ends plain = run(system, false, 2000, h);
        const double momentum = 12 * 0.3 * speed;
        // Of positions 1e8 elongations from the origin H is a small difference of large numbers.
        const bool is_at_limit = offset == 1e6 && stiffness < 1e6 && speed == 0.0;
        if (!is_at_limit) {
          EXPECT_EQ(guarded.is_known, offset < 1e6 || stiffness < 1e6 || speed > 10.0) << where;
        }
        EXPECT_EQ(guarded.status,
                  guarded.is_known ? CertificateStatus::holds : CertificateStatus::conditional)
            << where;
        const double reach = offset + 0.01 + speed * 2000 * h;
        // A rounding of a position is a force of that much elongation.
        const double rounded = 4e-15 * stiffness * reach * 2000 * h;
        EXPECT_NEAR(guarded.momentum, momentum, 1e-8 * (0.3 + momentum) + rounded) << where;
        for (std::size_t i = 0; i < plain.x.size(); ++i) {
          EXPECT_NEAR(guarded.x[i], plain.x[i], 1e-9 * (1.0 + reach)) << where << " state " << i;
        }
      }
    }
  }
}

// Where an account is out by more than waves explain, its bound is raised; the bound that is told is the
// one that the step was judged by.
TEST(IdleGuard, TellsTheRoundingThatItJudgesBy) {
  SystemBuilder builder;
  constexpr int kBlocks = 8;
  for (int i = 0; i < kBlocks; ++i) {
    ChainParameters block{.masses = 5, .mass_kg = 0.3, .stiffness_N_per_m = 50.0};
    block.coupling_stiffness_N_per_m = 50.0;
    block.left_end = ChainEnd::mass;
    block.right_end = i + 1 < kBlocks ? ChainEnd::spring : ChainEnd::mass;
    std::vector<double> x;
    for (int k = 0; k < block.masses; ++k) x.insert(x.end(), {1e6, 10.0});
    if (i == 0) x[0] -= 0.125;
    if (block.right_end == ChainEnd::spring) x.push_back(0.0);
    builder.add("b" + std::to_string(i), mass_spring_damper_chain(block), {.initial_state = x});
  }
  for (int i = 0; i + 1 < kBlocks; ++i) {
    builder.connect("b" + std::to_string(i) + ".right", "b" + std::to_string(i + 1) + ".left");
  }
  builder.join(joint::Free{}, {"b0.left"});
  builder.join(joint::Free{}, {"b7.right"});
  const System system = builder.build();
  Stepper stepper(system, {.step_s = 0.01, .method = CouplingMethod::automatic()});
  double before = 0.0, least = 1e300, most = 0.0;
  for (int n = 0; n < 3000; ++n) {
    stepper.step();
    const EnergyTotals& e = stepper.energy();
    const double excess = (e.final_J - e.initial_J) - e.supplied_J + (e.tank_J - e.initial_tank_J);
    const double size = e.initial_J + e.initial_tank_J;
    ASSERT_LE(excess, 1.0001e-12 * size + e.rounding_J) << "step " << n;
    least = std::min(least, e.rounding_J - before);
    most = std::max(most, e.rounding_J - before);
    before = e.rounding_J;
  }
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  EXPECT_GT(most, 10.0 * least);  // it was raised
}

/// A spring with a free end, pulled at a constant velocity at the other: nothing is stored, all
/// waves are the input's.
TEST(IdleGuard, LeavesAFreeEndAlone) {
  Structure structure = Structure::zero(1, 2);
  structure.G.insert(0, 0) = 1.0;
  structure.G.insert(0, 1) = 1.0;
  SparseMatrix Q(1, 1);
  Q.insert(0, 0) = 1.0;
  for (const double velocity : {1e-9, 1.0, 1e9}) {
    SystemBuilder builder;
    builder.add("spring",
                std::make_unique<LinearPortHamiltonian>(
                    Signature{"spring",
                              {{"x", "m"}},
                              {{"end", Causality::flow_in, Domain::translation, 1}},
                              {{"v", "m/s"}}},
                    structure, Q, LinearPortHamiltonian::Options{}),
                {.initial_state = {0.0}, .inputs = {{"v", Signal::constant(velocity)}}});
    builder.join(joint::Free{}, {"spring.end"});
    const System system = builder.build();
    Stepper stepper(system, {.step_s = 1e-3, .method = CouplingMethod::automatic()});
    for (int n = 0; n < 100; ++n) {
      stepper.step();
      ASSERT_NEAR(stepper.state(0)[0], 0.0, 1e-15 * velocity) << "step " << n;
      ASSERT_NEAR(stepper.flow(0), -velocity, 1e-9 * velocity) << "step " << n;
    }
    EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  }
}

RunSummary lossless_summary(bool guarded, int iterations) {
  static const System system = testing::lossless_pair();
  StepperOptions options{.step_s = 0.01, .method = WaveCoupling{}};
  options.method.waves().iterations = iterations;
  options.method.waves().impedance = {20.0};
  options.method.waves().guard = guarded;
  Stepper stepper(system, options);
  stepper.step(1000);
  return summarize("pair", options, stepper, 0.1);
}

TEST(Verdict, EnergyFromTheCouplingIsNeverCertifiedAsHolding) {
  const RunSummary grown = lossless_summary(false, 1);
  EXPECT_EQ(grown.certificate.status, CertificateStatus::conditional);
  ASSERT_TRUE(grown.certificate.growth.has_value());
  EXPECT_NEAR(grown.certificate.growth->ratio, 239.0, 1.0);
  EXPECT_NE(summary_text(grown).find("NOT KEPT"), std::string::npos);

  const RunSummary guarded = lossless_summary(true, 1);
  EXPECT_EQ(guarded.certificate.status, CertificateStatus::holds);
  EXPECT_FALSE(guarded.certificate.growth.has_value());
  EXPECT_NE(summary_text(guarded).find("kept, by the guard"), std::string::npos);
}

TEST(Verdict, StepsThatMissTheToleranceStandBesideIt) {
  static const System system = testing::lossless_pair();
  StepperOptions options{.step_s = 0.01, .method = WaveCoupling{}};
  options.method.waves().iterations = 2;
  options.method.waves().impedance = {20.0};
  options.method.waves().tolerance = 1e-12;
  Stepper stepper(system, options);
  double largest = 0.0;
  for (int n = 0; n < 20; ++n) largest = std::max(largest, stepper.step().residual);
  const MissedTolerance& missed = stepper.certificate().missed;
  EXPECT_EQ(missed.steps, 20);
  EXPECT_EQ(missed.residual, largest);
  EXPECT_GT(missed.gap_J, 0.0);
  EXPECT_GE(missed.part, 0);
  EXPECT_LE(missed.part_gap_J, missed.gap_J);
  EXPECT_NE(summary_text(summarize("pair", options, stepper, 0.1))
                .find("but 20 of 20 steps missed the tolerance"),
            std::string::npos);
}

}  // namespace
}  // namespace portwave::test_idle_guard
