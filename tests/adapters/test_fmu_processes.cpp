// The processes of isolated FMUs: how they are found, started, checked and ended, and what is left of them.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "adapters/fmi/fmu_program.hpp"
#include "adapters/fmu_scenario.hpp"
#include "support/files/cli_process.hpp"

namespace portwave::test_fmu_processes {
namespace {

using testing::FmuFolder;
using testing::FmuRecipe;
using testing::has;
using testing::portwave_cli;
using testing::ProcessResult;
using testing::said;
using testing::Subprocess;

constexpr fmi::Isolation kIsolated = {.in_a_process = true, .time_limit_s = 60.0};

std::unique_ptr<fmi::Instance> started(const std::shared_ptr<const fmi::Fmu>& fmu,
                                       const fmi::Isolation& isolation = kIsolated) {
  return fmi::start_instance(fmu, "own", {}, 0.0, isolation);
}

std::string refusal_of(const std::filesystem::path& file) {
  try {
    started(fmi::Fmu::open(file));
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& own : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

/// Processes whose parent this one is, those that have ended and were not waited for too.
std::set<pid_t> children_of(pid_t parent) {
  std::set<pid_t> out;
  for (const auto& own : std::filesystem::directory_iterator("/proc")) {
    const std::string name = own.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(own.path() / "stat");
    std::string line;
    if (!std::getline(file, line)) continue;
    // pid (name) state parent
    const std::size_t after = line.rfind(')');
    if (after == std::string::npos || after + 4 > line.size()) continue;
    if (std::stol(line.substr(after + 4)) == parent) out.insert(std::stoi(name));
  }
  return out;
}

bool is_there(pid_t process) { return std::filesystem::exists(fmt::format("/proc/{}", process)); }

/// Waits for what has to happen soon; false: it did not within a minute.
template <class Condition>
bool comes_true(const Condition& condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  ~Environment() { ::unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
};

TEST(FmuProcess, LeavesNothingBehind) {
  FmuFolder folder;
  const auto sound = fmi::Fmu::open(folder.add("sound.fmu", FmuRecipe{}));
  const auto crashes =
      fmi::Fmu::open(folder.add("crashes.fmu", FmuRecipe{.library = "rogue", .harm = "init segv"}));
  const auto hangs = fmi::Fmu::open(
      folder.add("hangs.fmu", FmuRecipe{.version = 3, .library = "rogue", .harm = "init hang"}));
  const auto stays = fmi::Fmu::open(
      folder.add("stays.fmu", FmuRecipe{.version = 3, .library = "rogue", .harm = "free hang"}));
  started(sound);
  const std::size_t descriptors = open_descriptors();
  const std::set<pid_t> children = children_of(::getpid());
  for (int round = 0; round < 10; ++round) {
    {
      const auto one = started(sound), another = started(sound);
      EXPECT_EQ(children_of(::getpid()).size(), children.size() + 2);
      EXPECT_GT(open_descriptors(), descriptors);
    }
    EXPECT_THROW(started(crashes), fmi::FmuFault);
    EXPECT_THROW(started(hangs, {.in_a_process = true, .time_limit_s = 0.05}), fmi::FmuFault);
    started(stays, {.in_a_process = true, .time_limit_s = 1.0});
  }
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_EQ(children_of(::getpid()), children);
}

TEST(FmuProcess, IsOfThisVersion) {
  FmuFolder folder;
  const auto file = folder.add("x.fmu", FmuRecipe{});
  const Environment other("PORTWAVE_FMU_HOST", PORTWAVE_OTHER_FMU_HOST);
  const std::string text = refusal_of(file);
  EXPECT_TRUE(has(text, "/process: ")) << text;
  EXPECT_TRUE(has(text, fmt::format("is of portwave {}, protocol 99, and this is portwave {}, "
                                    "protocol 3: install both from one build",
                                    PORTWAVE_VERSION, PORTWAVE_VERSION)))
      << text;
}

TEST(FmuProcess, HasToBeAHost) {
  FmuFolder folder;
  const auto file = folder.add("x.fmu", FmuRecipe{});
  {
    const Environment other("PORTWAVE_FMU_HOST", "/nowhere/at/all");
    const std::string text = refusal_of(file);
    EXPECT_TRUE(has(text, "\"/nowhere/at/all\", which PORTWAVE_FMU_HOST names, is no file"))
        << text;
  }
  {
    const Environment other("PORTWAVE_FMU_HOST", "/bin/true");
    const std::string text = refusal_of(file);
    EXPECT_TRUE(has(text, "\"/bin/true\" ended with exit code 0 before it ran anything")) << text;
  }
  {
    const Environment other("PORTWAVE_FMU_HOST", file.string());
    const std::string text = refusal_of(file);
    EXPECT_TRUE(has(text, "the process of the FMU cannot be started")) << text;
  }
  EXPECT_EQ(refusal_of(file), "");
}

/// A process that was forked has no share in it, and does it no harm.
TEST(FmuProcess, IsNotForThoseThatAreForked) {
  FmuFolder folder;
  const auto fmu = fmi::Fmu::open(folder.add("x.fmu", FmuRecipe{}));
  auto instance = started(fmu);
  const fmi::Variable* const one[] = {fmu->description().find("mass")};
  const fmi::VariableList list(one);
  const pid_t child = ::fork();
  if (child == 0) {
    int code = 1;
    double mass = 0.0;
    try {
      instance->get(list, &mass);
    } catch (const fmi::FmuFault& fault) {
      code = has(fault.what(), "was forked from") ? 0 : 2;
    }
    instance.reset();
    ::_exit(code);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  double mass = 0.0;
  instance->get(list, &mass);
  EXPECT_EQ(mass, 2.0);
}

#ifdef PORTWAVE_CLI

/// A mass that is pushed by nothing, and harmed as it is told.
std::filesystem::path scenario_with(FmuFolder& folder, const std::string& harm, bool in_process,
                                    double time_limit_s) {
  folder.add("mass.fmu", FmuRecipe{.library = "rogue", .harm = harm});
  const std::string keys =
      in_process ? fmt::format(R"(, "process": true, "time_limit_s": {})", time_limit_s) : "";
  const auto file = folder.path() / (in_process ? "isolated.json" : "here.json");
  testing::write_text(file, R"({"name": "x", "time": {"step_s": 0.01, "steps": 50},
    "subsystems": [{"name": "mass", "type": "fmu", "path": "mass.fmu", "start": {"start.v": 1},
                    "ports": [{"effort": "F", "flow": "v", "input": "effort", "integral": "x"}])" +
                                keys + R"(}],
    "couplings": [{"kind": "free", "ports": ["mass.F_v"]}],
    "outputs": {"observe": ["mass.x"]}})");
  return file;
}

testing::Words run_of(const FmuFolder& folder, const std::filesystem::path& scenario) {
  return {"run", scenario.string(), "--out", (folder.path() / scenario.stem()).string(),
          "--allow-plugins"};
}

TEST(FmuProcessOfTheProgram, ACrashEndsTheRunAndNotTheProgram) {
  FmuFolder folder;
  const auto isolated = scenario_with(folder, "step segv", true, 60.0);
  const ProcessResult result = portwave_cli(run_of(folder, isolated));
  EXPECT_EQ(result.exit_code, 3) << said(result);
  EXPECT_TRUE(has(result.err, "part \"mass\" failed in step")) << said(result);
  EXPECT_TRUE(has(result.err, "crashed in fmi2DoStep")) << said(result);
  // What was committed is written.
  const std::string rows = testing::read_text(folder.path() / "isolated" / "trajectory.csv");
  EXPECT_TRUE(has(rows, "\n0.05")) << rows;
}

TEST(FmuProcessControl, WithoutItTheProgramCrashes) {
  FmuFolder folder;
  const auto here = scenario_with(folder, "step abort", false, 0.0);
  const ProcessResult result = portwave_cli(run_of(folder, here));
  EXPECT_EQ(result.exit_code, -1) << said(result);
  EXPECT_EQ(result.signal, SIGABRT) << said(result);
}

/// The same FMU hangs here, and in its process until the limit.
TEST(FmuProcessControl, WithoutItTheProgramHangs) {
  FmuFolder folder;
  const auto isolated = scenario_with(folder, "step hang", true, 0.3);
  const auto here = scenario_with(folder, "step hang", false, 0.0);
  Subprocess hanging(testing::command(run_of(folder, here)));
  const ProcessResult result = portwave_cli(run_of(folder, isolated));
  EXPECT_EQ(result.exit_code, 3) << said(result);
  EXPECT_TRUE(has(result.err, "did not return within 0.3 s from fmi2DoStep")) << said(result);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_FALSE(hanging.has_ended());
}

/// What was committed stands, and the run has succeeded.
TEST(FmuProcessOfTheProgram, TellsHowTheFmuFailsAtItsEnd) {
  const auto end_of = [](const std::string& harm, double limit_s) {
    FmuFolder folder;
    const ProcessResult result =
        portwave_cli(run_of(folder, scenario_with(folder, harm, true, limit_s)));
    EXPECT_EQ(result.exit_code, 0) << said(result);
    EXPECT_TRUE(std::filesystem::exists(folder.path() / "isolated" / "trajectory.csv"));
    return result.err;
  };
  const std::string crash = end_of("free segv", 60.0);
  EXPECT_TRUE(
      has(crash,
          "portwave: at its end the FMU \"mass.fmu\" crashed in fmi2Terminate, fmi2FreeInstance or "
          "unloading its library: its process ended with signal SIGSEGV"))
      << crash;
  const std::string hang = end_of("free hang", 0.5);
  EXPECT_TRUE(has(
      hang,
      "portwave: at its end the FMU \"mass.fmu\" did not return within 0.5 s from fmi2Terminate"))
      << hang;
  const std::string leaves = end_of("free exit", 60.0);
  EXPECT_TRUE(has(leaves, "its process ended with exit code 7")) << leaves;
  EXPECT_FALSE(has(end_of("none none", 60.0), "at its end"));
}

TEST(FmuProcessOfTheProgram, WhatTheFmuPrintsIsPrinted) {
  for (const bool in_process : {false, true}) {
    FmuFolder folder;
    const auto scenario = scenario_with(folder, "init print", in_process, 60.0);
    const ProcessResult result = portwave_cli(run_of(folder, scenario));
    EXPECT_EQ(result.exit_code, 0) << said(result);
    EXPECT_TRUE(has(result.out, "the fixture says hello\n")) << said(result);
  }
}

/// However the program ends, even while the FMU hangs.
TEST(FmuProcessOfTheProgram, EndsWithTheProgram) {
  FmuFolder folder;
  const auto isolated = scenario_with(folder, "step hang", true, 1e6);
  Subprocess program(testing::command(run_of(folder, isolated)));
  std::set<pid_t> hosts;
  ASSERT_TRUE(comes_true([&] {
    hosts = children_of(program.pid());
    return !hosts.empty();
  }));
  program.send(SIGKILL);
  EXPECT_EQ(program.wait().signal, SIGKILL);
  EXPECT_TRUE(comes_true([&] {
    return std::none_of(hosts.begin(), hosts.end(), [](pid_t own) { return is_there(own); });
  }));
}

TEST(FmuProcessOfTheProgram, IsLookedForInPlacesThatAreNamed) {
  FmuFolder folder;
  const auto isolated = scenario_with(folder, "none none", true, 60.0);
  const std::filesystem::path bin = folder.path() / "prefix" / "bin";
  const std::filesystem::path libexec = folder.path() / "prefix" / "libexec" / "portwave";
  std::filesystem::create_directories(bin);
  std::filesystem::create_directories(libexec);
  std::filesystem::copy_file(PORTWAVE_CLI, bin / "portwave");
  testing::Words line = run_of(folder, isolated);
  line.insert(line.begin(), (bin / "portwave").string());
  const ProcessResult without = testing::run_process(line);
  EXPECT_EQ(without.exit_code, 2) << said(without);
  EXPECT_TRUE(has(without.err, "/subsystems/0/process: needs the program portwave-fmu-host"))
      << said(without);
  EXPECT_TRUE(has(without.err, (bin / "portwave-fmu-host").string())) << said(without);
  EXPECT_TRUE(has(without.err, (libexec / "portwave-fmu-host").string())) << said(without);
  EXPECT_TRUE(has(without.err, "PORTWAVE_FMU_HOST names another place")) << said(without);
  std::filesystem::copy_file(PORTWAVE_FMU_HOST, libexec / "portwave-fmu-host");
  const ProcessResult with = testing::run_process(line);
  EXPECT_EQ(with.exit_code, 0) << said(with);
}

#endif

}  // namespace
}  // namespace portwave::test_fmu_processes
