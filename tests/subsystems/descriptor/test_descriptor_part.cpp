#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include <Eigen/LU>
#include <gtest/gtest.h>

#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/conformance/conformance.hpp"
#include "portwave/subsystems/core/port.hpp"
#include "support/systems/descriptor_parts.hpp"

// Descriptor parts: what is refused, consistent starts, and the laws of their step.

namespace portwave::test_descriptor_part {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using testing::DescriptorMatrices;
using testing::port;

std::string text_of(const Issues& issues) {
  return issues.empty() ? "" : ConfigError(issues).what();
}

std::string defects(const DescriptorMatrices& m, bool allow_active = false) {
  return text_of(validate(m.form(), static_cast<int>(m.E.rows()), static_cast<int>(m.B.cols()),
                          {.allow_active = allow_active, .names = {}}));
}

/// A sound part: u1 algebraic, u2 with a capacitor.
DescriptorMatrices sound() {
  DescriptorMatrices m(2, 1);
  m.capacitor(1, -1, 0.5);
  m.resistor(0, 1, 1.0);
  m.resistor(1, -1, 2.0);
  m.B(0, 0) = 1.0;
  return m;
}

// What is refused.

TEST(DescriptorValidation, PassesSoundParts) {
  EXPECT_EQ(defects(sound()), "");
  EXPECT_EQ(testing::circuit_left()->index(), 1);
  EXPECT_EQ(testing::circuit_right()->index(), 1);
  EXPECT_EQ(testing::rigid_rod()->index(), 2);
  EXPECT_EQ(testing::skewed_part()->index(), 1);
  DescriptorMatrices regular = sound();
  regular.capacitor(0, -1, 1e-15);
  EXPECT_EQ(DescriptorPortHamiltonian(
                testing::descriptor_signature({"u1", "u2"}, {port("p", Causality::flow_in)}),
                regular.form())
                .index(),
            0);
}

TEST(DescriptorValidation, ReportsEveryDefectAtOnce) {
  DescriptorMatrices m = sound();
  m.E(0, 1) = 1.0;
  m.J(0, 1) = 1.0;
  m.R(1, 1) = -1.0;
  m.B(0, 0) = std::numeric_limits<double>::infinity();
  EXPECT_EQ(defects(m),
            "/B: B(0,0) = inf is not finite\n"
            "/J: J is not skew: J(0,1) = 1, J(1,0) = 0\n"
            "/R: R is not positive semidefinite: smallest eigenvalue -1.41421 (block of state 0, "
            "state 1); a part that may create energy must say allow_active\n"
            "/E: E^T Q is not symmetric: E^T Q(0,1) = 0, E^T Q(1,0) = 1");
  m = DescriptorMatrices(2, 1);
  m.E = MatrixXd::Zero(2, 3);
  m.B = MatrixXd::Zero(1, 1);
  m.R(0, 1) = 1.0;
  m.Q(0, 0) = std::nan("");
  EXPECT_EQ(text_of(validate(m.form(), 2, 1)),
            "/E: must be 2×2, got 2×3\n"
            "/Q: Q(0,0) = nan is not finite\n"
            "/B: must be 2×1, got 1×1\n"
            "/R: R is not symmetric: R(0,1) = 1, R(1,0) = 0");
}

TEST(DescriptorValidation, NamesWhatNoEquationDetermines) {
  // E = R = 0 and J = 0 for one state: rank[E R J] < n.
  DescriptorMatrices m(3, 1);
  m.E(0, 0) = 1.0;
  m.resistor(0, 1, 1.0);
  const std::string expected =
      "/E: rank[E R J] = 2 < 3: neither E nor R nor J acts on the equations of state 2\n"
      "/E: the pencil sE - (J - R)Q is singular: the equations do not determine the state";
  EXPECT_EQ(defects(m), expected);
  // The same in other units, and beside a sound one.
  m.B *= 1e9;
  m.R *= 1e-9;
  m.E *= 1e-12;
  EXPECT_EQ(defects(m), expected);
  m.R(2, 2) = 1e-20;  // control
  EXPECT_EQ(defects(m), "");
}

TEST(DescriptorValidation, RefusesPartsWithNeitherEnergyNorLossesOfOddSize) {
  // E = R = 0 leaves J alone, which is singular where its size is odd.
  DescriptorMatrices m(3, 1);
  m.flow(0, 1, 1.0);
  m.flow(1, 2, 2.0);
  EXPECT_NE(defects(m).find("rank[E R J] = 2 < 3"), std::string::npos) << defects(m);
  EXPECT_NE(defects(m).find("state 0, state 2"), std::string::npos) << defects(m);
}

TEST(DescriptorValidation, TakesRemark27AsAWholeAndRefusesItsBlocks) {
  // E = R = 0, J = [0 1; −1 0] of Bartel, Günther, Jacob & Reis: x = 0 is its only solution, but
  // each of the two blocks alone determines nothing.
  DescriptorMatrices whole(2, 1);
  whole.flow(0, 1, 1.0);
  EXPECT_EQ(defects(whole), "");
  const DescriptorPortHamiltonian part(testing::descriptor_signature({"x1", "x2"}, {}, {"u"}),
                                       whole.form());
  EXPECT_EQ(part.index(), 1);
  const ConsistentState found = part.consistent_state({3.0, 4.0}, {0.0});
  ASSERT_TRUE(found.consistent());
  EXPECT_EQ(found.x.norm(), 0.0);
  EXPECT_EQ(defects(DescriptorMatrices(1, 1)),
            "/E: rank[E R J] = 0 < 1: neither E nor R nor J acts on the equations of state 0\n"
            "/E: the pencil sE - (J - R)Q is singular: the equations do not determine the state");
}

TEST(DescriptorValidation, RefusesASingularQAndAnIndexAboveTwo) {
  DescriptorMatrices m = sound();
  m.Q(0, 0) = 0.0;
  EXPECT_NE(defects(m).find("/Q: Q is singular (rank 1 of 2): state 0 have no co-energy"),
            std::string::npos)
      << defects(m);
  // x1' = x2, x2' = x3, 0 = x1 has index 3; only an indefinite R can bring that about.
  DescriptorMatrices high(3, 1);
  high.E.diagonal() << 1.0, 1.0, 0.0;
  MatrixXd A = MatrixXd::Zero(3, 3);
  A(0, 1) = A(1, 2) = A(2, 0) = 1.0;
  high.J = 0.5 * (A - A.transpose());
  high.R = -0.5 * (A + A.transpose());
  EXPECT_EQ(defects(high, true), "/E: the index of sE - (J - R)Q is above 2");
}

TEST(DescriptorValidation, LetsActivePartsPass) {
  DescriptorMatrices m = sound();
  m.R(1, 1) = -1.0;
  EXPECT_EQ(defects(m, true), "");
  EXPECT_NE(defects(m, false), "");
}

TEST(DescriptorPartType, ReportsAllBadMatricesByTheirNames) {
  Parameters parameters = find_part_type("descriptor_port_hamiltonian")->example;
  parameters["B"] = MatrixRows{{1.0}, {0.0}};
  parameters["E"] = MatrixEntries{{0, 2, 1.0}};
  parameters["J"] = MatrixRows{{0.0, 1.0}, {1.0, 0.0}};
  try {
    (void)make_part("descriptor_port_hamiltonian", parameters);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_EQ(std::string(error.what()),
              "/E/0: (0,2) is outside the matrix, which is 2×2\n"
              "/B: must be 2×2 (states × scalar ports and inputs), got 2×1\n"
              "/J: J is not skew: J(0,1) = 1, J(1,0) = 1");
  }
  parameters = find_part_type("descriptor_port_hamiltonian")->example;
  parameters["R"] = MatrixRows{{0.0, 0.0}, {0.0, 1.0}};
  try {
    (void)make_part("descriptor_port_hamiltonian", parameters);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("acts on the equations of u1"), std::string::npos) << text;
  }
}

