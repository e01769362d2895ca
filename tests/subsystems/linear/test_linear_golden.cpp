#include <cmath>
#include <complex>
#include <ostream>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "portwave/subsystems/linear/linear_part.hpp"
#include "support/lane_major.hpp"

// Two public benchmark systems: their transfer functions against published or independent values,
// and the discrete step's port response against the transfer function.
// Source  PortHamiltonianBenchmarkSystems (MIT licence), SingleMSDChain and the PS10 default of the
//         RCL ladder.
namespace portwave::test_linear_golden {
namespace {

using Complex = std::complex<double>;
using ComplexMatrix = Eigen::MatrixXcd;
using Triplets = std::vector<Eigen::Triplet<double>>;

constexpr Complex kI{0.0, 1.0};

SparseMatrix matrix(int rows, int columns, const Triplets& entries) {
  SparseMatrix result(rows, columns);
  result.setFromTriplets(entries.begin(), entries.end());
  return result;
}

Signature signature(int states, const Port& port) {
  Signature result{"benchmark", {}, {port}, {}};
  for (int i = 0; i < states; ++i) result.states.push_back({"x" + std::to_string(i), ""});
  return result;
}

/// x = (q₁, p₁, …), m = k = 4, c = 1; forces on the first masses, velocities out.
std::unique_ptr<LinearPortHamiltonian> mass_spring_damper_benchmark(StepMapStorage storage) {
  constexpr int kCells = 50, kPorts = 2, kStates = 2 * kCells;
  constexpr double m = 4.0, k = 4.0, c = 1.0;
  Triplets J, R, G, Q;
  for (int i = 0; i < kCells; ++i) {
    const int q = 2 * i, p = 2 * i + 1;
    J.emplace_back(q, p, 1.0);
    J.emplace_back(p, q, -1.0);
    R.emplace_back(p, p, c);
    Q.emplace_back(p, p, 1.0 / m);
    Q.emplace_back(q, q, i == 0 ? k : k + k);
    if (i + 1 < kCells) {
      Q.emplace_back(q, q + 2, -k);
      Q.emplace_back(q + 2, q, -k);
    }
    if (i < kPorts) G.emplace_back(p, i, 1.0);
  }
  Structure structure = Structure::zero(kStates, kPorts);
  structure.J = matrix(kStates, kStates, J);
  structure.R = matrix(kStates, kStates, R);
  structure.G = matrix(kStates, kPorts, G);
  LinearPortHamiltonian::Options options;
  options.storage = storage;
  return std::make_unique<LinearPortHamiltonian>(
      signature(kStates, {"masses", Causality::effort_in, Domain::translation, kPorts}),
      std::move(structure), matrix(kStates, kStates, Q), options);
}

constexpr int kLadderCells = 50;

/// x = (q₁, φ₁, …), C = L = 1, R = 0.2 in series with every inductor and 0.4 more at the end; a
/// current in, the voltage of the first capacitor out.
std::unique_ptr<LinearPortHamiltonian> ladder_benchmark(StepMapStorage storage) {
  constexpr int kStates = 2 * kLadderCells;
  Triplets J, R, Q;
  for (int i = 0; i < kStates; ++i) {
    Q.emplace_back(i, i, 1.0);
    if (i % 2 == 1) R.emplace_back(i, i, i + 1 == kStates ? 0.6 : 0.2);
    if (i + 1 == kStates) break;
    J.emplace_back(i, i + 1, -1.0);
    J.emplace_back(i + 1, i, 1.0);
  }
  Structure structure = Structure::zero(kStates, 1);
  structure.J = matrix(kStates, kStates, J);
  structure.R = matrix(kStates, kStates, R);
  structure.G = matrix(kStates, 1, {{0, 0, 1.0}});
  LinearPortHamiltonian::Options options;
  options.storage = storage;
  return std::make_unique<LinearPortHamiltonian>(
      signature(kStates, {"source", Causality::flow_in, Domain::electrical, 1}),
      std::move(structure), matrix(kStates, kStates, Q), options);
}

/// H(s) = GᵀQ(sI − (J − R)Q)⁻¹G.
ComplexMatrix transfer_function(const LinearPortHamiltonian& part, Complex s) {
  const Structure& structure = part.structure();
  const Eigen::MatrixXd Q(part.Q()), G(structure.G),
      A(Eigen::MatrixXd(structure.J - structure.R) * Q);
  ComplexMatrix resolvent = -A.cast<Complex>();
  resolvent.diagonal().array() += s;
  return (G.transpose() * Q).cast<Complex>() * resolvent.lu().solve(G.cast<Complex>());
}

/// The response y/u of the discrete step to u zᵏ, from the step maps found by probing the batch.
class DiscreteResponse {
 public:
  DiscreteResponse(const LinearPortHamiltonian& part, double h, double impedance)
      : effort_in_(part.signature().ports[0].causality == Causality::effort_in),
        impedance_(impedance) {
    const int n = part.signature().state_size(), p = part.signature().wave_size();
    testing::LaneMajor batch = testing::batch_of_one(part);
    const std::vector<double> gamma(static_cast<std::size_t>(p), impedance);
    batch.prepare(h, gamma.data());
    maps_.resize(n + p, n + p);
    for (int column = 0; column < n + p; ++column) {
      Eigen::VectorXd in = Eigen::VectorXd::Unit(n + p, column), out(n + p);
      StepEnergy energy;
      batch.freeze({0, 1}, in.data(), nullptr);
      const LaneStatus status =
          batch.advance({0, 1}, in.data() + n, out.data(), out.data() + n, &energy);
      EXPECT_TRUE(status.ok());
      maps_.col(column) = out;
    }
    n_ = n;
  }

