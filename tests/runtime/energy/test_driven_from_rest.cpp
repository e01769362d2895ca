// Accounts of what is driven from rest and drifts away: sums over ½Q(x + x⁺) then cancel, since positions are
// far larger than the elongations that store energy.

#include <string>

#include <gtest/gtest.h>

#include "portwave/runtime/scenario/scenario.hpp"
#include "support/files/source_folder.hpp"

namespace portwave::test_driven_from_rest {
namespace {

/// A free chain of masses of 1 kg and springs of 100 N/m, 20 rad/s, that a force pushes at one end.
Certificate pushed(int masses, double step_s, int stages, double damping = 0.0) {
  const std::string text =
      R"({"name": "chain", "time": {"step_s": )" + std::to_string(step_s) + R"(, "steps": 200},
    "subsystems": [{"name": "c", "type": "mass_spring_damper_chain", "allow_active": true,
      "parameters": {"masses": )" +
      std::to_string(masses) + R"(, "mass_kg": 1, "stiffness_N_per_m": 100, "left_end": "mass",
                     "right_end": "mass",
                     "damping_Ns_per_m": )" +
      std::to_string(damping) + R"(},
      "inputs": {"force_1": {"kind": "constant", "value": 1}}}],
    "couplings": [{"kind": "free", "ports": ["c.left"]}, {"kind": "free", "ports": ["c.right"]}],
    "method": {"integrator": "gauss", "stages": )" +
      std::to_string(stages) + "}}";
  const Scenario scenario = parse_scenario(text, "test.json", testing::source_folder());
  Stepper stepper(scenario.system, scenario.options);
  stepper.step(scenario.steps);
  return stepper.certificate();
}

// Masses: maps of every kind, dense in lanes and sparse.
TEST(DrivenFromRest, RoundingIsNoViolation) {
  for (const int masses : {2, 20, 60, 400}) {
    for (const int stages : {1, 2, 3}) {
      for (const double step_s : {0.05, 0.5, 3.0}) {
        EXPECT_EQ(pushed(masses, step_s, stages).status, CertificateStatus::holds)
            << masses << " masses, " << stages << " stages of " << step_s << " s";
      }
    }
  }
}

// A damper that gives 1e-5 N s/m instead of taking them is more than rounding.
TEST(DrivenFromRest, EnergyFromNowhereIs) {
  for (const int masses : {2, 20}) {
    EXPECT_EQ(pushed(masses, 0.5, 1, -1e-5).status, CertificateStatus::violated) << masses;
  }
}

}  // namespace
}  // namespace portwave::test_driven_from_rest
