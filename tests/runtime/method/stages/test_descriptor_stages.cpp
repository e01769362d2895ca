// Stages of descriptor parts: their order against a solution with the algebraic variables eliminated
// by hand, their energy at every budget, and what is refused. The index decides what holds.

#include <array>
#include <cmath>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include <Eigen/LU>
#include <gtest/gtest.h>

#include "portwave/coupling/reference/gauss_reference.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "support/energy_laws.hpp"
#include "support/systems/descriptor_parts.hpp"
#include "support/systems/random_linear.hpp"

namespace portwave::test_descriptor_stages {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using testing::descriptor_signature;
using testing::DescriptorMatrices;
using testing::EnergyLaws;
using testing::port;

StepperOptions options_of(int stages, double step_s, double tolerance = 1e-13) {
  StepperOptions options;
  options.step_s = step_s;
  options.method = WaveCoupling::automatic(tolerance);
  options.method.waves().stages = stages;
  return options;
}

// A capacitor at node a, no capacitor at node b, a coil from b to ground; resistors a–b and from both
// to ground. A port and the source at b, so that the algebraic voltage w of b sees both, a port at a.
constexpr double kC = 0.7, kL = 1.3, kAB = 1.1, kB = 0.4, kA = 0.05, kOmega = 1.7;

std::unique_ptr<DescriptorPortHamiltonian> filter(
    StepMapStorage storage = StepMapStorage::automatic,
    std::vector<double> start = {0.8, 0.0, 0.3}) {
  DescriptorMatrices m(3, 3);
  m.capacitor(0, -1, kC);
  m.E(2, 2) = kL;
  m.flow(2, 1, 1.0);
  m.resistor(0, 1, 1.0 / kAB);
  m.resistor(1, -1, 1.0 / kB);
  m.resistor(0, -1, 1.0 / kA);
  m.B(1, 0) = m.B(0, 1) = m.B(1, 2) = 1.0;
  return std::make_unique<DescriptorPortHamiltonian>(
      descriptor_signature({"v", "w", "i"},
                           {port("b", Causality::flow_in), port("a", Causality::flow_in)},
                           {"source"}),
      m.form(),
      DescriptorPortHamiltonian::Options{.storage = storage, .default_state = std::move(start)});
}

/// A coil with flux φ, a capacitor with charge q and a resistor r in series: takes a voltage. Or its
/// dual, which takes a current.
std::unique_ptr<LinearPortHamiltonian> coil(double inductance, double capacitance, double r,
                                            Causality causality = Causality::effort_in) {
  Structure s = Structure::zero(2, 1);
  s.J.insert(0, 1) = -1.0;
  s.J.insert(1, 0) = 1.0;
  s.R.insert(0, 0) = r;
  s.G.insert(0, 0) = 1.0;
  SparseMatrix Q(2, 2);
  Q.insert(0, 0) = 1.0 / inductance;
  Q.insert(1, 1) = 1.0 / capacitance;
  return std::make_unique<LinearPortHamiltonian>(
      Signature{"coil", {{"flux", "Wb"}, {"charge", "C"}}, {port("end", causality)}, {}}, s, Q);
}

Signal source() {
  return Signal::sine_product(1.0, {{0.5 * kOmega / std::numbers::pi, 0.0}});  // sin ωt
}

System filter_between_coils(StepMapStorage storage = StepMapStorage::automatic) {
  SystemBuilder builder;
  builder.add("filter", filter(storage), {.inputs = {{"source", source()}}});
  builder.add("left", coil(0.9, 0.6, 0.02), {.initial_state = {0.4, -0.2}});
  builder.add("right", coil(1.6, 0.5, 0.1), {.initial_state = {-0.3, 0.1}});
  builder.connect("filter.b", "left.end");
  builder.connect("filter.a", "right.end");
  return builder.build();
}

/// (v, i, φ₁, q₁, φ₂, q₂, sin ωt, cos ωt) obeys y′ = My once w = (g v − i − φ₁/L₁ + sin ωt)/(g + g_b)
/// is put in.
struct Eliminated {
  MatrixXd M = MatrixXd::Zero(8, 8);
  Eigen::RowVectorXd w = Eigen::RowVectorXd::Zero(8);

