// Decays and changes that are hard to see from a part alone: nonlinear storages beside one-sided parts, circuits in one
// kernel, descriptor parts, and all of that in other units.

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"

namespace portwave::test_unseen_decays {
namespace {

Scenario scenario(double step_s, int stages, const std::string& integrator,
                  const std::string& subsystems, const std::string& couplings) {
  return parse_scenario(
      fmt::format(
          R"({{"name": "s", "time": {{"step_s": {:.17g}, "steps": 1000}}, "subsystems": [{}],
        "couplings": [{}], "method": {{"kind": "auto", "stages": {}, "integrator": "{}"}}}})",
          step_s, subsystems, couplings, stages, integrator),
      "s.json", ".");
}

int part_of(const Scenario& own, const std::string& name) {
  const auto parts = own.system.parts();
  for (int i = 0; i < static_cast<int>(parts.size()); ++i) {
    if (parts[static_cast<std::size_t>(i)].name == name) return i;
  }
  throw std::runtime_error("no part " + name);
}

// A coil that saturates, H = φ²/(2L) + φ⁴/(4Lφₛ²), behind a Shockley diode on a sine.

constexpr double kL = 0.02, kSaturated = 0.05, kOhm = 1.0, kCoilStep = 2e-4;

std::string coil(const std::string& name, const std::string& source, double amplitude) {
  return fmt::format(
      R"json({{"name": "{1}", "type": "effort_source", "parameters": {{"domain": "electrical"}},
      "inputs": {{"effort": "{2:.17g}*sin(100*pi*t)"}}}},
     {{"name": "{0}", "type": "saturating_inductor", "parameters": {{"inductance_H": {3}, "saturation_flux_Vs": {4},
      "resistance_ohm": {5}}}}},
     {{"name": "{0}d", "type": "diode",
      "parameters": {{"saturation_current_A": 1e-9, "emission_coefficient": 1.8}}}})json",
      name, source, amplitude, kL, kSaturated, kOhm);
}
std::string loop(const std::string& name, const std::string& source) {
  return fmt::format(
      R"({{"kind": "common_flow", "ports": ["{1}.port", "{0}.terminals", "{0}d.terminals"]}})",
      name, source);
}

/// Its flux at the ends of steps, driven by the voltage that the source, with the other sign, puts across it and the diode:
/// by implicit Euler steps of 0.1 µs, each solved by bisection.
std::vector<double> fluxes(double amplitude, int steps) {
  constexpr double kThermal = 1.8 * 0.025852, kIs = 1e-9, kFine = 1e-7;
  const int per_step = static_cast<int>(std::lround(kCoilStep / kFine));
  double flux = 0.0;
  std::vector<double> out = {flux};
  for (int n = 0; n < steps; ++n) {
    for (int k = 1; k <= per_step; ++k) {
      const double t = (n * per_step + k) * kFine;
      const double v = amplitude * std::sin(100.0 * std::acos(-1.0) * t);
      // The slope with the diode's voltage by its current, which exceeds −Is.
      const auto defect = [&](double next) {
        const double i = next / kL * (1.0 + next * next / (kSaturated * kSaturated));
        if (i <= -kIs) return -1.0;
        return next - flux - kFine * (v - kOhm * i - kThermal * std::log1p(i / kIs));
      };
      double low = -kIs * kL, high = 0.2;
      for (int b = 0; b < 60; ++b) {
        const double middle = 0.5 * (low + high);
        (defect(middle) > 0.0 ? high : low) = middle;
      }
      flux = 0.5 * (low + high);
    }
    out.push_back(flux);
  }
  return out;
}

double worst(const Scenario& own, const std::string& name, const std::vector<double>& truth) {
  Stepper stepper(own.system, own.options);
  const int part = part_of(own, name);
  const double range = *std::ranges::max_element(truth) - *std::ranges::min_element(truth);
  double out = 0.0;
  for (std::size_t n = 1; n < truth.size(); ++n) {
    stepper.step();
    out = std::max(out, std::abs(stepper.state(part)[0] - truth[n]) / range);
  }
  return out;
}

constexpr int kCoilSteps = 150;

// The coil's current alternated about 0 while the diode blocked, by 2.7 % of the range of its flux.
TEST(NonlinearStorages, ACoilThatSaturatesComesToRestBehindADiode) {
  const std::vector<double> truth = fluxes(20.0, kCoilSteps);
  const auto error = [&](const std::string& integrator) {
    return worst(scenario(kCoilStep, 1, integrator, coil("l", "v", -20.0), loop("l", "v")), "l",
                 truth);
  };
  EXPECT_LT(error("auto"), 2e-3);
  EXPECT_GT(error("gauss"), 1e-2);  // control
}

