// Two threads against one, on macro-steps of a few microseconds to a millisecond: chains of equal
// blocks (K = 2) and Duffing grids (K = 5).
//   async           the async executor beside the serial one
//   automatic       the default, which may stay serial
//   automatic_busy  the same while another process spins on one of the cores
//   guarded         steps in which the guard acts, the first ones, over the same steps without a guard;
//                   both on one thread
//   guarded_async   the async executor beside the serial one in such steps
// All others are measured once the guard has come to rest: contenders are at different steps, and the turns of
// some would have more guarded ones than those of others. A watchdog ends the program if a step never returns.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "chain_system.hpp"
#include "portwave/runtime/generate/generate.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/subsystems/base/instruction_set.hpp"
#include "report.hpp"

namespace {

using namespace portwave::bench;
using portwave::ExecutorKind;
using portwave::Stepper;

constexpr double kTargets_us[] = {3, 10, 25, 50, 200, 1000};
constexpr unsigned kWatchdog_s = 180;

struct Scenario {
  portwave::System system;
  portwave::StepperOptions options{.method = portwave::WaveCoupling{}};
};

struct Kind {
  const char* name;
  int iterations;
  Scenario (*make)(int parts, int iterations);
};

Scenario chain(int parts, int iterations) {
  const Chain blocks = equal_chain(static_cast<std::size_t>(parts));
  return {chain_system(blocks), chain_options(blocks, 1e-3, iterations)};
}
Scenario grid(int parts, int iterations) {
  const int rows = std::max(1, static_cast<int>(std::lround(std::sqrt(parts))));
  portwave::Scenario read = portwave::parse_scenario(
      portwave::generate_scenario(
          portwave::network::Grid{.rows = rows, .columns = std::max(1, parts / rows)},
          {.step_s = 1e-3, .iterations = iterations}),
      "generated", ".");
  return {std::move(read.system), read.options};
}
const Kind kKinds[] = {{"chain/K=2", 2, chain}, {"grid/K=5", 5, grid}};

std::unique_ptr<Stepper> stepper(const Scenario& scenario, ExecutorKind executor, int threads,
                                 int more_iterations = 0) {
  portwave::StepperOptions options = scenario.options;
  options.executor = executor;
  options.threads = threads;
  options.method.waves().iterations += more_iterations;
  return std::make_unique<Stepper>(scenario.system, options);
}

std::int64_t guarded_steps(const Stepper& stepper) {
  const portwave::GuardStatistics* const guard = stepper.waves()->guard();
  return guard == nullptr ? 0 : guard->steps;
}

/// Steps until the guard has not acted for a while.
void coast(Stepper& stepper) {
  constexpr int kWhile = 200, kMostWhiles = 40;
  for (int i = 0; i < kMostWhiles; ++i) {
    const std::int64_t before = guarded_steps(stepper);
    stepper.step(kWhile);
    if (guarded_steps(stepper) == before) return;
  }
  throw std::runtime_error("the guard does not come to rest");
}

/// As many parts as make a serial step last about `target_us`.
int parts_for(const Kind& kind, double target_us) {
  int parts = 256;
  for (int i = 0; i < 3; ++i) {
    const Scenario scenario = kind.make(parts, kind.iterations);
    const auto serial = stepper(scenario, ExecutorKind::serial, 1);
    coast(*serial);
    const Contest alone =
        take_turns({processor_timed([&] { serial->step(); })}, {.rounds = 7, .turn_s = 2e-3});
    const double step_us = quantile(alone.seconds(0), 0.1) * 1e6;
    parts = std::max(8, static_cast<int>(parts * target_us / step_us));
  }
  return parts;
}

bool same_states(const Stepper& a, const Stepper& b) {
  for (int i = 0; i < static_cast<int>(a.system().parts().size()); ++i) {
    const auto x = a.state(i), y = b.state(i);
    if (!std::equal(x.begin(), x.end(), y.begin(), y.end())) return false;
  }
  return true;
}

void check_answers(const Kind& kind) {
  const Scenario scenario = kind.make(4000, kind.iterations);
  const auto run = [&](ExecutorKind executor, int threads, int more_iterations) {
    auto engine = stepper(scenario, executor, threads, more_iterations);
    engine->step(300);
    return engine;
  };
  const auto serial = run(ExecutorKind::serial, 1, 0);
  for (const ExecutorKind executor : {ExecutorKind::async, ExecutorKind::automatic}) {
    if (same_states(*serial, *run(executor, 2, 0))) continue;
    throw std::runtime_error(fmt::format("{}: {} gives other bits than serial", kind.name,
                                         portwave::to_string(executor)));
  }
  if (same_states(*serial, *run(ExecutorKind::async, 2, 1))) {
    throw std::runtime_error("one more iteration: the check saw nothing wrong");
  }
}

/// A process that does nothing but compute.
class Competitor {
 public:
  Competitor() : pid_(fork()) {
    if (pid_ < 0) throw std::runtime_error("cannot fork");
    if (pid_ > 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned i = 0;; ++i) asm volatile("" : : "r"(i));
  }
  ~Competitor() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Competitor(const Competitor&) = delete;
  Competitor& operator=(const Competitor&) = delete;

 private:
  pid_t pid_;
};

/// 150 ms of steps, so that the automatic executor has made up its mind.
void settle(Stepper& engine) {
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(150)) engine.step();
}

