// Parts given by expressions: they keep the laws, agree with parts written by hand and with SciPy, and say what
// is wrong with what was written. Golden values by tests/tools/expression_parts_golden.py.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/catalogue/parts.hpp"
#include "portwave/subsystems/conformance/conformance.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"
#include "support/free_motion.hpp"
#include "support/lane_major.hpp"

namespace portwave::test_expression_part {
namespace {

using Numbers = std::vector<double>;
using Given = parts::PortHamiltonianParameters;

std::vector<Port> one_port(Domain domain) { return {{"port", Causality::effort_in, domain, 1}}; }

Given pendulum() {
  return {.states = {{"q", "rad"}, {"p", "kg m^2/s"}},
          .ports = one_port(Domain::rotation),
          .inputs = {{"torque", "N m"}},
          .constants = {{"m", 1.0}, {"l", 0.5}, {"g", 9.81}, {"c", 0.02}},
          .energy = "p^2/(2*m*l^2) + m*g*l*(1 - cos(q))",
          .J = {{0, 1}, {-1, 0}},
          .R = {{0, 0}, {0, "c"}},
          .G = {{0, 0}, {-1, 1}}};
}

Given double_well() {
  return {.states = {{"q", "m"}, {"p", "kg m/s"}},
          .ports = one_port(Domain::translation),
          .energy = "p^2/2 + (q^2 - 1)^2/4",
          .J = {{0, 1}, {-1, 0}},
          .R = {{0, 0}, {0, 0.1}},
          .G = {{0}, {-1}}};
}

/// An ideal motor whose winding has a current that grows faster than its flux.
Given motor() {
  return {.states = {{"flux", "Wb"}, {"L", "kg m^2/s"}},
          .ports = {{"terminals", Causality::effort_in, Domain::electrical, 1},
                    {"shaft", Causality::effort_in, Domain::rotation, 1}},
          .constants = {{"k", 0.3}, {"resistance", 0.8}, {"friction", 0.02}},
          .energy = "flux^2/(2*0.05) + 400*flux^4/4 + L^2/(2*0.01)",
          .J = {{0, "-k"}, {"k", 0}},
          .R = {{"resistance", 0}, {0, "friction"}},
          .G = {{1, 0}, {0, -1}},
          .typical_state = {0.05, 0.02}};
}

/// Euler's equations, in the angular momenta.
Given body() {
  return {.states = {{"L1", "kg m^2/s"}, {"L2", "kg m^2/s"}, {"L3", "kg m^2/s"}},
          .ports = {{"torque", Causality::effort_in, Domain::rotation, 3}},
          .energy = "L1^2/(2*1) + L2^2/(2*1.5) + L3^2/(2*2)",
          .J = {{0, "-L3", "L2"}, {"L3", 0, "-L1"}, {"-L2", "L1", 0}},
          .G = {{-1, 0, 0}, {0, -1, 0}, {0, 0, -1}}};
}

Given toda() {
  Given given = double_well();
  given.energy = "p^2/2 + exp(q) - q - 1";
  given.R = {};
  return given;
}

/// Two bent states, with forces of both; an external force, and a friction between input and state.
Given plane(const std::string& potential) {
  return {.states = {{"q1", "m"}, {"q2", "m"}, {"p1", "kg m/s"}, {"p2", "kg m/s"}},
          .ports = {{"force", Causality::effort_in, Domain::translation, 2}},
          .inputs = {{"wind", "N"}},
          .energy = "p1^2/2 + p2^2/3 + " + potential,
          .J = {{0, 0, 1, 0}, {0, 0, 0, 1}, {-1, 0, 0, 0}, {0, -1, 0, 0}},
          .R = {{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0.2, 0}, {0, 0, 0, 0}},
          .G = {{0, 0, 0}, {0, 0, 0}, {-1, 0, 0.5}, {0, -1, 1}}};
}
Given henon_heiles() { return plane("q1^2/2 + q2^2/2 + q1^2*q2 - q2^3/3 + (q1^2 + q2^2)^2/4"); }
Given twin_pendulum() {
  return plane("3*(1 - cos(q1)) + 2*(1 - cos(q1 - q2)) + exp(0.3*q2) - 0.3*q2 - 1");
}

/// A spring that hardens, with a damper that works harder where it is stretched, and feedthrough.
Given hardening_spring() {
  return {.states = {{"q", "m"}, {"p", "kg m/s"}},
          .ports = {{"end", Causality::flow_in, Domain::translation, 1}},
          .constants = {{"k", 20.0}, {"a", 0.3}, {"d", 0.5}},
          .energy = "p^2/(2*0.7) + k*a^2*(sqrt(1 + (q/a)^2) - 1) + k*q^4",
          .J = {{0, 1}, {-1, 0}},
          .R = {{0, 0}, {0, "d*(1 + q^2)"}},
          .G = {{1}, {0}},
          .P = {{0}, {"-d/2"}},
          .S = {{"d"}}};
}

Given diode_like() {
  return {.states = {},
          .ports = one_port(Domain::electrical),
          .constants = {{"i0", 1e-3}, {"v", 0.05}},
          .characteristics = {"i0*(exp(u/v) - 1)"},
          .characteristic_range = 0.8};
}

Given resistor() { return {.states = {}, .ports = one_port(Domain::electrical), .S = {{"1/4.7"}}}; }

/// A mass with a friction at its port, beside a linear part that feeds through.
Given with_law() {
  Given given = double_well();
  given.characteristics = {"0.2*u + 0.1*tanh(u/0.3)"};
  return given;
}

std::shared_ptr<const Component> built(const Given& given) {
  return parts::port_hamiltonian(given).build();
}

struct Case {
  const char* name;
  Given given;
  bool turns = false;
};

std::vector<Case> cases() {
  return {{"pendulum", pendulum(), true},
          {"double_well", double_well()},
          {"motor", motor()},
          {"body", body(), true},
          {"toda", toda()},
          {"hardening_spring", hardening_spring()},
          {"diode_like", diode_like()},
          {"resistor", resistor()},
          {"with_law", with_law()},
          {"henon_heiles", henon_heiles()},
          {"twin_pendulum", twin_pendulum(), true},
          {"falling", plane("9.81*q1")},
          {"saddle", plane("q1^2 - q2^2 + q1*q2")}};
}

TEST(ExpressionPart, KeepsEveryLaw) {
  for (const Case& each : cases()) {
    const auto part = built(each.given);
    ConformanceOptions options;
    options.steps_s = {1e-6, 1e-4, 1e-2, 1e-1};
    if (!each.turns) options.steps_s.push_back(1.0);
    for (const std::uint64_t seed : {1u, 2u}) {
      options.seed = seed;
      for (const LawReport& report : check_all(*part->port_hamiltonian(), options)) {
        EXPECT_TRUE(report.holds) << each.name << " breaks " << report.law << " by " << report.worst
                                  << ": " << report.detail;
      }
    }
  }
}

TEST(ExpressionPartControl, AnActivePartBreaksTheLawOfEnergy) {
  Given given = double_well();
  given.R = {{0, 0}, {0, "-0.1*(1 + q^2)"}};
  given.allow_active = true;
  const auto part = built(given);
  testing::LaneMajor map = testing::batch_of_one(*part);
  const double gamma = 1.0, a = 0.0;
  map.prepare(0.1, &gamma);
  Numbers x = {0.5, 1.0}, next(2);
  double b = 0.0;
  StepEnergy energy;
  map.freeze({0, 1}, x.data(), nullptr);
  ASSERT_TRUE(map.advance({0, 1}, &a, next.data(), &b, &energy).ok());
  EXPECT_LT(energy.dissipated_J, -1e-3);
}

/// The largest |H(x⁺) − H(x) − work + dissipation| beside the energies, over 40 steps of some waves.
double imbalance(const Given& given, int stages, double step_s, Numbers x, double offset_J = 0.0) {
  std::shared_ptr<const Component> part = built(given);
  const std::shared_ptr<const Component> own = part;
  if (stages > 1) part = staged_part(part, stages);
  testing::LaneMajor map = testing::batch_of_one(*part);
  const auto ports = static_cast<std::size_t>(part->signature().wave_size());
  const Numbers gamma(ports, 0.8);
  map.prepare(step_s, gamma.data());
  Numbers next(x.size()), a(ports), b(ports);
  double worst = 0.0;
  for (int n = 0; n < 40; ++n) {
    for (std::size_t j = 0; j < ports; ++j) a[j] = 0.5 * std::sin(n + 2.0 * static_cast<double>(j));
    map.freeze({0, 1}, x.data(), nullptr);
    StepEnergy energy;
    EXPECT_TRUE(map.advance({0, 1}, a.data(), next.data(), b.data(), &energy).ok());
    double work = 0.0;
    for (std::size_t j = 0; j < ports; ++j) work += 0.5 * (a[j] * a[j] - b[j] * b[j]);
    const double before = own->port_hamiltonian()->storage(x.data());
    const double after = own->port_hamiltonian()->storage(next.data());
    const double size = std::abs(before) + std::abs(after) + std::abs(work) + 1e-3;
    const double left = after - before - work + energy.dissipated_J + offset_J;
    worst = std::max(worst, std::abs(left) / size);
    x = next;
  }
  return worst;
}

TEST(ExpressionPart, BalancesItsEnergyFarFromRest) {
  EXPECT_LT(imbalance(pendulum(), 1, 0.05, {3.0, 4.0}), 1e-13);
  EXPECT_LT(imbalance(double_well(), 1, 0.2, {3.0, -5.0}), 1e-13);
  EXPECT_LT(imbalance(motor(), 1, 0.01, {0.3, 0.1}), 1e-13);
  EXPECT_LT(imbalance(body(), 1, 0.1, {3.0, 4.5, -2.0}), 1e-13);
  EXPECT_LT(imbalance(toda(), 1, 0.1, {3.0, -1.0}), 1e-13);
  EXPECT_LT(imbalance(hardening_spring(), 1, 0.05, {1.0, -3.0}), 1e-13);
  EXPECT_LT(imbalance(with_law(), 1, 0.2, {3.0, -5.0}), 1e-13);
  EXPECT_LT(imbalance(henon_heiles(), 1, 0.1, {1.0, -1.5, 0.4, 2.0}), 1e-13);
  EXPECT_LT(imbalance(twin_pendulum(), 1, 0.1, {3.0, -1.5, 0.4, 2.0}), 1e-13);
  // Integrals of polynomials are exact with more stages too.
  for (const int stages : {2, 3}) {
    EXPECT_LT(imbalance(double_well(), stages, 0.2, {3.0, -5.0}), 1e-12) << stages;
    EXPECT_LT(imbalance(motor(), stages, 0.01, {0.3, 0.1}), 1e-12) << stages;
  }
}

/// ∇²H does not show where these bend.
TEST(ExpressionPart, BalancesItsEnergyOverKinks) {
  Given given = double_well();
  for (const char* potential :
       {"abs(q)", "max(q, 0) + max(-2*q, 0)", "if(q < 0.3, -0.5*q, q - 0.45)",
        "20*max(q - 0.4, 0)^2 + 30*min(q + 0.2, 0)^2"}) {
    given.energy = std::string("p^2/2 + ") + potential;
    EXPECT_LT(imbalance(given, 1, 0.2, {0.9, -2.0}), 1e-12) << potential;
    EXPECT_LT(imbalance(given, 1, 0.01, {0.05, -2.0}), 1e-13) << potential;
  }
  EXPECT_LT(imbalance(plane("abs(q1 - q2) + q1^2/2 + q2^2/2"), 1, 0.1, {0.3, -0.5, 1.0, 2.0}),
            1e-13);
}

TEST(ExpressionPartControl, AnEnergyThatIsNotBalancedIsNoticed) {
  EXPECT_GT(imbalance(double_well(), 1, 0.2, {3.0, -5.0}, 1e-8), 1e-11);
}

double distance(const Numbers& a, const Numbers& b) {
  double worst = a.size() == b.size() ? 0.0 : INFINITY;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    worst = std::max(worst, std::abs(a[i] - b[i]));
  }
  return worst;
}

/// The distance from what SciPy found, with steps of three stages.
double error(const Given& given, double time_s, int steps, const Numbers& start,
             const Numbers& golden, int stages = 3) {
  return distance(testing::move_freely(built(given), stages, time_s / steps, steps, start), golden);
}

TEST(ExpressionPart, MovesAsSciPySays) {
  EXPECT_LT(error(pendulum(), 2.0, 400, {2.8, 0.0}, {0.803159148200627, 1.86571076092167}), 1e-10);
  EXPECT_LT(error(double_well(), 3.0, 200, {1.5, 0.2}, {-0.0959859099627317, -0.356633375078109}),
            1e-11);
  EXPECT_LT(error(motor(), 0.2, 400, {0.1, 0.02}, {-0.0242427910191091, 0.00547815047377487}),
            1e-11);
  EXPECT_LT(error(body(), 5.0, 400, {0.01, 4.5, 0.04},
                  {-1.63341666215578, 3.49944996011881, 2.31030300705692}),
            1e-10);
  EXPECT_LT(error(toda(), 4.0, 400, {2.0, -1.0}, {-5.85083914885122, -0.265855098019204}), 1e-10);
}

TEST(ExpressionPartControl, SciPyNoticesOtherNumbersAndLongSteps) {
  Given other = pendulum();
  other.constants[2].value = 9.8101;
  EXPECT_GT(error(other, 2.0, 400, {2.8, 0.0}, {0.803159148200627, 1.86571076092167}), 1e-6);
  EXPECT_GT(error(pendulum(), 2.0, 400, {2.8, 0.0}, {0.803159148200627, 1.86571076092167}, 1),
            1e-6);
}

/// The largest difference of states and waves over 30 steps under the same waves and inputs.
double difference(const Component& one, const Component& other, Numbers x, int stages,
                  double damping = 0.0) {
  Numbers y = x;
  const auto lifted = [&](const Component& part) {
    const std::shared_ptr<const Component> alias(std::shared_ptr<const Component>(), &part);
    return stages == 1 && damping == 0.0 ? alias : staged_part(alias, stages);
  };
  const auto first = lifted(one), second = lifted(other);
  testing::LaneMajor a_map = testing::batch_of_one(*first), b_map = testing::batch_of_one(*second);
  const auto ports = static_cast<std::size_t>(first->signature().wave_size());
  const auto inputs = static_cast<std::size_t>(first->signature().input_size());
  const Numbers gamma(ports, 1.7);
  a_map.prepare(0.05, gamma.data());
  b_map.prepare(0.05, gamma.data());
  Numbers x_next(x.size()), y_next(x.size()), a(ports), b(ports), c(ports), u(inputs);
  double worst = 0.0;
  for (int n = 0; n < 30; ++n) {
    for (std::size_t j = 0; j < ports; ++j) a[j] = 0.8 * std::cos(0.3 * n + static_cast<double>(j));
    for (std::size_t j = 0; j < inputs; ++j) u[j] = 0.4 * std::sin(0.2 * n);
    a_map.freeze({0, 1}, x.data(), u.data());
    b_map.freeze({0, 1}, y.data(), u.data());
    EXPECT_TRUE(a_map.advance({0, 1}, a.data(), x_next.data(), b.data(), nullptr).ok());
    EXPECT_TRUE(b_map.advance({0, 1}, a.data(), y_next.data(), c.data(), nullptr).ok());
    worst = std::max({worst, distance(b, c), distance(x_next, y_next)});
    x = x_next;
    y = y_next;
  }
  return worst;
}

Given duffing(double cubic) {
  return {.states = {{"q1", "m"}, {"v1", "m/s"}, {"delta", "m"}},
          .ports = {{"coupling", Causality::flow_in, Domain::translation, 1}},
          .inputs = {{"force", "N"}},
          .constants = {{"m", 0.8}, {"k", 3.0}, {"a", cubic}, {"c", 0.2}, {"kc", 2.0}, {"d", 0.3}},
          .energy = "m*v1^2/2 + k*q1^2/2 + a*q1^4/4 + kc*delta^2/2",
          .J = {{0, "1/m", 0}, {"-1/m", 0, "1/m"}, {0, "-1/m", 0}},
          .R = {{0, 0, 0}, {0, "(c + d)/m^2", 0}, {0, 0, 0}},
          .G = {{0, 0}, {0, "1/m"}, {1, 0}},
          .P = {{0, 0}, {"-d/m", 0}, {0, 0}},
          .S = {{"d", 0}, {0, 0}}};
}

/// A part with a bent state, whose other entries are numbers that differ.
Given of_size(int states, int ports) {
  Given given;
  given.energy = "x0^4/4";
  for (int i = 0; i < states; ++i) {
    const std::string x = "x" + std::to_string(i);
    given.states.push_back({x, "m"});
    given.energy += " + " + std::to_string(1.0 + 0.1 * i) + "*" + x + "^2/2";
  }
  for (int j = 0; j < ports; ++j) {
    given.ports.push_back({"p" + std::to_string(j), Causality::effort_in, Domain::translation, 1});
  }
  std::vector<std::vector<std::string>> J(at(states)), R(at(states)), G(at(states));
  for (int i = 0; i < states; ++i) {
    for (int k = 0; k < states; ++k) {
      J[at(i)].push_back(k == i ? "0" : k < i ? "-0.3" : "0.3");
      R[at(i)].push_back(k == i ? std::to_string(0.1 + 0.01 * i) : "0");
    }
    for (int j = 0; j < ports; ++j) {
      G[at(i)].push_back(std::to_string(0.1 * ((3 * i + 5 * j) % 7 - 3)));
    }
  }
  given.J = J;
  given.R = R;
  if (ports > 0) given.G = G;
  return given;
}

/// Kernels know some sizes when they are compiled; all have the bits of one part alone.
TEST(ExpressionPart, LanesHaveTheBitsOfOnePartWhateverTheSize) {
  constexpr int kMostStates = 7, kMostPorts = 8;
  for (int states = 1; states <= kMostStates; ++states) {
    for (int ports = 0; ports <= kMostPorts; ++ports) {
      const auto part = built(of_size(states, ports));
      for (const int lanes : {2, 9}) {
        const std::vector<const Component*> equal(at(lanes), part.get());
        testing::LaneMajor all(part->make_batch(equal));
        testing::LaneMajor one = testing::batch_of_one(*part);
        const Numbers gamma(at(lanes * ports), 1.7);
        all.prepare(0.05, gamma.data());
        one.prepare(0.05, gamma.data());
        Numbers x(at(states)), a(at(ports)), x_next(at(states)), b(at(ports));
        for (int i = 0; i < states; ++i) x[at(i)] = 0.7 - 0.2 * i;
        for (int j = 0; j < ports; ++j) a[at(j)] = 0.3 * j - 0.5;
        Numbers xs, as, xs_next(at(lanes * states)), bs(at(lanes * ports));
        for (int l = 0; l < lanes; ++l) {
          xs.insert(xs.end(), x.begin(), x.end());
          as.insert(as.end(), a.begin(), a.end());
        }
        all.freeze({0, lanes}, xs.data(), nullptr);
        one.freeze({0, 1}, x.data(), nullptr);
        ASSERT_TRUE(all.advance({0, lanes}, as.data(), xs_next.data(), bs.data(), nullptr).ok());
        ASSERT_TRUE(one.advance({0, 1}, a.data(), x_next.data(), b.data(), nullptr).ok());
        for (int l = 0; l < lanes; ++l) {
          for (int i = 0; i < states; ++i) {
            EXPECT_EQ(xs_next[at(l * states + i)], x_next[at(i)]) << states << " x " << ports;
          }
          for (int j = 0; j < ports; ++j) {
            EXPECT_EQ(bs[at(l * ports + j)], b[at(j)]) << states << " x " << ports;
          }
        }
      }
    }
  }
}

TEST(ExpressionPart, IsTheDuffingOscillatorWrittenByHand) {
  const auto by_hand = parts::duffing_oscillator({.mass_kg = 0.8,
                                                  .stiffness_N_per_m = 3.0,
                                                  .cubic_stiffness_N_per_m3 = 5.0,
                                                  .damping_Ns_per_m = 0.2,
                                                  .coupling_stiffness_N_per_m = 2.0,
                                                  .coupling_damping_Ns_per_m = 0.3})
                           .build();
  for (const int stages : {1, 2, 3}) {
    EXPECT_LT(difference(*built(duffing(5.0)), *by_hand, {1.2, -0.7, 0.3}, stages), 1e-12)
        << stages;
  }
  EXPECT_GT(difference(*built(duffing(5.001)), *by_hand, {1.2, -0.7, 0.3}, 1), 1e-6) << "control";
}

TEST(ExpressionPart, IsThePendulumWrittenByHandUpToTheirDiscreteGradients) {
  const auto by_hand =
      parts::pendulum({.mass_kg = 1.0, .length_m = 0.5, .damping_Nms_per_rad = 0.02}).build();
  // Of one unknown angle both discrete gradients are second order; three stages agree to round-off.
  EXPECT_LT(difference(*built(pendulum()), *by_hand, {1.0, 0.2}, 3), 1e-9);
}

TEST(ExpressionPart, IsLinearWhereItsEnergyIsQuadratic) {
  Given given = pendulum();
  given.energy = "p^2/(2*m*l^2) + m*g*l*q^2/2";
  EXPECT_TRUE(built(given)->port_hamiltonian()->is_linear());
  EXPECT_TRUE(built(resistor())->port_hamiltonian()->is_linear());
  for (const char* const energy : {"p^2 + q^2 + q", "p^2 + q^2 + 1", "p^2 - q^2", "p^2 + q^3"}) {
    given.energy = energy;
    EXPECT_FALSE(built(given)->port_hamiltonian()->is_linear()) << energy;
  }
  given = pendulum();
  given.energy = "p^2 + q^2";
  given.R = {{0, 0}, {0, "q^2"}};
  EXPECT_FALSE(built(given)->port_hamiltonian()->is_linear()) << "its structure moves";
}

TEST(ExpressionPart, KnowsWhereItsStructureAndItsHessianChange) {
  const auto part = built(hardening_spring());
  EXPECT_FALSE(part->port_hamiltonian()->constant_structure());
  EXPECT_TRUE(part->port_hamiltonian()->structure_depends_on(0));
  EXPECT_FALSE(part->port_hamiltonian()->structure_depends_on(1));
  EXPECT_TRUE(built(pendulum())->port_hamiltonian()->constant_structure());
  EXPECT_TRUE(built(pendulum())->port_hamiltonian()->is_smooth());
  Given contact = double_well();
  contact.energy = "p^2/2 + if(q > 1, (q - 1)^2, 0)";
  EXPECT_FALSE(built(contact)->port_hamiltonian()->is_smooth());
}

TEST(ExpressionPart, ACharacteristicGoesOnAsAStraightLine) {
  const auto part = built(diode_like());
  const Subsystem& physics = *part->port_hamiltonian();
  const PortLawValue end = physics.port_law(0, 0.8), beyond = physics.port_law(0, 2.8);
  EXPECT_NEAR(end.value, 1e-3 * (std::exp(16.0) - 1.0), 1e-9);
  EXPECT_NEAR(beyond.value, end.value + 2.0 * end.slope, 1e-12 * beyond.value);
  EXPECT_EQ(beyond.slope, end.slope);
}

Issues issues_of(const Given& given) {
  try {
    (void)built(given);
  } catch (const ConfigError& error) {
    return error.issues();
  }
  return {};
}

std::string text_of(const Issues& issues) {
  std::string text;
  for (const Issue& issue : issues) text += issue.where + ": " + issue.what + "\n";
  return text;
}

/// ∇̄H of Gonzalez and of Itoh and Abe, written out for H(q, p).
Numbers by_definition(const Subsystem& part, const std::string& kind, const Numbers& x,
                      const Numbers& y) {
  const auto H = [&](double q, double p) {
    const double at[] = {q, p};
    return part.storage(at);
  };
  if (kind == "itoh_abe") {
    return {(H(y[0], x[1]) - H(x[0], x[1])) / (y[0] - x[0]),
            (H(y[0], y[1]) - H(y[0], x[1])) / (y[1] - x[1])};
  }
  const double middle[] = {0.5 * (x[0] + y[0]), 0.5 * (x[1] + y[1])};
  const double moved[] = {y[0] - x[0], y[1] - x[1]};
  Numbers g(2);
  part.gradient(middle, g.data());
  const double missing = H(y[0], y[1]) - H(x[0], x[1]) - g[0] * moved[0] - g[1] * moved[1];
  const double square = moved[0] * moved[0] + moved[1] * moved[1];
  return {g[0] + missing / square * moved[0], g[1] + missing / square * moved[1]};
}

TEST(ExpressionPart, TakesTheDiscreteGradientThatIsAskedFor) {
  // Also where H is quadratic, which is a linear part else.
  Given coupled = double_well();
  coupled.energy = "p^2/2 + q^2 + q*p/2";
  const Numbers x = {0.4, -0.7}, y = {0.9, 0.5};
  for (Given given : {pendulum(), double_well(), toda(), coupled}) {
    given.discrete_gradient = "mean_value";
    const auto usual = built(given);
    for (const std::string kind : {"gonzalez", "itoh_abe"}) {
      given.discrete_gradient = kind;
      const auto part = built(given);
      const Subsystem& own = *part->port_hamiltonian();
      Numbers g(2), mean(2);
      own.discrete_gradient(x.data(), y.data(), g.data());
      usual->port_hamiltonian()->discrete_gradient(x.data(), y.data(), mean.data());
      const Numbers right = by_definition(own, kind, x, y);
      for (int i = 0; i < 2; ++i) EXPECT_NEAR(g[i], right[i], 1e-13) << given.energy << " " << kind;
      // Gonzalez' is the mean where H is quadratic, Itoh and Abe's where it is a sum over states.
      const bool is_mean = (given.energy == coupled.energy) == (kind == "gonzalez");
      EXPECT_EQ(std::abs(g[0] - mean[0]) < 1e-6, is_mean) << given.energy << " " << kind;
      ConformanceOptions options;
      options.steps_s = {1e-4, 1e-2};
      for (const LawReport& law :
           {check_discrete_gradient(own, options), check_discrete_gradient_jacobian(own, options),
            check_energy_law(own, options), check_rollback(*part, options)}) {
        EXPECT_TRUE(law.holds) << given.energy << " " << kind << ": " << law.law << ": "
                               << law.detail;
      }
    }
  }
}

TEST(ExpressionPart, SaysWhichStateToStartFrom) {
  Given given = double_well();
  given.energy = "p^2/2 + q*log(q) - q";
  given.J = {{0, "1/q"}, {"-1/q", 0}};
  const std::string text = text_of(issues_of(given));
  for (const char* const said :
       {"/energy: \"port_hamiltonian\": H is not finite at the default state q = 0, p = 0: set "
        "\"default_state\" to states where it is",
        "is not finite at the default state: set \"default_state\" to states where it is"}) {
    EXPECT_NE(text.find(said), std::string::npos) << said << "\nin\n" << text;
  }
  given.default_state = {1.0, 0.0};
  EXPECT_EQ(text_of(issues_of(given)), "");
}

TEST(ExpressionPart, TellsEverythingThatIsWrongAtOnce) {
  Given given = pendulum();
  given.states.push_back({"sin", ""});
  given.constants.push_back({"q", 2.0});
  given.energy = "p^2/(2*mm)";
  given.J = {{0, "1 +"}, {-1, 0}};
  given.R = {{0, 0, 0}, {0, "c*", 0}, {0, 0, "w"}};
  given.characteristics = {"u^2", "u"};
  const std::string text = text_of(issues_of(given));
  for (const char* const said :
       {"/states/2/name: \"sin\" has a meaning", "/constants/q: the name \"q\" is already taken",
        "/energy: in the expression \"p^2/(2*mm)\", column 8: there is no \"mm\"",
        "/J: must be 3×3, got 2×2", "/J/0/1: in the expression \"1 +\", column 4",
        "/R/1/1: in the expression \"c*\", column 3", "/R/2/2: in the expression \"w\", column 1",
        "/G: must be 3×2, got 2×2",
        "/characteristics: must have one expression for each of the 1"}) {
    EXPECT_NE(text.find(said), std::string::npos) << said << "\nin\n" << text;
  }
}

TEST(ExpressionPart, TellsWhatIsNotPassiveOrNotSkew) {
  Given given = double_well();
  given.J = {{0, "1 + p"}, {"-1 - q", 0}};
  EXPECT_NE(text_of(issues_of(given)).find("/J/0/1: must be the opposite of (1,0); at "),
            std::string::npos)
      << text_of(issues_of(given));
  given = double_well();
  given.R = {{"q", 0}, {0, 0}};
  EXPECT_NE(text_of(issues_of(given))
                .find("/R: \"port_hamiltonian\": [R P; P^T S] is not positive semidefinite"),
            std::string::npos)
      << text_of(issues_of(given));
  given = double_well();
  given.energy = "log(q) + p^2";
  EXPECT_NE(text_of(issues_of(given)).find("/energy: "), std::string::npos);
  given.default_state = {1.0, 0.0};
  EXPECT_EQ(text_of(issues_of(given)), "");
  given = diode_like();
  given.characteristics = {"u^2"};
  EXPECT_NE(
      text_of(issues_of(given)).find("/characteristics/0: the characteristic \"u^2\" must not"),
      std::string::npos);
  given.characteristics = {"u + 1"};
  EXPECT_NE(text_of(issues_of(given)).find("must be 0 at u = 0, got 1"), std::string::npos);
}

}  // namespace
}  // namespace portwave::test_expression_part
