// 100 000 blocks of five masses, from a scenario file: how long until the first step, and how much
// memory. Every measurement runs in a process of its own, because peaks of memory do not go down.

#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

#include "child.hpp"
#include "portwave/runtime/generate/generate.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/subsystems/base/instruction_set.hpp"
#include "report.hpp"

namespace {

using namespace portwave::bench;

constexpr int kBlocks = 100'000;
constexpr double kMass = 0.3, kMovingShare = 0.1;

struct Measured {
  double load_s = 0, construct_s = 0, peak_bytes = 0, overhead_bytes = 0;
  bool right = false;
};

/// The scenario has every block, its energy at the start is that of the tenth of them that have a
/// mass moving at 1 m/s, and three steps keep the energy law.
bool right(const portwave::Scenario& scenario, portwave::Stepper& engine, double vary,
           double expected_mass) {
  const double start_J = engine.energy().initial_J;
  const double expected_J = kMovingShare * kBlocks * 0.5 * expected_mass;
  engine.step(3);
  const auto& e = engine.energy();
  const double balance = e.final_J - e.initial_J - e.supplied_J + e.dissipated_J + e.mismatch_J;
  // With varied masses the sum is random: 1e4 terms of up to `vary`.
  const double tolerance = vary == 0.0 ? 1e-9 : vary / 20.0;
  return scenario.system.parts().size() == kBlocks &&
         scenario.system.junctions().size() == kBlocks + 1 &&
         std::abs(start_J - expected_J) <= tolerance * expected_J &&
         std::abs(balance) <= 1e-9 * start_J &&
         engine.certificate().status == portwave::CertificateStatus::holds;
}

Measured measure(const std::filesystem::path& file, double vary, double expected_mass) {
  using Clock = std::chrono::steady_clock;
  const auto seconds = [](Clock::duration d) { return std::chrono::duration<double>(d).count(); };
  Measured result;
  const auto start = Clock::now();
  portwave::Scenario scenario = portwave::load_scenario(file);
  const auto loaded = Clock::now();
  portwave::Stepper engine(scenario.system, scenario.options);
  const auto ready = Clock::now();
  result.load_s = seconds(loaded - start);
  result.construct_s = seconds(ready - loaded);
  result.peak_bytes = peak_bytes();
  result.overhead_bytes = static_cast<double>(engine.overhead_bytes());
  result.right = right(scenario, engine, vary, expected_mass);
  return result;
}

void compare(const Report& report, const std::string& name, double vary) {
  const std::filesystem::path file = std::filesystem::temp_directory_path() /
                                     fmt::format("portwave_large_{}_{}.json", getpid(), name);
  (void)in_child([&] {
    std::ofstream(file) << portwave::generate_scenario(
        portwave::network::Chain{.blocks = kBlocks, .vary = vary}, {.iterations = 2});
    return Measured{};
  });
  std::vector<Measured> runs;
  try {
    for (int i = 0; i < 3; ++i)
      runs.push_back(in_child([&] { return measure(file, vary, kMass); }));
    if (in_child([&] { return measure(file, vary, 1.1 * kMass); }).right) {
      throw std::runtime_error("other masses: the check saw nothing wrong");
    }
  } catch (...) {
    std::filesystem::remove(file);
    throw;
  }
  std::filesystem::remove(file);
  for (const Measured& run : runs) {
    if (!run.right) throw std::runtime_error(name + ": wrong answer");
  }
  const auto add = [&](const char* what, std::optional<double> goal_equal,
                       std::optional<double> goal_different, const char* unit, const auto& value) {
    std::vector<double> samples;
    for (const Measured& run : runs) samples.push_back(value(run));
    report.add(
        {.name = fmt::format("large/{}/{}", name, what),
         .sense = Sense::at_most,
         .goal = vary == 0.0 ? goal_equal : goal_different,
         .note = fmt::format("{}; {} blocks", to_string(portwave::instruction_set()), kBlocks)},
        samples, unit);
  };
  add("load", std::nullopt, std::nullopt, "s", [](const Measured& m) { return m.load_s; });
  add("numeric", 0.6, 0.5, "s", [](const Measured& m) { return m.construct_s; });
  add("load_and_numeric", 2.0, std::nullopt, "s",
      [](const Measured& m) { return m.load_s + m.construct_s; });
  add("peak_memory_per_block", 5000, 3000, "B",
      [](const Measured& m) { return m.peak_bytes / kBlocks; });
  add("overhead_per_block", 512, std::nullopt, "B",
      [](const Measured& m) { return m.overhead_bytes / kBlocks; });
}

}  // namespace

int main(int argc, char** argv) try {
  const Report report("large", 1);
  if (report.only_lists(argc, argv)) return 0;
  compare(report, "equal", 0.0);
  compare(report, "different", 0.2);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "large: {}\n", error.what());
  return 1;
}
