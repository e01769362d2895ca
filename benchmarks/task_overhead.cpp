// What a task costs beside its work: a strip of 16 tasks, each port solve phase of which lasts
// about a microsecond, on two threads. Excess = (time of a step − serial time / 2) / (16 K), by
// executor.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "portwave/runtime/generate/generate.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/subsystems/base/instruction_set.hpp"
#include "report.hpp"

namespace {

using namespace portwave::bench;
using portwave::ExecutorKind;
using portwave::Stepper;

constexpr int kTasks = 16, kColumns = 16, kIterations = 40, kThreads = 2;
constexpr double kPhase_us = 1.0;

portwave::Scenario strip(int rows) {
  return portwave::parse_scenario(
      portwave::generate_scenario(portwave::network::Grid{.rows = rows, .columns = kColumns},
                                  {.step_s = 1e-3, .iterations = kIterations}),
      "generated", ".");
}

std::unique_ptr<Stepper> stepper(const portwave::Scenario& scenario, ExecutorKind executor,
                                 int iterations = kIterations) {
  portwave::StepperOptions options = scenario.options;
  options.executor = executor;
  options.threads = executor == ExecutorKind::serial ? 1 : kThreads;
  options.grain =
      portwave::Grain::of_parts(static_cast<int>(scenario.system.parts().size()) / kTasks);
  options.method.waves().iterations = iterations;
  options.certify = portwave::Certify::none;
  options.method.waves().guard = false;
  return std::make_unique<Stepper>(scenario.system, options);
}

/// Serial time of one iteration over all tasks [us].
double iteration_us(const portwave::Scenario& scenario) {
  const auto all = stepper(scenario, ExecutorKind::serial),
             none = stepper(scenario, ExecutorKind::serial, 0);
  const Contest contest =
      take_turns({processor_timed([&] { all->step(); }), processor_timed([&] { none->step(); })},
                 {.rounds = 9, .turn_s = 2e-3});
  return (quantile(contest.seconds(0), 0.1) - quantile(contest.seconds(1), 0.1)) * 1e6 /
         kIterations;
}

bool same_states(const Stepper& a, const Stepper& b) {
  for (int i = 0; i < static_cast<int>(a.system().parts().size()); ++i) {
    const auto x = a.state(i), y = b.state(i);
    if (!std::equal(x.begin(), x.end(), y.begin(), y.end())) return false;
  }
  return true;
}

struct Contender {
  const char* name;
  ExecutorKind executor;
};
constexpr Contender kContenders[] = {{"async", ExecutorKind::async},
                                     {"graph", ExecutorKind::graph},
                                     {"barrier", ExecutorKind::barrier}};

void check_answers(const portwave::Scenario& scenario) {
  const auto serial = stepper(scenario, ExecutorKind::serial);
  serial->run(50);
  for (const auto& [name, executor] : kContenders) {
    const auto engine = stepper(scenario, executor);
    engine->run(50);
    if (!same_states(*serial, *engine)) {
      throw std::runtime_error(std::string(name) + " gives other bits than serial");
    }
  }
  const auto wrong = stepper(scenario, ExecutorKind::async, kIterations - 1);
  wrong->run(50);
  if (same_states(*serial, *wrong)) {
    throw std::runtime_error("one iteration less: the check saw nothing wrong");
  }
}

void compare(const Report& report) {
  int rows = kTasks;
  for (int i = 0; i < 2; ++i) {
    const double phase_us = iteration_us(strip(rows)) / kTasks;
    rows = std::max(1, static_cast<int>(rows / kTasks * kPhase_us / phase_us + 0.5)) * kTasks;
  }
  const portwave::Scenario scenario = strip(rows);
  check_answers(scenario);
  const auto serial = stepper(scenario, ExecutorKind::serial);
  std::vector<std::unique_ptr<Stepper>> engines;
  std::vector<Timer> contenders = {timed([&] { serial->step(); })};
  for (const auto& [name, executor] : kContenders) {
    engines.push_back(stepper(scenario, executor));
    if (engines.back()->tasks() != kTasks) {
      throw std::runtime_error(fmt::format("{} has {} tasks", name, engines.back()->tasks()));
    }
    contenders.push_back([&engine = *engines.back(), inner = timed([&engine = *engines.back()] {
                                                       engine.step();
                                                     })](std::int64_t calls) {
      for (int i = 0; i < 3; ++i) engine.step();  // until threads are back
      return inner(calls);
    });
  }
  const Contest contest = take_turns(contenders, {.rounds = 61, .turn_s = 6e-3});
  const auto excess_ns = [&](std::size_t contender) {
    std::vector<double> out;
    for (std::size_t i = 0; i < contest.seconds(0).size(); ++i) {
      out.push_back((contest.seconds(contender)[i] - contest.seconds(0)[i] / kThreads) * 1e9 /
                    (kTasks * kIterations));
    }
    return out;
  };
  const std::string note = fmt::format("{}; {} tasks, phases of {:.2f} us, K={}, {} threads",
                                       to_string(portwave::instruction_set()), kTasks,
                                       iteration_us(scenario) / kTasks, kIterations, kThreads);
  const std::vector<double> async = excess_ns(1);
  for (std::size_t c = 0; c < std::size(kContenders); ++c) {
    const double best =
        (quantile(contest.seconds(c + 1), 0.1) - quantile(contest.seconds(0), 0.1) / kThreads) *
        1e9 / (kTasks * kIterations);
    report.add(
        {.name = fmt::format("task_overhead/{}", kContenders[c].name),
         .sense = Sense::at_most,
         .note = note + fmt::format("; excess per task and iteration, best tenth {:.0f} ns", best)},
        excess_ns(c + 1), "ns");
    if (c == 0) continue;
    const double of_other = quantile(excess_ns(c + 1), 0.5);
    std::vector<double> ratio;
    for (const double ns : async) ratio.push_back(ns / of_other);
    report.add({.name = fmt::format("task_overhead/async_to_{}", kContenders[c].name),
                .sense = Sense::at_most,
                .goal = 1.0 / 3.0,
                .note = note},
               ratio, "of its excess");
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const Report report("task_overhead", 5);
  if (report.only_lists(argc, argv)) return 0;
  compare(report);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "task_overhead: {}\n", error.what());
  return 1;
}
