// The passivity certificate: round-off of sound parts is no violation, however the energies of a
// run compare, and energy from nowhere is one, however much energy stands elsewhere.

#include <algorithm>
#include <cmath>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "support/systems/systems.hpp"

namespace portwave::test_certificate {
namespace {

StepperOptions options(double h, double gamma, int iterations) {
  StepperOptions o{.method = WaveCoupling{}};
  o.step_s = h;
  o.method.waves().impedance = {gamma};
  o.method.waves().iterations = iterations;
  return o;
}

/// H₀ + T₀ = 0, and a force that supplies all there is.
System driven_from_rest(const LinearOscillatorParameters& parameters, double force_N) {
  SystemBuilder builder;
  builder.add("B", linear_oscillator(parameters),
              {.initial_state = {}, .inputs = {{"force", Signal::constant(force_N)}}});
  builder.join(joint::Free{}, {"B.coupling"});
  return builder.build();
}

TEST(Certificate, HoldsForAPassivePartDrivenFromRest) {
  const System system = driven_from_rest({.mass_kg = 1000, .stiffness_N_per_m = 50}, 100.0);
  for (const int iterations : {0, 5, 20}) {
    Stepper stepper(system, options(1e-3, 0.4, iterations));
    stepper.step(20000);
    EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds)
        << "K=" << iterations << " r=" << stepper.certificate().max_passivity_residual_J
        << " in step " << stepper.certificate().worst_passivity_step;
    EXPECT_GT(stepper.energy().supplied_J, 1.0);
  }
}

/// Two wagons on one stiff spring, rolling freely: the spring's energy is the difference of terms
/// that grow with the distance from the origin.
System rolling_wagons(ChainEnd right_end) {
  SystemBuilder builder;
  std::vector<double> x = {0, 10, 0, 10};
  if (right_end == ChainEnd::spring) x.push_back(0);
  builder.add("wagons",
              mass_spring_damper_chain({.masses = 2,
                                        .mass_kg = 1000,
                                        .stiffness_N_per_m = 1e6,
                                        .coupling_stiffness_N_per_m = 0,
                                        .right_end = right_end}),
              {.initial_state = x});
  builder.join(joint::Free{}, {"wagons.left"});
  if (right_end == ChainEnd::spring) {
    builder.join(joint::Fixed{}, {"wagons.right"});  // a spring without stiffness to a wall
  } else {
    builder.join(joint::Free{}, {"wagons.right"});
  }
  return builder.build();
}

TEST(Certificate, HoldsForWagonsThatRollFarFromTheOrigin) {
  for (const ChainEnd right_end : {ChainEnd::mass, ChainEnd::spring}) {
    const System system = rolling_wagons(right_end);
    Stepper stepper(system, options(0.01, 0.4, 5));
    stepper.step(10000);
    EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds)
        << "spring end=" << (right_end == ChainEnd::spring)
        << " r=" << stepper.certificate().max_passivity_residual_J << " in step "
        << stepper.certificate().worst_passivity_step;
    EXPECT_NEAR(stepper.state(0)[0], 1000.0, 0.01);
  }
}

/// Energies whose terms are a thousand times what moves, at rest: H is known to the rounding of its terms, which is neither
/// energy from nowhere nor an error for which steps become shorter.
TEST(Certificate, HoldsWhereTheTermsOfAnEnergyCancel) {
  const Scenario own = parse_scenario(R"json({"name": "rest",
    "time": {"end_s": 4.664986850702229, "step": {"kind": "adaptive", "tolerance": 1e-5}},
    "subsystems": [
      {"name": "a", "type": "port_hamiltonian", "parameters": {
        "states": ["x0", "x1"], "ports": [{"name": "p", "causality": "effort_in"}],
        "energy": "0.1001857*(exp(x0) - x0 - 1) + 2889.94*(sqrt(1 + x1^2) - 1)",
        "J": [["0", "10"], ["-10", "0"]], "R": [["0.3*if(x1 > 0.2, 1, 0.01)", "0"], ["0", "0.3"]],
        "G": [["0"], ["1"]], "default_state": [-1, -1]}, "initial_state": [-1, -1]},
      {"name": "r", "type": "port_hamiltonian", "parameters": {
        "states": [], "ports": [{"name": "p", "causality": "flow_in"}],
        "characteristics": ["u + u^3"], "characteristic_range": 10000}}],
    "couplings": [{"kind": "connection", "ports": ["a.p", "r.p"]}],
    "method": {"kind": "auto", "stages": 2}})json",
                                      "rest.json", ".");
  Stepper stepper(own.system, own.options);
  while (stepper.step_if_before(own.end_s) && stepper.step_index() < 1000) {
  }
  EXPECT_EQ(stepper.time_s(), own.end_s);
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
}

