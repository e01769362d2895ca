// Snapshots, clones and ways back of runs with FMUs as parts: their states are bytes that the FMUs write.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/discrete_fmu.hpp"
#include "adapters/fmu_pair.hpp"
#include "portwave/runtime/step/snapshot.hpp"

namespace portwave::test_fmu_snapshots {
namespace {

using namespace portwave::testing;

constexpr double kStep = kFmuStep;

FmuPair writing_pair() {
  FmuPair pair;
  pair.writes_state = true;
  pair.mass_outputs = {"v", "x", "steps"};  // calls are counted for all instances of a process
  return pair;
}

std::vector<double> after(Stepper& stepper, int steps) {
  std::vector<double> out;
  for (int n = 0; n < steps; ++n) {
    stepper.step();
    for (const int part : {0, 1}) {
      const auto x = stepper.state(part);
      out.insert(out.end(), x.begin(), x.end());
    }
    out.push_back(stepper.energy().metered_J);
    out.push_back(stepper.time_s());
  }
  return out;
}

TEST(FmuSnapshots, AreGoneBackToBitByBit) {
  for (const int version : {2, 3}) {
    for (const bool in_process : {false, true}) {
      FmuFolder folder;
      FmuPair pair = writing_pair();
      pair.mass_version = version;
      pair.spring_version = 5 - version;
      pair.mass_in_process = pair.spring_in_process = in_process;
      const System system = pair.build(folder);
      Stepper stepper(system, options(kStep, 30, 1e-11));
      const Snapshot start = stepper.snapshot();
      const std::vector<double> first = after(stepper, 20);
      const Snapshot middle = stepper.snapshot();
      const std::vector<double> second = after(stepper, 20);
      stepper.restore(middle);
      EXPECT_EQ(after(stepper, 20), second) << version << in_process;
      stepper.restore(start);
      EXPECT_EQ(after(stepper, 20), first) << version << in_process;
      // A clone has instances of its own; another run, as after a checkpoint, has the bytes alone.
      stepper.restore(middle);
      Stepper clone = stepper.clone();
      EXPECT_EQ(after(clone, 20), second) << version << in_process;
      Stepper other(system, options(kStep, 30, 1e-11));
      other.restore(Snapshot::from_bytes(middle.to_bytes()));
      EXPECT_EQ(after(other, 20), second) << version << in_process;
      EXPECT_EQ(after(stepper, 20), second) << version << in_process;
    }
  }
}

/// Beats within steps, and their announced times, which the importer keeps beside what the FMU writes.
TEST(FmuSnapshots, HoldTheNextEvent) {
  for (const bool in_process : {false, true}) {
    FmuFolder folder;
    FmuPartOptions o = part_options(add_discrete(folder), takes_force(),
                                    {{"x0", 1.0}, {"beat", 0.07}, {"kick", 0.3}}, 0.05);
    o.outputs = {"x", "v", "beats", "events"};
    o.process = in_process;
    SystemBuilder builder;
    builder.add("ball", make_fmu_part(o).component);
    builder.add("other", make_fmu_part(o).component);
    for (const char* const port : {"ball.port", "other.port"}) builder.join(joint::Free{}, {port});
    const System system = builder.build();
    Stepper stepper(system, options(0.05, 60, 1e-12));
    stepper.step(9);
    const Snapshot before = stepper.snapshot();
    const std::vector<double> first = after(stepper, 20);
    EXPECT_GT(stepper.state(0)[2], 10.0);
    Stepper other(system, options(0.05, 60, 1e-12));
    other.restore(before);
    EXPECT_EQ(after(other, 20), first) << in_process;
  }
}

TEST(FmuSnapshots, ThatCannotBeAreRefusedWithThePart) {
  for (const bool writes : {false, true}) {
    FmuFolder folder;
    FmuPair pair = writing_pair();
    pair.writes_state = writes;
    if (writes) pair.rollback = false;
    const System system = pair.build(folder);
    Stepper stepper(system, options(kStep, 30, 1e-11));
    stepper.step(3);
    for (const std::string& text : {failure_of([&] { static_cast<void>(stepper.snapshot()); }),
                                    failure_of([&] { static_cast<void>(stepper.clone()); })}) {
      EXPECT_TRUE(has(text, "part \"mass\"")) << text;
      EXPECT_TRUE(has(text, writes ? "steps are taken once" : "canSerializeFMUstate")) << text;
    }
  }
}

/// Blocks that are FMUs beside one that is settable, of which the states before the last sample are kept, too.
TEST(FmuSnapshots, HoldBlocks) {
  const Json json = Json::parse(R"({
    "name": "x", "time": {"step_s": 0.01, "end_s": 1},
    "subsystems": [{"name": "seen", "type": "linear_oscillator",
                    "parameters": {"mass_kg": 1, "stiffness_N_per_m": 4}, "initial_state": {"q2": 1},
                    "inputs": {"force": {"kind": "signal", "signal": "mass[0]"}}}],
    "couplings": [{"kind": "free", "ports": ["seen.coupling"]}],
    "signals": {"blocks": [
      {"kind": "settable", "name": "push", "initial": 5},
      {"kind": "fmu", "name": "mass", "path": "mass.fmu", "signals": {"F": "push"}, "outputs": ["v", "x"]}]}})");
  const auto go_on = [](Stepper& stepper) {
    std::vector<double> out;
    for (int n = 0; n < 20; ++n) {
      if (n == 5) stepper.set_input(stepper.find_input("push"), -3.0);
      stepper.step();
      out.insert(out.end(), stepper.signals().begin(), stepper.signals().end());
      out.push_back(stepper.state(0)[0]);
    }
    return out;
  };
  for (const int version : {2, 3}) {
    FmuFolder folder;
    folder.add("mass.fmu", FmuRecipe{.version = version, .writes_state = true});
    const Scenario scenario = read(folder, json), again = read(folder, json);
    Stepper stepper(scenario.system, scenario.options);
    stepper.step(10);
    const Snapshot middle = stepper.snapshot();
    const std::vector<double> expected = go_on(stepper);
    stepper.restore(middle);
    EXPECT_EQ(go_on(stepper), expected) << version;
    Stepper other(again.system, again.options);
    other.restore(Snapshot::from_bytes(middle.to_bytes()));
    EXPECT_EQ(go_on(other), expected) << version;
    const std::string cloned = failure_of([&] { static_cast<void>(stepper.clone()); });
    EXPECT_TRUE(has(cloned, "block \"mass\" is a program")) << cloned;
    folder.add("mass.fmu", FmuRecipe{.version = version});
    const Scenario silent = read(folder, json);
    Stepper refused(silent.system, silent.options);
    const std::string text = failure_of([&] { static_cast<void>(refused.snapshot()); });
    EXPECT_TRUE(has(text, "block \"mass\" cannot go back")) << text;
    EXPECT_TRUE(has(text, "canSerializeFMU")) << text;
  }
}

/// The FMU is asked nothing then, and the run stands.
TEST(FmuSnapshots, OfAnotherFmuAreRefused) {
  FmuFolder folder;
  FmuPair pair = writing_pair();
  const System system = pair.build(folder);
  Stepper stepper(system, options(kStep, 30, 1e-11));
  stepper.step(5);
  FmuPair other_pair = pair;
  other_pair.mass_version = 3;
  FmuFolder other_folder;
  const System other_system = other_pair.build(other_folder);
  Stepper other(other_system, options(kStep, 30, 1e-11));
  const Snapshot foreign = other.snapshot();
  const std::string text = failure_of([&] { stepper.restore(foreign); });
  EXPECT_TRUE(has(text, "part \"mass\": it was another FMU than")) << text;
  EXPECT_NEAR((stepper.step(15), stepper.state(0)[1]), pair.whole(kStep, 20), 1e-9);
}

}  // namespace
}  // namespace portwave::test_fmu_snapshots
