// The inner iteration on one page, WaveIteration, is what runs do; and an update rule of one's own
// works everywhere without a change to anything else.

#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/coupling/energy/step_certifier.hpp"
#include "portwave/coupling/impedance/tuning.hpp"
#include "portwave/coupling/system/derived_systems.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/coupling/waves/wave_iteration.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/core/step_batch.hpp"
#include "support/linear_rate.hpp"
#include "support/systems/networks.hpp"
#include "support/systems/systems.hpp"
#include "support/trace.hpp"

namespace portwave::test_wave_iteration {
namespace {

using testing::same_bits;

/// u ← (1 − ω)u + ω(½ DR(u) + ½ PR(u)): halfway between Douglas–Rachford and Peaceman–Rachford.
/// With g = P b̂ − u and R = (2I − P)⁻¹ that is u + ½ω(R g + g). The loops over junctions make it
/// in two passes: u' = u + λR g, then u' + θ(g − λR g), θ = ½ω and λ(1 − θ) = ½ω.
/// Where parts are firmly nonexpansive, Douglas–Rachford is ½-averaged and Peaceman–Rachford
/// nonexpansive, hence this ¾ω-averaged.
class Halfway final : public UpdateRule {
 public:
  std::string_view name() const override { return "halfway"; }
  std::string title(double relaxation) const override {
    return fmt::format("Halfway ({:g})", relaxation);
  }
  RelaxationRange relaxation_range() const override { return {4.0 / 3.0, false}; }
  PartCondition part_condition() const override { return PartCondition::firmly_nonexpansive; }
  double fejer_gain(double omega) const override { return (1.0 - 0.75 * omega) / (0.75 * omega); }
  JunctionPasses passes(double omega) const override {
    const double theta = 0.5 * omega;
    return {{JunctionPass::Kind::resolve, theta / (1.0 - theta)},
            JunctionPass{JunctionPass::Kind::average, theta}};
  }
};
const Halfway kHalfway;

std::vector<double> uniform(const System& system, double gamma) {
  return std::vector<double>(system.scalar_ports().size(), gamma);
}

/// States and waves after some macro-steps, by WaveIteration on the system without its idle ports.
std::vector<double> states_by_iteration(const System& given, const WaveCoupling& method,
                                        double step_s, int steps) {
  const LiveSystem live = live_system(given);
  const System& system = live.system;
  WaveDiscretisation waves(system, step_s, uniform(system, method.impedance.front()));
  WaveIteration iteration(waves, inner_update_of(method), WaveIteration::Scatter::inexact);
  AlignedVector record = waves.initial_record(), next(record.size());
  AlignedVector input(waves.input_size(), 0.0);
  AlignedVector b(static_cast<std::size_t>(waves.wave_size()), 0.0);
  for (int n = 0; n < steps; ++n) {
    PhaseStatus failure;
    if (waves.driven()) {
      EXPECT_TRUE(waves.sample_inputs(n * step_s, input.data(), failure));
      EXPECT_TRUE(waves.freeze_all(record.data(), input.data(), /*driven_only=*/true).ok());
    }
    EXPECT_TRUE(iteration.step(record.data(), b, method.iterations, next.data(), b.data()).ok());
    record.swap(next);
  }
  std::vector<double> out;
  for (std::size_t i = 0; i < system.parts().size(); ++i) {
    std::vector<double> x(system.parts()[i].initial_state.size());
    waves.get_state(static_cast<int>(i), record.data(), x.data());
    out.insert(out.end(), x.begin(), x.end());
  }
  for (int port = 0; port < static_cast<int>(system.scalar_ports().size()); ++port) {
    out.push_back(b[static_cast<std::size_t>(waves.wave_of_port(port))]);
  }
  return out;
}

std::vector<double> states_by_stepper(const System& system, const StepperOptions& options,
                                      int steps) {
  Stepper stepper(system, options);
  stepper.step(steps);
  std::vector<double> out;
  for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
    const auto x = stepper.state(i);
    out.insert(out.end(), x.begin(), x.end());
  }
  const std::vector<int> live = live_system(system).number_of_port;
  for (int port = 0; port < static_cast<int>(system.scalar_ports().size()); ++port) {
    if (live[static_cast<std::size_t>(port)] < 0) continue;
    out.push_back(stepper.waves()->outgoing(port));
  }
  return out;
}

StepperOptions plain_options(const InnerUpdate& update, double gamma, int iterations) {
  StepperOptions o{.method = WaveCoupling{}};
  o.start = Start::as_given;
  o.method.waves().own_rule = update.rule();
  o.method.waves().relaxation = update.relaxation();
  o.method.waves().impedance = {gamma};
  o.method.waves().iterations = iterations;
  o.method.waves().guard = false;
  o.executor = ExecutorKind::serial;
  return o;
}

TEST(WaveIteration, IsWhatEveryExecutorDoesToTheLastBit) {
  for (const testing::NamedSystem& sample : testing::sample_systems()) {
    const System system = sample.make();
    for (const InnerUpdate& update :
         {InnerUpdate{&douglas_rachford(), 1.0}, InnerUpdate{&douglas_rachford(), 1.4},
          InnerUpdate{&peaceman_rachford(), 1.0}, InnerUpdate{&peaceman_rachford(), 0.7},
          InnerUpdate{&kHalfway, 1.0}}) {
      for (const int iterations : {0, 1, 2, 7}) {
        StepperOptions o = plain_options(update, sample.impedance, iterations);
        const auto expected = states_by_iteration(system, o.method.waves(), o.step_s, 12);
        const std::string where = fmt::format("{} {} {} K={}", sample.name, update.rule()->name(),
                                              update.relaxation(), iterations);
        EXPECT_TRUE(same_bits(expected, states_by_stepper(system, o, 12))) << where;
        o.grain = Grain::per_part();
        o.threads = 2;
        for (const ExecutorKind executor : {ExecutorKind::async, ExecutorKind::graph}) {
          o.executor = executor;
          EXPECT_TRUE(same_bits(expected, states_by_stepper(system, o, 12)))
              << where << " " << to_string(executor);
        }
      }
    }
  }
}

TEST(WaveIterationControl, OneMoreEvaluationShows) {
  const System system = testing::duffing_linear_pair();
  const StepperOptions o = plain_options({&douglas_rachford(), 1.0}, 0.4, 3);
  WaveCoupling more = o.method.waves();
  more.iterations = 4;
  EXPECT_FALSE(
      same_bits(states_by_iteration(system, more, o.step_s, 12), states_by_stepper(system, o, 12)));
}

/// A system at its initial states, and its common interface u†.
struct Frozen {
  Frozen(const System& system, double step_s, double gamma)
      : waves(system, step_s, uniform(system, gamma)), record(waves.initial_record()) {
    FixedPointSolver solver(waves, {&douglas_rachford(), 1.0});
    const AlignedVector zero(static_cast<std::size_t>(waves.wave_size()), 0.0);
    const auto found = solver.solve(record.data(), zero);
    fixed_point.assign(found.begin(), found.end());
  }
  double distance(std::span<const double> u) const {
    double sum = 0.0;
    for (std::size_t j = 0; j < u.size(); ++j) {
      sum += (u[j] - fixed_point[j]) * (u[j] - fixed_point[j]);
    }
    return std::sqrt(sum);
  }
  WaveDiscretisation waves;
  AlignedVector record, fixed_point;
};

TEST(UpdateRules, AllConvergeToTheCommonInterface) {
  for (const testing::NamedSystem& sample : testing::sample_systems()) {
    const System system = sample.make();
    Frozen frozen(system, 0.01, sample.impedance);
    ASSERT_FALSE(frozen.fixed_point.empty()) << sample.name;
    const double size =
        std::max(frozen.distance(AlignedVector(frozen.fixed_point.size(), 0.0)), 1e-3);
    for (const InnerUpdate& update :
         {InnerUpdate{&douglas_rachford(), 1.0}, InnerUpdate{&peaceman_rachford(), 0.7},
          InnerUpdate{&kHalfway, 0.6}, InnerUpdate{&kHalfway, 1.0}, InnerUpdate{&kHalfway, 1.2}}) {
      WaveIteration iteration(frozen.waves, update);
      double before = frozen.distance(iteration.u());
      for (int k = 0; k < 400000 && before > 1e-11 * size; ++k) {
        ASSERT_TRUE(iteration.evaluate(frozen.record.data()).ok());
        iteration.update();
        const double now = frozen.distance(iteration.u());
        EXPECT_LE(now, before * (1.0 + 1e-12) + 1e-13 * size)  // Fejér
            << sample.name << " " << update.rule()->name() << " k=" << k;
        before = now;
      }
      EXPECT_LE(before, 1e-11 * size)
          << sample.name << " " << update.rule()->name() << " " << update.relaxation();
    }
  }
}

TEST(OwnRule, ItsPredictedRateIsItsSpectralRadius) {
  const System chain = testing::chain_of_blocks(6, 2);
  const PortResponses responses(chain, 0.2);
  const auto gamma = tune_impedance(responses, ImpedanceKind::leaf).by_port;
  const auto m = testing::wave_matrices(responses, gamma);
  const Eigen::MatrixXd I = Eigen::MatrixXd::Identity(m.P.rows(), m.P.cols());
  const Eigen::MatrixXd R = (2.0 * I - m.P).inverse();
  for (const double omega : {0.6, 1.0, 1.2}) {
    const double exact = testing::spectral_radius(I + 0.5 * omega * (R + I) * (m.P * m.D - I));
    const PredictedRate rate = predict_rate(responses, gamma, {&kHalfway, omega}, 400);
    EXPECT_TRUE(rate.converges) << omega;
    EXPECT_NEAR(rate.contraction, exact, 0.06) << omega;
  }
}

TEST(OwnRule, RunsToTheSameTrajectoryWithCertificates) {
  int differing = 0;  // systems in which it takes another number of evaluations than the known rule
  for (const testing::NamedSystem& sample : testing::sample_systems()) {
    const System system = sample.make();
    StepperOptions own = plain_options({&kHalfway, 1.0}, sample.impedance, 400000);
    own.method.waves().tolerance = 1e-12;
    own.certify = Certify::full;
    StepperOptions known = own;
    known.method.waves().own_rule = nullptr;
    Stepper a(system, own), b(system, known);
    a.step(3);
    b.step(3);
    for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
      for (std::size_t j = 0; j < a.state(i).size(); ++j) {
        EXPECT_NEAR(a.state(i)[j], b.state(i)[j], 1e-9) << sample.name << " part " << i;
      }
    }
    EXPECT_EQ(name_of(a.method().method), "halfway");
    if (a.iterations().total != b.iterations().total) ++differing;
    const Certificate& c = a.certificate();
    EXPECT_EQ(c.status, CertificateStatus::holds) << sample.name;
    ASSERT_TRUE(c.min_fne_margin && c.max_fejer_residual_J) << sample.name;
    EXPECT_FALSE(c.min_nonexpansiveness_margin);
    EXPECT_LE(*c.max_fejer_residual_J, 1e-11) << sample.name;
  }
  EXPECT_GT(differing, 0);
}