  Eliminated() {
    w << kAB, -1.0, -1.0 / 0.9, 0.0, 0.0, 0.0, 1.0, 0.0;
    w /= kAB + kB;
    M(0, 0) = -(kAB + kA) / kC;
    M.row(0) += kAB / kC * w;
    M(0, 4) = -1.0 / 1.6 / kC;
    M.row(1) = w / kL;
    M.row(2) = w;
    M(2, 2) -= 0.02 / 0.9;
    M(2, 3) = -1.0 / 0.6;
    M(3, 2) = 1.0 / 0.9;
    M(4, 0) = 1.0;
    M(4, 4) = -0.1 / 1.6;
    M(4, 5) = -1.0 / 0.5;
    M(5, 4) = 1.0 / 1.6;
    M(6, 7) = kOmega;
    M(7, 6) = -kOmega;
  }

  VectorXd at(double t) const {  // the exponential series of a short time, squared
    Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic> A = M.cast<long double>() *
                                                                   (t / 1024),
                                                               sum = A, power = A;
    sum.setIdentity();
    power.setIdentity();
    for (int k = 1; k < 20; ++k) {
      power = (power * A / k).eval();
      sum += power;
    }
    for (int k = 0; k < 10; ++k) sum = (sum * sum).eval();
    VectorXd y(8);
    y << 0.8, 0.3, 0.4, -0.2, -0.3, 0.1, 0.0, 1.0;
    return (sum * y.cast<long double>()).cast<double>();
  }
};

struct Errors {
  double differential, algebraic;
};

Errors errors_at(const System& system, int stages, int steps, double end_s) {
  Stepper stepper(system, options_of(stages, end_s / steps, 1e-14));
  stepper.step(steps);
  const Eliminated exact;
  const VectorXd y = exact.at(end_s);
  const std::span<const double> f = stepper.state(0), l = stepper.state(1), r = stepper.state(2);
  VectorXd x(6);
  x << f[0], f[2], l[0], l[1], r[0], r[1];
  return {(x - y.head(6)).norm(), std::abs(f[1] - exact.w.dot(y))};
}

class DescriptorStages : public ::testing::TestWithParam<int> {};

TEST_P(DescriptorStages, HaveTwiceAsMuchOrderForWhatESees) {
  const int stages = GetParam(), steps = stages == 1 ? 64 : 16;
  for (const StepMapStorage storage : {StepMapStorage::dense, StepMapStorage::sparse}) {
    const System system = filter_between_coils(storage);
    const Errors coarse = errors_at(system, stages, steps, 4.0),
                 fine = errors_at(system, stages, 2 * steps, 4.0);
    EXPECT_NEAR(std::log2(coarse.differential / fine.differential), 2.0 * stages,
                stages == 3 ? 0.15 : 0.1);
    constexpr std::array kErrors = {5e-4, 8e-6, 3e-9};
    EXPECT_LT(fine.differential, kErrors[static_cast<std::size_t>(stages - 1)]);
    // The control: what E does not see is that of a polynomial of degree s − 1.
    const double algebraic = std::log2(coarse.algebraic / fine.algebraic);
    EXPECT_GT(algebraic, stages - 0.2);
    EXPECT_LT(algebraic, stages + 0.8);
  }
}

// The effort of a port is a mean over the step. At port b it is the algebraic voltage, whose integral
// is the flux of the coil behind the node: h ē = L Δi.
TEST_P(DescriptorStages, ReportMeansThatAreAsExactAsTheStates) {
  const System system = filter_between_coils();
  Stepper stepper(system, options_of(GetParam(), 0.1));
  for (int n = 0; n < 50; ++n) {
    const double before = stepper.state(0)[2];
    stepper.step();
    EXPECT_NEAR(0.1 * stepper.effort(0), kL * (stepper.state(0)[2] - before), 1e-13);
  }
}

double difference(const System& system, const Stepper& stepper, const GaussReference& reference) {
  double most = 0.0, size = 0.0;
  for (int part = 0; part < static_cast<int>(system.parts().size()); ++part) {
    const std::span<const double> x = stepper.state(part), y = reference.state(part);
    for (std::size_t i = 0; i < x.size(); ++i) {
      most = std::max(most, std::abs(x[i] - y[i]));
      size = std::max(size, std::abs(y[i]));
    }
  }
  return most / size;
}

/// A rod on a spring: index 2, by a constraint on which nothing acts.
System rod_on_a_coil(StepMapStorage storage = StepMapStorage::automatic) {
  SystemBuilder builder;
  builder.add("rod", testing::rigid_rod({2.0, 3.0, 0.0}, storage),
              {.inputs = {{"force", source()}}});
  builder.add("spring", coil(0.4, 0.8, 0.05, Causality::flow_in), {.initial_state = {0.4, -0.2}});
  builder.connect("rod.end", "spring.end");
  return builder.build();
}

System skewed_and_coil(StepMapStorage storage) {
  SystemBuilder builder;
  builder.add("skewed", testing::skewed_part(storage),
              {.initial_state = {0.4, 0.1, -0.3, 0.2}, .inputs = {{"drive", source()}}});
  builder.add("coil", coil(0.4, 0.8, 0.05), {.initial_state = {0.4, -0.2}});
  builder.join(joint::Free{}, {"skewed.force"});
  builder.connect("skewed.speed", "coil.end");
  return builder.build();
}

/// A capacitor whose voltage is prescribed, by its port or by an input, and the current that it
/// takes for that: index 2.
std::unique_ptr<DescriptorPortHamiltonian> held_capacitor(bool by_input) {
  DescriptorMatrices m(2, 1);
  m.E(0, 0) = 0.7;
  m.flow(0, 1, 1.0);
  m.B(1, 0) = 1.0;
  const auto signature =
      by_input ? descriptor_signature({"v", "i"}, {}, {"voltage"})
               : descriptor_signature({"v", "i"}, {port("end", Causality::effort_in)});
  return std::make_unique<DescriptorPortHamiltonian>(signature, m.form());
}

System held_by_an_input() {
  SystemBuilder builder;
  builder.add("held", held_capacitor(true), {.inputs = {{"voltage", source()}}});
  return builder.build();
}

/// Beside the filter the capacitor is one more at node b: together they have index 1.
System held_by_the_filter() {
  SystemBuilder builder;
  builder.add("held", held_capacitor(false));
  builder.add("filter", filter(), {.inputs = {{"source", source()}}});
  builder.add("coil", coil(0.9, 0.6, 0.02), {.initial_state = {0.4, -0.2}});
  builder.connect("filter.b", "held.end");
  builder.connect("filter.a", "coil.end");
  return builder.build();
}

TEST_P(DescriptorStages, ConvergeToTheReferenceWithExactEnergies) {
  const int stages = GetParam();
  for (const StepMapStorage storage : {StepMapStorage::dense, StepMapStorage::sparse}) {
    for (const System& system :
         {filter_between_coils(storage), rod_on_a_coil(storage), skewed_and_coil(storage)}) {
      for (const double h : {0.01, 0.3}) {
        Stepper stepper(system, options_of(stages, h));
        GaussReference reference(system, h, stages);
        EnergyLaws laws(stepper);
        const double before = reference.storage();
        double balance = 0.0, size = before;
        for (int n = 0; n < 100; ++n) {
          const StepReport report = stepper.step();
          laws.observe(stepper, report);
          balance += report.energy.supplied_J - report.energy.dissipated_J;
          size += std::abs(report.energy.supplied_J);
          reference.step();
        }
        EXPECT_LT(difference(system, stepper, reference), 1e-11) << "h = " << h;
        // Stored is what was supplied and not dissipated; the control: something was.
        EXPECT_NEAR(reference.storage() - before, balance, 1e-12 * size) << "h = " << h;
        EXPECT_GT(std::abs(balance), 1e-4 * size);
        EXPECT_TRUE(laws.hold()) << laws.first_breach();
        EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
        EXPECT_EQ(stepper.iterations().not_converged, 0);
      }
    }
  }
}

TEST_P(DescriptorStages, ConvergeToTheReferenceOnRandomNetworks) {
  for (unsigned seed = 1; seed <= 15; ++seed) {
    for (const auto kind :
         {testing::RandomLinear::E::regular, testing::RandomLinear::E::singular}) {
      const System system = testing::random_linear_network({.kind = kind, .driven = true}, seed);
      Stepper stepper(system, options_of(GetParam(), 0.05));
      GaussReference reference(system, 0.05, GetParam());
      for (int n = 0; n < 20; ++n) {
        stepper.step();
        reference.step();
      }
      EXPECT_LT(difference(system, stepper, reference), 1e-9) << "seed " << seed;
      EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds) << "seed " << seed;
    }
  }
}

