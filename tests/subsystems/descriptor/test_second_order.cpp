// Systems M q'' + D q' + K q = B u: their motion against a dense exponential that knows nothing of
// port-Hamiltonian forms, pieces that float, units, and what is refused.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <unsupported/Eigen/MatrixFunctions>
#include <vector>

#include <Eigen/Dense>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/descriptor/second_order.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"
#include "support/systems/large_structures.hpp"

namespace portwave::test_second_order {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using testing::beam_form;
using testing::membrane_form;
using testing::second_order_part;

using SecondOrderPart = std::shared_ptr<const DescriptorPortHamiltonian>;

/// Without ports: all columns of B are inputs.
SecondOrderPart free_part(const SecondOrderForm& form) {
  std::vector<ExternalInput> inputs;
  for (int i = 0; i < form.B.cols(); ++i) inputs.push_back({fmt::format("u{}", i), "N"});
  return second_order_part(form, {}, std::move(inputs));
}

VectorXd some_motion(const SecondOrderForm& form) {
  VectorXd x(2 * form.M.rows());
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    const double t = static_cast<double>(i);
    x[i] = 0.1 * std::sin(1.0 + 0.7 * t) + 0.02 * std::cos(3.1 * t);
  }
  return x;
}

/// x' = A x + b for inputs u: q' = v, v' = −M⁻¹(K q + D v − B u), dense.
struct DenseMotion {
  MatrixXd A;
  VectorXd b;

  DenseMotion(const SecondOrderForm& form, const VectorXd& u) {
    const Eigen::Index n = form.M.rows();
    const Eigen::LLT<MatrixXd> mass{MatrixXd(form.M)};
    A = MatrixXd::Zero(2 * n, 2 * n);
    A.topRightCorner(n, n).setIdentity();
    A.bottomLeftCorner(n, n) = -mass.solve(MatrixXd(form.K));
    A.bottomRightCorner(n, n) = -mass.solve(MatrixXd(form.D));
    b = VectorXd::Zero(2 * n);
    b.tail(n) = mass.solve(MatrixXd(form.B) * u);
  }
  /// After a time, exactly: exp of [A b; 0 0].
  VectorXd at(const VectorXd& x, double time_s) const {
    const Eigen::Index n = A.rows();
    MatrixXd whole = MatrixXd::Zero(n + 1, n + 1);
    whole.topLeftCorner(n, n) = time_s * A;
    whole.topRightCorner(n, 1) = time_s * b;
    const MatrixXd flow = whole.exp();
    return flow.topLeftCorner(n, n) * x + flow.topRightCorner(n, 1);
  }
  /// After steps of the implicit midpoint rule.
  VectorXd by_midpoint(VectorXd x, double h, int steps) const {
    const MatrixXd one = MatrixXd::Identity(A.rows(), A.rows());
    const Eigen::PartialPivLU<MatrixXd> left(one - 0.5 * h * A);
    for (int i = 0; i < steps; ++i) x = left.solve(x + 0.5 * h * (A * x) + h * b);
    return x;
  }
};

struct Stepped {
  VectorXd x;
  double supplied_J = 0.0;
  double dissipated_J = 0.0;
  double change_J = 0.0;
  double largest_J = 0.0;
};

/// The steps of the part itself, alone; u holds over all of them.
Stepped step_part(const SecondOrderPart& part, const VectorXd& start, const VectorXd& u, double h,
                  int steps, int stages = 1) {
  std::shared_ptr<const Component> alone = part;
  if (stages > 1) alone = staged_part(alone, stages);
  const Component* const list[] = {alone.get()};
  const std::unique_ptr<StepBatch> batch = alone->make_batch(list);
  batch->prepare(h, nullptr);
  AlignedVector record(batch->record_size()), next(batch->record_size());
  AlignedVector inputs(static_cast<std::size_t>(u.size() * stages) + 1);
  // A component of several stages takes its inputs times the root of their weights.
  const std::vector<double> weights = stages == 1   ? std::vector{1.0}
                                      : stages == 2 ? std::vector{0.5, 0.5}
                                                    : std::vector{5.0 / 18, 8.0 / 18, 5.0 / 18};
  for (int s = 0; s < stages; ++s) {
    for (Eigen::Index i = 0; i < u.size(); ++i) {
      inputs[static_cast<std::size_t>(s * u.size() + i)] =
          std::sqrt(weights[static_cast<std::size_t>(s)]) * u[i];
    }
  }
  Stepped out{.x = start};
  batch->set_state(0, start.data(), record.data());
  double change[8] = {}, supply[8] = {}, dissipated[8] = {};
  const EnergyColumns energies{change, supply, dissipated};
  for (int step = 0; step < steps; ++step) {
    batch->freeze({0, 1}, record.data(), inputs.data());
    if (!batch->advance({0, 1}, record.data(), nullptr, next.data(), nullptr, energies).ok()) {
      ADD_FAILURE() << "a step failed";
      return out;
    }
    out.change_J += change[0];
    out.supplied_J += supply[0];
    out.dissipated_J += dissipated[0];
    out.largest_J = std::max(out.largest_J, std::abs(out.change_J));
    record.swap(next);
  }
  batch->get_state(0, record.data(), out.x.data());
  return out;
}

