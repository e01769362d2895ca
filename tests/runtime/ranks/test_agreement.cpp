// Circuits against ngspice 39 (tests/tools/ngspice): its trapezoidal rule with steps of at most 20 ns
// and 1 us, and tolerances of 1e-7.

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/runtime/scenario/scenario.hpp"

namespace portwave::test_agreement {
namespace {

struct LadderRow {
  double time_s, first_V, last_V;
};
constexpr LadderRow kLadder[] = {{0.26e-3, 8.700536201246, 6.356412626054},
                                 {0.74e-3, -8.73358441549, -5.35479724681},
                                 {1.26e-3, 8.740994556088, 6.052934348453},
                                 {2.24e-3, 8.734886382036, 5.347219114972},
                                 {4.74e-3, -8.73574670426, -5.34793675968}};

TEST(Agreement, AnRlcLadderIsThatOfNgspice) {
  const Scenario scenario = parse_scenario(R"({
    "name": "ladder", "time": {"step_s": 1e-6, "end_s": 0.005},
    "subsystems": [
      {"name": "source", "type": "effort_source", "parameters": {"domain": "electrical"},
       "inputs": {"effort": {"kind": "sine_product", "amplitude": -10,
                             "sines": [{"frequency_Hz": 1000}]}}},
      {"name": "series", "type": "resistor", "parameters": {"resistance_ohm": 50}},
      {"name": "ladder", "type": "rlc_ladder",
       "parameters": {"cells": 4, "capacitance_F": 1e-7, "inductance_H": 0.01,
                      "resistance_ohm": 1}}],
    "couplings": [
      {"kind": "common_flow", "ports": ["source.port", "series.terminals", "ladder.left"]},
      {"kind": "resistive", "resistance": 300, "ports": ["ladder.right"]}],
    "method": {"kind": "auto", "stages": 2}})",
                                           "ladder.json", ".");
  Stepper stepper(scenario.system, scenario.options);
  for (const LadderRow& row : kLadder) {
    stepper.step(std::llround(row.time_s / 1e-6) - stepper.step_index());
    EXPECT_NEAR(stepper.state("ladder")[0], row.first_V, 1e-6) << row.time_s;
    EXPECT_NEAR(300.0 * stepper.state("ladder")[7], row.last_V, 1e-6) << row.time_s;
  }
}

struct RectifierRow {
  double time_s, volts;
};
constexpr RectifierRow kRectifier[] = {{4e-3, 8.550683531753},  {5e-3, 9.145327676120},
                                       {6e-3, 8.804112517720},  {12e-3, 4.840567389384},
                                       {25e-3, 9.145327676099}, {26.2e-3, 8.643407581773},
                                       {48e-3, 7.221277987588}};

// The conductance of the diode goes through twelve decades in every period. The method chosen must
// stand that by itself.
TEST(Agreement, ARectifierIsThatOfNgspice) {
  const Scenario scenario = parse_scenario(R"({
    "name": "rectifier", "time": {"step_s": 4e-6, "end_s": 0.05},
    "subsystems": [
      {"name": "source", "type": "effort_source", "parameters": {"domain": "electrical"},
       "inputs": {"effort": {"kind": "sine_product", "amplitude": -10,
                             "sines": [{"frequency_Hz": 50}]}}},
      {"name": "series", "type": "resistor", "parameters": {"resistance_ohm": 10}},
      {"name": "diode", "type": "diode",
       "parameters": {"saturation_current_A": 1e-14, "emission_coefficient": 1.05,
                      "thermal_voltage_V": 0.0258649177}},
      {"name": "smoother", "type": "capacitor",
       "parameters": {"capacitance_F": 1e-5, "leakage_S": 0.001}}],
    "couplings": [{"kind": "common_flow", "ports": ["source.port", "series.terminals",
                                                     "diode.terminals", "smoother.terminals"]}],
    "method": {"kind": "auto"}})",
                                           "rectifier.json", ".");
  Stepper stepper(scenario.system, scenario.options);
  for (const RectifierRow& row : kRectifier) {
    stepper.step(std::llround(row.time_s / 4e-6) - stepper.step_index());
    EXPECT_NEAR(stepper.state("smoother")[0], row.volts, 1e-5) << row.time_s;
  }
  EXPECT_EQ(stepper.iterations().not_converged, 0);
  EXPECT_LT(stepper.iterations().max, 20);
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
}

}  // namespace
}  // namespace portwave::test_agreement
