// FMUs in processes of their own: the same numbers as in this process, and crashes and hangs that are faults of the run
// like others. The library "rogue" of the fixture does harm where and how it is told (fixtures/fmu/rogue.h).

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "adapters/exported_fmus.hpp"
#include "adapters/fmu_pair.hpp"

namespace portwave::test_isolated_fmus {
namespace {

using testing::failure_of;
using testing::FmuFolder;
using testing::FmuPair;
using testing::FmuRecipe;
using testing::has;
using testing::Json;
using testing::options;
using testing::read;

constexpr double kStep = testing::kFmuStep;

/// All that a run gives, step by step.
std::vector<double> numbers_of(Stepper& stepper, int steps) {
  std::vector<double> out;
  for (int n = 0; n < steps; ++n) {
    stepper.step();
    for (int part = 0; part < 2; ++part) {
      const auto state = stepper.state(part);
      out.insert(out.end(), state.begin(), state.end());
    }
    out.push_back(stepper.energy().metered_J);
    out.push_back(stepper.energy().supplied_J);
  }
  return out;
}

FmuPair pair_without_calls() {
  FmuPair pair;
  pair.mass_outputs = {"v", "x", "steps"};  // calls are counted for all instances of a process
  return pair;
}

std::vector<double> numbers_of(const FmuPair& pair, const StepperOptions& with) {
  FmuFolder folder;
  const System system = pair.build(folder);
  Stepper stepper(system, with);
  return numbers_of(stepper, 100);
}

TEST(IsolatedFmu, GivesTheSameBits) {
  for (const int version : {2, 3}) {
    for (const double tolerance : {0.0, 1e-11}) {
      FmuPair pair = pair_without_calls();
      pair.mass_version = version;
      pair.spring_version = 5 - version;
      const StepperOptions with = options(kStep, tolerance > 0.0 ? 30 : 2, tolerance);
      const std::vector<double> here = numbers_of(pair, with);
      for (const auto& [mass, spring] : {std::pair{true, false}, {false, true}, {true, true}}) {
        pair.mass_in_process = mass;
        pair.spring_in_process = spring;
        EXPECT_EQ(numbers_of(pair, with), here) << version << ' ' << mass << spring;
      }
    }
  }
}

/// As "abort" if it could; a run without isolation shows that it tries.
TEST(IsolatedFmu, CannotSignalTheEngine) {
  for (const bool in_process : {true, false}) {
    FmuFolder folder;
    FmuPair pair;
    pair.mass_library = "rogue";
    pair.mass_harm = "step signal";
    pair.mass_in_process = in_process;
    const auto run = [&] {
      const System system = pair.build(folder);
      Stepper stepper(system, options(kStep, 30, 1e-11));
      stepper.step(20);
      EXPECT_NEAR(stepper.state(0)[1], pair.whole(kStep, 20), 1e-9);
    };
    if (in_process) {
      run();
    } else {
      EXPECT_DEATH(run(), "");
    }
  }
}

TEST(IsolatedFmuControl, AnotherMassGivesOtherBits) {
  FmuPair pair = pair_without_calls();
  const std::vector<double> here = numbers_of(pair, options(kStep, 2, 0.0));
  pair.m *= 1.0 + 1e-15;
  pair.mass_in_process = true;
  EXPECT_NE(numbers_of(pair, options(kStep, 2, 0.0)), here);
}

TEST(IsolatedFmu, SeveralStepInParallel) {
  const auto run = [](bool in_process, int threads) {
    FmuFolder folder;
    const auto mass_file = folder.add("mass.fmu", FmuRecipe{.version = 2});
    const auto spring_file = folder.add("spring.fmu", FmuRecipe{.version = 3, .library = "spring"});
    SystemBuilder builder;
    std::vector<std::string> masses;
    for (int i = 0; i < 3; ++i) {
      FmuPartOptions mass = testing::part_options(mass_file, testing::takes_force(),
                                                  {{"mass", 1.0 + i}, {"start.x", 0.1 * i}});
      FmuPartOptions spring = testing::part_options(spring_file, testing::takes_speed(),
                                                    {{"k", 50.0 + i}, {"start.x", 0.1 * i}});
      mass.outputs = spring.outputs = {"x", "steps"};
      mass.process = spring.process = in_process;
      mass.time_limit_s = spring.time_limit_s = 60.0;
      builder.add(fmt::format("mass{}", i), make_fmu_part(mass).component);
      builder.add(fmt::format("spring{}", i), make_fmu_part(spring).component);
      builder.join(joint::CommonFlow{},
                   {fmt::format("mass{}.port", i), fmt::format("spring{}.port", i)});
    }
    const System system = builder.build();
    StepperOptions with = options(kStep, 3, 0.0);
    with.threads = threads;
    with.executor = threads > 1 ? ExecutorKind::async : ExecutorKind::serial;
    Stepper stepper(system, with);
    return numbers_of(stepper, 50);
  };
  const std::vector<double> here = run(false, 1);
  EXPECT_EQ(run(true, 1), here);
  EXPECT_EQ(run(true, 2), here);
}

/// More numbers at once than the memory holds that an FMU starts with.
TEST(IsolatedFmu, TakesManyVariables) {
  constexpr int kMany = 20'000;
  std::string more;
  std::vector<std::string> names = {"x", "v"};
  for (int i = 0; i < kMany; ++i) {
    names.push_back(fmt::format("many{}", i));
    // Each is the position, the force, the mass, … once more.
    more += testing::fmu_variable(2, names.back(), 1 + i % 6, "local", "");
  }
  const auto run = [&](bool in_process) {
    FmuFolder folder;
    FmuPartOptions part =
        testing::part_options(folder.add("many.fmu", FmuRecipe{.more_variables = more}),
                              testing::takes_force(), {{"start.v", 1.0}});
    part.outputs = names;
    part.process = in_process;
    part.time_limit_s = 60.0;
    SystemBuilder builder;
    builder.add("many", make_fmu_part(part).component);
    builder.join(joint::Free{}, {"many.port"});
    const System system = builder.build();
    Stepper stepper(system, options(kStep, 1, 0.0));
    stepper.step(20);
    const auto state = stepper.state(0);
    return std::vector<double>(state.begin(), state.end());
  };
  const std::vector<double> here = run(false);
  ASSERT_EQ(here.size(), names.size());
  EXPECT_NE(here[0], 0.0);
  EXPECT_EQ(run(true), here);
}

TEST(IsolatedFmu, TakesTexts) {
  for (const int version : {2, 3}) {
    FmuFolder folder;
    FmuPartOptions part = testing::part_options(folder.add("x.fmu", FmuRecipe{.version = version}),
                                                testing::takes_force(), {{"label", "seven!!"}});
    part.outputs = {"d"};
    part.process = true;
    EXPECT_EQ(make_fmu_part(part).component->default_state()[0], 7.0);
  }
}

TEST(IsolatedFmu, ThatMayBeInstantiatedOncePerProcessMayBeTwoParts) {
  FmuFolder folder;
  FmuPartOptions part =
      testing::part_options(folder.add("once.fmu", FmuRecipe{.is_only_once = true}),
                            testing::takes_force(), {{"start.v", 1.0}});
  const FmuPart first = make_fmu_part(part);
  const std::string refusal = failure_of([&] { make_fmu_part(part); });
  EXPECT_TRUE(has(refusal, "is in use already: give its parts \"process\": true")) << refusal;
  part.process = true;
  SystemBuilder builder;
  builder.add("a", make_fmu_part(part).component);
  builder.add("b", make_fmu_part(part).component);
  builder.join(joint::Free{}, {"a.port"});
  builder.join(joint::Free{}, {"b.port"});
  const System system = builder.build();
  Stepper one(system, options(kStep, 1, 0.0)), another(system, options(kStep, 1, 0.0));
  one.step(10);
  another.step(10);
  EXPECT_EQ(one.state(0)[1], one.state(1)[1]);
  EXPECT_EQ(one.state(0)[1], another.state(0)[1]);
  EXPECT_NE(one.state(0)[1], 0.0);
}

// Statuses are told as they are here, with what the FMU logs.

TEST(IsolatedFmu, TellsFaultsAlike) {
  for (const char* const library : {"discards", "fails", "is_fatal", "not_a_number", "jitters",
                                    "forgets", "no_instance", "fails_at_start"}) {
    for (const int version : {2, 3}) {
      const auto told = [&](bool in_process) {
        FmuFolder folder;
        FmuPair pair = pair_without_calls();
        pair.mass_version = version;
        pair.mass_library = library;
        pair.mass_in_process = in_process;
        return failure_of([&] {
          const System system = pair.build(folder);
          Stepper stepper(system, options(kStep, 4, 0.0));
          stepper.step(50);
        });
      };
      const std::string here = told(false);
      EXPECT_EQ(here.empty(), std::string(library) == "jitters") << library;
      EXPECT_EQ(told(true), here);
    }
  }
}

// Crashes and hangs.

struct Harm {
  const char* phase;
  const char* kind;
  const char* words;  ///< of the fault
};
void PrintTo(const Harm& own, std::ostream* out) { *out << own.phase << ' ' << own.kind; }
std::string name_of(const ::testing::TestParamInfo<Harm>& own) {
  return fmt::format("{}_{}", own.param.phase, own.param.kind);
}

FmuPair pair_with(const Harm& harm, int version) {
  FmuPair pair = pair_without_calls();
  pair.mass_version = version;
  pair.mass_library = "rogue";
  pair.mass_harm = fmt::format("{} {}", harm.phase, harm.kind);
  pair.mass_in_process = true;
  return pair;
}

bool is_hang(const Harm& harm) {
  return harm.kind == std::string("hang") || harm.kind == std::string("spin");
}
constexpr double kLimit_s = 0.8;

class HarmAtStart : public ::testing::TestWithParam<Harm> {};

TEST_P(HarmAtStart, IsADefectOfTheScenario) {
  const Harm& harm = GetParam();
  for (const int version : {2, 3}) {
    FmuFolder folder;
    FmuPair pair = pair_with(harm, version);
    if (is_hang(harm)) pair.time_limit_s = kLimit_s;
    const std::string text = failure_of([&] { pair.build(folder); });
    EXPECT_TRUE(has(text, "the part cannot be started: the FMU \"mass.fmu\"")) << text;
    EXPECT_TRUE(has(text, harm.words)) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, HarmAtStart,
    ::testing::Values(Harm{"load", "segv",
                           "crashed in loading its library: its process ended "
                           "with signal SIGSEGV (Segmentation fault)"},
                      Harm{"load", "exit", "its process ended with exit code 7"},
                      Harm{"load", "hang", "did not return within 0.8 s from loading its library"},
                      Harm{"instantiate", "abort", "its process ended with signal SIGABRT"},
                      Harm{"instantiate", "hang", "did not return within 0.8 s from fmi"},
                      Harm{"init", "segv", "crashed in its initialisation"},
                      Harm{"init", "spin", "did not return within 0.8 s from its initialisation"}),
    name_of);

class HarmInARun : public ::testing::TestWithParam<Harm> {};

TEST_P(HarmInARun, EndsTheRunAtItsLastCommittedState) {
  const Harm& harm = GetParam();
  for (const int version : {2, 3}) {
    FmuFolder folder;
    FmuPair pair = pair_with(harm, version);
    if (is_hang(harm)) pair.time_limit_s = kLimit_s;
    const System system = pair.build(folder);
    Stepper stepper(system, options(kStep, 4, 0.0));
    // Another run of the same process, and of the same system.
    FmuFolder other_folder;
    FmuPair other = pair_without_calls();
    other.mass_in_process = true;
    const System other_system = other.build(other_folder);
    Stepper beside(other_system, options(kStep, 4, 0.0));
    beside.step(5);

    std::int64_t steps = 0;
    double last = stepper.state(0)[1];
    const auto begun = std::chrono::steady_clock::now();
    const std::string text = failure_of([&] {
      for (; steps < 50; ++steps) {
        stepper.step();
        last = stepper.state(0)[1];
      }
    });
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    if (is_hang(harm)) {
      EXPECT_GE(took.count(), kLimit_s);
    }
    EXPECT_GE(steps, 4);
    EXPECT_LT(steps, 8);
    EXPECT_TRUE(has(text, "part \"mass\" failed in step")) << text;
    EXPECT_TRUE(has(text, "the FMU \"mass.fmu\"")) << text;
    EXPECT_TRUE(has(text, harm.words)) << text;
    EXPECT_EQ(stepper.state(0)[1], last);
    EXPECT_EQ(stepper.step_index(), steps);
    EXPECT_NEAR(last, pair.whole(kStep, static_cast<int>(steps)), 1e-3);
    // It stays so.
    EXPECT_NE(failure_of([&] { stepper.step(); }), "");
    EXPECT_EQ(stepper.step_index(), steps);

    Stepper again(system, options(kStep, 4, 0.0));
    again.step(static_cast<int>(steps));
    EXPECT_EQ(again.state(0)[1], last);
    beside.step(45);
    EXPECT_NEAR(beside.state(0)[1], other.whole(kStep, 50), 1e-3);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, HarmInARun,
    ::testing::Values(Harm{"step", "segv", "crashed in fmi"},
                      Harm{"step", "abort", "signal SIGABRT (Aborted); it says: the oil boils"},
                      Harm{"step", "exit", "ended with exit code 7"},
                      Harm{"step", "hang", "its process was ended; it says: the oil boils"},
                      Harm{"step", "spin",
                           "; if it needs longer, give it a larger \"time_limit_s\""},
                      Harm{"get", "segv", "crashed in reading its variables"},
                      Harm{"get", "hang", "did not return within 0.8 s from reading its variables"},
                      Harm{"set", "abort", "crashed in setting its variables"},
                      Harm{"set", "hang", "did not return within 0.8 s from setting its variables"},
                      Harm{"save", "segv", "FMU"},
                      Harm{"save", "hang", "did not return within 0.8 s from fmi"},
                      Harm{"restore", "segv", "crashed in fmi"},
                      Harm{"restore", "spin", "did not return within 0.8 s from fmi"},
                      Harm{"release", "abort", "crashed in fmi"}),
    name_of);

/// The limit alone ends a hang: with a larger one it lasts as much longer.
TEST(HarmInARunControl, AHangLastsAsLongAsItMay) {
  for (const double limit_s : {0.3, 1.5}) {
    FmuFolder folder;
    FmuPair pair = pair_with({"step", "hang", ""}, 3);
    pair.time_limit_s = limit_s;
    const System system = pair.build(folder);
    Stepper stepper(system, options(kStep, 4, 0.0));
    const auto begun = std::chrono::steady_clock::now();
    const std::string text = failure_of([&] { stepper.step(50); });
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    EXPECT_TRUE(has(text, fmt::format("did not return within {} s", limit_s))) << text;
    EXPECT_GE(took.count(), limit_s);
  }
}

/// Whatever it writes over the memory that both have, this process goes on.
TEST(HarmInARun, TramplingIsContained) {
  for (const char* const phase : {"load", "init", "get", "step", "save"}) {
    FmuFolder folder;
    FmuPair pair = pair_with({phase, "trample", ""}, 2);
    pair.time_limit_s = kLimit_s;
    std::int64_t steps = 0;
    const std::string text = failure_of([&] {
      const System system = pair.build(folder);
      Stepper stepper(system, options(kStep, 4, 0.0));
      for (; steps < 50; ++steps) stepper.step();
    });
    EXPECT_TRUE(has(text, "wrote over memory that is not its own")) << phase << ": " << text;
    EXPECT_LT(steps, 8) << phase;
  }
}

TEST(HarmAtTheEnd, LeavesTheResultsOfTheRun) {
  for (const char* const kind : {"segv", "hang", "exit"}) {
    FmuFolder folder;
    FmuPair pair = pair_with({"free", kind, ""}, 3);
    pair.time_limit_s = kLimit_s;
    const System system = pair.build(folder);
    Stepper stepper(system, options(kStep, 4, 0.0));
    stepper.step(50);
    EXPECT_NEAR(stepper.state(0)[1], pair.whole(kStep, 50), 1e-3);
  }
}

// In scenario files.

Json block_scenario(const std::string& path, const std::string& input,
                    const std::vector<std::string>& outputs) {
  Json json = Json::parse(R"({
    "name": "block",
    "time": {"step_s": 0.01, "steps": 60},
    "subsystems": [
      {"name": "seen", "type": "linear_oscillator", "parameters": {"mass_kg": 1, "stiffness_N_per_m": 1},
       "inputs": {"force": {"kind": "signal", "signal": "out"}}}
    ],
    "couplings": [{"kind": "free", "ports": ["seen.coupling"]}],
    "signals": {"blocks": [
      {"kind": "constant", "name": "push", "value": 5},
      {"kind": "fmu", "name": "foreign"},
      {"kind": "gain", "name": "out", "signal": "foreign[0]", "factor": 2}
    ]}
  })");
  Json& block = json["signals"]["blocks"][1];
  block["path"] = path;
  block["signals"] = {{input, "push"}};
  block["outputs"] = outputs;
  return json;
}

std::vector<double> signals_of(const std::filesystem::path& folder, Json json, bool in_process) {
  json["signals"]["blocks"][1]["process"] = in_process;
  const Scenario scenario = read(folder, json);
  Stepper stepper(scenario.system, scenario.options);
  std::vector<double> out;
  for (int n = 0; n < 50; ++n) {
    stepper.step();
    const auto now = stepper.signals();
    out.insert(out.end(), now.begin(), now.end());
    out.push_back(stepper.state(0)[0]);
  }
  return out;
}

TEST(IsolatedFmu, GivesTheSameBitsAsABlock) {
  for (const int version : {2, 3}) {
    for (const bool saves : {true, false}) {
      FmuFolder folder;
      folder.add("mass.fmu", FmuRecipe{.version = version, .saves_state = saves});
      const Json json = block_scenario("mass.fmu", "F", {"v", "x", "time"});
      const std::vector<double> here = signals_of(folder.path(), json, false);
      EXPECT_EQ(signals_of(folder.path(), json, true), here);
      EXPECT_NE(here[here.size() - 2], 0.0);
    }
  }
}

TEST(IsolatedFmu, OfOurExporterGivesTheSameBits) {
  for (const int version : {2, 3}) {
    const std::filesystem::path file = testing::exported_oscillators(version).file;
    const Json json = block_scenario(file.filename(), "B.force", {"A.q1", "B.q2", "energy.stored"});
    const std::vector<double> here = signals_of(file.parent_path(), json, false);
    EXPECT_EQ(signals_of(file.parent_path(), json, true), here);
    EXPECT_NE(here.back(), 0.0);
  }
}

/// One half of a system as an FMU, the other one in sight.
TEST(IsolatedFmu, OfOurExporterGivesTheSameBitsAsAPart) {
  const std::string mass = R"({"name": "mass", "time": {"step_s": 0.01, "end_s": 2},
    "subsystems": [{"name": "mass", "type": "mass", "parameters": {"mass_kg": 1},
                    "initial_state": {"position": 0.1}}]})";
  for (const int version : {2, 3}) {
    FmuExportOptions with;
    with.fmi = version;
    with.ports = {"mass.port"};
    const testing::Exported half({mass, "mass", "."}, with);
    const auto run = [&](bool in_process) {
      Json json = Json::parse(R"({"name": "joined", "time": {"step_s": 0.01, "end_s": 2},
        "subsystems": [
          {"name": "mass", "type": "fmu", "path": "exported.fmu"},
          {"name": "spring", "type": "spring", "parameters": {"stiffness_N_per_m": 400},
           "initial_state": {"elongation": 0.1}}],
        "couplings": [{"kind": "fixed", "ports": ["spring.left"]},
                      {"kind": "connection", "ports": ["mass.mass_port", "spring.right"]}]})");
      json["subsystems"][0]["process"] = in_process;
      const Scenario scenario = read(half.folder.path(), json);
      Stepper stepper(scenario.system, scenario.options);
      return numbers_of(stepper, 100);
    };
    const std::vector<double> here = run(false);
    EXPECT_EQ(run(true), here);
    EXPECT_NE(here[here.size() - 3], 0.1);
  }
}