/// Orders of the states of the first part, over two halvings of the step.
std::vector<double> orders(const System& system, int stages, int steps) {
  const auto run = [&](int count) {
    GaussReference reference(system, 4.0 / count, stages);
    for (int n = 0; n < count; ++n) reference.step();
    return std::vector<double>(reference.state(0).begin(), reference.state(0).end());
  };
  const std::vector<double> coarse = run(steps), fine = run(2 * steps), finest = run(4 * steps);
  std::vector<double> out;
  for (std::size_t i = 0; i < coarse.size(); ++i) {
    out.push_back(std::log2(std::abs((coarse[i] - fine[i]) / (fine[i] - finest[i]))));
  }
  return out;
}

TEST_P(DescriptorStages, OfIndexTwoHaveItWhereNoInputActsOnTheConstraint) {
  const int stages = GetParam();
  const System rod = rod_on_a_coil();
  const std::vector<double> found = orders(rod, stages, 32);
  EXPECT_NEAR(found[0], 2.0 * stages, 0.1);
  EXPECT_NEAR(found[1], 2.0 * stages, 0.1);
  EXPECT_NEAR(found[2], stages, 0.35);  // the force in the rod
  // The masses stay together: the constraint holds at the end of a step too.
  Stepper stepper(rod, options_of(stages, 0.05));
  for (int n = 0; n < 2000; ++n) {
    stepper.step();
    ASSERT_NEAR(stepper.state(0)[0] / 2.0, stepper.state(0)[1] / 3.0, 1e-12) << n;
  }
  // A port may act on the constraint: what is joined to it decides.
  EXPECT_NEAR(orders(held_by_the_filter(), stages, 32)[0], 2.0 * stages, 0.2);
}

