// Signals as inputs of exported FMUs: a set-point that the importer gives a controller inside.

#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/exported_fmus.hpp"
#include "portwave/runtime/output/recorder.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"

namespace portwave::test_exported_setpoints {
namespace {

using namespace testing;
using fmi::kOk;

/// The force of B follows a controller with an integral part, whose target is a block of this kind.
std::string controlled(const std::string& target, int every = 1) {
  std::string text = oscillators(R"(, "signals": {"blocks": [{"name": "target", )" + target + R"(},
      {"name": "pid", "kind": "pid", "setpoint": "target", "measurement": "B.q2", "proportional": 30,
       "integral": 20, "every": )" +
                                 std::to_string(every) + "}]}");
  const std::string constant = R"({"kind": "constant", "value": 1.5})";
  return text.replace(text.find(constant), constant.size(),
                      R"({"kind": "signal", "signal": "pid"})");
}
const std::string kConstant = R"("kind": "constant", "value": 0.2)";
const std::string kStep = R"("kind": "step", "time_s": 1, "before": 0.2, "after": 0.5)";

/// What the run with the step of the target gives at the end of each tenth of a second.
std::vector<double> expected(int every) {
  const Scenario scenario = parse_scenario(controlled(kStep, every), "test", ".");
  Stepper stepper(scenario.system, scenario.options);
  std::vector<double> out;
  for (int n = 0; n < 20; ++n) {
    stepper.step(10);
    out.push_back(observe(stepper, find_quantity(stepper, "B.q2")));
    out.push_back(observe(stepper, find_quantity(stepper, "B.v2")));
  }
  return out;
}

TEST(ExportedSetpoint, ActsFromTheCommunicationPointOn) {
  for (const int every : {1, 20}) {
    for (const int fmi : {2, 3}) {
      FmuExportOptions options;
      options.fmi = fmi;
      options.library = fmu_folder();
      options.inputs = {"target"};
      options.outputs = {"B.q2", "B.v2"};
      const Exported fmu({controlled(kConstant, every), "test", "."}, options);
      const auto raw = fmu.started();
      EXPECT_EQ(raw->value(fmu["target"]), 0.2);
      std::vector<double> out;
      void* state = nullptr;
      const auto step = [&](int n) {
        ASSERT_EQ(raw->step(0.1 * n, 0.1), kOk) << raw->log;
        for (const char* const name : {"B.q2", "B.v2"}) out.push_back(raw->value(fmu[name]));
      };
      for (int n = 0; n < 20; ++n) {
        if (n == 10) {
          // Another target is tried, and taken back, as a master does that iterates.
          ASSERT_EQ(raw->save(state), kOk);
          ASSERT_EQ(raw->set({fmu["target"]}, {7.0}), kOk);
          ASSERT_EQ(raw->step(1.0, 0.1), kOk);
          ASSERT_EQ(raw->restore(state), kOk);
          for (const double target : {3.0, 0.5})
            ASSERT_EQ(raw->set({fmu["target"]}, {target}), kOk);
        }
        step(n);
      }
      EXPECT_EQ(out, expected(every)) << fmi << " " << every;
      EXPECT_EQ(raw->release(state), kOk);
    }
  }
}

TEST(ExportedSetpoint, IsSettableInRunsToo) {
  const Scenario scenario =
      parse_scenario(controlled(R"("kind": "settable", "initial": 0.2)"), "test", ".");
  Stepper stepper(scenario.system, scenario.options);
  const InputSlot target = stepper.find_input("target");
  EXPECT_EQ(stepper.input(target), 0.2);
  std::vector<double> out;
  for (int n = 0; n < 20; ++n) {
    if (n == 10) stepper.set_input(target, 0.5);
    stepper.step(10);
    out.push_back(observe(stepper, find_quantity(stepper, "B.q2")));
    out.push_back(observe(stepper, find_quantity(stepper, "B.v2")));
  }
  EXPECT_EQ(out, expected(1));
  EXPECT_THROW(stepper.set_input(target, std::numeric_limits<double>::quiet_NaN()),
               std::invalid_argument);
  EXPECT_THROW(stepper.find_input("targets"), std::out_of_range);
  EXPECT_THROW(stepper.set_input(InputSlot{target.slot + 1}, 1.0), std::out_of_range);
}

TEST(ExportedSetpoint, UnknownNamesAreRefusedWithTheNearest) {
  FmuExportOptions options;
  options.library = fmu_folder();
  options.inputs = {"targt"};
  try {
    Exported({controlled(kConstant), "test", "."}, options);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("Did you mean \"target\"?"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace portwave::test_exported_setpoints
