// States that slide along a jump of a law that depends on them: neither side has a solution, and the law between them has.

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/runtime/step/stepper.hpp>

namespace portwave::test_sliding_states {
namespace {

/// A charge with a leakage that jumps where it changes its sign: q' = flow - R(q) (q + 1), R = `above` or `below`, in units
/// of energy `unit`.
Scenario leak(double step_s, double flow, double above, double below, int stages,
              double unit = 1.0) {
  return parse_scenario(fmt::format(R"j({{"name": "leak", "time": {{"step_s": {}, "steps": 400}},
    "method": {{"kind": "auto", "stages": {}}}, "subsystems": [
      {{"name": "p", "type": "port_hamiltonian", "initial_state": [0.5], "parameters": {{
        "states": ["q"], "constants": {{"above": {}, "below": {}, "unit": {}}},
        "energy": "unit*(q + 1)^2/2", "R": [["if(q > 0, above, below)/unit"]], "G": [[1]],
        "ports": [{{"name": "p", "causality": "flow_in", "domain": "electrical"}}]}}}},
      {{"name": "i", "type": "flow_source", "parameters": {{"domain": "electrical"}},
        "inputs": {{"flow": {}}}}}],
    "couplings": [{{"kind": "connection", "ports": ["i.port", "p.p"]}}]}})j",
                                    step_s, stages, above, below, unit, flow),
                        "leak.json", ".");
}

/// Filippov: from 0.5 down along q' = 3 - 10 (q + 1), or up from below 0 along q' = 3 - (q + 1); at 0 both lead there, and
/// R = 3 keeps it.
TEST(SlidingStates, StayAtTheJumpByTheLawBetween) {
  for (const double h : {1e-3, 1e-2, 0.1}) {
    for (const double unit : {1.0, 1e9, 1e-9}) {
      const Scenario own = leak(h, 3.0, 10.0, 1.0, 1, unit);
      Stepper stepper(own.system, own.options);
      double most = 0.0, dissipated_J = 0.0;
      const auto steps = static_cast<int>(std::ceil(0.5 / h)) + 20;
      stepper.step(steps);
      const double start_J = stepper.energy().dissipated_J;
      for (int n = 0; n < 100; ++n) {
        dissipated_J = stepper.step().energy.dissipated_J;
        most = std::max(most, std::abs(stepper.state("p")[0]));
      }
      EXPECT_LE(most, 10.0 * h) << h << " " << unit;
      const EnergyTotals e = stepper.energy();
      // All that is supplied while it stays, 3 W in this unit.
      EXPECT_NEAR((e.dissipated_J - start_J) / (100.0 * h), 3.0 * unit, 0.05 * unit) << h;
      EXPECT_GT(dissipated_J, 0.0);
      const double open_J = e.final_J - e.initial_J - e.supplied_J + e.dissipated_J +
                            e.numerical_dissipation_J + e.mismatch_J;
      EXPECT_LE(std::abs(open_J), 1e-11 * unit) << h << " " << unit;
      EXPECT_NE(stepper.certificate().status, CertificateStatus::violated);
      EXPECT_EQ(stepper.iterations().not_converged, 0);
    }
  }
}

/// A jump that leads across is passed, to where the other side ends.
TEST(SlidingStates, PassAJumpThatLeadsAcross) {
  const Scenario own = leak(1e-2, -3.0, 1.0, 10.0, 1);
  Stepper stepper(own.system, own.options);
  stepper.step(400);
  EXPECT_NEAR(stepper.state("p")[0], -1.0 - 0.3, 1e-6);
}

TEST(SlidingStates, OfSeveralStagesAreNamedWithTheRemedy) {
  const Scenario own = leak(1e-2, 3.0, 10.0, 1.0, 2);
  Stepper stepper(own.system, own.options);
  try {
    stepper.step(400);
    FAIL() << "slid";
  } catch (const StepError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("\"p\""), std::string::npos) << text;
    EXPECT_NE(text.find("slide along the jump"), std::string::npos) << text;
    EXPECT_NE(text.find("/method/stages=1"), std::string::npos) << text;
    EXPECT_EQ(text.find("  "), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace portwave::test_sliding_states