TEST(OwnRule, AcceleratesStopsByIslandsAndChoosesImpedances) {
  const System system = testing::duffing_linear_pair();
  StepperOptions o = plain_options({&kHalfway, 1.0}, 0.4, 200);
  o.method.waves().tolerance = 1e-10;
  Stepper plain(system, o);
  o.method.waves().acceleration = 4;
  Stepper accelerated(system, o);
  o.method.waves().acceleration = 0;
  o.method.waves().impedance_kind = ImpedanceKind::automatic;
  Stepper tuned(system, o);
  plain.step(20);
  accelerated.step(20);
  tuned.step(20);
  EXPECT_LT(accelerated.iterations().total, plain.iterations().total);
  EXPECT_LT(tuned.iterations().total, plain.iterations().total);
  EXPECT_NE(tuned.method().reason.find("Halfway (1)"), std::string::npos) << tuned.method().reason;
  EXPECT_NEAR(accelerated.state(0)[0], plain.state(0)[0], 1e-8);
  EXPECT_NEAR(tuned.state(0)[0], plain.state(0)[0], 1e-8);
}

TEST(OwnRule, ItsRelaxationRangeIsChecked) {
  const System system = testing::duffing_linear_pair();
  StepperOptions o = plain_options({&kHalfway, 1.4}, 0.4, 3);
  try {
    Stepper stepper(system, o);
    FAIL() << "relaxation 1.4 is taken";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("with \"halfway\""), std::string::npos)
        << error.what();
  }
  o.method.waves().relaxation = 1.0;
  o.method.waves().kind = WaveUpdate::automatic;
  o.method.waves().impedance_kind = ImpedanceKind::automatic;
  EXPECT_THROW(Stepper(system, o), ConfigError);
}

}  // namespace
}  // namespace portwave::test_wave_iteration
