#include <functional>
#include <random>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "support/linear_responses.hpp"

// Lumped parts against the equations of a textbook, written out by hand.
namespace portwave::test_lumped_elements {
namespace {

using Vector = std::vector<double>;

struct Motion {
  Vector rate;    ///< x'
  Vector output;  ///< y: of the ports, then of the inputs
};

double of(const Parameters& p, const std::string& name) { return std::get<double>(p.at(name)); }

struct TextbookPart {
  std::string type;
  Parameters parameters;
  std::function<Motion(const Parameters&, const Vector& x, const Vector& u)> motion;
};

void PrintTo(const TextbookPart& part, std::ostream* out) { *out << part.type; }

Motion link(double k, double c, bool has_elongation, const Vector& x, const Vector& u) {
  const double stretching = u[1] - u[0];
  const double pull = k * (has_elongation ? x[0] : 0.0) + c * stretching;
  return {has_elongation ? Vector{stretching} : Vector{}, {-pull, pull}};
}

std::vector<TextbookPart> textbook() {
  return {
      {"mass",
       {{"mass_kg", 2.5}, {"damping_Ns_per_m", 0.3}, {"ports", 2}},
       [](const Parameters& p, const Vector& x, const Vector& u) {
         const double force = u[2] - u[0] - u[1] - of(p, "damping_Ns_per_m") * x[1];
         return Motion{{x[1], force / of(p, "mass_kg")}, {-x[1], -x[1], x[1]}};
       }},
      {"inertia",
       {{"inertia_kgm2", 0.4}, {"damping_Nms_per_rad", 0.2}},
       [](const Parameters& p, const Vector& x, const Vector& u) {
         const double torque = u[1] - u[0] - of(p, "damping_Nms_per_rad") * x[1];
         return Motion{{x[1], torque / of(p, "inertia_kgm2")}, {-x[1], x[1]}};
       }},
      {"spring",
       {{"stiffness_N_per_m", 30.0}},
       [](const Parameters& p, const Vector& x, const Vector& u) {
         return link(of(p, "stiffness_N_per_m"), 0.0, true, x, u);
       }},
      {"damper",
       {{"damping_Ns_per_m", 0.7}},
       [](const Parameters& p, const Vector& x, const Vector& u) {
         return link(0.0, of(p, "damping_Ns_per_m"), false, x, u);
       }},
      {"spring_damper",
       {{"stiffness_N_per_m", 30.0}, {"damping_Ns_per_m", 0.7}},
       [](const Parameters& p, const Vector& x, const Vector& u) {
         return link(of(p, "stiffness_N_per_m"), of(p, "damping_Ns_per_m"), true, x, u);
       }},
      {"torsional_spring",
       {{"stiffness_Nm_per_rad", 3.0}},
       [](const Parameters& p, const Vector& x, const Vector& u) {
         return link(of(p, "stiffness_Nm_per_rad"), 0.0, true, x, u);
       }},
      {"rotational_damper",
       {{"damping_Nms_per_rad", 0.9}},
       [](const Parameters& p, const Vector& x, const Vector& u) {
         return link(0.0, of(p, "damping_Nms_per_rad"), false, x, u);
       }},
      {"torsional_spring_damper",
       {{"stiffness_Nm_per_rad", 3.0}, {"damping_Nms_per_rad", 0.9}},
       [](const Parameters& p, const Vector& x, const Vector& u) {
         return link(of(p, "stiffness_Nm_per_rad"), of(p, "damping_Nms_per_rad"), true, x, u);
       }},
      {"resistor",
       {{"resistance_ohm", 4.0}},
       [](const Parameters& p, const Vector&, const Vector& u) {
         return Motion{{}, {of(p, "resistance_ohm") * u[0]}};
       }},
      {"resistor",
       {{"resistance_ohm", 4.0}, {"gives", std::string("current")}},
       [](const Parameters& p, const Vector&, const Vector& u) {
         return Motion{{}, {u[0] / of(p, "resistance_ohm")}};
       }},
      {"inductor",
       {{"inductance_H", 0.3}, {"resistance_ohm", 1.5}},
       [](const Parameters& p, const Vector& x, const Vector& u) {
         return Motion{{(u[0] - of(p, "resistance_ohm") * x[0]) / of(p, "inductance_H")}, {x[0]}};
       }},
      {"capacitor",
       {{"capacitance_F", 0.2}, {"leakage_S", 0.05}},
       [](const Parameters& p, const Vector& x, const Vector& u) {
         return Motion{{(u[0] - of(p, "leakage_S") * x[0]) / of(p, "capacitance_F")}, {x[0]}};
       }},
      {"dc_motor",
       {{"inductance_H", 0.3},
        {"resistance_ohm", 1.5},
        {"motor_constant_Vs_per_rad", 0.25},
        {"inertia_kgm2", 0.4},
        {"damping_Nms_per_rad", 0.2}},
       [](const Parameters& p, const Vector& x, const Vector& u) {
         const double k = of(p, "motor_constant_Vs_per_rad");
         const double voltage = u[0] - of(p, "resistance_ohm") * x[0] - k * x[2];
         const double torque = k * x[0] - of(p, "damping_Nms_per_rad") * x[2] - u[1];
         return Motion{{voltage / of(p, "inductance_H"), x[2], torque / of(p, "inertia_kgm2")},
                       {x[0], -x[2]}};
       }},
      {"gear",
       {{"ratio", -3.0}, {"damping_Nms_per_rad", 0.2}},
       [](const Parameters& p, const Vector&, const Vector& u) {
         const double n = of(p, "ratio");
         return Motion{{}, {u[1] / n + of(p, "damping_Nms_per_rad") * u[0], -u[0] / n}};
       }},
      {"lever",
       {{"ratio", 2.5}},
       [](const Parameters& p, const Vector&, const Vector& u) {
         return Motion{{}, {u[1] / of(p, "ratio"), -u[0] / of(p, "ratio")}};
       }},
      {"rack_and_pinion",
       {{"radius_m", 0.04}},
       [](const Parameters& p, const Vector&, const Vector& u) {
         return Motion{{}, {of(p, "radius_m") * u[1], -of(p, "radius_m") * u[0]}};
       }},
      {"electrical_transformer",
       {{"ratio", 10.0}},
       [](const Parameters& p, const Vector&, const Vector& u) {
         return Motion{{}, {-u[1] / of(p, "ratio"), u[0] / of(p, "ratio")}};
       }},
      {"flexible_joint",
       {{"motor_inertia_kgm2", 0.01},
        {"stiffness_Nm_per_rad", 30.0},
        {"damping_Nms_per_rad", 0.4},
        {"motor_damping_Nms_per_rad", 0.02},
        {"ratio", 4.0}},
       [](const Parameters& p, const Vector& x, const Vector& u) {
         const double n = of(p, "ratio"), twisting = u[1] - x[1] / n;
         const double elastic =
             of(p, "stiffness_Nm_per_rad") * x[2] + of(p, "damping_Nms_per_rad") * twisting;
         const double torque =
             u[2] - u[0] - of(p, "motor_damping_Nms_per_rad") * x[1] + elastic / n;
         return Motion{{x[1], torque / of(p, "motor_inertia_kgm2"), twisting},
                       {-x[1], elastic, x[1]}};
       }},
      {"tank",
       {{"area_m2", 0.5}, {"density_kg_per_m3", 800.0}, {"gravity_m_per_s2", 1.6}},
       [](const Parameters& p, const Vector& x, const Vector& u) {
         const double pressure = of(p, "density_kg_per_m3") * of(p, "gravity_m_per_s2") * x[0];
         return Motion{{(u[0] + u[1]) / of(p, "area_m2")}, {pressure, pressure}};
       }},
  };
}

/// The largest difference, relative to the largest entry of rate or output.
double difference(const Vector& expected, const Eigen::VectorXd& computed) {
  double worst = 0.0, size = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    worst = std::max(worst, std::abs(expected[i] - computed[static_cast<Eigen::Index>(i)]));
    size = std::max(size, std::abs(expected[i]));
  }
  return size == 0.0 ? worst : worst / size;
}

double defect(const TextbookPart& written, const Parameters& built, const Parameters& expected) {
  constexpr unsigned kSeed = 5;
  const auto component = make_part(written.type, built);
  const Subsystem& part = *component->port_hamiltonian();
  const Structure& s = part.structure();
  std::mt19937_64 random(kSeed);
  std::uniform_real_distribution<double> uniform(0.5, 1.5);
  double worst = 0.0;
  for (int draw = 0; draw < 10; ++draw) {
    Vector x(static_cast<std::size_t>(s.states())), u(static_cast<std::size_t>(s.inputs()));
    for (double& value : x) value = uniform(random);
    for (double& value : u) value = uniform(random);
    const Eigen::Map<const Eigen::VectorXd> inputs(u.data(), s.inputs());
    Eigen::VectorXd z(s.states());
    part.gradient(x.data(), z.data());
    const Motion motion = written.motion(expected, x, u);
    EXPECT_EQ(motion.rate.size(), x.size());
    EXPECT_EQ(motion.output.size(), u.size());
    worst = std::max({worst, difference(motion.rate, (s.J - s.R) * z + (s.G - s.P) * inputs),
                      difference(motion.output,
                                 SparseMatrix(s.G + s.P).transpose() * z + (s.S + s.N) * inputs)});
  }
  return worst;
}

class LumpedElement : public ::testing::TestWithParam<TextbookPart> {};

TEST_P(LumpedElement, MovesAsTheTextbookSaysInEveryUnit) {
  for (const double unit : {1e-9, 1.0, 1e9}) {
    Parameters parameters = GetParam().parameters;
    for (auto& [name, value] : parameters) {
      if (double* number = std::get_if<double>(&value)) *number *= unit;
    }
    EXPECT_LE(defect(GetParam(), parameters, parameters), 1e-14) << "unit " << unit;
  }
}

TEST_P(LumpedElement, NoticesEveryParameter) {
  for (const auto& [name, value] : GetParam().parameters) {
    Parameters other = GetParam().parameters;
    double* const number = std::get_if<double>(&other.at(name));
    if (number == nullptr) continue;
    *number *= 1.01;
    EXPECT_GT(defect(GetParam(), GetParam().parameters, other), 1e-6) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, LumpedElement, ::testing::ValuesIn(textbook()),
                         [](const auto& each) {
                           return each.param.type + std::to_string(each.index);
                         });

/// Whether u·y vanishes for every u, to the last bit of the matrices.
bool is_lossless(const Component& part) {
  const Structure& s = part.port_hamiltonian()->structure();
  const Eigen::MatrixXd through(s.S + s.N);
  return s.states() == 0 && through.squaredNorm() > 0.0 &&
         (through + through.transpose()).isZero(0.0);
}

TEST(LosslessElements, PassOnAllPower) {
  for (const double ratio : {-7.3e9, -0.1, 1.0 / 3.0, 4e-9}) {
    EXPECT_TRUE(is_lossless(*make_part("lever", {{"ratio", ratio}}))) << ratio;
    EXPECT_TRUE(is_lossless(*make_part("gear", {{"ratio", ratio}}))) << ratio;
    EXPECT_TRUE(is_lossless(*make_part("rack_and_pinion", {{"radius_m", ratio}}))) << ratio;
    EXPECT_TRUE(is_lossless(*make_part("electrical_transformer", {{"ratio", ratio}}))) << ratio;
  }
  for (const std::string type : {"effort_source", "flow_source"}) {
    for (const std::string& domain : find_part_type(type)->parameters[0].choices) {
      EXPECT_TRUE(is_lossless(*make_part(type, {{"domain", domain}}))) << type << " " << domain;
    }
  }
  EXPECT_FALSE(is_lossless(*make_part("gear", {{"ratio", 2.0}, {"damping_Nms_per_rad", 1e-9}})))
      << "control: friction takes power";
}

TEST(LosslessElements, RefuseARatioOfZero) {
  const auto text_of_zero = [](const std::string& type, const std::string& name) -> std::string {
    try {
      make_part(type, {{name, 0.0}});
    } catch (const ConfigError& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_EQ(text_of_zero("lever", "ratio"), "/ratio: must not be 0, got 0");
  EXPECT_EQ(text_of_zero("gear", "ratio"), "/ratio: must not be 0, got 0");
  EXPECT_EQ(text_of_zero("electrical_transformer", "ratio"), "/ratio: must not be 0, got 0");
  EXPECT_EQ(text_of_zero("rack_and_pinion", "radius_m"), "/radius_m: must not be 0, got 0");
}

TEST(Resistor, OfNoResistanceGivesNoCurrent) {
  EXPECT_NO_THROW(make_part("resistor", {{"resistance_ohm", 0.0}}));
  EXPECT_THROW(make_part("resistor", {{"resistance_ohm", 0.0}, {"gives", std::string("current")}}),
               ConfigError);
}

TEST(Mass, NumbersSeveralPorts) {
  const auto names = [](int ports) {
    std::vector<std::string> result;
    const auto part = make_part("mass", {{"mass_kg", 1.0}, {"ports", ports}});
    for (const Port& port : part->signature().ports) result.push_back(port.name);
    return result;
  };
  EXPECT_EQ(names(1), (std::vector<std::string>{"port"}));
  EXPECT_EQ(names(3), (std::vector<std::string>{"port_1", "port_2", "port_3"}));
}

// At rest 12 V = R i + k ω and k i = b ω + τ. With a small L the speed follows the voltage with the
// time constant J R/(R b + k²).
TEST(DcMotor, HasTheKnownSteadyStateAndTimeConstant) {
  const double R = 1.5, k = 0.25, b = 0.2, J = 0.4, L = 1e-7;
  const auto part = make_part("dc_motor", {{"inductance_H", L},
                                           {"resistance_ohm", R},
                                           {"motor_constant_Vs_per_rad", k},
                                           {"inertia_kgm2", J},
                                           {"damping_Nms_per_rad", b}});
  const Subsystem& motor = *part->port_hamiltonian();
  // The angle grows at rest, so the limit s → 0 is taken from outside.
  const Eigen::MatrixXd at_rest = testing::transfer_function(motor, 1e-9).real();
  const Eigen::Vector2d output = at_rest * Eigen::Vector2d(12.0, 0.7);
  const double speed = (k * 12.0 - R * 0.7) / (R * b + k * k);
  EXPECT_NEAR(-output[1], speed, 1e-6);
  EXPECT_NEAR(output[0], (12.0 - k * speed) / R, 1e-6);
  const Eigen::VectorXcd poles = testing::eigenvalues(motor);
  double slowest = -1e300;
  for (const std::complex<double>& pole : poles) {
    if (std::abs(pole) > 1e-9) slowest = std::max(slowest, pole.real());
  }
  EXPECT_NEAR(-1.0 / slowest, J * R / (R * b + k * k), 1e-5);
  EXPECT_GT(std::abs(-1.0 / slowest - J / b), 0.1) << "control: it is not that of the rotor alone";
}

}  // namespace
}  // namespace portwave::test_lumped_elements
