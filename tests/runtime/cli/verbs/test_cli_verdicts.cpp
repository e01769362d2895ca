// What a run says of its own accuracy, as people see it.
#ifdef PORTWAVE_CLI

#include <string>

#include <gtest/gtest.h>

#include "support/files/cli_process.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"

namespace portwave::test_cli_verdicts {
namespace {

using testing::contains;
using testing::portwave_cli;
using testing::ProcessResult;
using testing::said;
using testing::TemporaryFolder;
using testing::write_text;

class CliVerdicts : public ::testing::Test {
 protected:
  ProcessResult strict(const std::string& scenario) {
    const std::string path = (folder_ / "scenario.json").string();
    write_text(path, scenario);
    return portwave_cli({"run", path, "--strict"});
  }
  TemporaryFolder folder_;
};

/// A square wave drives an oscillator, with two conserving stages.
std::string driven(const std::string& step_s) {
  return R"json({"name": "driven", "time": {"step_s": )json" + step_s +
         R"json(, "end_s": 20}, "subsystems": [
      {"name": "m", "type": "linear_oscillator", "parameters": {"mass_kg": 1, "stiffness_N_per_m": 9,
       "damping_Ns_per_m": 0.3}, "inputs": {"force": {"kind": "expression",
       "expression": "if(mod(t,0.13)<0.0481,1,-1)"}}}],
      "couplings": [{"kind": "free", "ports": ["m.coupling"]}],
      "method": {"kind": "auto", "stages": 2}})json";
}

// The rates of such steps jump as their input does; the motion is right to some hundred thousandths.
TEST_F(CliVerdicts, WhatDampedStagesConfirmIsNoMotionThatStands) {
  const ProcessResult result = strict(driven("0.05"));
  EXPECT_EQ(result.exit_code, 0) << said(result);
  EXPECT_FALSE(contains(result.err, "NOT RESOLVED")) << said(result);
}

TEST_F(CliVerdicts, WhatStandsIsToldAlthoughFinerStepsLeaveItAsWell) {
  const ProcessResult result =
      strict(R"json({"name": "stands", "time": {"step_s": 0.05, "end_s": 2}, "subsystems": [
      {"name": "g", "type": "effort_source", "parameters": {"domain": "electrical"},
       "inputs": {"effort": {"kind": "expression", "expression": "10*sin(t)"}}},
      {"name": "r", "type": "resistor", "parameters": {"resistance_ohm": 1e-3}},
      {"name": "c", "type": "capacitor", "parameters": {"capacitance_F": 1e-4}, "initial_state": {"voltage": 1}}],
    "couplings": [{"kind": "common_flow", "ports": ["g.port", "r.terminals", "c.terminals"]}],
    "method": {"kind": "auto", "stages": 2, "integrator": "gauss"}})json");
  EXPECT_EQ(result.exit_code, 1) << said(result);
  EXPECT_TRUE(contains(result.out + result.err, "NOT RESOLVED")) << said(result);
  EXPECT_FALSE(contains(result.out + result.err, "POOR")) << said(result);
}

/// An encoder on a heavy rotor, with chosen steps.
std::string encoder(const std::string& method) {
  return R"json({"name": "encoder", "time": {"step": {"kind": "adaptive", "tolerance": 1e-4}, "end_s": 0.5},
    "subsystems": [
      {"name": "t", "type": "inertia", "parameters": {"inertia_kgm2": 1e5}, "initial_state": {"speed": 314},
       "inputs": {"torque": {"kind": "expression", "expression": "if(t<0.125,0,5000)"}}},
      {"name": "s", "type": "torsional_spring_damper",
       "parameters": {"stiffness_Nm_per_rad": 0.098696, "damping_Nms_per_rad": 1.2566e-5}},
      {"name": "p", "type": "inertia", "parameters": {"inertia_kgm2": 1e-6}, "initial_state": {"speed": 314}}],
    "couplings": [{"kind": "connection", "ports": ["t.shaft", "s.left"]},
                  {"kind": "connection", "ports": ["p.shaft", "s.right"]}],
    "method": {"kind": "auto")json" +
         method + "}}";
}

TEST_F(CliVerdicts, SmallPartsThatChosenStepsDoNotSeeAreNamedWithARemedyThatHelps) {
  const ProcessResult blind = strict(encoder(""));
  EXPECT_EQ(blind.exit_code, 1) << said(blind);
  EXPECT_TRUE(contains(blind.err, "\"s.twist\" differs by")) << said(blind);
  EXPECT_TRUE(contains(blind.err, "--set /method/tolerance_per_part=true")) << said(blind);
  const ProcessResult remedied = strict(encoder(R"(, "tolerance_per_part": true)"));
  EXPECT_EQ(remedied.exit_code, 0) << said(remedied);
  EXPECT_FALSE(contains(remedied.err, "too little")) << said(remedied);
}

}  // namespace
}  // namespace portwave::test_cli_verdicts

#endif
