#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include <gtest/gtest.h>

#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/catalogue/chain.hpp"
#include "portwave/subsystems/conformance/conformance.hpp"
#include "support/linear_responses.hpp"

// Lines, ladders, strings and beams of many cells against closed forms.
namespace portwave::test_lines_and_beams {
namespace {

using Complex = std::complex<double>;
using testing::transfer_function;
constexpr Complex kI{0.0, 1.0};
constexpr double kPi = std::numbers::pi;

/// The frequencies of free oscillation [rad/s], ascending. Those of a zero mode are left out.
std::vector<double> frequencies(const Subsystem& part) {
  std::vector<double> result;
  const Eigen::VectorXcd poles = testing::eigenvalues(part);
  const double largest = poles.cwiseAbs().maxCoeff();
  for (const Complex& pole : poles) {
    if (pole.imag() > 1e-6 * largest) result.push_back(pole.imag());
  }
  std::sort(result.begin(), result.end());
  return result;
}

double order(double coarse, double fine) { return std::log2(std::abs(coarse / fine)); }

std::unique_ptr<Component> string_of(int cells, double tension = 20.0, double damping = 0.0) {
  return make_part("string", {{"cells", cells},
                              {"length_m", 1.5},
                              {"tension_N", tension},
                              {"density_kg_per_m", 0.8},
                              {"damping_Ns_per_m2", damping}});
}

// With held ends a string of n cells has the frequencies 2 (c/l) sin(k π/(2n)), k = 1 … n.
TEST(String, HasTheFrequenciesOfItsCells) {
  for (const double tension : {20e-9, 20.0, 20e9}) {
    for (const int n : {1, 2, 7, 20}) {
      const auto part = string_of(n, tension);
      const std::vector<double> computed = frequencies(*part->port_hamiltonian());
      ASSERT_EQ(static_cast<int>(computed.size()), n);
      const double c = std::sqrt(tension / 0.8), cell_m = 1.5 / n;
      for (int k = 1; k <= n; ++k) {
        const double expected = 2.0 * c / cell_m * std::sin(k * kPi / (2.0 * n));
        EXPECT_NEAR(computed[static_cast<std::size_t>(k - 1)] / expected, 1.0, 1e-9)
            << "n=" << n << " k=" << k << " T=" << tension;
      }
    }
  }
}

TEST(String, ApproachesTheTonesOfAStringWithSecondOrder) {
  const double c = std::sqrt(20.0 / 0.8);
  for (const int tone : {1, 2, 3}) {
    std::vector<double> errors;
    for (const int n : {8, 16, 32}) {
      errors.push_back(frequencies(*string_of(n)->port_hamiltonian())[tone - 1U] -
                       tone * kPi * c / 1.5);
    }
    EXPECT_NEAR(order(errors[1], errors[2]), 2.0, 0.02) << "tone " << tone;
    EXPECT_GT(std::abs(errors[0]), 1e-4) << "control: eight cells are not exact";
  }
}

// Both ends moved alike at the frequency ω: e/f = −(T/c) i tan(ωL/2c) … = ρ c coth, csch of sL/c.
TEST(String, HasTheImpedanceOfAStringAtItsEnds) {
  const double tension = 20.0, density = 0.8, length = 1.5, damping = 0.3;
  for (const double omega : {0.5, 3.0, 8.0}) {
    const Complex s = omega * kI;
    // T w'' = s (ρ s + c) w
    const Complex gamma = std::sqrt(s * (density * s + damping) / tension);
    const Complex impedance = tension * gamma / s;
    const Complex own = impedance / std::tanh(gamma * length);
    const Complex other = -impedance / std::sinh(gamma * length);
    std::vector<double> errors;
    for (const int n : {20, 40}) {
      const auto part = string_of(n, tension, damping);
      const Eigen::MatrixXcd H =
          transfer_function(*part->port_hamiltonian(), s).topLeftCorner(2, 2);
      errors.push_back(std::max({std::abs(H(0, 0) - own), std::abs(H(1, 1) - own),
                                 std::abs(H(0, 1) - other), std::abs(H(1, 0) - other)}) /
                       std::abs(own));
    }
    EXPECT_LE(errors[1], 5e-2) << omega;
    EXPECT_NEAR(order(errors[0], errors[1]), 2.0, 0.1) << omega;
  }
}

TEST(FluidLine, HasTheAdmittanceOfATransmissionLine) {
  const double inertance = 2.0, capacitance = 0.6, friction = 0.3;
  for (const double unit : {1e-9, 1.0, 1e9}) {  // of pressure
    for (const double omega : {0.1, 1.0, 4.0}) {
      const Complex s = omega * kI;
      const Complex series = s * inertance + friction, shunt = s * capacitance;
      const Complex gamma = std::sqrt(series * shunt), admittance = std::sqrt(shunt / series);
      const Complex own = admittance / std::tanh(gamma);
      const Complex other = -admittance / std::sinh(gamma);
      std::vector<double> errors;
      for (const int n : {20, 40}) {
        const auto part = make_part("fluid_line", {{"cells", n},
                                                   {"inertance_kg_per_m4", unit * inertance},
                                                   {"capacitance_m3_per_Pa", capacitance / unit},
                                                   {"friction_Pas_per_m3", unit * friction}});
        const Eigen::MatrixXcd Y = unit * transfer_function(*part->port_hamiltonian(), s);
        errors.push_back(std::max({std::abs(Y(0, 0) - own), std::abs(Y(1, 1) - own),
                                   std::abs(Y(0, 1) - other), std::abs(Y(1, 0) - other)}) /
                         std::abs(own));
      }
      EXPECT_LE(errors[1], 2e-2) << omega;
      EXPECT_NEAR(order(errors[0], errors[1]), 2.0, 0.1) << omega;
      EXPECT_GT(errors[1], 1e-9) << "control: forty cells are not exact";
    }
  }
}

/// Seen from its left end, closed by a resistor at the right one, a ladder is a continued fraction.
Complex ladder_impedance(Complex s, int cells, double closing_ohm) {
  Complex impedance = closing_ohm;
  for (int i = 0; i < cells; ++i) impedance = 1.0 / (0.5 * s + 1.0 / (2.0 * s + 0.2 + impedance));
  return impedance;
}

TEST(RlcLadder, IsItsContinuedFraction) {
  for (const int cells : {1, 2, 50}) {
    const auto part = make_part(
        "rlc_ladder",
        {{"cells", cells}, {"capacitance_F", 0.5}, {"inductance_H", 2.0}, {"resistance_ohm", 0.2}});
    for (const double omega : {1e-3, 0.1, 1.0, 10.0}) {
      const Complex s = omega * kI;
      const Eigen::MatrixXcd H = transfer_function(*part->port_hamiltonian(), s);
      const auto closed = [&](double ohm) {  // e₂ = −ohm f₂
        return H(0, 0) - H(0, 1) * ohm * H(1, 0) / (1.0 + ohm * H(1, 1));
      };
      const Complex expected = ladder_impedance(s, cells, 0.4);
      EXPECT_NEAR(std::abs(closed(0.4) - expected), 0.0, 1e-11 * (1.0 + std::abs(expected)))
          << cells << " cells, ω=" << omega;
      if (cells <= 2 && omega <= 1.0) {
        EXPECT_GT(std::abs(closed(0.5) - expected), 1e-3) << "control: another resistor";
      }
    }
  }
}

// SingleMSDChain of PortHamiltonianBenchmarkSystems (MIT): 50 cells, m = 4, k = 4, c = 1, the last
// spring to a wall; forces on the first two masses.
TEST(MassSpringDamperChain, HasThePublishedTransferFunction) {
  const auto response = [](double k, Complex s) {
    const auto part = mass_spring_damper_chain({.masses = 50,
                                                .mass_kg = 4.0,
                                                .stiffness_N_per_m = k,
                                                .damping_Ns_per_m = 1.0,
                                                .coupling_stiffness_N_per_m = k,
                                                .left_end = ChainEnd::mass,
                                                .right_end = ChainEnd::spring});
    return transfer_function(*part, s)(2, 2);
  };
  const Complex slow = response(4.0, 0.1 * kI), fast = response(4.0, kI);
  EXPECT_NEAR(slow.real(), 0.125712, 1e-6);
  EXPECT_NEAR(slow.imag(), 0.073217, 1e-6);
  EXPECT_NEAR(fast.real(), 0.21075, 1e-5);
  EXPECT_NEAR(fast.imag(), -0.090111, 1e-6);
  EXPECT_GT(std::abs(response(4.1, kI) - fast), 1e-4) << "control: other springs";
}

std::unique_ptr<Component> beam(const std::string& supports, int elements, double bending = 5.0) {
  return make_part("euler_bernoulli_beam", {{"elements", elements},
                                            {"length_m", 2.0},
                                            {"bending_stiffness_Nm2", bending},
                                            {"density_kg_per_m", 0.6},
                                            {"supports", supports}});
}

/// Of K φ = ω² M φ. With an eigenvalue solver for symmetric matrices, which no unit disturbs.
std::vector<double> frequencies_of_beam(const Component& component) {
  const LinearForm form = component.port_hamiltonian()->linear_form();
  const Eigen::Index n = form.Q->rows() / 2;
  const Eigen::MatrixXd K = Eigen::MatrixXd(*form.Q).topLeftCorner(n, n);
  const Eigen::MatrixXd M = Eigen::MatrixXd(*form.E).bottomRightCorner(n, n);
  const Eigen::VectorXd squares =
      Eigen::GeneralizedSelfAdjointEigenSolver<Eigen::MatrixXd>(K, M, Eigen::EigenvaluesOnly)
          .eigenvalues();
  const Eigen::VectorXd result = squares.cwiseSqrt();
  return {result.begin(), result.end()};
}

struct BeamRoots {
  std::string supports;
  std::vector<double> roots;  ///< β L of the first modes
};

// Blevins, Formulas for Natural Frequency and Mode Shape (1979), table 8-1.
const BeamRoots kBeamRoots[] = {{"cantilever", {1.87510407, 4.69409113, 7.85475744}},
                                {"clamped", {4.73004074, 7.85320462, 10.9956078}},
                                {"propped", {3.92660231, 7.06858275, 10.2101761}},
                                {"simple", {kPi, 2.0 * kPi, 3.0 * kPi}}};

TEST(EulerBernoulliBeam, HasTheTabulatedFrequencies) {
  for (const double bending : {5e-9, 5.0, 5e9}) {
    for (const BeamRoots& tabulated : kBeamRoots) {
      const auto part = beam(tabulated.supports, 12, bending);
      const std::vector<double> computed = frequencies_of_beam(*part);
      for (std::size_t i = 0; i < tabulated.roots.size(); ++i) {
        const double root = std::sqrt(computed[i] * 4.0 * std::sqrt(0.6 / bending));
        EXPECT_NEAR(root / tabulated.roots[i], 1.0, 3e-4)
            << tabulated.supports << " mode " << i + 1;
        EXPECT_GE(root, tabulated.roots[i] * (1.0 - 1e-8))
            << "finite elements with a consistent mass are too stiff, never too soft";
      }
    }
  }
}

TEST(EulerBernoulliBeam, ApproachesThemWithFourthOrder) {
  for (const BeamRoots& tabulated : kBeamRoots) {
    for (std::size_t i = 0; i < 2; ++i) {
      const double exact = std::pow(tabulated.roots[i] / 2.0, 2) * std::sqrt(5.0 / 0.6);
      std::vector<double> errors;
      for (const int n : {4, 8}) {
        errors.push_back(frequencies_of_beam(*beam(tabulated.supports, n))[i] - exact);
      }
      EXPECT_NEAR(order(errors[0], errors[1]), 4.0, 0.2) << tabulated.supports << " mode " << i + 1;
    }
  }
}

/// The state at rest under an effort at the ports and a load.
Eigen::VectorXd at_rest(const Component& component, const Eigen::Vector3d& u) {
  const Subsystem& part = *component.port_hamiltonian();
  const Structure& s = part.structure();
  const Eigen::MatrixXd A = Eigen::MatrixXd(s.J - s.R) * *part.linear_form().Q;
  return A.partialPivLu().solve(-Eigen::MatrixXd(s.G - s.P) * u);
}

double state_of(const Component& part, const Eigen::VectorXd& x, const std::string& name) {
  const std::vector<StateVariable>& states = part.signature().states;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i].name == name) return x[static_cast<Eigen::Index>(i)];
  }
  throw std::logic_error("no state " + name);
}

