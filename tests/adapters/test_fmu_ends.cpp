// Exported scenarios in which an event ends the run: the FMU asks its importer to end the simulation.

#include <string>

#include <gtest/gtest.h>

#include "adapters/exported_fmus.hpp"
#include "portwave/runtime/scenario/scenario.hpp"

namespace portwave::testing {
namespace {

using fmi::kDiscard;
using fmi::kOk;

Exported exported(int fmi, const char* ends) {
  FmuExportOptions options;
  options.fmi = fmi;
  options.outputs = {"A.q1", "A.v1"};
  return Exported(
      {oscillators(std::string(R"(, "events": [{"name": "through", "of": "A.q1", "end_run": )") +
                   ends + "}]"),
       "test", "."},
      options);
}

/// When the run of the scenario ends.
double end_of_run_s() {
  const Scenario scenario = parse_scenario(
      oscillators(R"(, "events": [{"name": "through", "of": "A.q1", "end_run": true}])"), "test",
      ".");
  Stepper stepper(scenario.system, scenario.options);
  stepper.run_until(scenario.end_s > 0.0 ? scenario.end_s : 10.0);
  EXPECT_NE(stepper.ending_watch(), nullptr);
  return stepper.time_s();
}

TEST(FmuEnds, Fmi2StopsThereAndSaysThatItIsTerminated) {
  const Exported fmu = exported(2, "true"), control = exported(2, "false");
  const auto raw = fmu.started(), free = control.started();
  const auto terminated = [](RawFmu& of) {
    int value = -1;
    EXPECT_EQ(
        of.function<int (*)(void*, int, int*)>("fmi2GetBooleanStatus")(of.instance(), 3, &value),
        kOk);
    return value;
  };
  EXPECT_EQ(terminated(*raw), 0);
  EXPECT_EQ(raw->step(0.0, 5.0), kDiscard);
  EXPECT_NE(raw->log.find("\"through\""), std::string::npos) << raw->log;
  EXPECT_EQ(terminated(*raw), 1);
  double last_s = -1.0;
  EXPECT_EQ(
      raw->function<int (*)(void*, int, double*)>("fmi2GetRealStatus")(raw->instance(), 2, &last_s),
      kOk);
  EXPECT_EQ(last_s, end_of_run_s());
  EXPECT_GT(last_s, 0.05);
  EXPECT_LT(last_s, 5.0);
  EXPECT_LE(raw->value(fmu["A.q1"]), 0.0);
  // An importer that goes on all the same can.
  EXPECT_EQ(raw->step(last_s, 0.01), kOk) << raw->log;
  EXPECT_EQ(terminated(*raw), 0);

  EXPECT_EQ(free->step(0.0, 5.0), kOk) << free->log;
  EXPECT_EQ(terminated(*free), 0);
}

TEST(FmuEnds, Fmi3AsksAtTheEndOfTheStep) {
  const double end_s = end_of_run_s();
  for (const bool ends : {true, false}) {
    const Exported fmu = exported(3, ends ? "true" : "false");
    const auto raw = fmu.started();
    const auto asks_after = [&](double from_s, double size_s) {
      bool event = true, terminates = !ends, early = true;
      double last_s = -1.0;
      EXPECT_EQ((raw->function<int (*)(void*, double, double, bool, bool*, bool*, bool*, double*)>(
                    "fmi3DoStep")(raw->instance(), from_s, size_s, true, &event, &terminates,
                                  &early, &last_s)),
                kOk)
          << raw->log;
      EXPECT_FALSE(event || early);
      EXPECT_DOUBLE_EQ(last_s, from_s + size_s);
      return terminates;
    };
    const double before_s = end_s - 0.02;
    EXPECT_FALSE(asks_after(0.0, before_s));
    EXPECT_EQ(asks_after(before_s, 0.05), ends);
    EXPECT_FALSE(asks_after(before_s + 0.05, 0.01));
  }
}

}  // namespace
}  // namespace portwave::testing
