// Exported FMUs: they step as the scenario does, go back, and take what is wrong without harm.

#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/exported_fmus.hpp"
#include "portwave/runtime/output/recorder.hpp"
#include "portwave/runtime/scenario/part_recipes.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"

namespace portwave::test_exported_fmu {
namespace {

using fmi::kDiscard;
using fmi::kError;
using fmi::kOk;
using testing::Exported;
using testing::exported_oscillators;
using testing::oscillators;
using testing::RawFmu;

const std::vector<std::string> kShown = {
    "A.q1", "A.v1",          "A.coupling.effort", "A.coupling.flow",
    "B.q2", "energy.stored", "energy.supplied"};

class ExportedFmu : public ::testing::TestWithParam<int> {
 protected:
  const Exported& fmu() const { return exported_oscillators(GetParam()); }
  std::vector<double> shown(RawFmu& raw) const {
    std::vector<std::uint32_t> which;
    for (const std::string& name : kShown) which.push_back(fmu()[name]);
    std::vector<double> out;
    EXPECT_EQ(raw.get(which, out), kOk) << raw.log;
    return out;
  }
};

INSTANTIATE_TEST_SUITE_P(Fmi, ExportedFmu, ::testing::Values(2, 3));

/// The same run without an FMU.
class Reference {
 public:
  explicit Reference(const std::string& text, double start_s = 0.0)
      : scenario_(parse_scenario(
            text, "test", ".",
            {{"/subsystems/1/inputs/force", R"({"kind": "settable", "initial": 1.5})"}})),
        stepper_(changed_system(scenario_.system, scenario_, {}), options(start_s)) {}
  Stepper& stepper() { return stepper_; }
  const Scenario& scenario() const { return scenario_; }
  std::vector<double> shown() const {
    std::vector<double> out;
    for (const std::string& name : kShown) {
      if (name == "energy.stored") {
        out.push_back(stepper_.energy().final_J);
      } else if (name == "energy.supplied") {
        out.push_back(stepper_.energy().supplied_J);
      } else {
        out.push_back(observe(stepper_, find_quantity(stepper_, name)));
      }
    }
    return out;
  }

