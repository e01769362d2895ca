// Every type of the catalogue that moves, alone with resistors at its ports, with one, two and three
// stages: against a Runge-Kutta method of order 4 in tiny steps, which knows nothing of it but H and its
// structure.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "portwave/coupling/system/derived_systems.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"

namespace portwave::test_part_orders {
namespace {

using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

constexpr double kResistance = 0.7;

/// ẋ = E⁻¹((J − R)z + (G − P)u) with u = −Ky, y = (G + P)ᵀz + (S + N)u: resistors at the ports, and
/// zero external inputs.
class ClosedMotion {
 public:
  explicit ClosedMotion(const Subsystem& part) : part_(part), structure_(part.structure()) {
    const SparseMatrix* const E = part.linear_form().E;
    if (E != nullptr) inverse_ = Matrix(*E).inverse();
    std::vector<double> gains;
    for (const Port& port : part.signature().ports) {
      const bool takes_effort = port.causality == Causality::effort_in;
      gains.insert(gains.end(), static_cast<std::size_t>(port.dimension),
                   takes_effort ? kResistance : 1.0 / kResistance);
    }
    gains_ = Eigen::Map<const Vector>(gains.data(), static_cast<Eigen::Index>(gains.size()));
  }
  bool exists() const { return inverse_.allFinite(); }

  Vector rate(const Vector& x) {
    Vector z(x.size());
    part_.gradient(x.data(), z.data());
    if (!part_.constant_structure()) part_.structure_at(x.data(), structure_);
    const Eigen::Index p = gains_.size();
    const Matrix G = Matrix(structure_.G).leftCols(p), P = Matrix(structure_.P).leftCols(p);
    Matrix closed = Matrix(structure_.S + structure_.N).topLeftCorner(p, p);
    closed.diagonal() += gains_.cwiseInverse();
    Vector v = structure_.J * z - structure_.R * z;
    if (p > 0) v -= (G - P) * closed.lu().solve((G + P).transpose() * z);
    return inverse_.size() == 0 ? v : Vector(inverse_ * v);
  }
  Vector after(Vector x, double time_s, int steps) {
    const double h = time_s / steps;
    for (int n = 0; n < steps; ++n) {
      const Vector a = rate(x), b = rate(x + 0.5 * h * a), c = rate(x + 0.5 * h * b),
                   d = rate(x + h * c);
      x += h / 6.0 * (a + 2.0 * b + 2.0 * c + d);
    }
    return x;
  }
  /// How fast it moves: a norm of the derivative in units of the typical state [1/s].
  double speed(const Vector& x, const Vector& typical) {
    Matrix J(x.size(), x.size());
    for (Eigen::Index j = 0; j < x.size(); ++j) {
      const double reach = 1e-5 * typical[j];
      Vector ahead = x, back = x;
      ahead[j] += reach;
      back[j] -= reach;
      J.col(j) = (rate(ahead) - rate(back)) / (2e-5);
    }
    return (typical.cwiseInverse().asDiagonal() * J).norm();
  }

 private:
  const Subsystem& part_;
  Structure structure_;
  Matrix inverse_;
  Vector gains_;
};

class PartOrders : public ::testing::TestWithParam<std::string> {};

TEST_P(PartOrders, AreTwiceTheStages) {
  const PartType& type = *find_part_type(GetParam());
  const std::shared_ptr<const Component> component = make_part(type.name, type.example);
  const Subsystem& part = *component->port_hamiltonian();
  const Eigen::Index n = part.signature().state_size();
  ClosedMotion motion(part);
  if (!motion.exists()) GTEST_SKIP() << "has algebraic equations: see DescriptorStages";
  if (type.name == "ground_contact")
    GTEST_SKIP() << "friction depends on the rate, not on the state: see GroundContactRuns";

  const std::vector<double> sizes = part.typical_state(), start = part.default_state();
  const Vector typical = Eigen::Map<const Vector>(sizes.data(), n).cwiseAbs();
  Vector x = Eigen::Map<const Vector>(start.data(), n);
  for (Eigen::Index i = 0; i < n; ++i) {
    x[i] += 0.6 * typical[i] * std::sin(1.7 * static_cast<double>(i) + 1.0);
  }
  // A rotation is a quaternion of length 1.
  if (type.name == "rigid_body") x.segment(6, 4).normalize();
  if (type.name == "articulated") x.segment(3, 4).normalize();
  const double speed = motion.speed(x, typical);
  ASSERT_GT(speed, 0.0);
  const double time_s = 4.0 / speed;
  const Vector exact = motion.after(x, time_s, 8000);

  SystemBuilder builder;
  SystemBuilder::PartOptions options;
  options.initial_state.assign(x.data(), x.data() + n);
  builder.add("part", component, options);
  for (const Port& port : part.signature().ports) {
    builder.join(joint::Resistive{kResistance}, {"part." + port.name});
  }
  const System system = builder.build();

  const auto error = [&](int stages, int steps) {
    StepperOptions run;
    run.step_s = time_s / steps;
    run.method = WaveCoupling::automatic();
    run.method.waves().tolerance = 1e-14;
    run.method.waves().stages = stages;
    Stepper stepper(system, run);
    stepper.step(steps);
    const Vector reached = Eigen::Map<const Vector>(stepper.state(0).data(), n);
    return (reached - exact).cwiseQuotient(typical + exact.cwiseAbs()).cwiseAbs().maxCoeff();
  };
  for (int stages = 1; stages <= 3; ++stages) {
    constexpr int kCoarse = 4;
    const double coarse = error(stages, kCoarse), fine = error(stages, 2 * kCoarse),
                 finest = error(stages, 4 * kCoarse);
    constexpr double kRoundOff = 2e-12;
    const bool is_exact = finest < kRoundOff;
    const double order = std::max(std::log2(coarse / fine), std::log2(fine / finest));
    // A stiffness that jumps takes the gradient of the whole step.
    const int expected = part.is_smooth() ? 2 * stages : 2;
    EXPECT_TRUE(is_exact || order > expected - 0.35)
        << stages << " stages: " << coarse << " " << fine << " " << finest;
    EXPECT_LT(finest, expected == 2 ? 0.05 : 1e-3) << stages;
  }
}

/// With ends that are free an arm is more flexible than its angles, and elimination takes other
/// pivots.
TEST(StagedArm, StepsWithFreeEnds) {
  const PartType& type = *find_part_type("planar_arm");
  SystemBuilder builder;
  SystemBuilder::PartOptions options;
  options.initial_state = {0.5, 0.26, -0.2, 1.0};
  builder.add("arm", make_part(type.name, type.example), options);
  for (const char* port : {"arm.joint_1", "arm.joint_2", "arm.tip"}) {
    builder.join(joint::Free{}, {port});
  }
  const System system = builder.build();
  for (const int stages : {1, 2, 3}) {
    for (const double step_s : {0.5, 0.1, 0.02}) {
      StepperOptions run;
      run.step_s = step_s;
      run.method = WaveCoupling::automatic();
      run.method.waves().stages = stages;
      Stepper stepper(system, run);
      EXPECT_NO_THROW(stepper.step(20)) << stages << " " << step_s;
      EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
    }
  }
}

std::vector<std::string> moving_types() {
  std::vector<std::string> names;
  for (const PartType& type : catalogue()) {
    const std::vector<std::string> still = {"electrical_switch", "park_transform"};
    const bool moves = make_part(type.name, type.example)->signature().state_size() > 0;
    if (moves && std::ranges::find(still, type.name) == still.end()) names.push_back(type.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Catalogue, PartOrders, ::testing::ValuesIn(moving_types()),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace portwave::test_part_orders