/// Two bodies that are held by nothing: chains of four masses on unequal springs, consistent masses.
SecondOrderForm floating_chains(double damping) {
  constexpr int kMasses = 8;
  testing::Assembly M(kMasses), D(kMasses), K(kMasses);
  Eigen::Matrix2d mass, spring;
  mass << 2, 1, 1, 2;
  spring << 1, -1, -1, 1;
  for (int body = 0; body < 2; ++body) {
    for (int i = 4 * body; i < 4 * body + 3; ++i) {
      M.add({i, i + 1}, Eigen::Matrix2d((1.0 + i) / 6 * mass));
      K.add({i, i + 1}, Eigen::Matrix2d((20.0 + 7 * i) * spring));
      D.add({i, i + 1}, Eigen::Matrix2d(damping * spring));
    }
  }
  return {.M = M.matrix(), .D = D.matrix(), .K = K.matrix(), .B = SparseMatrix(kMasses, 0)};
}

double kinetic_J(const SecondOrderForm& form, const VectorXd& x) {
  const VectorXd v = x.tail(form.M.rows());
  return 0.5 * v.dot(form.M * v);
}

VectorXd constant_input(const SecondOrderForm& form) {
  VectorXd u(form.B.cols());
  for (Eigen::Index i = 0; i < u.size(); ++i) u[i] = 1.5 - static_cast<double>(i);
  return u;
}

std::vector<std::pair<std::string, SecondOrderForm>> sample_forms() {
  return {{"clamped, damped", beam_form({.elements = 6,
                                         .mass_damping_per_s = 0.3,
                                         .stiffness_damping_s = 1e-4,
                                         .clamped = true})},
          {"free, gyroscopic", beam_form({.elements = 5, .gyroscopic = 0.4})},
          {"membranes", membrane_form(2, 2, 2, false, 0.01)}};
}

// --- motion ----------------------------------------------------------------------------------

TEST(SecondOrder, AStepIsTheMidpointRuleOfTheDenseEquations) {
  for (const auto& [name, form] : sample_forms()) {
    const VectorXd u = constant_input(form), start = some_motion(form);
    const DenseMotion dense(form, u);
    for (const double h : {1e-4, 1e-2, 1.0}) {
      const Stepped stepped = step_part(free_part(form), start, u, h, 20);
      const VectorXd expected = dense.by_midpoint(start, h, 20);
      EXPECT_LE((stepped.x - expected).norm(), 1e-9 * expected.norm()) << name << " h=" << h;
      EXPECT_NEAR(stepped.change_J, stepped.supplied_J - stepped.dissipated_J,
                  1e-11 * (stepped.largest_J + std::abs(stepped.supplied_J)))
          << name << " h=" << h;
    }
  }
}

TEST(SecondOrder, ConvergesToTheExponentialAsTheStagesSay) {
  const SecondOrderForm form = beam_form({.elements = 3,
                                          .length_m = 6.0,
                                          .stiffness_Nm2 = 20.0,
                                          .mass_damping_per_s = 0.2,
                                          .stiffness_damping_s = 1e-3,
                                          .gyroscopic = 0.3,
                                          .clamped = true});
  const VectorXd u = constant_input(form), start = some_motion(form);
  const VectorXd exact = DenseMotion(form, u).at(start, 0.8);
  for (const int stages : {1, 2, 3}) {
    const auto error = [&](int steps) {
      return (step_part(free_part(form), start, u, 0.8 / steps, steps, stages).x - exact).norm();
    };
    const double coarse = error(64), fine = error(128);
    EXPECT_GT(fine, 1e-12);  // what is measured is no rounding
    EXPECT_NEAR(std::log2(coarse / fine), 2 * stages, 0.25) << coarse << " " << fine;
  }
}