 private:
  StepperOptions options(double start_s) const {
    StepperOptions out = scenario_.options;
    out.start_s = start_s;
    return out;
  }
  Scenario scenario_;
  Stepper stepper_;
};

TEST_P(ExportedFmu, TellsWhatItShows) {
  using fmi::Role;
  const fmi::ModelDescription& own = fmu().description;
  EXPECT_EQ(own.name, "two oscillators");
  EXPECT_EQ(own.library, "two_oscillators");
  EXPECT_TRUE(own.saves_state);
  EXPECT_TRUE(own.takes_any_step);
  EXPECT_EQ(own.usual_step_s, 0.01);
  EXPECT_EQ(own.find("B.force")->role, Role::input);
  EXPECT_EQ(own.unit_of(*own.find("B.force"))->powers, (std::array<int, 8>{1, 1, -2}));
  EXPECT_EQ(own.find("A.mass_kg")->role, Role::parameter);
  EXPECT_EQ(own.find("A.coupling.flow")->role, Role::output);
  EXPECT_EQ(own.unit_of(*own.find("A.coupling.flow"))->powers, (std::array<int, 8>{0, 1, -1}));
  EXPECT_EQ(own.find("A.coupling.incident")->unit, "sqrt(J)");
  EXPECT_EQ(own.unit_of(*own.find("A.coupling.incident")), nullptr);
  EXPECT_NE(fmu().xml.find("start=\"1.5\""), std::string::npos);
}

TEST_P(ExportedFmu, StepsAsTheScenarioDoes) {
  const auto raw = fmu().started();
  Reference reference(oscillators());
  EXPECT_EQ(shown(*raw), reference.shown());
  for (int n = 0; n < 50; ++n) {
    ASSERT_EQ(raw->step(0.01 * n, 0.01), kOk) << raw->log;
    reference.stepper().step();
    ASSERT_EQ(shown(*raw), reference.shown()) << "step " << n;
    if (n == 20) {
      ASSERT_EQ(raw->set({fmu()["B.force"]}, {-7.0}), kOk);
      reference.stepper().set_input(reference.stepper().find_input("B.force"), -7.0);
    }
  }
  EXPECT_EQ(raw->value(fmu()["time"]), reference.stepper().time_s());
  EXPECT_EQ(raw->terminate(), kOk);
  EXPECT_EQ(shown(*raw), reference.shown());  // outputs stay
  EXPECT_EQ(raw->log, "");
}

TEST_P(ExportedFmu, TakesAsFewEqualStepsAsKeepEachAtMostTheScenarios) {
  const auto raw = fmu().started();
  Reference reference(oscillators());
  double time_s = 0.0;
  const auto step = [&](double size_s, int count, double each_s) {
    ASSERT_EQ(raw->step(time_s, size_s), kOk) << raw->log;
    time_s += size_s;
    for (int i = 0; i < count; ++i) {
      if (each_s == 0.01) {
        reference.stepper().step();
      } else {
        reference.stepper().step_by(each_s);
      }
    }
    const std::vector<double> own = shown(*raw), other = reference.shown();
    for (std::size_t i = 0; i < own.size(); ++i) {
      ASSERT_NEAR(own[i], other[i], 1e-11 * (1.0 + std::abs(other[i])))
          << kShown[i] << " after " << size_s;
    }
  };
  step(0.03, 3, 0.01);
  step(0.004, 1, 0.004);
  step(0.0137, 2, 0.00685);
  step(0.01, 1, 0.01);
  step(0.1, 10, 0.01);
}

TEST_P(ExportedFmu, AddsUpTimesAsImportersDo) {
  // 0.1 added up is no multiple of 0.01, and the run must not drift from it.
  const auto raw = fmu().started();
  double time_s = 0.0;
  for (int n = 0; n < 3000; ++n) {
    ASSERT_EQ(raw->step(time_s, 0.1 / 3.0), kOk) << raw->log;
    time_s += 0.1 / 3.0;
  }
  EXPECT_NEAR(raw->value(fmu()["time"]), time_s, 1e-7);
}

TEST_P(ExportedFmu, BeginsWhereItIsTold) {
  const auto raw = fmu().started(-3.0);
  EXPECT_EQ(raw->value(fmu()["time"]), -3.0);
  EXPECT_EQ(raw->step(0.0, 0.01), kError);
  EXPECT_NE(raw->log.find("the step begins at 0 s, and the FMU is at -3 s"), std::string::npos)
      << raw->log;
  EXPECT_EQ(raw->step(-3.0, 0.01), kOk);
  EXPECT_EQ(raw->value(fmu()["time"]), -2.99);
}

TEST_P(ExportedFmu, TakesParametersBeforeAndDuringTheRun) {
  const auto raw = fmu().raw();
  ASSERT_TRUE(raw->instantiate(fmu().description.token, fmu().resources()));
  ASSERT_EQ(raw->set({fmu()["A.mass_kg"]}, {5.0}), kOk);
  ASSERT_EQ(raw->setup(0.0), kOk);
  ASSERT_EQ(raw->enter(), kOk);
  ASSERT_EQ(raw->set({fmu()["B.stiffness_N_per_m"], fmu()["B.force"]}, {80.0, 2.0}), kOk);
  ASSERT_EQ(raw->exit(), kOk);
  std::string text = oscillators();
  text.replace(text.find("\"mass_kg\": 8"), 12, "\"mass_kg\": 5");
  text.replace(text.find("\"stiffness_N_per_m\": 50"), 23, "\"stiffness_N_per_m\": 80");
  Reference reference(text);
  reference.stepper().set_input(reference.stepper().find_input("B.force"), 2.0);
  for (int n = 0; n < 20; ++n) {
    if (n == 10) {
      ASSERT_EQ(raw->set({fmu()["A.mass_kg"]}, {6.0}), kOk);
      set_parameter(reference.stepper(), reference.scenario(), "A.mass_kg", 6.0);
      EXPECT_EQ(raw->value(fmu()["A.mass_kg"]), 6.0);
    }
    ASSERT_EQ(raw->step(0.01 * n, 0.01), kOk);
    reference.stepper().step();
  }
  EXPECT_EQ(shown(*raw), reference.shown());
  // Back to the beginning, where the parameters are those of the scenario.
  ASSERT_EQ(raw->reset(), kOk);
  ASSERT_EQ(raw->setup(0.0), kOk);
  ASSERT_EQ(raw->enter(), kOk);
  ASSERT_EQ(raw->exit(), kOk);
  EXPECT_EQ(raw->value(fmu()["A.mass_kg"]), 8.0);
  EXPECT_EQ(shown(*raw), Reference(oscillators()).shown());
}

// Going back.

TEST_P(ExportedFmu, GoesBackBitByBit) {
  const auto raw = fmu().started();
  for (int n = 0; n < 10; ++n) ASSERT_EQ(raw->step(0.01 * n, 0.01), kOk);
  void* state = nullptr;
  ASSERT_EQ(raw->save(state), kOk);
  const std::vector<double> here = shown(*raw);
  const auto go_on = [&](RawFmu& own) {
    EXPECT_EQ(own.set({fmu()["B.force"]}, {3.0}), kOk);
    for (int n = 10; n < 25; ++n) EXPECT_EQ(own.step(0.01 * n, 0.01), kOk) << own.log;
    return shown(own);
  };
  const std::vector<double> there = go_on(*raw);
  EXPECT_NE(there, here);
  ASSERT_EQ(raw->restore(state), kOk);
  EXPECT_EQ(shown(*raw), here);
  EXPECT_EQ(go_on(*raw), there);
  // A parameter that was changed since is what it was.
  ASSERT_EQ(raw->set({fmu()["A.mass_kg"]}, {80.0}), kOk);
  ASSERT_EQ(raw->step(0.25, 0.01), kOk);
  ASSERT_EQ(raw->restore(state), kOk);
  EXPECT_EQ(raw->value(fmu()["A.mass_kg"]), 8.0);
  EXPECT_EQ(go_on(*raw), there);
  ASSERT_EQ(raw->release(state), kOk);
  EXPECT_EQ(state, nullptr);
}

TEST_P(ExportedFmu, GoesOnElsewhereFromBytes) {
  const auto raw = fmu().started();
  ASSERT_EQ(raw->set({fmu()["A.mass_kg"]}, {9.0}), kOk);
  for (int n = 0; n < 10; ++n) ASSERT_EQ(raw->step(0.01 * n, 0.01), kOk);
  void* state = nullptr;
  ASSERT_EQ(raw->save(state), kOk);
  std::vector<std::uint8_t> bytes;
  ASSERT_EQ(raw->serialise(state, bytes), kOk) << raw->log;
  // Into an instance that began with other parameters, at another time, and into one that has not begun.
  const auto other = fmu().raw();
  ASSERT_TRUE(other->instantiate(fmu().description.token, fmu().resources()));
  ASSERT_EQ(other->set({fmu()["A.mass_kg"]}, {3.0}), kOk);
  ASSERT_EQ(other->setup(5.0), kOk);
  ASSERT_EQ(other->enter(5.0), kOk);
  ASSERT_EQ(other->exit(), kOk);
  const auto fresh = fmu().raw();
  ASSERT_TRUE(fresh->instantiate(fmu().description.token, fmu().resources()));
  for (RawFmu* const own : {other.get(), fresh.get()}) {
    void* copy = nullptr;
    ASSERT_EQ(own->deserialise(bytes, copy), kOk) << own->log;
    ASSERT_EQ(own->restore(copy), kOk) << own->log;
    ASSERT_EQ(own->release(copy), kOk);
    EXPECT_EQ(shown(*own), shown(*raw));
    EXPECT_EQ(own->value(fmu()["A.mass_kg"]), 9.0);
  }
  for (int n = 10; n < 20; ++n) {
    for (RawFmu* const own : {raw.get(), other.get(), fresh.get()}) {
      ASSERT_EQ(own->step(0.01 * n, 0.01), kOk) << own->log;
    }
  }
  EXPECT_EQ(shown(*other), shown(*raw));
  EXPECT_EQ(shown(*fresh), shown(*raw));
  ASSERT_EQ(raw->release(state), kOk);
}

TEST_P(ExportedFmu, RefusesBytesThatAreNoStateOfIt) {
  const auto raw = fmu().started();
  ASSERT_EQ(raw->step(0.0, 0.01), kOk);
  void* state = nullptr;
  ASSERT_EQ(raw->save(state), kOk);
  std::vector<std::uint8_t> bytes;
  ASSERT_EQ(raw->serialise(state, bytes), kOk);
  const std::vector<double> here = shown(*raw);
  for (std::size_t at = 0; at < bytes.size(); at += 7) {
    std::vector<std::uint8_t> damaged = bytes;
    damaged[at] ^= 0x55;
    void* copy = nullptr;
    EXPECT_EQ(raw->deserialise(damaged, copy), kError) << at;
    EXPECT_EQ(copy, nullptr);
  }
  EXPECT_EQ(shown(*raw), here);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, bytes.size() / 2, bytes.size() - 1}) {
    const std::vector<std::uint8_t> cut(bytes.begin(),
                                        bytes.begin() + static_cast<std::ptrdiff_t>(size));
    void* copy = nullptr;
    EXPECT_EQ(raw->deserialise(cut, copy), kError) << size;
    EXPECT_EQ(copy, nullptr);
  }
  ASSERT_EQ(raw->release(state), kOk);
}