TEST(HarmInABlock, EndsTheRunAndANewOneWorks) {
  for (const bool saves : {true, false}) {
    for (const Harm& harm : {Harm{"step", "segv", "crashed in fmi2DoStep"},
                             Harm{"get", "hang", "did not return within 0.8 s from reading"}}) {
      FmuFolder folder;
      folder.add("mass.fmu", FmuRecipe{.library = "rogue",
                                       .saves_state = saves,
                                       .harm = fmt::format("{} {}", harm.phase, harm.kind)});
      Json json = block_scenario("mass.fmu", "F", {"v"});
      json["signals"]["blocks"][1]["process"] = true;
      json["signals"]["blocks"][1]["time_limit_s"] = kLimit_s;
      const Scenario scenario = read(folder.path(), json);
      std::int64_t first = 0;
      double last = 0.0;
      for (int run = 0; run < 2; ++run) {
        Stepper stepper(scenario.system, scenario.options);
        std::int64_t steps = 0;
        const std::string text = failure_of([&] {
          for (; steps < 50; ++steps) stepper.step();
        });
        EXPECT_TRUE(has(text, "foreign")) << text;
        EXPECT_TRUE(has(text, harm.words)) << text;
        EXPECT_GE(steps, 4);
        EXPECT_LT(steps, 8);
        EXPECT_EQ(stepper.step_index(), steps);
        if (run == 1) {
          EXPECT_EQ(steps, first);
          EXPECT_EQ(stepper.state(0)[0], last);
        }
        first = steps;
        last = stepper.state(0)[0];
      }
    }
  }
}