// Prescribed motion: where an input acts on the constraint, the step is of order 2, 2 and 4.
TEST_P(DescriptorStages, OfIndexTwoAreRefusedWhereAnInputActsOnTheConstraint) {
  const int stages = GetParam();
  const System system = held_by_an_input();
  constexpr std::array kOrders = {2.0, 2.0, 4.0};
  EXPECT_NEAR(orders(system, stages, 32)[0], kOrders[static_cast<std::size_t>(stages - 1)], 0.2);
  try {
    const Stepper stepper(system, options_of(stages, 0.01));
    EXPECT_EQ(stages, 1);
  } catch (const ConfigError& error) {
    EXPECT_GT(stages, 1);
    EXPECT_NE(std::string(error.issues().front().what)
                  .find("an external input acts on its hidden constraint"),
              std::string::npos);
  }
}

TEST_P(DescriptorStages, KeepTheEnergyAtEveryBudget) {
  std::int64_t guarded = 0;
  for (const WaveUpdate kind : {WaveUpdate::douglas_rachford, WaveUpdate::peaceman_rachford}) {
    for (const int budget : {0, 1, 2, 5}) {
      for (const double impedance : {0.02, 0.4, 30.0}) {
        for (const System& system : {filter_between_coils(), rod_on_a_coil(),
                                     skewed_and_coil(StepMapStorage::automatic)}) {
          StepperOptions options;
          options.step_s = 0.1;
          options.method = WaveCoupling{.kind = kind, .iterations = budget, .stages = GetParam()};
          options.method.waves().impedance = {impedance};
          Stepper stepper(system, options);
          EnergyLaws laws(stepper);
          for (int n = 0; n < 60; ++n) laws.observe(stepper, stepper.step());
          EXPECT_TRUE(laws.hold())
              << laws.first_breach() << ", K = " << budget << ", gamma = " << impedance;
          EXPECT_NE(stepper.certificate().status, CertificateStatus::violated);
          guarded += stepper.waves()->guard()->steps;
        }
      }
    }
  }
  EXPECT_GT(guarded, 50) << "the guard had to act";
}

// The control of the test above.
TEST_P(DescriptorStages, BreakTheLawOfTheTankWithoutGuard) {
  const System system = filter_between_coils();
  StepperOptions options;
  options.step_s = 0.1;
  options.method = WaveCoupling{.iterations = 1, .stages = GetParam()};
  options.method.waves().impedance = {0.02};
  options.method.waves().guard = false;
  Stepper stepper(system, options);
  EnergyLaws laws(stepper);
  for (int n = 0; n < 60; ++n) laws.observe(stepper, stepper.step());
  EXPECT_FALSE(laws.hold());
}

TEST_P(DescriptorStages, DoNotDependOnWhoExecutesThem) {
  const System system = filter_between_coils();
  const auto run = [&](ExecutorKind executor, int threads) {
    StepperOptions options = options_of(GetParam(), 0.05, 1e-9);
    options.threads = threads;
    options.executor = executor;
    options.grain = Grain::per_part();
    Stepper stepper(system, options);
    stepper.step(40);
    const std::span<const double> x = stepper.state(0);
    return std::vector<double>(x.begin(), x.end());
  };
  const std::vector<double> serial = run(ExecutorKind::serial, 1);
  for (const ExecutorKind executor : {ExecutorKind::async, ExecutorKind::graph}) {
    EXPECT_EQ(run(executor, 3), serial) << to_string(executor);
  }
}

INSTANTIATE_TEST_SUITE_P(Counts, DescriptorStages, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace portwave::test_descriptor_stages