TEST_P(ExportedFmu, KnowsStatesOfItsOwnAlone) {
  const auto raw = fmu().started(), other = fmu().started();
  ASSERT_EQ(raw->step(0.0, 0.01), kOk);
  void *own = nullptr, *gone = nullptr, *of_other = nullptr;
  ASSERT_EQ(raw->save(own), kOk);
  ASSERT_EQ(raw->save(gone), kOk);
  ASSERT_EQ(other->save(of_other), kOk);
  void* const freed = gone;
  ASSERT_EQ(raw->release(gone), kOk);
  const std::vector<double> here = shown(*raw);
  double garbage = 0.0;
  std::vector<std::uint8_t> bytes;
  for (void* const bad : {static_cast<void*>(&garbage), freed, of_other}) {
    void* handle = bad;
    EXPECT_EQ(raw->restore(bad), kError);
    EXPECT_EQ(raw->save(handle), kError);
    EXPECT_EQ(raw->release(handle), kError);
    EXPECT_EQ(raw->serialise(bad, bytes), kError);
    EXPECT_EQ(handle, bad);
  }
  EXPECT_NE(raw->log.find("this is no saved state of this instance"), std::string::npos)
      << raw->log;
  EXPECT_EQ(shown(*raw), here);
  // Bytes make a new state, whatever stands in its place; a state that is known is written over.
  ASSERT_EQ(raw->serialise(own, bytes), kOk);
  void* copy = &garbage;
  ASSERT_EQ(raw->deserialise(bytes, copy), kOk);
  EXPECT_NE(copy, &garbage);
  ASSERT_EQ(raw->step(0.01, 0.01), kOk);
  void* again = own;
  ASSERT_EQ(raw->save(again), kOk);
  EXPECT_EQ(again, own);
  ASSERT_EQ(raw->restore(copy), kOk);
  EXPECT_EQ(shown(*raw), here);
  EXPECT_EQ(other->restore(of_other), kOk);
}