// Each lane of a batch has the rule of its own part: the one is damped in other steps than the other.
TEST(NonlinearStorages, AreDampedEachAtItsOwnTime) {
  const auto run = [](const std::vector<std::string>& names) {
    std::string parts, joints;
    for (const std::string& name : names) {
      if (!parts.empty()) parts += ", ", joints += ", ";
      parts += coil(name, "v" + name, name == "a" ? -20.0 : 13.0);
      joints += loop(name, "v" + name);
    }
    return scenario(kCoilStep, 1, "auto", parts, joints);
  };
  const Scenario both = run({"a", "b"}), a = run({"a"}), b = run({"b"});
  Stepper together(both.system, both.options), alone_a(a.system, a.options),
      alone_b(b.system, b.options);
  double apart = 0.0;
  for (int n = 0; n < kCoilSteps; ++n) {
    together.step();
    alone_a.step();
    alone_b.step();
    const double own_a = alone_a.state(part_of(a, "a"))[0],
                 own_b = alone_b.state(part_of(b, "b"))[0];
    EXPECT_NEAR(together.state(part_of(both, "a"))[0], own_a, 1e-9);
    EXPECT_NEAR(together.state(part_of(both, "b"))[0], own_b, 1e-9);
    apart = std::max(apart, std::abs(own_a - own_b));
  }
  EXPECT_GT(apart, 0.01);  // they do not move alike
  EXPECT_LT(worst(both, "b", fluxes(-13.0, kCoilSteps)), 2e-3);
}

// A source with steps of 5 V that a diode passes to a capacitor, all admittances `scale` times as large.

std::string rectifier(double scale) {
  return fmt::format(
      R"json({{"name": "v", "type": "effort_source", "parameters": {{"domain": "electrical"}},
      "inputs": {{"effort": "if(mod(t, 0.01) < 0.005, 5, -5)"}}}},
     {{"name": "d", "type": "diode", "parameters": {{"saturation_current_A": {:.17g}, "leakage_S": {:.17g}}}}},
     {{"name": "r", "type": "resistor", "parameters": {{"resistance_ohm": {:.17g}}}}},
     {{"name": "c", "type": "capacitor", "parameters": {{"capacitance_F": {:.17g}, "leakage_S": {:.17g}}}}})json",
      1e-9 * scale, 1e-12 * scale, 1e-2 / scale, 1e-5 * scale, 1e-3 * scale);
}

std::vector<double> voltages(double scale, int stages) {
  const Scenario own = scenario(
      1e-3, stages, "auto", rectifier(scale),
      R"({"kind": "kernel", "ports": ["v.port", "d.terminals", "r.terminals", "c.terminals"],
          "E": [[1, -1, -1, -1], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]],
          "F": [[0, 0, 0, 0], [1, 1, 0, 0], [0, 1, -1, 0], [0, 0, 1, -1]]})");
  Stepper stepper(own.system, own.options);
  std::vector<double> out;
  for (int n = 0; n < 20; ++n) {
    stepper.step();
    out.push_back(stepper.state(part_of(own, "c"))[0]);
  }
  return out;
}

// At 1e6 the iteration of three stages did not end, at 1e9 nothing was damped.
TEST(Units, DoNotMatterBesideDiodes) {
  for (const int stages : {1, 2, 3}) {
    const std::vector<double> usual = voltages(1.0, stages);
    EXPECT_NEAR(*std::ranges::max_element(usual), 4.6, 0.05) << stages;
    for (const double scale : {1e-9, 1e-6, 1e-3, 1e3, 1e6, 1e9}) {
      const std::vector<double> own = voltages(scale, stages);
      for (std::size_t n = 0; n < usual.size(); ++n) {
        EXPECT_NEAR(own[n], usual[n], 2e-3) << stages << ' ' << scale << ' ' << n;
      }
    }
  }
}

// Circuits whose joints are one kernel.

/// A source of 10 V, 1 ohm, a node with a capacitor, 1 ohm, another node, 1 ohm to the ground.
Scenario nodes(double farad, int stages, const std::string& integrator) {
  return scenario(
      1.0, stages, integrator,
      fmt::format(
          R"({{"name": "v", "type": "effort_source", "parameters": {{"domain": "electrical"}},
        "inputs": {{"effort": 10}}}},
       {{"name": "r1", "type": "resistor", "parameters": {{"resistance_ohm": 1}}}},
       {{"name": "c1", "type": "capacitor", "parameters": {{"capacitance_F": {0:.17g}}}}},
       {{"name": "r2", "type": "resistor", "parameters": {{"resistance_ohm": 1}}}},
       {{"name": "c2", "type": "capacitor", "parameters": {{"capacitance_F": {0:.17g}}}}},
       {{"name": "r3", "type": "resistor", "parameters": {{"resistance_ohm": 1}}}})",
          farad),
      R"({"kind": "kernel",
          "ports": ["v.port", "r1.terminals", "c1.terminals", "r2.terminals", "c2.terminals", "r3.terminals"],
          "E": [[1, -1, -1, 0, 0, 0], [0, 0, 1, -1, -1, 0], [0, 0, 0, 0, 1, -1],
                [0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]],
          "F": [[0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0],
                [1, 1, 0, 0, 0, 0], [0, 1, -1, -1, 0, 0], [0, 0, 0, 1, -1, -1]]})");
}