TEST(CertificateControl, CatchesAnActiveDamperDrivenFromRest) {
  const auto status = [](double c) {
    const System system = driven_from_rest(
        {.mass_kg = 1000, .stiffness_N_per_m = 50, .damping_Ns_per_m = c, .allow_active = true},
        100.0);
    Stepper stepper(system, options(1e-3, 0.4, 5));
    stepper.step(100);
    return stepper.certificate().status;
  };
  EXPECT_EQ(status(-1.0), CertificateStatus::violated);
  EXPECT_EQ(status(-1e-3), CertificateStatus::violated);
  EXPECT_EQ(status(0.0), CertificateStatus::holds);
  EXPECT_EQ(status(1.0), CertificateStatus::holds);
}

// Islands stop on their own: what Theorem 1 says of two of them together is what it says of each by itself,
// added up, also where one took more iterations.
TEST(Certificate, JudgesIslandsByTheirOwnIterations) {
  const auto residual = [](bool soft, bool stiff, int& iterations) {
    SystemBuilder builder;
    const auto pair = [&](const std::string& name, double stiffness, double second) {
      builder.add(name + "1", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = stiffness}),
                  {.initial_state = {1, 0}});
      builder.add(name + "2", linear_oscillator({.mass_kg = second, .stiffness_N_per_m = 1}));
      builder.connect(name + "1.coupling", name + "2.coupling");
    };
    if (soft) pair("soft", 1.0, 1.0);
    if (stiff) pair("stiff", 40.0, 30.0);
    const System system = builder.build();
    StepperOptions o = options(0.05, 20.0, 200);
    o.method.waves().tolerance = 1e-3;
    o.method.waves().guard = false;
    o.certify = Certify::full;
    Stepper stepper(system, o);
    iterations = stepper.step().iterations;
    return stepper.certificate().max_augmented_residual_J.value();
  };
  int first = 0, second = 0, both = 0;
  const double sum = residual(true, false, first) + residual(false, true, second);
  EXPECT_NE(first, second);
  EXPECT_NEAR(residual(true, true, both), sum, 1e-12);
  EXPECT_EQ(both, std::max(first, second));
}

// The tolerance is a part's own: 5e17 J in C hide nothing of the 1e-7 J in B.
TEST(CertificateControl, CatchesAnActiveDamperBesideAHugePassivePart) {
  const auto certificate = [](double c) {
    SystemBuilder builder;
    builder.add(
        "B",
        linear_oscillator(
            {.mass_kg = 1, .stiffness_N_per_m = 1, .damping_Ns_per_m = c, .allow_active = true}),
        {.initial_state = {1e-3, 0}});
    builder.add("C", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 1e16}),
                {.initial_state = {10, 0}});
    builder.join(joint::Free{}, {"B.coupling"});
    builder.join(joint::Free{}, {"C.coupling"});
    const System system = builder.build();
    Stepper stepper(system, options(0.01, 0.4, 5));
    stepper.step(100);
    return stepper.certificate();
  };
  EXPECT_EQ(certificate(-1.0).status, CertificateStatus::violated);
  EXPECT_EQ(certificate(0.0).status, CertificateStatus::holds)
      << certificate(0.0).max_passivity_residual_J << " part "
      << certificate(0.0).worst_passivity_part;
}