// What goes wrong.

TEST_P(ExportedFmu, DiscardsAStepThatFailsAndGoesOn) {
  const auto raw = fmu().started(), other = fmu().started();
  ASSERT_EQ(raw->step(0.0, 0.02), kOk);
  ASSERT_EQ(other->step(0.0, 0.02), kOk);
  ASSERT_EQ(raw->set({fmu()["B.force"]}, {1e300}), kOk);
  ASSERT_EQ(raw->step(0.02, 0.03), kDiscard);
  EXPECT_NE(raw->log.find("failed in step 2"), std::string::npos) << raw->log;
  const double time_s = raw->value(fmu()["time"]);
  EXPECT_EQ(time_s, 0.02);
  EXPECT_TRUE(std::isfinite(raw->value(fmu()["B.v2"])));
  ASSERT_EQ(raw->set({fmu()["B.force"]}, {1.5}), kOk);
  ASSERT_EQ(raw->step(time_s, 0.03), kOk) << raw->log;
  ASSERT_EQ(other->step(0.02, 0.03), kOk);
  EXPECT_EQ(shown(*raw), shown(*other));
}

TEST_P(ExportedFmu, RefusesParametersThatThePartRefusesBeforeTheRun) {
  const auto raw = fmu().raw();
  ASSERT_TRUE(raw->instantiate(fmu().description.token, fmu().resources()));
  EXPECT_EQ(raw->set({fmu()["A.mass_kg"]}, {-1.0}), kDiscard);
  EXPECT_NE(raw->log.find("\"A.mass_kg\" cannot be -1"), std::string::npos) << raw->log;
  ASSERT_EQ(raw->setup(0.0), kOk);
  ASSERT_EQ(raw->enter(), kOk);
  // All or none.
  EXPECT_EQ(raw->set({fmu()["B.force"], fmu()["A.mass_kg"]}, {4.0, -1.0}), kDiscard);
  EXPECT_EQ(raw->value(fmu()["B.force"]), 1.5);
  EXPECT_EQ(raw->value(fmu()["A.mass_kg"]), 8.0);
  ASSERT_EQ(raw->exit(), kOk) << raw->log;
  EXPECT_EQ(shown(*raw), Reference(oscillators()).shown());
}