// Cubic elements are exact at their nodes. An effort e at a port is the force −e on the beam.
TEST(EulerBernoulliBeam, BendsAsTheTablesSay) {
  const double L = 2.0, EI = 5.0;
  for (const int n : {2, 6}) {
    const std::string tip = std::to_string(n), middle = std::to_string(n / 2);
    const auto cantilever = beam("cantilever", n);
    const Eigen::VectorXd pushed = at_rest(*cantilever, {-3.0, 0.0, 0.0});
    EXPECT_NEAR(state_of(*cantilever, pushed, "w" + tip), 3.0 * L * L * L / (3.0 * EI), 1e-11);
    EXPECT_NEAR(state_of(*cantilever, pushed, "slope" + tip), 3.0 * L * L / (2.0 * EI), 1e-11);
    const Eigen::VectorXd turned = at_rest(*cantilever, {0.0, -3.0, 0.0});
    EXPECT_NEAR(state_of(*cantilever, turned, "w" + tip), 3.0 * L * L / (2.0 * EI), 1e-11);
    const Eigen::VectorXd loaded = at_rest(*cantilever, {0.0, 0.0, 3.0});
    EXPECT_NEAR(state_of(*cantilever, loaded, "w" + tip), 3.0 * std::pow(L, 4) / (8.0 * EI), 1e-11);

    const auto simple = beam("simple", n);
    EXPECT_NEAR(state_of(*simple, at_rest(*simple, {-3.0, 0.0, 0.0}), "w" + middle),
                3.0 * L * L * L / (48.0 * EI), 1e-11);
    EXPECT_NEAR(state_of(*simple, at_rest(*simple, {0.0, 0.0, 3.0}), "w" + middle),
                5.0 * 3.0 * std::pow(L, 4) / (384.0 * EI), 1e-11);
    const auto clamped = beam("clamped", n);
    EXPECT_NEAR(state_of(*clamped, at_rest(*clamped, {0.0, 0.0, 3.0}), "w" + middle),
                3.0 * std::pow(L, 4) / (384.0 * EI), 1e-11);
    EXPECT_GT(std::abs(state_of(*cantilever, pushed, "w" + tip) - 3.0 * L * L * L / (48.0 * EI)),
              1.0)
        << "control: a cantilever is no simple beam";
  }
}

