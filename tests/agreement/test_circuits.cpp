// Circuits against ngspice 39, by tests/tools/ngspice_golden.py: the trapezoidal rule at steps of 20 ns to
// 1 us, extrapolated. Halving its step moves its numbers by up to 1e-6 V in the ladder, and by 6e-8 V
// where there are diodes; what the extrapolation leaves is less.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/runtime/scenario/scenario.hpp"

namespace portwave {
namespace {

/// time_s, then the quantities.
using Rows = std::vector<std::vector<double>>;
using Read = std::function<std::vector<double>(const Stepper&)>;

/// The largest difference from the rows. Their times are multiples of the step.
double worst_difference(const std::string& text, const std::vector<Override>& overrides,
                        const Rows& rows, const Read& read) {
  const Scenario scenario = parse_scenario(text, "circuit.json", ".", overrides);
  Stepper stepper(scenario.system, scenario.options);
  double worst = 0.0;
  for (const std::vector<double>& row : rows) {
    const auto step = static_cast<std::int64_t>(std::llround(row[0] / scenario.options.step_s));
    stepper.step(step - stepper.step_index());
    const std::vector<double> reached = read(stepper);
    for (std::size_t i = 0; i < reached.size(); ++i) {
      worst = std::max(worst, std::abs(reached[i] - row[i + 1]));
    }
  }
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  return worst;
}

std::vector<Override> steps_of(const char* step_s, const char* stages) {
  return {{"/time/step_s", step_s}, {"/method/stages", stages}};
}

const char* const kLadder = R"({
  "name": "ladder", "time": {"step_s": 1e-6, "end_s": 0.002},
  "subsystems": [
    {"name": "source", "type": "effort_source", "parameters": {"domain": "electrical"},
     "inputs": {"effort": {"kind": "sine_product", "amplitude": -10, "sines": [{"frequency_Hz": 1000}]}}},
    {"name": "series", "type": "resistor", "parameters": {"resistance_ohm": 50}},
    {"name": "ladder", "type": "rlc_ladder",
     "parameters": {"cells": 10, "capacitance_F": 1e-7, "inductance_H": 0.01, "resistance_ohm": 1}},
    {"name": "load", "type": "resistor", "parameters": {"resistance_ohm": 300}}],
  "couplings": [
    {"kind": "common_flow", "ports": ["source.port", "series.terminals", "ladder.left"]},
    {"kind": "connection", "ports": ["ladder.right", "load.terminals"]}],
  "method": {"kind": "auto", "tolerance": 1e-12}})";

/// Voltages of the cells 1, 5 and 10, and a thousand times the current into the load.
std::vector<double> of_ladder(const Stepper& stepper) {
  const auto x = stepper.state("ladder");
  return {x[0], x[8], x[18], 1e3 * x[19]};
}

const Rows kLadderRows = {{0.00025, 8.64983970638, 5.99468268475, 0.0862887758163, 0.0969914109925},
                          {0.0005, 0.135600502514, 6.34241029272, 8.19059246607, 25.1486754741},
                          {0.00075, -8.5786982945, -6.19782142707, 1.47821319095, 10.1045336507},
                          {0.001, -0.24958009133, -6.52993484725, -8.58212568344, -26.2651144397},
                          {0.002, -0.256366545814, -6.48318850773, -8.43913389438, -26.1713350846}};

TEST(NgspiceAgreement, LadderOfTenCells) {
  EXPECT_LE(worst_difference(kLadder, steps_of("2e-6", "3"), kLadderRows, of_ladder), 5e-8);
  EXPECT_LE(worst_difference(kLadder, steps_of("1e-6", "2"), kLadderRows, of_ladder), 5e-7);
  EXPECT_LE(worst_difference(kLadder, steps_of("1e-6", "1"), kLadderRows, of_ladder), 3e-3);
}

const char* const kRectifier = R"({
  "name": "rectifier", "time": {"step_s": 1e-5, "end_s": 0.04},
  "subsystems": [
    {"name": "source", "type": "effort_source", "parameters": {"domain": "electrical"},
     "inputs": {"effort": {"kind": "sine_product", "amplitude": -10, "sines": [{"frequency_Hz": 50}]}}},
    {"name": "series", "type": "resistor", "parameters": {"resistance_ohm": 10}},
    {"name": "diode", "type": "diode",
     "parameters": {"saturation_current_A": 1e-9, "emission_coefficient": 1.8,
                    "thermal_voltage_V": 0.0258649170068}},
    {"name": "smoother", "type": "capacitor",
     "parameters": {"capacitance_F": 1e-5, "leakage_S": 0.001}}],
  "couplings": [{"kind": "common_flow",
    "ports": ["source.port", "series.terminals", "diode.terminals", "smoother.terminals"]}],
  "method": {"kind": "auto", "tolerance": 1e-12}})";