TEST(DescriptorPartType, TakesTheIdentityForAnAbsentQ) {
  Parameters parameters = find_part_type("descriptor_port_hamiltonian")->example;
  const double x[] = {3.0, 2.0};
  EXPECT_DOUBLE_EQ(
      make_part("descriptor_port_hamiltonian", parameters)->port_hamiltonian()->storage(x), 0.5);
  parameters["Q"] = MatrixRows{{1.0, 0.0}, {0.0, 2.0}};
  EXPECT_DOUBLE_EQ(
      make_part("descriptor_port_hamiltonian", parameters)->port_hamiltonian()->storage(x), 1.0);
}

// Where to start from.

TEST(DescriptorStart, RefusesAStateThatViolatesAConstraintOfItsOwn) {
  const auto rod = testing::rigid_rod();
  const double moving[] = {2.0, 3.0, 7.0};
  EXPECT_TRUE(rod->check_initial_state(moving).empty());
  const double torn[] = {2.0, 4.5, 7.0};
  const Issues issues = rod->check_initial_state(torn);
  ASSERT_EQ(issues.size(), 1u);
  EXPECT_EQ(issues[0].where, "/initial_state");
  EXPECT_EQ(issues[0].what,
            "violates a constraint between p1, p2: they leave 0.5 in the equation of rod, where "
            "terms of 2.5 must cancel (the part has index 2, and no input acts there)");
  // Index 1: whatever the state, its algebraic components are computed.
  const double any[] = {1.0, 2.0, 3.0, 4.0};
  EXPECT_TRUE(testing::circuit_left()->check_initial_state(any).empty());
}