// Damping by mass a and by stiffness b: every mode decays with (a + b ω²)/2.
TEST(EulerBernoulliBeam, ItsModesDecayAsRayleighSays) {
  const auto part = make_part("euler_bernoulli_beam", {{"elements", 4},
                                                       {"length_m", 2.0},
                                                       {"bending_stiffness_Nm2", 5.0},
                                                       {"density_kg_per_m", 0.6},
                                                       {"mass_damping_1_per_s", 0.3},
                                                       {"stiffness_damping_s", 1e-4}});
  int oscillating = 0;
  for (const Complex& pole : testing::eigenvalues(*part->port_hamiltonian())) {
    if (pole.imag() == 0.0) continue;
    EXPECT_NEAR(-2.0 * pole.real() / (0.3 + 1e-4 * std::norm(pole)), 1.0, 1e-8);
    ++oscillating;
  }
  EXPECT_EQ(oscillating, 16);
}

TEST(LargeStructures, AreBuiltSparselyAndKeepTheEnergyLaw) {
  ConformanceOptions options;
  options.trials = 1;
  options.steps_s = {1e-3, 10.0};
  const std::vector<std::pair<std::string, std::unique_ptr<Component>>> parts = [] {
    std::vector<std::pair<std::string, std::unique_ptr<Component>>> result;
    result.emplace_back("string", string_of(2000));
    result.emplace_back("beam", beam("cantilever", 200));
    result.emplace_back("ladder", make_part("rlc_ladder", {{"cells", 2000},
                                                           {"capacitance_F", 0.5},
                                                           {"inductance_H", 2.0},
                                                           {"resistance_ohm", 0.2}}));
    result.emplace_back("line", make_part("fluid_line", {{"cells", 2000},
                                                         {"inertance_kg_per_m4", 2.0},
                                                         {"capacitance_m3_per_Pa", 0.6},
                                                         {"friction_Pas_per_m3", 0.3}}));
    return result;
  }();
  for (const auto& [name, part] : parts) {
    const LawReport report = check_energy_law(*part->port_hamiltonian(), options);
    EXPECT_TRUE(report.holds) << name << ": " << report.worst << " " << report.detail;
  }
}

}  // namespace
}  // namespace portwave::test_lines_and_beams