// With two conserving stages they stay where they began, and with steps of half the size they do, too.
TEST(Kernels, OfResistorsAndCapacitorsAreDamped) {
  for (const int stages : {1, 2, 3}) {
    for (const double farad : {1e-12, 1e-6}) {
      const Scenario own = nodes(farad, stages, "auto");
      Stepper stepper(own.system, own.options);
      stepper.step(5);
      EXPECT_NEAR(stepper.state(part_of(own, "c1"))[0], 20.0 / 3.0, 1e-5) << stages << ' ' << farad;
      EXPECT_NEAR(stepper.state(part_of(own, "c2"))[0], 10.0 / 3.0, 1e-5) << stages << ' ' << farad;
    }
  }
  const Scenario frozen = nodes(1e-12, 2, "gauss");
  Stepper stepper(frozen.system, frozen.options);
  stepper.step(5);
  EXPECT_LT(std::abs(stepper.state(part_of(frozen, "c1"))[0]), 1e-3);  // control
}

TEST(Kernels, ThatAreResolvedConserve) {
  const Scenario own = nodes(100.0, 2, "auto"), other = nodes(100.0, 2, "gauss");
  Stepper stepper(own.system, own.options), conserving(other.system, other.options);
  for (int n = 0; n < 20; ++n) {
    stepper.step();
    conserving.step();
    EXPECT_EQ(stepper.state(part_of(own, "c1"))[0], conserving.state(part_of(other, "c1"))[0]);
  }
}

/// An oscillating circuit, 1 H and 1 F, beside nodes of 1 pF: one at 100 ohm from its capacitor, one beyond at 1 ohm.
Scenario swinging(int stages, const std::string& integrator) {
  return scenario(
      0.05, stages, integrator,
      R"({"name": "l", "type": "inductor", "parameters": {"inductance_H": 1}},
       {"name": "c", "type": "capacitor", "parameters": {"capacitance_F": 1}, "initial_state": {"voltage": 1}},
       {"name": "r1", "type": "resistor", "parameters": {"resistance_ohm": 100}},
       {"name": "c1", "type": "capacitor", "parameters": {"capacitance_F": 1e-12}},
       {"name": "r2", "type": "resistor", "parameters": {"resistance_ohm": 100}})",
      R"({"kind": "kernel", "ports": ["l.terminals", "c.terminals", "r1.terminals", "c1.terminals", "r2.terminals"],
          "E": [[1, -1, 0, 0, 0], [0, 1, -1, -1, 0], [0, 0, 0, 1, -1], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]],
          "F": [[0, 0, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0], [1, 1, 1, 0, 0], [0, 0, 1, -1, -1]]})");
}

// The node is half of the oscillator's voltage, which goes on swinging: e^(−t/400) cos t.
TEST(Kernels, AreDampedNodeByNodeAmongOscillations) {
  for (const int stages : {2, 3}) {
    const Scenario own = swinging(stages, "auto");
    Stepper stepper(own.system, own.options);
    for (int n = 1; n <= 400; ++n) {
      stepper.step();
      const double c = stepper.state(part_of(own, "c"))[0];
      EXPECT_NEAR(stepper.state(part_of(own, "c1"))[0], 0.5 * c, 5e-3) << n;
      const double t = 0.05 * n;
      EXPECT_NEAR(c, std::exp(-t / 400.0) * std::cos(t), 5e-3) << n;
    }
  }
  const Scenario frozen = swinging(2, "gauss");
  Stepper stepper(frozen.system, frozen.options);
  stepper.step(63);
  // Control: what it lacked at the start it lacks for ever; the voltage is −1 V.
  EXPECT_GT(std::abs(stepper.state(part_of(frozen, "c1"))[0] + 0.5), 0.3);
}