TEST(DescriptorStart, LeavesConstraintsThatAnInputMovesAlone) {
  DescriptorMatrices m(3, 1);  // p1/m1 − p2/m2 = u
  m.E.diagonal() << 1.0, 1.0, 0.0;
  m.flow(0, 2, -1.0);
  m.flow(1, 2, 1.0);
  m.B(2, 0) = 1.0;
  const DescriptorPortHamiltonian part(
      testing::descriptor_signature({"p1", "p2", "rod"}, {port("end", Causality::flow_in)}),
      m.form());
  EXPECT_EQ(part.index(), 2);
  const double apart[] = {1.0, 0.0, 0.0};
  EXPECT_TRUE(part.check_initial_state(apart).empty());
  EXPECT_TRUE(part.consistent_state({1.0, 0.0, 0.0}, {1.0}).violated.size() +
                  part.consistent_state({1.0, 0.0, 0.0}, {-1.0}).violated.size() ==
              1u);
}

TEST(DescriptorStart, ComputesTheAlgebraicComponents) {
  const auto part = testing::circuit_left();
  const std::vector<double> u = {0.3, 0.7};
  const ConsistentState found = part->consistent_state({9.0, 1.0, 9.0, 0.25}, u);
  ASSERT_TRUE(found.consistent());
  EXPECT_EQ(found.x[1], 1.0);
  EXPECT_EQ(found.x[3], 0.25);
  EXPECT_NEAR(found.x[0], 1.0 + 0.5 * 0.7, 1e-14);           // R1 carries the source
  EXPECT_NEAR(found.x[2], (2.0 * 1.0 + 0.25) / 4.0, 1e-14);  // 2(u2 − u3) + j1 = 2 u3
  EXPECT_THROW((void)part->consistent_state({1.0}, u), ConfigError);
}

// The laws of the step.

struct Sample {
  std::string name;
  std::function<std::unique_ptr<DescriptorPortHamiltonian>(StepMapStorage)> make;
};

std::vector<Sample> samples() {
  return {
      {"circuit_left", [](StepMapStorage s) { return testing::circuit_left(s); }},
      {"circuit_right", [](StepMapStorage s) { return testing::circuit_right(s); }},
      {"rod", [](StepMapStorage s) { return testing::rigid_rod({}, s); }},
      {"ladder", [](StepMapStorage s) { return testing::rc_ladder(11, s); }},
      {"skewed", [](StepMapStorage s) { return testing::skewed_part(s); }},
  };
}

class DescriptorLaws : public ::testing::TestWithParam<Sample> {};