TEST(IsolatedFmu, HasKeysThatAreChecked) {
  FmuFolder folder;
  folder.add("mass.fmu", FmuRecipe{});
  Json json = Json::parse(R"({
    "name": "x", "time": {"step_s": 0.01, "steps": 10},
    "subsystems": [{"name": "mass", "type": "fmu", "path": "mass.fmu",
                    "ports": [{"effort": "F", "flow": "v", "input": "effort", "integral": "x"}]}],
    "couplings": [{"kind": "free", "ports": ["mass.F_v"]}]})");
  Json& part = json["subsystems"][0];
  part["time_limit_s"] = 5;
  EXPECT_TRUE(has(report_of(folder, json), "/subsystems/0/time_limit_s: needs \"process\": true"));
  part["process"] = true;
  EXPECT_EQ(report_of(folder, json), "");
  part["time_limit_s"] = 0;
  EXPECT_TRUE(has(report_of(folder, json), "/subsystems/0/time_limit_s: must be a number > 0"))
      << report_of(folder, json);
  part["process"] = "yes";
  EXPECT_TRUE(has(report_of(folder, json), "/subsystems/0/process: ")) << report_of(folder, json);
  part["process"] = true;
  part["time_limit_s"] = 5;
  part["type"] = "mass";
  EXPECT_TRUE(
      has(report_of(folder, json), "/subsystems/0/process: is for parts of the type \"fmu\""));

  Json block = block_scenario("mass.fmu", "F", {"v"});
  block["signals"]["blocks"][1]["time_limit_s"] = 5;
  EXPECT_TRUE(
      has(report_of(folder, block), "/signals/blocks/1/time_limit_s: needs \"process\": true"))
      << report_of(folder, block);
  block["signals"]["blocks"][1]["process"] = true;
  EXPECT_EQ(report_of(folder, block), "");

  FmuPartOptions options;
  options.file = folder.path() / "mass.fmu";
  options.process = true;
  for (const double bad :
       {0.0, 1e-9, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    options.time_limit_s = bad;
    EXPECT_TRUE(has(failure_of([&] { make_fmu_part(options); }), "/time_limit_s: must be finite"));
  }
}

}  // namespace
}  // namespace portwave::test_isolated_fmus