TEST(SecondOrder, IsTheDescriptorSystemOfItsForm) {
  for (const auto& [name, form] : sample_forms()) {
    const SecondOrderPart part = free_part(form);
    const DescriptorForm first_order = descriptor_form(form);
    Signature signature = part->signature();
    signature.type = "descriptor_port_hamiltonian";
    const auto twin =
        std::make_shared<DescriptorPortHamiltonian>(std::move(signature), first_order);
    const VectorXd u = constant_input(form), start = some_motion(form);
    EXPECT_EQ(step_part(part, start, u, 0.01, 30).x, step_part(twin, start, u, 0.01, 30).x) << name;
    const Eigen::Index n = form.M.rows();
    EXPECT_NEAR(part->storage(start.data()),
                kinetic_J(form, start) + 0.5 * start.head(n).dot(form.K * start.head(n)),
                1e-13 * part->storage(start.data()));
  }
}

// --- pieces that float -----------------------------------------------------------------------

TEST(SecondOrder, PiecesThatFloatKeepMomentumAndEnergyFarFromTheOrigin) {
  for (const double damping : {0.0, 0.4}) {
    const SecondOrderForm form = floating_chains(damping);
    const int n = static_cast<int>(form.M.rows());
    VectorXd start = some_motion(form);
    start.head(4).array() += 1e6;
    start.tail(4).array() += 3.0;
    const int steps = 20000;
    const double h = 0.05, time_s = steps * h;
    // K q is a difference of forces of this size: its rounding is what may push a body.
    const double rounding_N = 2.2e-16 * MatrixXd(form.K).norm() * start.lpNorm<Eigen::Infinity>();
    const Stepped stepped = step_part(free_part(form), start, {}, h, steps);
    for (int body = 0; body < 2; ++body) {
      VectorXd ones = VectorXd::Zero(n);
      ones.segment(4 * body, 4).setOnes();
      const VectorXd weights = form.M * ones;
      const double mass = weights.sum();
      const double before = weights.dot(start.tail(n)), after = weights.dot(stepped.x.tail(n));
      EXPECT_NEAR(after, before, rounding_N * time_s) << "body " << body << " damping " << damping;
      // The centre of mass moves in a straight line.
      const double drift = weights.dot(stepped.x.head(n) - start.head(n)) / mass;
      EXPECT_NEAR(drift, before / mass * time_s, rounding_N * time_s * time_s / mass)
          << "body " << body;
    }
    const double slack_J = 0.1 * rounding_N * time_s * start.tail(n).norm();
    EXPECT_LE(slack_J, 1e-4);
    EXPECT_NEAR(stepped.change_J, -stepped.dissipated_J, slack_J) << damping;
    if (damping > 0.0) {
      // All that is left is the motion of the two bodies as wholes.
      EXPECT_GT(stepped.dissipated_J, 0.1);
      const VectorXd v = stepped.x.tail(n);
      EXPECT_LE(v.head(4).maxCoeff() - v.head(4).minCoeff(), 1e-7);
      EXPECT_LE(v.tail(4).maxCoeff() - v.tail(4).minCoeff(), 1e-7);
    } else {
      EXPECT_NEAR(stepped.change_J, 0.0, slack_J);
    }
  }
}

TEST(SecondOrderControl, AHeldBodyDoesNotKeepItsMomentum) {
  SecondOrderForm form = floating_chains(0.0);
  form.K.coeffRef(0, 0) += 1.0;
  const VectorXd start = some_motion(form);
  const Stepped stepped = step_part(free_part(form), start, {}, 0.05, 100);
  VectorXd ones = VectorXd::Zero(8);
  ones.head(4).setOnes();
  EXPECT_GT(std::abs((form.M * ones).dot(stepped.x.tail(8) - start.tail(8))), 1e-3);
}

// --- what one end does far away ---------------------------------------------------------------

