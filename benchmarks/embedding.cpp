// What embedding costs: a step through the C interface beside the same step in C++; snapshots of the
// pair (arXiv 2603.16424) and of a chain of 10^5 blocks, beside copies of its state.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "chain_system.hpp"
#include "portwave.h"
#include "portwave/runtime/output/recorder.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "report.hpp"

namespace {

using namespace portwave;
using namespace portwave::bench;

constexpr const char* kPair = R"({
  "name": "pair", "time": {"step_s": 0.01, "steps": 1000},
  "subsystems": [
    {"name": "A", "type": "duffing_oscillator", "initial_state": [0.4, 0, -0.4],
     "parameters": {"mass_kg": 8, "stiffness_N_per_m": 100, "cubic_stiffness_N_per_m3": 8000,
                    "coupling_stiffness_N_per_m": 120, "coupling_damping_Ns_per_m": 0.05}},
    {"name": "B", "type": "linear_oscillator",
     "parameters": {"mass_kg": 4, "stiffness_N_per_m": 50},
     "inputs": {"force": {"kind": "settable"}}}
  ],
  "couplings": [{"kind": "connection", "ports": ["A.coupling", "B.coupling"]}],
  "method": {"kind": "douglas-rachford", "iterations": 6, "impedance": {"kind": "uniform", "value": 0.4}}
})";

void require(const char* what, bool holds) {
  if (!holds) throw std::runtime_error(what);
}

/// Differences of two contenders' times, one per round.
std::vector<double> extra_ns(const Contest& contest, std::size_t more, std::size_t less) {
  std::vector<double> out;
  for (std::size_t i = 0; i < contest.seconds(more).size(); ++i) {
    out.push_back(1e9 * (contest.seconds(more)[i] - contest.seconds(less)[i]));
  }
  return out;
}

void measure_pair(const Report& report) {
  const Scenario scenario = parse_scenario(kPair, "pair", ".");
  Stepper bare(scenario.system, scenario.options), driven(scenario.system, scenario.options);
  portwave_simulation *c = nullptr, *c_driven = nullptr;
  require("the C interface refuses the pair",
          portwave_parse(kPair, ".", nullptr, 0, &c) == PORTWAVE_OK &&
              portwave_parse(kPair, ".", nullptr, 0, &c_driven) == PORTWAVE_OK);
  bare.step(100);
  portwave_step_n(c, 100);
  const int q = portwave_find_quantity(c, "A.q1");
  require("C and C++ differ", portwave_read(c, q) == bare.state(0)[0]);
  const InputSlot force = driven.find_input("B.force");
  const int c_force = portwave_find_input(c_driven, "B.force");
  const Quantity q1 = find_quantity(driven, "A.q1");
  const int c_q1 = portwave_find_quantity(c_driven, "A.q1");
  double u = 0.0;
  Snapshot snapshot;
  Stepper saved(scenario.system, scenario.options);
  saved.step(10);
  saved.snapshot(snapshot);
  saved.step(5);
  const double there = saved.state(0)[0];
  saved.restore(snapshot);
  saved.step(5);
  require("a restored run goes another way", saved.state(0)[0] == there);
  std::vector<Timer> contenders = {
      timed([&] { bare.step(); }),
      timed([&] { portwave_step(c); }),
      timed([&] {
        driven.set_input(force, u = 1.0 - u);
        driven.step();
        u += 1e-300 * observe(driven, q1);
      }),
      timed([&] {
        portwave_set_input(c_driven, c_force, u = 1.0 - u);
        portwave_step(c_driven);
        u += 1e-300 * portwave_read(c_driven, c_q1);
      }),
      timed([&] {
        saved.snapshot(snapshot);
        saved.restore(snapshot);
      }),
  };
  const Contest contest = take_turns(contenders, {.rounds = 31, .turn_s = 2e-3});
  const std::string note = "pair, K=6, guard and ledger";
  report.add(
      {.name = "embedding/c_step_over_cpp", .sense = Sense::at_most, .goal = 50.0, .note = note},
      extra_ns(contest, 1, 0), "ns");
  report.add({.name = "embedding/c_loop_over_cpp",
              .sense = Sense::at_most,
              .note = "an input set, a step, a quantity read"},
             extra_ns(contest, 3, 2), "ns");
  report.add({.name = "embedding/cpp_loop_over_step",
              .sense = Sense::at_most,
              .note = "an input set and a quantity read"},
             extra_ns(contest, 2, 0), "ns");
  std::vector<double> ns;
  for (const double s : contest.seconds(4)) ns.push_back(1e9 * s);
  report.add({.name = "embedding/snapshot_and_restore",
              .sense = Sense::at_most,
              .goal = 200.0,
              .note = fmt::format("{} bytes", snapshot.size_bytes())},
             ns, "ns");
  portwave_free(c);
  portwave_free(c_driven);
}

void measure_chain(const Report& report) {
  constexpr int kBlocks = 100000;
  const System system = chain_system(equal_chain(kBlocks));
  StepperOptions options{.method = WaveCoupling{}};
  options.step_s = 0.01;
  Stepper stepper(system, options);
  stepper.step(2);
  Snapshot snapshot;
  stepper.snapshot(snapshot);
  std::size_t states = 0;
  for (const Part& part : system.parts()) states += part.initial_state.size();
  std::vector<double> a(states, 1.0), b(states, 2.0);
  std::vector<std::byte> from(snapshot.size_bytes()), to(snapshot.size_bytes(), std::byte{1});
  std::vector<Timer> contenders = {
      timed([&] { stepper.snapshot(snapshot); }),
      timed([&] { stepper.restore(snapshot); }),
      timed([&] {
        std::memcpy(a.data(), b.data(), states * sizeof(double));
        std::memcpy(b.data(), a.data(), states * sizeof(double));
      }),
      timed([&] { std::memcpy(to.data(), from.data(), from.size()); }),
      timed([&] {
        stepper.snapshot(snapshot);
        stepper.restore(snapshot);
      }),
  };
  const Contest contest = take_turns(contenders, {.rounds = 15, .turn_s = 2e-2});
  const std::string note =
      fmt::format("{} blocks, {} states of {:.1f} MB, snapshot of {:.1f} MB", kBlocks, states,
                  8e-6 * static_cast<double>(states), 1e-6 * static_cast<double>(from.size()));
  report.add({.name = "embedding/chain/snapshot_and_restore_over_two_state_copies",
              .sense = Sense::at_most,
              .goal = 1.0,
              .note = note},
             contest, 4, 2);
  report.add({.name = "embedding/chain/snapshot_over_copy_of_its_bytes",
              .sense = Sense::at_most,
              .note = note},
             contest, 0, 3);
  report.add({.name = "embedding/chain/restore_over_copy_of_its_bytes",
              .sense = Sense::at_most,
              .note = note},
             contest, 1, 3);
}

}  // namespace

int main(int argc, char** argv) try {
  const Report report("embedding", 3);
  if (report.only_lists(argc, argv)) return 0;
  measure_pair(report);
  measure_chain(report);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "embedding: {}\n", error.what());
  return 1;
}