/// The speed-up in the best tenth of the rounds, when other processes of this machine kept away.
double undisturbed(const Contest& contest, std::size_t ours) {
  return quantile(contest.seconds(0), 0.1) / quantile(contest.seconds(ours), 0.1);
}

void compare(const Report& report, const Kind& kind, double target_us) {
  const int parts = parts_for(kind, target_us);
  const Scenario scenario = kind.make(parts, kind.iterations);
  const auto serial = stepper(scenario, ExecutorKind::serial, 1);
  const auto async = stepper(scenario, ExecutorKind::async, 2);
  const auto automatic = stepper(scenario, ExecutorKind::automatic, 2);
  for (Stepper* const own : {serial.get(), async.get(), automatic.get()}) coast(*own);
  settle(*automatic);
  const Turns turns{.rounds = 31, .turn_s = 3e-3};
  const Contest free =
      take_turns({warmed([&own = *serial] { own.step(); }), warmed([&own = *async] { own.step(); }),
                  warmed([&own = *automatic] { own.step(); })},
                 turns);
  double load[1] = {0.0};
  (void)getloadavg(load, 1);
  const std::string name = fmt::format("threads/{}/{}us", kind.name, target_us);
  const std::string note = fmt::format(
      "{}; {} parts; load average {:.1f}; best tenth {:.2f} and {:.2f} (async, automatic); ",
      to_string(portwave::instruction_set()), scenario.system.parts().size(), load[0],
      undisturbed(free, 1), undisturbed(free, 2));
  std::optional<double> goal;
  if (kind.iterations == 2) goal = target_us >= 10 ? 1.3 : 1.4;
  if (kind.iterations == 5 && target_us >= 25) goal = 1.6;
  if (target_us >= 50) goal = 1.8;
  report.add({name + "/async", Sense::at_least, goal, note + async->execution()}, free, 1, 0);
  report.add({name + "/automatic", Sense::at_least, 0.97, note + automatic->execution()}, free, 2,
             0);
  const Competitor competitor;
  settle(*automatic);
  const Contest busy = take_turns(
      {warmed([&own = *serial] { own.step(); }), warmed([&own = *automatic] { own.step(); })},
      turns);
  report.add({name + "/automatic_busy", Sense::at_least, 0.9, note + automatic->execution()}, busy,
             1, 0);
}

/// Times `kSteps` steps from the start on, over and over; a call is one step.
class Beginning {
 public:
  static constexpr std::int64_t kSteps = 16;

  Beginning(const Scenario& scenario, bool guard, ExecutorKind executor, int threads) {
    portwave::StepperOptions options = scenario.options;
    options.executor = executor;
    options.threads = threads;
    options.method.waves().guard = guard;
    stepper_ = std::make_unique<Stepper>(scenario.system, options);
    start_ = stepper_->snapshot();
    stepper_->step(kSteps);
    if (guarded_steps(*stepper_) != (guard ? kSteps : 0)) {
      throw std::runtime_error("the guard is to act in every step from the start on");
    }
  }

  double operator()(std::int64_t calls) {
    double sum_s = 0.0;
    const std::int64_t rounds = (calls + kSteps - 1) / kSteps;
    for (std::int64_t r = 0; r < rounds; ++r) {
      stepper_->restore(start_);
      sum_s += timed([this] { stepper_->step(); })(kSteps);
    }
    return sum_s * static_cast<double>(calls) / static_cast<double>(rounds * kSteps);
  }

 private:
  std::unique_ptr<Stepper> stepper_;
  portwave::Snapshot start_;
};

void compare_guarded(const Report& report, const char* name, Scenario scenario) {
  Beginning guarded(scenario, true, ExecutorKind::serial, 1),
      plain(scenario, false, ExecutorKind::serial, 1),
      shared(scenario, true, ExecutorKind::async, 2);
  const auto timer = [](Beginning& of) { return [&of](std::int64_t calls) { return of(calls); }; };
  const Contest contest =
      take_turns({timer(guarded), timer(plain), timer(shared)}, {.rounds = 31, .turn_s = 10e-3});
  const std::string note =
      fmt::format("{}; {} parts; steps in which the guard acts, ",
                  to_string(portwave::instruction_set()), scenario.system.parts().size());
  report.add({fmt::format("threads/{}/guarded", name), Sense::at_most, std::nullopt,
              note + "over steps without it"},
             contest, 0, 1);
  report.add({fmt::format("threads/{}/guarded_async", name), Sense::at_least, 1.5,
              note + "on two threads"},
             contest, 2, 0);
}

Scenario generated_chain(int parts, int iterations) {
  portwave::Scenario read = portwave::parse_scenario(
      portwave::generate_scenario(portwave::network::Chain{.blocks = parts},
                                  {.iterations = iterations}),
      "generated", ".");
  return {std::move(read.system), read.options};
}

}  // namespace

int main(int argc, char** argv) try {
  const Report report("threads", 5);
  if (report.only_lists(argc, argv)) return 0;
  std::signal(SIGALRM, [](int) {
    constexpr char kText[] = "threads: a step hangs\n";
    (void)!write(STDERR_FILENO, kText, sizeof kText - 1);
    _exit(1);
  });
  alarm(kWatchdog_s);
  for (const Kind& kind : kKinds) {
    check_answers(kind);
    for (const double target_us : kTargets_us) compare(report, kind, target_us);
  }
  compare_guarded(report, "chain/K=20", generated_chain(5000, 20));
  compare_guarded(report, "grid/K=5", grid(4624, 5));
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "threads: {}\n", error.what());
  return 1;
}