// The same two nodes as a descriptor part, with an algebraic one between a source and them.
TEST(Descriptors, ThatOnlyDecayAreDamped) {
  const auto descriptor = [](double farad, const std::string& integrator) {
    return scenario(
        1.0, 2, integrator,
        fmt::format(R"({{"name": "n", "type": "descriptor_port_hamiltonian", "parameters": {{
        "states": ["u0", "u1", "u2"], "ports": [{{"name": "p", "domain": "electrical", "causality": "flow_in"}}],
        "E": [[0, 0, 0], [0, {0:.17g}, 0], [0, 0, {0:.17g}]], "J": [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
        "R": [[1, -1, 0], [-1, 2, -1], [0, -1, 2]], "B": [[1], [0], [0]]}}}},
       {{"name": "v", "type": "effort_source", "parameters": {{"domain": "electrical"}}, "inputs": {{"effort": 10}}}})",
                    farad),
        R"({"kind": "connection", "ports": ["v.port", "n.p"]})");
  };
  for (const double farad : {1e-12, 1e-6}) {
    const Scenario own = descriptor(farad, "auto");
    Stepper stepper(own.system, own.options);
    stepper.step(5);
    EXPECT_NEAR(stepper.state(part_of(own, "n"))[1], 20.0 / 3.0, 1e-4) << farad;
    EXPECT_NEAR(stepper.state(part_of(own, "n"))[2], 10.0 / 3.0, 1e-4) << farad;
  }
  const Scenario frozen = descriptor(1e-12, "gauss");
  Stepper stepper(frozen.system, frozen.options);
  stepper.step(5);
  EXPECT_LT(std::abs(stepper.state(part_of(frozen, "n"))[1]), 1e-3);  // control
}

/// 20 V through 1.77 ohm and a switch, which opens at 0.1 ms, onto a capacitor that a diode passes to a coil with 1.49
/// ohm, whose current another diode keeps up.
Scenario freewheel(int stages, const std::string& integrator) {
  return scenario(
      1e-5, stages, integrator,
      R"json({"name": "v", "type": "effort_source", "parameters": {"domain": "electrical"}, "inputs": {"effort": 20}},
       {"name": "rs", "type": "resistor", "parameters": {"resistance_ohm": 1.77}},
       {"name": "s", "type": "ideal_switch", "inputs": {"closed": "if(t < 0.0001, 1, 0)"}},
       {"name": "c", "type": "capacitor", "parameters": {"capacitance_F": 3.18e-7}},
       {"name": "d", "type": "ideal_diode"},
       {"name": "l", "type": "inductor", "parameters": {"inductance_H": 2.9e-4}},
       {"name": "r", "type": "resistor", "parameters": {"resistance_ohm": 1.49}},
       {"name": "f", "type": "ideal_diode"})json",
      R"({"kind": "kernel", "ports": ["v.port", "rs.terminals", "s.terminals", "c.terminals", "d.terminals",
                                       "l.terminals", "r.terminals", "f.terminals"],
          "E": [[0, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0],
                [0, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0], [-1, 1, 1, 1, 0, 0, 0, 0],
                [-1, 1, 1, 0, 1, 1, 1, 0], [1, -1, -1, 0, -1, 0, 0, 1]],
          "F": [[1, 1, 0, 0, 0, 0, 0, 0], [0, -1, 1, 0, 0, 0, 0, 0], [0, 0, -1, 1, 1, 0, 0, 0],
                [0, 0, 0, 0, -1, 1, 0, -1], [0, 0, 0, 0, 0, -1, 1, 0], [0, 0, 0, 0, 0, 0, 0, 0],
                [0, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0]]})");
}

// The coil's current, some 5 A, empties the capacitor of 19 V within 2 µs, and then the second diode takes it over: the
// voltage stays at 0. Two and three stages threw it to −10 and −12 V, where it stayed.
TEST(SwitchesThatOpen, AreTakenInPieces) {
  for (const int stages : {1, 2, 3}) {
    const Scenario own = freewheel(stages, "auto");
    Stepper stepper(own.system, own.options);
    stepper.step(10);
    EXPECT_GT(stepper.state(part_of(own, "c"))[0], 10.0) << stages;
    stepper.step();
    for (int n = 11; n < 40; ++n) {
      EXPECT_NEAR(stepper.state(part_of(own, "c"))[0], 0.0, 0.2) << stages << ' ' << n;
      stepper.step();
    }
  }
  const Scenario whole = freewheel(2, "damped");
  Stepper stepper(whole.system, whole.options);
  stepper.step(12);
  EXPECT_LT(stepper.state(part_of(whole, "c"))[0], -5.0);  // control
}

// Of a linear part, whose solve keeps no inputs.
TEST(BadInputs, AreNamed) {
  for (const int stages : {1, 2}) {
    const Scenario own = scenario(
        0.1, stages, "auto",
        R"json({"name": "m", "type": "mass", "parameters": {"mass_kg": 1}, "inputs": {"force": "sqrt(1 - 2*t)"}})json",
        R"({"kind": "free", "ports": ["m.port"]})");
    Stepper stepper(own.system, own.options);
    try {
      stepper.step(100);
      FAIL() << stages;
    } catch (const StepError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("its input \"force\" is "), std::string::npos) << text;
      EXPECT_NE(text.find("in the step from 0.5 s"), std::string::npos) << text;
      EXPECT_EQ(stepper.step_index(), 5);
    }
  }
}

}  // namespace
}  // namespace portwave::test_unseen_decays