TEST_P(DescriptorLaws, Hold) {
  for (const auto storage : {StepMapStorage::dense, StepMapStorage::sparse}) {
    const auto part = GetParam().make(storage);
    for (const std::uint64_t seed : {1u, 2u, 3u}) {
      ConformanceOptions options;
      options.seed = seed;
      for (const LawReport& report : check_all(*part, options)) {
        EXPECT_TRUE(report.holds) << report.law << " by " << report.worst << ": " << report.detail
                                  << (storage == StepMapStorage::dense ? " dense" : " sparse");
        if (report.law == "order_of_convergence") {
          EXPECT_NE(report.detail, "") << "nothing was tested";
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, DescriptorLaws, ::testing::ValuesIn(samples()),
                         [](const auto& each) { return each.param.name; });

/// Frozen at x with one lane.
struct Single {
  Single(const Subsystem& part, double h, double gamma) {
    const Component* parts[] = {&part};
    batch = part.make_batch(parts);
    const std::vector<double> impedance(static_cast<std::size_t>(batch->wave_count()), gamma);
    batch->prepare(h, impedance.data());
    record.resize(batch->record_size());
    next.resize(batch->record_size());
    x.setZero(batch->state_size());
    b.setZero(batch->wave_size());
  }
  void start(const VectorXd& state) { batch->set_state(0, state.data(), record.data()); }
  void step(const VectorXd& a, const VectorXd& input) {
    batch->freeze({0, 1}, record.data(), input.data());
    ASSERT_TRUE(batch->advance({0, 1}, record.data(), a.data(), next.data(), b.data(), {}).ok());
    record.swap(next);
    batch->get_state(0, record.data(), x.data());
  }
  std::unique_ptr<StepBatch> batch;
  AlignedVector record, next;
  VectorXd x, b;
};

TEST_P(DescriptorLaws, DenseAndSparseStepMapsGiveTheSameStep) {
  const auto dense = GetParam().make(StepMapStorage::dense);
  const auto sparse = GetParam().make(StepMapStorage::sparse);
  EXPECT_TRUE(sparse->uses_sparse_step_maps());
  EXPECT_FALSE(dense->uses_sparse_step_maps());
  EXPECT_NE(dense->batch_key(), sparse->batch_key());
  const int n = dense->signature().state_size();
  for (const double h : {1e-4, 1e-1, 10.0}) {
    Single one(*dense, h, 0.7), other(*sparse, h, 0.7);
    VectorXd x(n);
    for (int i = 0; i < n; ++i) x[i] = std::cos(2.0 * i);
    one.start(x);
    other.start(x);
    const VectorXd a = VectorXd::LinSpaced(one.batch->wave_size(), 0.3, -0.4);
    const VectorXd u = VectorXd::Constant(one.batch->input_size(), 0.6);
    for (int k = 0; k < 5; ++k) {
      one.step(a, u);
      other.step(a, u);
    }
    EXPECT_LE((one.x - other.x).norm(), 1e-11 * one.x.norm()) << "h=" << h;
    EXPECT_LE((one.b - other.b).norm(), 1e-11 * (one.b.norm() + a.norm())) << "h=" << h;
  }
}

TEST_P(DescriptorLaws, NoStepDependsOnTheAlgebraicComponentsOfItsStart) {
  const auto part = GetParam().make(StepMapStorage::automatic);
  const int n = part->signature().state_size();
  Single one(*part, 0.1, 0.7), other(*part, 0.1, 0.7), control(*part, 0.1, 0.7);
  VectorXd x(n);
  for (int i = 0; i < n; ++i) x[i] = std::cos(2.0 * i);
  one.start(x);
  other.start(x + part->kernel() * VectorXd::Constant(part->kernel().cols(), 5.0));
  control.start(x + SparseMatrix(part->form().E) * VectorXd::Constant(n, 1e2));
  const VectorXd a = VectorXd::LinSpaced(one.batch->wave_size(), 0.3, -0.4);
  const VectorXd u = VectorXd::Constant(one.batch->input_size(), 0.6);
  for (Single* each : {&one, &other, &control}) each->step(a, u);
  EXPECT_LE((one.x - other.x).norm(), 1e-12 * one.x.norm());
  EXPECT_LE((one.b - other.b).norm(), 1e-12 * one.b.norm());
  EXPECT_GT((one.x - control.x).norm(), 1e-3 * one.x.norm());
}

// The energy law of the conformance suite can fail for such parts.

/// A part that counts an algebraic component as energy.
class Miscounting final : public Subsystem {
 public:
  explicit Miscounting(std::unique_ptr<DescriptorPortHamiltonian> honest)
      : Subsystem(honest->signature()), honest_(std::move(honest)) {}
  double storage(const double* x) const override { return 0.5 * x[0] * x[0] + honest_->storage(x); }
  void gradient(const double* x, double* g) const override { honest_->gradient(x, g); }
  void discrete_gradient(const double* x, const double* y, double* g) const override {
    honest_->discrete_gradient(x, y, g);
  }
  void discrete_gradient_jacobian(const double* x, const double* y,
                                  std::vector<Eigen::Triplet<double>>& j) const override {
    honest_->discrete_gradient_jacobian(x, y, j);
  }
  const Structure& structure() const override { return honest_->structure(); }
  LinearForm linear_form() const override { return honest_->linear_form(); }

 private:
  std::unique_ptr<DescriptorPortHamiltonian> honest_;
};

TEST(DescriptorLawControls, CatchAnAlgebraicComponentThatIsCountedAsEnergy) {
  const Miscounting part(testing::circuit_left());
  EXPECT_FALSE(check_gradient(part).holds);
  EXPECT_FALSE(check_discrete_gradient(part).holds);
  EXPECT_FALSE(check_energy_law(part).holds);
}

// Order of convergence, driven, against the exact solution of the terminated part.

/// Of the circuit's left block with its port terminated, e = −γf, and the source sin ωt: errors of
/// u2, j1 at t = T, and of u1, u3 at T and at T − h/2, against a run with steps 64 times as short.
struct OrderErrors {
  double differential, algebraic_at_end, algebraic_at_middle;
};

OrderErrors order_errors(double h) {
  const auto part = testing::circuit_left();
  const double gamma = 0.9, omega = 40.0, T = 0.08;
  const auto run = [&](double step, double until) {
    Single single(*part, step, gamma);
    single.start(VectorXd::Zero(4));
    const int steps = static_cast<int>(std::lround(until / step));
    for (int k = 0; k < steps; ++k) {
      single.step(VectorXd::Zero(1), VectorXd::Constant(1, std::sin(omega * (k + 0.5) * step)));
    }
    return single.x;
  };
  const VectorXd coarse = run(h, T), fine = run(h / 64, T), middle = run(h / 64, T - 0.5 * h);
  const auto exact = [&](const VectorXd& x,
                         double t) {  // u1 and u3 that go with u2, j1 and the source
    return part->consistent_state({x[0], x[1], x[2], x[3]}, {-gamma * x[3], std::sin(omega * t)}).x;
  };
  const VectorXd end_values = exact(fine, T), middle_values = exact(middle, T - 0.5 * h);
  const auto difference = [](const VectorXd& x, const VectorXd& y, std::array<int, 2> places) {
    return std::hypot(x[places[0]] - y[places[0]], x[places[1]] - y[places[1]]);
  };
  return {difference(coarse, fine, {1, 3}), difference(coarse, end_values, {0, 2}),
          difference(coarse, middle_values, {0, 2})};
}

TEST(DescriptorOrder, IsTwoForExAndForAlgebraicComponentsAtMidpoints) {
  const OrderErrors coarse = order_errors(1e-3), fine = order_errors(0.5e-3);
  EXPECT_NEAR(std::log2(coarse.differential / fine.differential), 2.0, 0.1);
  EXPECT_NEAR(std::log2(coarse.algebraic_at_middle / fine.algebraic_at_middle), 2.0, 0.1);
  // Control: at the end of the step they are midpoint values, half a step late.
  EXPECT_NEAR(std::log2(coarse.algebraic_at_end / fine.algebraic_at_end), 1.0, 0.1);
}

TEST(DescriptorOrder, OfIndexTwoIsTwoAsWell) {
  // The rod: p1 + p2 obeys (m1 + m2) v' = u − r v − γ v with p1/m1 = p2/m2 = v.
  const double m1 = 2.0, m2 = 3.0, gamma = 0.4, r = 0.5, T = 2.0, force = 1.2;
  const auto part = testing::rigid_rod();
  const double rate = (r + gamma) / (m1 + m2), v_end = force / (r + gamma);
  std::array<double, 2> error{}, torn{};
  int level = 0;
  for (const double h : {0.1, 0.05}) {
    Single single(*part, h, gamma);
    single.start(VectorXd{{m1 * 1.0, m2 * 1.0, 0.0}});
    const int steps = static_cast<int>(std::lround(T / h));
    for (int k = 0; k < steps; ++k) single.step(VectorXd::Zero(1), VectorXd::Constant(1, force));
    const double v = v_end + (1.0 - v_end) * std::exp(-rate * T);
    error[level] = std::abs(single.x[0] / m1 - v);
    torn[level] = std::abs(single.x[0] / m1 - single.x[1] / m2);
    ++level;
  }
  EXPECT_NEAR(std::log2(error[0] / error[1]), 2.0, 0.1);
  EXPECT_LE(torn[0], 1e-13);
  EXPECT_LE(torn[1], 1e-13);
}

TEST(LargeDescriptorPart, NeedsNoDenseMatrix) {
  const int n = 20001;  // a dense matrix of this size would have 3.2 GB
  const auto part = testing::rc_ladder(n);
  EXPECT_TRUE(part->uses_sparse_step_maps());
  EXPECT_EQ(part->index(), 1);
  EXPECT_LT(part->kernel().nonZeros(), 2 * n);
  Single single(*part, 1e-3, 0.5);
  EXPECT_LT(single.batch->record_size(), 10u * n);
  single.start(VectorXd::Zero(n));
  for (int k = 0; k < 10; ++k) single.step(VectorXd{{0.1, 0.0}}, VectorXd::Ones(1));
  EXPECT_TRUE(single.x.allFinite());
  EXPECT_GT(single.x.cwiseAbs().maxCoeff(), 0.0);
}

}  // namespace
}  // namespace portwave::test_descriptor_part
