// What it costs to choose a method, and to set other impedances between two steps, in steps of the same
// system on one thread: blocks that are all different, and a grid of 10⁴ Duffing oscillators. And what it costs
// to choose which parts take damped stages, beside building the system of 10⁵ parts.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "portwave/coupling/impedance/integrator_choice.hpp"
#include "portwave/coupling/system/derived_systems.hpp"
#include "portwave/runtime/generate/generate.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/instruction_set.hpp"
#include "portwave/subsystems/catalogue/chain.hpp"
#include "portwave/subsystems/catalogue/parts.hpp"
#include "report.hpp"

namespace {

using namespace portwave::bench;
using portwave::Scenario;
using portwave::Stepper;
using Clock = std::chrono::steady_clock;

constexpr int kBlocks = 100'000;
constexpr int kRounds = 5;

double seconds_of(const auto& act) {
  const auto start = Clock::now();
  act();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Scenario network(const portwave::Network& what, int iterations) {
  Scenario scenario = portwave::parse_scenario(
      portwave::generate_scenario(what, {.iterations = iterations}), "generated", "");
  scenario.options.method.waves().guard = false;
  return scenario;
}

constexpr int kSteps = 20;

double step_seconds(Stepper& engine) {
  engine.step(3);
  return seconds_of([&] { engine.step(kSteps); }) / kSteps;
}

std::vector<double> impedances(const Stepper& engine) {
  std::vector<double> out;
  for (std::size_t j = 0; j < engine.system().scalar_ports().size(); ++j) {
    out.push_back(engine.waves()->impedance(static_cast<int>(j)));
  }
  return out;
}

/// With `auto`, and with what it chose given at once.
void compare_choosing(const Report& report) {
  const Scenario scenario = network(portwave::network::Chain{.blocks = kBlocks, .vary = 0.2}, 2);
  std::vector<double> steps;
  for (int i = 0; i < 3; ++i) {
    portwave::StepperOptions options = scenario.options;
    options.threads = 1;
    options.method = portwave::CouplingMethod::automatic();
    std::unique_ptr<Stepper> chosen, given;
    const double choosing =
        seconds_of([&] { chosen = std::make_unique<Stepper>(scenario.system, options); });
    options.method = chosen->method().method;
    const double giving =
        seconds_of([&] { given = std::make_unique<Stepper>(scenario.system, options); });
    options.method.waves().guard = false;  // steps in which it acts would make choosing look cheap
    Stepper plain(scenario.system, options);
    steps.push_back((choosing - giving) / step_seconds(plain));
    (void)step_seconds(*given);
    (void)step_seconds(*chosen);
    for (int part = 0; part < kBlocks; part += 997) {
      if (chosen->state(part)[0] == given->state(part)[0]) continue;
      throw std::runtime_error("the chosen method steps otherwise when it is given");
    }
  }
  report.add({.name = "retuning/choosing/different_blocks",
              .sense = Sense::at_most,
              .goal = 20.0,
              .note = std::string(portwave::to_string(portwave::instruction_set()))},
             steps, "steps");
}

void compare_setting(const Report& report, const std::string& name, const Scenario& scenario,
                     std::optional<double> goal) {
  portwave::StepperOptions options = scenario.options;
  options.threads = 1;
  Stepper engine(scenario.system, options);
  const double step_s = step_seconds(engine);
  std::vector<double> wanted = impedances(engine), all, one;
  const std::vector<bool> idle = portwave::idle_ports(scenario.system);  // these keep theirs
  const std::size_t first = static_cast<std::size_t>(std::ranges::find(idle, false) - idle.begin());
  const auto expect_wanted = [&] {
    const std::vector<double> found = impedances(engine);
    for (std::size_t j = 0; j < found.size(); ++j) {
      if (!idle[j] && found[j] != wanted[j]) throw std::runtime_error(name + ": other impedances");
    }
  };
  for (int i = 0; i < kRounds; ++i) {
    for (double& z : wanted) z *= 1.01;
    all.push_back(seconds_of([&] { engine.waves()->set_impedance(wanted); }) / step_s);
    engine.step();
    wanted[first] *= 1.01;
    one.push_back(seconds_of([&] { engine.waves()->set_impedance(wanted); }) / step_s);
    engine.step();
    expect_wanted();
  }
  const std::string note(portwave::to_string(portwave::instruction_set()));
  report.add({.name = "retuning/all/" + name, .sense = Sense::at_most, .goal = goal, .note = note},
             all, "steps");
  report.add(
      {.name = "retuning/one_port/" + name, .sense = Sense::at_most, .goal = goal, .note = note},
      one, "steps");
}

/// Masses between stiff dampers, of which none swings, or the blocks of a chain, which do.
portwave::System many_parts(bool swings) {
  portwave::SystemBuilder builder;
  const auto name = [](const char* what, int i) { return fmt::format("{}{}", what, i); };
  if (swings) {
    for (int i = 0; i < kBlocks; ++i) {
      builder.add(name("b", i), portwave::mass_spring_damper_chain(
                                    {.masses = 2,
                                     .mass_kg = 0.3 + 0.001 * (i % 97),
                                     .stiffness_N_per_m = 50.0,
                                     .damping_Ns_per_m = 0.1,
                                     .coupling_stiffness_N_per_m = 40.0 + 0.1 * (i % 89)}));
      if (i > 0) builder.connect(name("b", i - 1) + ".right", name("b", i) + ".left");
    }
    builder.join(portwave::joint::Free{}, {"b0.left"});
    builder.join(portwave::joint::Fixed{}, {name("b", kBlocks - 1) + ".right"});
    return builder.build();
  }
  for (int i = 0; i < kBlocks / 2; ++i) {
    builder.add(name("m", i),
                portwave::parts::mass({.mass_kg = 1.0 + 0.01 * (i % 97), .ports = 2}));
    builder.add(name("d", i), portwave::parts::damper({.damping_Ns_per_m = 1e6 + 1e3 * (i % 89)}));
    builder.connect(name("m", i) + ".port_2", name("d", i) + ".left");
    if (i > 0) builder.connect(name("d", i - 1) + ".right", name("m", i) + ".port_1");
  }
  builder.join(portwave::joint::Free{}, {"m0.port_1"});
  builder.join(portwave::joint::Fixed{}, {name("d", kBlocks / 2 - 1) + ".right"});
  return builder.build();
}

void compare_choosing_integrators(const Report& report) {
  for (const bool swings : {false, true}) {
    for (const int stages : {1, 3}) {
      std::vector<double> share;
      for (int i = 0; i < 3; ++i) {
        std::optional<portwave::System> system;
        const double building = seconds_of([&] { system.emplace(many_parts(swings)); });
        portwave::WaveCoupling method = portwave::WaveCoupling::automatic();
        method.stages = stages;
        portwave::IntegratorChoice choice;
        const double choosing = seconds_of([&] {
          choice = portwave::choose_integrators(*system, method, 0.01, /*is_adaptive=*/false);
        });
        if (choice.damped_parts != (swings ? 0 : kBlocks / 2)) {
          throw std::runtime_error("other parts are damped than should be");
        }
        share.push_back(choosing / building);
      }
      report.add({.name = fmt::format("retuning/choosing_integrators/{}/{}",
                                      swings ? "blocks" : "masses", stages),
                  .sense = Sense::at_most,
                  .goal = 0.5,
                  .note = "by stages"},
                 share, "of building");
    }
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const Report report("retuning", 1);
  if (report.only_lists(argc, argv)) return 0;
  compare_setting(report, "grid", network(portwave::network::Grid{.rows = 100, .columns = 100}, 5),
                  3.0);
  compare_setting(report, "different_blocks",
                  network(portwave::network::Chain{.blocks = 10'000, .vary = 0.2}, 2),
                  std::nullopt);
  compare_choosing(report);
  compare_choosing_integrators(report);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "retuning: {}\n", error.what());
  return 1;
}