  ComplexMatrix at(Complex z) const {
    const Eigen::Index p = maps_.rows() - n_;
    ComplexMatrix resolvent = -maps_.topLeftCorner(n_, n_).cast<Complex>();
    resolvent.diagonal().array() += z;
    const ComplexMatrix scattering =
        maps_.bottomRightCorner(p, p).cast<Complex>() +
        maps_.bottomLeftCorner(p, n_).cast<Complex>() *
            resolvent.lu().solve(maps_.topRightCorner(n_, p).cast<Complex>().eval());
    const ComplexMatrix I = ComplexMatrix::Identity(p, p);
    const ComplexMatrix admittance = (I - scattering) * (I + scattering).inverse() / impedance_;
    return effort_in_ ? admittance : admittance.inverse().eval();
  }

 private:
  bool effort_in_;
  double impedance_;
  Eigen::Index n_ = 0;
  Eigen::MatrixXd maps_;  ///< (x, a) ↦ (x⁺, b)
};

TEST(MassSpringDamperBenchmark, HasThePublishedTransferFunction) {
  const auto part = mass_spring_damper_benchmark(StepMapStorage::automatic);
  const Complex slow = transfer_function(*part, 0.1 * kI)(0, 0);
  const Complex fast = transfer_function(*part, kI)(0, 0);
  EXPECT_NEAR(slow.real(), 0.125712, 1e-6);
  EXPECT_NEAR(slow.imag(), 0.073217, 1e-6);
  EXPECT_NEAR(fast.real(), 0.21075, 1e-5);
  EXPECT_NEAR(fast.imag(), -0.090111, 1e-6);
}

// Seen from the source, a ladder is a continued fraction.
Complex ladder_impedance(Complex s, double last_resistance) {
  Complex impedance = 0.0;
  for (int i = kLadderCells - 1; i >= 0; --i) {
    const Complex branch = s + (i + 1 == kLadderCells ? last_resistance : 0.2) + impedance;
    impedance = 1.0 / (s + 1.0 / branch);
  }
  return impedance;
}

TEST(LadderBenchmark, IsItsContinuedFraction) {
  const auto part = ladder_benchmark(StepMapStorage::automatic);
  for (const double omega : {1e-3, 0.1, 1.0, 2.0, 10.0}) {
    const Complex computed = transfer_function(*part, omega * kI)(0, 0);
    EXPECT_NEAR(std::abs(computed - ladder_impedance(omega * kI, 0.6)), 0.0, 1e-11)
        << "ω=" << omega;
  }
  // At rest the whole current runs through the series resistors.
  EXPECT_NEAR(transfer_function(*part, 0.0)(0, 0).real(), 50 * 0.2 + 0.4, 1e-11);
}

TEST(LadderBenchmarkControl, NoticesTheLastResistor) {
  const auto part = ladder_benchmark(StepMapStorage::automatic);
  const Complex computed = transfer_function(*part, 1e-3 * kI)(0, 0);
  EXPECT_GT(std::abs(computed - ladder_impedance(1e-3 * kI, 0.2)), 1e-3);
}

using Maker = std::unique_ptr<LinearPortHamiltonian> (*)(StepMapStorage);

struct Benchmark {
  std::string name;
  Maker make;
  StepMapStorage storage;
};

void PrintTo(const Benchmark& benchmark, std::ostream* out) { *out << benchmark.name; }

class DiscreteStep : public ::testing::TestWithParam<Benchmark> {};

// The midpoint rule maps s to (2/h)(z − 1)/(z + 1): the response at z is the continuous one at the
// warped frequency, whatever the step and the impedance.
TEST_P(DiscreteStep, IsTheTransferFunctionAtTheWarpedFrequency) {
  const auto part = GetParam().make(GetParam().storage);
  for (const double impedance : {0.1, 7.0}) {
    for (const double h : {1e-2, 0.3, 4.0}) {
      const DiscreteResponse response(*part, h, impedance);
      for (const double angle : {0.01, 0.5, 1.5, 3.0}) {
        const Complex s = (2.0 / h) * std::tan(0.5 * angle) * kI;
        const ComplexMatrix continuous = transfer_function(*part, s);
        const double defect =
            (response.at(std::exp(angle * kI)) - continuous).cwiseAbs().maxCoeff();
        EXPECT_LE(defect, 1e-9 * (1.0 + continuous.cwiseAbs().maxCoeff()))
            << "γ=" << impedance << " h=" << h << " ωh=" << angle;
      }
    }
  }
}

double order(const std::vector<double>& errors) {
  return std::log2(errors[errors.size() - 2] / errors.back());
}

TEST_P(DiscreteStep, ApproachesTheTransferFunctionWithSecondOrder) {
  const auto part = GetParam().make(GetParam().storage);
  for (const double omega : {0.3, 1.0}) {
    const ComplexMatrix exact = transfer_function(*part, omega * kI);
    std::vector<double> errors, first_order;
    for (const double h : {0.2, 0.1, 0.05, 0.025}) {
      const Complex z = std::exp(omega * h * kI);
      errors.push_back((DiscreteResponse(*part, h, 1.0).at(z) - exact).cwiseAbs().maxCoeff());
      first_order.push_back(
          (transfer_function(*part, (z - 1.0) / h) - exact).cwiseAbs().maxCoeff());
    }
    EXPECT_NEAR(order(errors), 2.0, 0.05) << "ω=" << omega << " last error " << errors.back();
    EXPECT_NEAR(order(first_order), 1.0, 0.2) << "control: the explicit Euler rule has first order";
    EXPECT_GT(errors.front(), 1e-6) << "control: the unwarped frequency is not met exactly";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Benchmarks, DiscreteStep,
    ::testing::Values(
        Benchmark{"MassSpringDamperDense", mass_spring_damper_benchmark, StepMapStorage::dense},
        Benchmark{"MassSpringDamperSparse", mass_spring_damper_benchmark, StepMapStorage::sparse},
        Benchmark{"LadderDense", ladder_benchmark, StepMapStorage::dense},
        Benchmark{"LadderSparse", ladder_benchmark, StepMapStorage::sparse}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace portwave::test_linear_golden