TEST_P(ExportedFmu, RefusesValuesThatAreNotFinite) {
  const auto raw = fmu().started();
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(raw->set({fmu()["B.force"]}, {bad}), kDiscard);
  }
  EXPECT_NE(raw->log.find("\"B.force\" must be finite, got nan"), std::string::npos) << raw->log;
  EXPECT_EQ(raw->value(fmu()["B.force"]), 1.5);
  // All or none: the force keeps its value where the mass is refused.
  EXPECT_EQ(raw->set({fmu()["B.force"], fmu()["A.mass_kg"]}, {4.0, -1.0}), kDiscard);
  EXPECT_NE(raw->log.find("\"A.mass_kg\" cannot be -1"), std::string::npos) << raw->log;
  EXPECT_EQ(raw->value(fmu()["B.force"]), 1.5);
  EXPECT_EQ(raw->value(fmu()["A.mass_kg"]), 8.0);
  EXPECT_NE(raw->set({fmu()["A.q1"]}, {1.0}), kOk);
  EXPECT_NE(raw->log.find("\"A.q1\" cannot be set"), std::string::npos) << raw->log;
  EXPECT_EQ(raw->step(0.0, 0.01), kOk);
}

TEST_P(ExportedFmu, RefusesReferencesThatThereAreNot) {
  const auto raw = fmu().started();
  std::vector<double> values;
  for (const std::uint32_t bad : {1000U, 0xffffffffU}) {
    EXPECT_EQ(raw->get({fmu()["A.q1"], bad}, values), kError);
    EXPECT_EQ(raw->set({fmu()["B.force"], bad}, {9.0, 9.0}), kError);
  }
  EXPECT_EQ(raw->value(fmu()["B.force"]), 1.5);
  EXPECT_NE(raw->log.find("there is no variable with the value reference 1000"), std::string::npos)
      << raw->log;
  const char* const integers = GetParam() == 2 ? "fmi2GetInteger" : "fmi3GetInt32";
  const std::uint32_t which = fmu()["A.q1"];
  int value = 0;
  if (GetParam() == 2) {
    EXPECT_EQ(raw->function<decltype(fmi::v2::Functions::GetInteger)>(integers)(raw->instance(),
                                                                                &which, 1, &value),
              kError);
  } else {
    EXPECT_EQ(raw->function<decltype(fmi::v3::Functions::GetInt32)>(integers)(raw->instance(),
                                                                              &which, 1, &value, 1),
              kError);
    double number = 0.0;
    EXPECT_EQ(raw->function<decltype(fmi::v3::Functions::GetFloat64)>("fmi3GetFloat64")(
                  raw->instance(), &which, 1, &number, 3),
              kError);
  }
}

