// What a task costs beside its work: a strip of 16 tasks, each port solve phase of which lasts
// about a microsecond, on two threads. Excess = (time of a step − serial time / 2) / (16 K), by
// executor. A step is the inner iteration and the commit, without ledger and guard: executors are driven
// directly, among them one that waits for all tasks after every phase, which the product has not.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "barrier_executor.hpp"
#include "parallel/executors/executor.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/runtime/generate/generate.hpp"
#include "portwave/runtime/parallel/partition.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/base/instruction_set.hpp"
#include "report.hpp"

namespace {

using namespace portwave::bench;
using portwave::AlignedVector;
using portwave::Executor;
using portwave::Partition;
using portwave::WaveDiscretisation;

constexpr int kTasks = 16, kColumns = 16, kIterations = 40, kThreads = 2;
constexpr double kPhase_us = 1.0;

portwave::Scenario strip(int rows) {
  return portwave::parse_scenario(
      portwave::generate_scenario(portwave::network::Grid{.rows = rows, .columns = kColumns},
                                  {.step_s = 1e-3, .iterations = kIterations}),
      "generated", ".");
}

/// A strip cut into tasks, and the steps of one executor through it.
struct Strip {
  explicit Strip(int rows)
      : scenario(strip(rows)),
        waves(scenario.system, scenario.options.step_s,
              std::vector<double>(scenario.system.scalar_ports().size(),
                                  scenario.options.method.waves().impedance.front())),
        whole(portwave::whole_island_groups(waves, portwave::declared_costs(waves))),
        cut(portwave::make_partition(
            waves, portwave::declared_costs(waves),
            portwave::Grain::of_parts(static_cast<int>(scenario.system.parts().size()) / kTasks),
            kThreads, kIterations)) {}

  portwave::Scenario scenario;
  WaveDiscretisation waves;
  Partition whole, cut;
};

class Steps {
 public:
  Steps(const WaveDiscretisation& waves, std::unique_ptr<Executor> executor,
        int iterations = kIterations)
      : waves_(waves),
        executor_(std::move(executor)),
        record_(waves.initial_record()),
        next_(record_),
        b_(wave_array()),
        b_next_(wave_array()),
        u_(wave_array()),
        b_trial_(wave_array()),
        a_(wave_array()),
        outcomes_(static_cast<std::size_t>(waves.system().island_count())) {
    plan_.rule.budget = iterations;
    plan_.rule.update = {&portwave::douglas_rachford(), 1.0};
    for (int i = 0; i < 2; ++i) {
      executor_->bind(arrays());
      turn();
    }
  }

  void step() {
    if (executor_->execute(arrays(), plan_, outcomes_).failed_at >= 0) {
      throw std::runtime_error("a step failed");
    }
    turn();
  }
  void step(int steps) {
    for (int n = 0; n < steps; ++n) step();
  }
  int tasks() const { return executor_->tasks(); }
  std::vector<double> state(int part) const {
    std::vector<double> x(static_cast<std::size_t>(waves_.system()
                                                       .parts()[static_cast<std::size_t>(part)]
                                                       .component->signature()
                                                       .state_size()));
    waves_.get_state(part, record_.data(), x.data());
    return x;
  }

 private:
  AlignedVector wave_array() const {
    return AlignedVector(static_cast<std::size_t>(waves_.wave_size()), 0.0);
  }
  portwave::StepArrays arrays() {
    portwave::StepArrays s;
    s.record = record_.data();
    s.next = next_.data();
    s.b = b_.data();
    s.b_next = b_next_.data();
    s.u = u_.data();
    s.b_trial = b_trial_.data();
    s.a = a_.data();
    return s;
  }
  void turn() {
    record_.swap(next_);
    b_.swap(b_next_);
  }

  const WaveDiscretisation& waves_;
  std::unique_ptr<Executor> executor_;
  AlignedVector record_, next_, b_, b_next_, u_, b_trial_, a_;
  std::vector<portwave::IslandOutcome> outcomes_;
  portwave::StepPlan plan_;
};

std::unique_ptr<Steps> serial_steps(const Strip& strip, int iterations = kIterations) {
  return std::make_unique<Steps>(
      strip.waves, portwave::make_serial_executor(strip.waves, strip.whole), iterations);
}

/// Serial time of one iteration over all tasks [us].
double iteration_us(const Strip& strip) {
  const auto all = serial_steps(strip), none = serial_steps(strip, 0);
  const Contest contest =
      take_turns({processor_timed([&] { all->step(); }), processor_timed([&] { none->step(); })},
                 {.rounds = 9, .turn_s = 2e-3});
  return (quantile(contest.seconds(0), 0.1) - quantile(contest.seconds(1), 0.1)) * 1e6 /
         kIterations;
}

bool same_states(const Strip& strip, const Steps& a, const Steps& b) {
  for (int i = 0; i < static_cast<int>(strip.scenario.system.parts().size()); ++i) {
    if (a.state(i) != b.state(i)) return false;
  }
  return true;
}

std::unique_ptr<Executor> make_async(const WaveDiscretisation& waves, const Partition& cut) {
  return portwave::make_async_executor(waves, cut, kThreads);
}
std::unique_ptr<Executor> make_graph(const WaveDiscretisation& waves, const Partition& cut) {
  return portwave::make_graph_executor(waves, cut, kThreads);
}
std::unique_ptr<Executor> make_barrier(const WaveDiscretisation& waves, const Partition& cut) {
  return std::make_unique<BarrierExecutor>(waves, cut, kThreads);
}

struct Contender {
  const char* name;
  std::unique_ptr<Executor> (*make)(const WaveDiscretisation& waves, const Partition& cut);
};
constexpr Contender kContenders[] = {
    {"async", make_async}, {"graph", make_graph}, {"barrier", make_barrier}};

std::unique_ptr<Steps> steps(const Strip& strip, const Contender& contender,
                             int iterations = kIterations) {
  return std::make_unique<Steps>(strip.waves, contender.make(strip.waves, strip.cut), iterations);
}

void check_answers(const Strip& strip) {
  const auto serial = serial_steps(strip);
  serial->step(50);
  for (const Contender& contender : kContenders) {
    const auto own = steps(strip, contender);
    own->step(50);
    if (!same_states(strip, *serial, *own)) {
      throw std::runtime_error(std::string(contender.name) + " gives other bits than serial");
    }
  }
  const auto wrong = steps(strip, kContenders[0], kIterations - 1);
  wrong->step(50);
  if (same_states(strip, *serial, *wrong)) {
    throw std::runtime_error("one iteration less: the check saw nothing wrong");
  }
}

void compare(const Report& report) {
  int rows = kTasks;
  for (int i = 0; i < 2; ++i) {
    const double phase_us = iteration_us(Strip(rows)) / kTasks;
    rows = std::max(1, static_cast<int>(rows / kTasks * kPhase_us / phase_us + 0.5)) * kTasks;
  }
  const Strip strip(rows);
  check_answers(strip);
  const auto serial = serial_steps(strip);
  std::vector<std::unique_ptr<Steps>> engines;
  std::vector<Timer> contenders = {timed([&] { serial->step(); })};
  for (const Contender& contender : kContenders) {
    engines.push_back(steps(strip, contender));
    if (engines.back()->tasks() != kTasks) {
      throw std::runtime_error(
          fmt::format("{} has {} tasks", contender.name, engines.back()->tasks()));
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
                                       iteration_us(strip) / kTasks, kIterations, kThreads);
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