/// A chain on stiff ground that is pushed at one end: each mass moves far less than the one before.
SecondOrderForm grounded_chain(int masses) {
  testing::Assembly M(masses), K(masses);
  Eigen::Matrix2d mass, spring;
  mass << 2, 1, 1, 2;
  spring << 1, -1, -1, 1;
  for (int i = 0; i + 1 < masses; ++i) {
    M.add({i, i + 1}, Eigen::Matrix2d(mass / 6));
    K.add({i, i + 1}, Eigen::Matrix2d(40.0 * spring + 60.0 * mass));
  }
  return {.M = M.matrix(),
          .D = SparseMatrix(masses, masses),
          .K = K.matrix(),
          .B = testing::columns(masses, {{{0, 1.0}}})};
}

TEST(SecondOrder, NoStateBecomesSubnormal) {
  constexpr int kMasses = 1500;
  const SecondOrderForm form = grounded_chain(kMasses);
  const Stepped stepped =
      step_part(free_part(form), VectorXd::Zero(2 * kMasses), VectorXd::Ones(1), 0.5, 3);
  EXPECT_GT(std::abs(stepped.x[0]), 1e-3);
  const double normal = std::numeric_limits<double>::min();
  int small = 0;
  for (const double each : stepped.x) {
    const double size = std::abs(each);
    EXPECT_TRUE(size == 0.0 || size >= normal) << size;
    if (size > 0.0 && size < 1e-250) ++small;
  }
  EXPECT_GT(small, 0);  // the motion does decay as far as that
  const volatile double smallest = normal, half = 0.5;
  EXPECT_GT(smallest * half, 0.0);  // elsewhere such numbers are what they were
}

// --- units -----------------------------------------------------------------------------------

TEST(SecondOrder, UnitsOfForceLengthAndTimeDoNotMatter) {
  const SecondOrderForm form = sample_forms()[0].second;
  const Eigen::Index n = form.M.rows();
  const VectorXd start = some_motion(form);
  const VectorXd u = constant_input(form);
  const VectorXd expected = step_part(free_part(form), start, u, 0.01, 20).x;
  for (const double force : {1e-9, 1.0, 1e9}) {
    for (const double time : {1e-9, 1.0, 1e9}) {  // seconds per unit of time
      SecondOrderForm scaled = form;
      scaled.M *= force / (time * time);
      scaled.D *= force / time;
      scaled.K *= force;
      scaled.B *= force;
      const StructureRules rules;
      EXPECT_TRUE(validate(scaled, static_cast<int>(n), 2, rules).empty()) << force << " " << time;
      VectorXd x = start;
      x.tail(n) *= time;
      VectorXd moved = step_part(free_part(scaled), x, u, 0.01 / time, 20).x;
      moved.tail(n) /= time;
      EXPECT_LE((moved - expected).norm(), 1e-9 * expected.norm()) << force << " " << time;
    }
  }
}

// --- what is refused -------------------------------------------------------------------------

std::string second_order_defects(const SecondOrderForm& form, bool allow_active = false) {
  const Issues issues = validate(form, 8, 0, {.allow_active = allow_active, .names = {}});
  return issues.empty() ? "" : ConfigError(issues).what();
}

TEST(SecondOrderValidation, NamesEveryMatrixThatIsWrongAtOnce) {
  SecondOrderForm form = floating_chains(0.1);
  EXPECT_EQ(second_order_defects(form), "");
  form.M.coeffRef(0, 1) += 0.1;
  form.D.coeffRef(2, 2) = -3.0;
  form.K.coeffRef(5, 5) = -1.0;
  form.B = SparseMatrix(7, 1);
  const std::string text = second_order_defects(form);
  for (const char* const expected :
       {"/M: M is not symmetric: M(0,1)", "/D: (D + D^T)/2 is not positive semidefinite",
        "/K: K is not positive semidefinite", "/B: must be 8×0, got 7×1"}) {
    EXPECT_NE(text.find(expected), std::string::npos) << expected << "\n" << text;
  }
  // Damping that feeds energy in may be wanted; a mass or stiffness that does may not.
  const std::string active = second_order_defects(form, true);
  EXPECT_EQ(active.find("/D"), std::string::npos) << active;
  EXPECT_NE(active.find("/K"), std::string::npos) << active;
}