TEST_P(ExportedFmu, RefusesCallsOutOfOrder) {
  const auto raw = fmu().raw();
  ASSERT_TRUE(raw->instantiate(fmu().description.token, fmu().resources()));
  std::vector<double> values;
  EXPECT_EQ(raw->step(0.0, 0.01), kError);
  EXPECT_NE(
      raw->log.find("DoStep: not to be called now, the instance is before its initialisation"),
      std::string::npos)
      << raw->log;
  EXPECT_EQ(raw->exit(), kError);
  EXPECT_EQ(raw->terminate(), kError);
  EXPECT_EQ(raw->get({fmu()["A.q1"]}, values), kError);
  EXPECT_EQ(raw->setup(0.0), kOk);
  EXPECT_EQ(raw->enter(), kOk);
  EXPECT_EQ(raw->enter(), kError);
  EXPECT_EQ(raw->step(0.0, 0.01), kError);
  EXPECT_EQ(raw->get({fmu()["A.q1"]}, values), kOk);
  EXPECT_EQ(raw->exit(), kOk);
  EXPECT_EQ(raw->exit(), kError);
  for (const double bad : {0.0, -0.01, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(raw->step(0.0, bad), kError) << bad;
  }
  EXPECT_EQ(raw->step(std::nan(""), 0.01), kError);
  EXPECT_EQ(raw->value(fmu()["time"]), 0.0);
  EXPECT_EQ(raw->step(0.0, 0.01), kOk);
  EXPECT_EQ(raw->terminate(), kOk);
  EXPECT_EQ(raw->terminate(), kError);
  EXPECT_EQ(raw->step(0.01, 0.01), kError);
  EXPECT_EQ(raw->set({fmu()["B.force"]}, {1.0}), kError);
}

TEST_P(ExportedFmu, RefusesNullPointers) {
  const auto raw = fmu().started();
  using Get2 = decltype(fmi::v2::Functions::GetReal);
  using Get3 = decltype(fmi::v3::Functions::GetFloat64);
  if (GetParam() == 2) {
    EXPECT_EQ(raw->function<Get2>("fmi2GetReal")(raw->instance(), nullptr, 1, nullptr), kError);
    EXPECT_EQ(raw->function<Get2>("fmi2GetReal")(raw->instance(), nullptr, 0, nullptr), kOk);
    EXPECT_EQ(raw->function<Get2>("fmi2GetReal")(nullptr, nullptr, 0, nullptr), kError);
  } else {
    EXPECT_EQ(raw->function<Get3>("fmi3GetFloat64")(raw->instance(), nullptr, 1, nullptr, 1),
              kError);
    EXPECT_EQ(raw->function<Get3>("fmi3GetFloat64")(raw->instance(), nullptr, 0, nullptr, 0), kOk);
    EXPECT_EQ(raw->function<Get3>("fmi3GetFloat64")(nullptr, nullptr, 0, nullptr, 0), kError);
  }
  EXPECT_EQ(raw->restore(nullptr), kError);
  void* none = nullptr;
  EXPECT_EQ(raw->release(none), kOk);
  std::vector<std::uint8_t> bytes;
  EXPECT_EQ(raw->serialise(nullptr, bytes), kError);
}

TEST_P(ExportedFmu, RefusesOtherResourcesAndSaysSo) {
  const auto raw = fmu().raw();
  EXPECT_FALSE(raw->instantiate("{another}", fmu().resources()));
  EXPECT_NE(raw->log.find("are not of one FMU"), std::string::npos) << raw->log;
  EXPECT_FALSE(raw->instantiate(fmu().description.token, "/nowhere"));
  EXPECT_NE(raw->log.find("\"/nowhere/model.json\" cannot be read"), std::string::npos) << raw->log;
  // What formats and importers read as marks is told as it is.
  EXPECT_FALSE(raw->instantiate(fmu().description.token, "/nowhere%s%n"));
  EXPECT_NE(raw->log.find("\"/nowhere%s%n/model.json\" cannot be read"), std::string::npos)
      << raw->log;
  EXPECT_FALSE(raw->instantiate(fmu().description.token, ""));
  EXPECT_NE(raw->log.find("no folder of resources was given"), std::string::npos) << raw->log;
  if (GetParam() == 2) {
    EXPECT_FALSE(raw->instantiate(fmu().description.token, fmu().resources(), /*kind=*/0));
    EXPECT_NE(raw->log.find("for co-simulation alone"), std::string::npos) << raw->log;
  }
  EXPECT_TRUE(raw->instantiate(fmu().description.token, fmu().resources()));
}

TEST_P(ExportedFmu, StandsBesideOthers) {
  // Two in turn, and four on threads of their own.
  const auto a = fmu().started(), b = fmu().started();
  ASSERT_EQ(b->set({fmu()["B.force"]}, {-20.0}), kOk);
  const auto alone = fmu().started();
  for (int n = 0; n < 20; ++n) {
    ASSERT_EQ(a->step(0.01 * n, 0.01), kOk);
    ASSERT_EQ(b->step(0.01 * n, 0.01), kOk);
  }
  for (int n = 0; n < 20; ++n) ASSERT_EQ(alone->step(0.01 * n, 0.01), kOk);
  EXPECT_EQ(shown(*a), shown(*alone));
  EXPECT_NE(shown(*b), shown(*alone));
  std::vector<std::vector<double>> results(4);
  std::vector<std::thread> threads;
  for (std::vector<double>& own : results) {
    threads.emplace_back([this, &own] {
      const auto raw = fmu().started();
      for (int n = 0; n < 20; ++n) raw->step(0.01 * n, 0.01);
      own = shown(*raw);
    });
  }
  for (std::thread& own : threads) own.join();
  for (const std::vector<double>& own : results) EXPECT_EQ(own, shown(*alone));
}

TEST(ExportedFmu2, TellsTheTimeThatADiscardedStepCameTo) {
  const Exported& fmu = exported_oscillators(2);
  const auto raw = fmu.started();
  ASSERT_EQ(raw->step(0.0, 0.01), kOk);
  double time_s = 0.0;
  const auto status = raw->function<int (*)(void*, int, double*)>("fmi2GetRealStatus");
  ASSERT_EQ(status(raw->instance(), 2, &time_s), kOk);
  EXPECT_EQ(time_s, 0.01);
  // Of what there is not, the standard's answer is to discard.
  EXPECT_EQ(status(raw->instance(), 0, &time_s), kDiscard);
  int number = 0;
  for (const char* name : {"fmi2GetStatus", "fmi2GetIntegerStatus", "fmi2GetBooleanStatus"}) {
    EXPECT_EQ(raw->function<int (*)(void*, int, int*)>(name)(raw->instance(), 0, &number), kDiscard)
        << name;
  }
}

TEST(ExportedFmu2, IsResetToTheStartOfTheScenario) {
  const Exported& fmu = exported_oscillators(2);
  const auto raw = fmu.started(-3.0);
  ASSERT_EQ(raw->step(-3.0, 0.01), kOk);
  ASSERT_EQ(raw->reset(), kOk);
  ASSERT_EQ(raw->enter(), kOk);
  EXPECT_EQ(raw->value(fmu["time"]), 0.0);
}

TEST(ExportedFmu3, IsForCoSimulationAlone) {
  const Exported& fmu = exported_oscillators(3);
  const auto raw = fmu.started();
  EXPECT_EQ(raw->plain("EnterStepMode"), kOk);
  EXPECT_EQ(raw->plain("EnterEventMode"), kError);
  EXPECT_EQ(raw->plain("EnterContinuousTimeMode"), kError);
  EXPECT_NE(raw->log.find("does not offer it"), std::string::npos) << raw->log;
  ASSERT_EQ(raw->step(0.0, 0.02), kOk);
  EXPECT_EQ(raw->last_s, 0.02);
}

}  // namespace
}  // namespace portwave::test_exported_fmu