// What is far from the origin rounds as much as its place does, not as the powers of its place do.
TEST(Certificate, AStopFarFromTheOriginKeepsTheBalance) {
  for (const char* energy :
       {"k/2*((x - 100)^2 + 20*max(0, x - 100.2)^2)", "k/2*((x - 100)^2 + (x - 100)^4/2)"}) {
    const Scenario scenario = parse_scenario(
        std::string(R"({"name": "stop", "time": {"step_s": 0.005, "steps": 600}, "subsystems": [
          {"name": "stop", "type": "port_hamiltonian", "initial_state": [100], "parameters": {
            "states": ["x"], "constants": {"k": 3.36}, "energy": ")") +
            energy + R"(", "G": [[1]],
            "default_state": [100],
            "ports": [{"name": "p", "causality": "flow_in", "domain": "translation"}]}},
          {"name": "m", "type": "mass", "parameters": {"mass_kg": 1}, "initial_state": {"velocity": 1}}],
          "couplings": [{"kind": "connection", "ports": ["m.port", "stop.p"]}]})",
        "stop.json", ".");
    Stepper stepper(scenario.system, scenario.options);
    double stored_J = stepper.energy().initial_J, off_J = 0.0;
    for (int n = 0; n < 600; ++n) {
      const StepLedger own = stepper.step().energy;
      off_J = std::max(off_J, std::abs(own.stored_J - stored_J + own.mismatch_J));
      stored_J = own.stored_J;
    }
    EXPECT_LT(off_J, 2e-12) << energy;  // of .5 J
    EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds) << energy;
  }
}

/// A mass of 1 that flies into a stop. Waves of parts that meet a stop within a step are far larger than what they move,
/// and a solve that is exact for them need not be so for the energy.
TEST(Certificate, StopsAnywhereAndInAnyUnitKeepTheBalance) {
  struct Stop {
    const char* energy;
    double stiffness, from, speed;
  };
  const Stop stops[] = {
      {"k*max(0, x - at)^2/2", 5e3, 0.05, 1.0},
      {"k*max(0, x - at)^2/2 + u*(x - at)^2/2", 45289.0, 0.0381, 1.103},
      {"if(x > at, k*(x - at)^2/2, 0)", 962.0, 0.0028, 0.68},
      {"k*max(0, x - at)^1.5", 66906.0, 0.0366, 0.2434},
      {"u*x^2/2 + k*max(0, x - at)^2/2", 4330.0, 0.0135, 0.6995},
      {"k*max(0, x - at)^2/2 + u*at^2*(1 - cos(x/at))", 2217.0, 0.0114, 1.992},
  };
  for (const Stop& stop : stops) {
    for (const double at : {0.2, 100.0, 2000.0, 1e6}) {
      for (const double h : {1e-3, 3e-3, 1e-2}) {
        for (const double unit : {1.0, 1e9, 1e-9}) {
          nlohmann::json text =
              nlohmann::json::parse(R"({"name": "stop", "method": {"kind": "auto"},
            "subsystems": [{"name": "stop", "type": "port_hamiltonian", "parameters": {
              "states": ["x"], "G": [[1]], "ports": [
                {"name": "p", "causality": "flow_in", "domain": "translation"}]}},
              {"name": "m", "type": "mass"}],
            "couplings": [{"kind": "connection", "ports": ["m.port", "stop.p"]}]})");
          text["time"] = {{"step_s", h}, {"steps", 400}};
          auto& own = text["subsystems"][0];
          own["initial_state"] = {at - stop.from};
          own["parameters"]["energy"] = stop.energy;
          own["parameters"]["constants"] = {{"k", stop.stiffness * unit}, {"u", unit}, {"at", at}};
          text["subsystems"][1]["parameters"] = {{"mass_kg", unit}};
          text["subsystems"][1]["initial_state"] = {{"velocity", stop.speed}};
          const Scenario scenario = parse_scenario(text.dump(), "stop.json", ".");
          Stepper stepper(scenario.system, scenario.options);
          stepper.step(400);
          const Certificate& certificate = stepper.certificate();
          EXPECT_NE(certificate.status, CertificateStatus::violated)
              << stop.energy << " at " << at << " h " << h << " unit " << unit << ": "
              << certificate.max_passivity_residual_J << " J";
        }
      }
    }
  }
}

}  // namespace
}  // namespace portwave::test_certificate
