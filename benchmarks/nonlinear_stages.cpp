// What two and three stages of a nonlinear part cost beside one stage of the same part: steps of a run, on one
// thread. The answers of more stages are checked first, against those of shorter steps.
//
//   bench_nonlinear_stages <case> <stages> <steps>
// takes so many steps and nothing else, for a profiler or a counter of instructions.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "portwave/coupling/system/system.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/parts.hpp"
#include "report.hpp"

namespace {

using namespace portwave::bench;
using namespace portwave;

struct Case {
  std::string name;
  std::shared_ptr<const Component> part;
  std::vector<double> start;
  /// What each port is joined to; free where there is nothing.
  std::vector<std::pair<std::string, std::shared_ptr<const Component>>> neighbours = {};
  double step_s = 1e-3;
  std::optional<double> goal_us = {};  ///< of three stages
};

const std::vector<double> kLengths = {0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1};
const std::vector<double> kMasses = {4.0, 3.0, 2.5, 2.0, 1.5, 1.0, 0.5};

std::shared_ptr<const Component> planar_arm() {
  return parts::planar_arm({.lengths_m = kLengths, .masses_kg = kMasses});
}

/// The same arm as a tree of bodies in space.
std::shared_ptr<const Component> tree() {
  MatrixRows axes, places, centres, inertias;
  for (std::size_t k = 0; k < kLengths.size(); ++k) {
    const double inertia = kMasses[k] * kLengths[k] * kLengths[k] / 12.0;
    axes.push_back({0.0, -1.0, 0.0});
    places.push_back({0.0, 0.0, k == 0 ? 0.0 : -kLengths[k - 1]});
    centres.push_back({0.0, 0.0, -0.5 * kLengths[k]});
    inertias.push_back({inertia, 0.0, 0.0, inertia, 0.0, 1e-6});
  }
  return parts::articulated({.joints = std::vector<std::string>(kLengths.size(), "revolute"),
                             .places_m = places,
                             .axes = axes,
                             .masses_kg = kMasses,
                             .centres_m = centres,
                             .inertias_kgm2 = inertias,
                             .joint_ports = false});
}

std::shared_ptr<const Component> rigid_body() {
  return parts::rigid_body(
      {.mass_kg = 2.0, .inertia_1_kgm2 = 1.0, .inertia_2_kgm2 = 1.5, .inertia_3_kgm2 = 2.0});
}

std::shared_ptr<const Component> by_energy() {
  return parts::port_hamiltonian({.states = {{"angle", "rad"}, {"momentum", "kg m^2/s"}},
                                  .ports = {{"shaft", Causality::effort_in, Domain::rotation, 1}},
                                  .inputs = {{"torque", "N m"}},
                                  .constants = {{"m", 1.0}, {"l", 0.5}, {"g", 9.81}, {"c", 0.02}},
                                  .energy = "momentum^2/(2*m*l^2) + m*g*l*(1 - cos(angle))",
                                  .J = {{0, 1}, {-1, 0}},
                                  .R = {{0, 0}, {0, "c"}},
                                  .G = {{0, 0}, {-1, 1}}});
}

std::vector<Case> all_cases() {
  const std::vector<double> bent = {0.9, -0.4, 0.3, 0.5, -0.2, 0.4,  -0.3,
                                    0.5, 0.4,  0.3, 0.2, 0.1,  0.05, 0.02};
  std::vector<Case> out;
  out.push_back({.name = "rigid_body",
                 .part = rigid_body(),
                 .start = {0, 0, 0, 2, -1, 3, 1, 0, 0, 0, 4.0, 0.3, -2.0},
                 .goal_us = 20.0});
  out.push_back({.name = "articulated", .part = tree(), .start = bent});
  out.push_back({.name = "planar_arm", .part = planar_arm(), .start = bent});
  // One joint turns a wheel: its port takes part.
  out.push_back({.name = "arm_on_wheel",
                 .part = planar_arm(),
                 .start = bent,
                 .neighbours = {{"joint_1", parts::inertia({.inertia_kgm2 = 0.5})}}});
  out.push_back({.name = "duffing",
                 .part = parts::duffing_oscillator({.mass_kg = 0.8,
                                                    .stiffness_N_per_m = 3.0,
                                                    .cubic_stiffness_N_per_m3 = 5.0,
                                                    .coupling_stiffness_N_per_m = 2.0}),
                 .start = {0.8, 0.5, 0.2},
                 .neighbours = {{"coupling", parts::mass({.mass_kg = 2.0})}}});
  out.push_back({.name = "pendulum",
                 .part = parts::pendulum({.mass_kg = 1.0, .length_m = 0.5}),
                 .start = {1.5, 0.3},
                 .neighbours = {{"shaft", parts::inertia({.inertia_kgm2 = 0.1})}}});
  out.push_back({.name = "port_hamiltonian",
                 .part = by_energy(),
                 .start = {1.5, 0.3},
                 .neighbours = {{"shaft", parts::inertia({.inertia_kgm2 = 0.1})}}});
  return out;
}

std::unique_ptr<Stepper> stepper(const Case& of, int stages, double step_s) {
  SystemBuilder builder;
  builder.add("part", of.part, {.initial_state = of.start, .inputs = {}});
  for (const Port& port : of.part->signature().ports) {
    const std::string name = "part." + port.name;
    const auto joined =
        std::ranges::find(of.neighbours, port.name, [](const auto& own) { return own.first; });
    if (joined == of.neighbours.end()) {
      builder.join(joint::Free{}, {name});
      continue;
    }
    builder.add(port.name, joined->second);
    builder.connect(name, port.name + "." + joined->second->signature().ports[0].name);
  }
  StepperOptions options;
  options.step_s = step_s;
  options.threads = 1;
  options.method = CouplingMethod::automatic_with_stages(stages);
  return std::make_unique<Stepper>(builder.build(), options);
}

/// Between steps of one size and of half that size: of order 4 with two stages.
void check_answer(const Case& of, int stages) {
  constexpr int kSteps = 40;
  const auto end = [&](double step_s, int steps) {
    const auto run = stepper(of, stages, step_s);
    run->step(steps);
    const auto x = run->state("part");
    return std::vector<double>(x.begin(), x.end());
  };
  const auto a = end(of.step_s, kSteps), b = end(0.5 * of.step_s, 2 * kSteps);
  double worst = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  fmt::print(stderr, "{}, {} stages: half the step moves the end by {:.1e}\n", of.name, stages,
             worst);
  if (!(worst < (stages == 2 ? 1e-6 : 1e-9)))
    throw std::runtime_error(of.name + " is not accurate");
}

void compare(const Report& report, const Case& of) {
  const auto one = stepper(of, 1, of.step_s);
  for (int stages = 2; stages <= 3; ++stages) {
    check_answer(of, stages);
    const auto own = stepper(of, stages, of.step_s);
    const Contest contest =
        take_turns({processor_timed([&] { own->step(); }), processor_timed([&] { one->step(); })});
    const std::string name = fmt::format("nonlinear_stages/{}/{}", of.name, stages);
    report.add({.name = name, .sense = Sense::at_most, .goal = 10.0, .note = ""}, contest, 0, 1);
    if (stages < 3 || !of.goal_us) continue;
    std::vector<double> times = contest.seconds(0);
    for (double& time : times) time *= 1e6;
    report.add({.name = name + "/time", .sense = Sense::at_most, .goal = of.goal_us, .note = ""},
               times, "us");
  }
}

int only_steps(const std::string& name, int stages, int steps) {
  for (const Case& own : all_cases()) {
    if (own.name != name) continue;
    stepper(own, stages, own.step_s)->step(steps);
    return 0;
  }
  fmt::print(stderr, "nonlinear_stages: there is no case {}\n", name);
  return 1;
}

}  // namespace

int main(int argc, char** argv) try {
  const Report report("nonlinear_stages", 1);
  if (report.only_lists(argc, argv)) return 0;
  if (argc == 4) return only_steps(argv[1], std::atoi(argv[2]), std::atoi(argv[3]));
  for (const Case& own : all_cases()) compare(report, own);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "nonlinear_stages: {}\n", error.what());
  return 1;
}