const Rows kRectifierRows = {{0.002, 4.77033223102}, {0.005, 9.1425464731},  {0.008, 7.25054982048},
                             {0.015, 3.60051597698}, {0.022, 4.77035524955}, {0.025, 9.1425464731},
                             {0.04, 2.18382293393}};

std::vector<double> of_rectifier(const Stepper& stepper) { return {stepper.state("smoother")[0]}; }

TEST(NgspiceAgreement, RectifierWithADiode) {
  EXPECT_LE(worst_difference(kRectifier, steps_of("1e-5", "2"), kRectifierRows, of_rectifier),
            1e-9);
  EXPECT_LE(worst_difference(kRectifier, steps_of("5e-6", "1"), kRectifierRows, of_rectifier),
            1e-5);
}

TEST(NgspiceAgreementControl, NoticesAnotherThermalVoltage) {
  std::vector<Override> warmer = steps_of("1e-5", "2");
  warmer.push_back({"/subsystems/2/parameters/thermal_voltage_V", "0.02587"});
  EXPECT_GT(worst_difference(kRectifier, warmer, kRectifierRows, of_rectifier), 1e-5);
}

/// Two diodes charge a capacitor each, in turn; their node and the loops are one Dirac structure.
const char* const kDoubler = R"({
  "name": "doubler", "time": {"step_s": 1e-5, "end_s": 0.04},
  "subsystems": [
    {"name": "source", "type": "effort_source", "parameters": {"domain": "electrical"},
     "inputs": {"effort": {"kind": "sine_product", "amplitude": -12, "sines": [{"frequency_Hz": 50}]}}},
    {"name": "coil", "type": "inductor", "parameters": {"inductance_H": 0.001, "resistance_ohm": 5}},
    {"name": "upper", "type": "diode",
     "parameters": {"saturation_current_A": 1e-9, "emission_coefficient": 1.8,
                    "thermal_voltage_V": 0.0258649170068}},
    {"name": "top", "type": "capacitor", "parameters": {"capacitance_F": 4.7e-5, "leakage_S": 0.002}},
    {"name": "lower", "type": "diode",
     "parameters": {"saturation_current_A": 1e-9, "emission_coefficient": 1.8,
                    "thermal_voltage_V": 0.0258649170068}},
    {"name": "low", "type": "capacitor",
     "parameters": {"capacitance_F": 2.2e-5, "leakage_S": 0.00125}}],
  "couplings": [{"kind": "kernel",
    "ports": ["source.port", "coil.terminals", "upper.terminals", "top.terminals",
              "lower.terminals", "low.terminals"],
    "E": [[1, 1, 1, 1, 0, 0], [-1, -1, 0, 0, 1, 1],
          [0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]],
    "F": [[0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0],
          [1, -1, 0, 0, 0, 0], [0, 1, -1, 0, 1, 0], [0, 0, 1, -1, 0, 0], [0, 0, 0, 0, 1, -1]]}],
  "method": {"kind": "auto", "tolerance": 1e-12}})";

const Rows kDoublerRows = {{0.002, 5.39999623133, -8.5672998643e-08, 0.158754445476},
                           {0.005, 11.0536588216, -1.98861132954e-07, 0.0373242793195},
                           {0.008, 9.99724541061, -2.94351916e-07, 4.11453119878e-12},
                           {0.013, 8.08122626651, 8.58141148715, -0.0618268123744},
                           {0.018, 6.53242119163, 9.68844649747, -1.09581810959e-11},
                           {0.03, 9.18161757441, 4.89941509344, -4.28318067366e-12},
                           {0.04, 5.99947191544, 8.64773778738, 2.6486843029e-12}};

std::vector<double> of_doubler(const Stepper& stepper) {
  return {stepper.state("top")[0], stepper.state("low")[0], stepper.state("coil")[0]};
}

TEST(NgspiceAgreement, VoltageDoublerWithTwoDiodesAndACoil) {
  EXPECT_LE(worst_difference(kDoubler, steps_of("5e-6", "2"), kDoublerRows, of_doubler), 1e-7);
  // The coil is damped in steps in which a diode opens or closes.
  EXPECT_LE(worst_difference(kDoubler, steps_of("5e-6", "1"), kDoublerRows, of_doubler), 1e-4);
}

}  // namespace
}  // namespace portwave