TEST(SecondOrderValidation, MassesThatAreMissing) {
  SecondOrderForm form = floating_chains(0.1);
  for (int j = 0; j < 8; ++j) {
    form.M.coeffRef(3, j) = 0.0;
    form.M.coeffRef(j, 3) = 0.0;
  }
  form.M.prune(0.0);
  const std::string text = second_order_defects(form);
  EXPECT_NE(text.find("/M: M must be positive definite; it is singular (rank 7 of 8)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("descriptor_port_hamiltonian"), std::string::npos) << text;
}

/// Waves at which a step of a large structure is known are no others than those that it solves for.
TEST(SecondOrderSteps, KnownWavesAreThoseThatASolveGives) {
  const int n = 25 * 25;  // factorised from 500 coordinates on
  const auto form_with = [&](const std::vector<std::vector<std::pair<int, double>>>& ports) {
    SecondOrderForm form = membrane_form(24, 24, 1, /*lumped=*/false, 0.3);
    form.B = testing::columns(n, ports);
    return form;
  };
  const auto port = [](const std::string& name) {
    return Port{name, Causality::effort_in, Domain::generic, 1};
  };
  const double impedance[] = {0.7, 40.0, 3.0};
  constexpr double kUntouched = 7.0;
  const auto known_by = [&](const SecondOrderForm& form) {
    const SecondOrderPart part =
        make_second_order_part(Signature{"second_order_system",
                                         second_order_states(testing::numbered("q", n)),
                                         {port("one"), port("two"), port("three")},
                                         {}},
                               form);
    const Component* const list[] = {part.get()};
    const std::unique_ptr<StepBatch> batch = part->make_batch(list);
    batch->prepare(1e-2, impedance);
    AlignedVector record(batch->record_size());
    const VectorXd x = some_motion(form);
    batch->set_state(0, x.data(), record.data());
    batch->freeze({0, 1}, record.data(), nullptr);
    VectorXd a = VectorXd::Constant(3, kUntouched), b(3), offset(3), D(9);
    const AffineMap& map = *batch->affine_map();
    map.affine_matrix(0, D.data());
    map.affine_offset(0, record.data(), offset.data());
    map.known_waves({0, 1}, record.data(), a.data());
    EXPECT_TRUE(batch->scatter({0, 1}, record.data(), a.data(), b.data()).ok());
    for (int i = 0; i < 3; ++i) {
      const double solved = offset[i] + D.segment(3 * i, 3).dot(a);
      EXPECT_NEAR(b[i], solved, 1e-12 * (a.cwiseAbs().maxCoeff() + std::abs(offset[i]))) << i;
    }
    // What it knows is forgotten with the next waves, and solved for then.
    const VectorXd other = 1.5 * a;
    EXPECT_TRUE(batch->scatter({0, 1}, record.data(), other.data(), b.data()).ok());
    EXPECT_NEAR(b[0], offset[0] + D.head(3).dot(other), 1e-12 * other.cwiseAbs().maxCoeff());
    return a;
  };
  const VectorXd own = known_by(form_with({{{31, 1.0}}, {{300, 1.0}}, {{n - 1, 1.0}}}));
  EXPECT_TRUE((own.array() != kUntouched).all());
  // A port on two coordinates, and two ports on one: nothing is known.
  EXPECT_EQ(known_by(form_with({{{31, 1.0}}, {{300, 1.0}}, {{0, 1.0}, {n - 1, -1.0}}})),
            VectorXd::Constant(3, kUntouched));
  EXPECT_EQ(known_by(form_with({{{31, 1.0}}, {{31, 1.0}}, {{n - 1, 1.0}}})),
            VectorXd::Constant(3, kUntouched));
}

TEST(SecondOrderValidation, NumbersThatAreNotFinite) {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity(), -HUGE_VAL}) {
    for (const char* const name : {"M", "D", "K"}) {
      SecondOrderForm form = floating_chains(0.1);
      SparseMatrix& matrix = name[0] == 'M' ? form.M : name[0] == 'D' ? form.D : form.K;
      matrix.coeffRef(1, 1) = bad;
      const std::string text = second_order_defects(form);
      EXPECT_EQ(text.find(fmt::format("/{0}: {0}(1,1) = ", name)), 0U) << text;
      EXPECT_NE(text.find("is not finite"), std::string::npos) << text;
    }
  }
}

TEST(SecondOrderPartType, TheRateOfACoordinateMayNotBeACoordinate) {
  Parameters parameters = find_part_type("second_order_system")->example;
  parameters["coordinates"] =
      std::vector<StateVariable>{{"u1", "m"}, {"u1_rate", "m/s"}, {"u3", "m"}};
  try {
    (void)make_part("second_order_system", parameters);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("/coordinates/0/name: its rate"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace portwave::test_second_order
