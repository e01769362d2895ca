// A deadline for every step of 1024 blocks, K up to 1000: how often it is missed for no other
// reason than the engine's own. Steps in which the processor was taken away are counted apart.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <vector>

#include "chain_system.hpp"
#include "portwave/subsystems/base/instruction_set.hpp"
#include "report.hpp"

namespace {

using namespace portwave::bench;
using portwave::Stepper;
using portwave::System;

constexpr std::size_t kBlocks = 1024;
constexpr std::int64_t kSteps = 100'000;
constexpr int kMostIterations = 1000, kChecked = 100;
constexpr double kStep = 1e-3, kTolerance = 1e-6;

portwave::StepperOptions options(const Chain& chain, int iterations, double deadline_s) {
  portwave::StepperOptions options =
      chain_options(chain, kStep, iterations, portwave::Certify::energy);
  options.time.deadline_s = deadline_s;
  return options;
}

/// Largest difference of positions, against 0.1 m.
double difference(const Stepper& a, const Stepper& b) {
  double worst = 0.0;
  for (int part = 0; part < static_cast<int>(kBlocks); ++part) {
    for (std::size_t m = 0; m < kMasses; ++m) {
      const double off = std::abs(a.state(part)[2 * m] - b.state(part)[2 * m]) / 0.1;
      worst = off <= worst ? worst : std::isfinite(off) ? off : HUGE_VAL;
    }
  }
  return worst;
}

void require(const std::string& name, double difference, bool agrees) {
  fmt::print(stderr, "  {:36} {:.1e}\n", name, difference);
  if ((difference <= kTolerance) == agrees) return;
  throw std::runtime_error(name + (agrees ? ": wrong answer" : ": the check saw nothing wrong"));
}

/// With 2 ms a step is as good as converged.
void check_answers(const Chain& chain, const System& system) {
  Stepper converged(system, options(chain, 100, 0.0)),
      explicit_step(system, options(chain, 0, 0.0));
  Stepper in_time(system, options(chain, kMostIterations, 2e-3));
  for (Stepper* engine : {&converged, &explicit_step, &in_time}) engine->step(kChecked);
  require("deadline 2 ms against K=100", difference(in_time, converged), true);
  require("K=0 against K=100 (control)", difference(explicit_step, converged), false);
}

/// How often the system took the processor away from this thread.
long switches() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

/// The machine's own share: how often arithmetic that usually takes 20 us, about a commit, takes
/// more than 3 us longer though the thread was not switched out.
double late_arithmetic() {
  using Clock = std::chrono::steady_clock;
  int length = 1000;
  const auto window_s = [&length] {
    const auto start = Clock::now();
    double x = 1.0;
    for (int i = 0; i < length; ++i) {
      x = x * 1.0000001 + 1e-9;
      asm volatile("" : : "x"(x));
    }
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  std::vector<double> first;
  for (int i = 0; i < 1000; ++i) first.push_back(window_s());
  length = static_cast<int>(length * 20e-6 / quantile(first, 0.5));
  std::vector<double> seconds;
  for (int i = 0; i < 50'000; ++i) {
    const long before = switches();
    const double took = window_s();
    if (switches() == before) seconds.push_back(took);
  }
  const double limit = quantile(seconds, 0.5) + 3e-6;
  const auto late =
      std::count_if(seconds.begin(), seconds.end(), [&](double s) { return s > limit; });
  return static_cast<double>(late) / static_cast<double>(seconds.size());
}

void measure(const Report& report, const Chain& chain, const System& system, double deadline_us) {
  Stepper engine(system, options(chain, kMostIterations, 1e-6 * deadline_us));
  std::int64_t undisturbed_misses = 0;
  for (std::int64_t n = 0; n < kSteps; ++n) {
    const long before = switches();
    const bool missed = engine.step().slack_s < 0.0;
    if (missed && switches() == before) ++undisturbed_misses;
  }
  const auto s = engine.deadline().value();
  const auto& iterations = engine.iterations();
  if (s.steps != kSteps || iterations.total <= 0)
    throw std::runtime_error("steps were not counted");
  if (engine.certificate().status != portwave::CertificateStatus::holds) {
    throw std::runtime_error("the certificate is violated");
  }
  const std::string note = fmt::format(
      "{}; {} steps, {:.1f} iterations on average; slack 1 % {:.1f} us, median {:.1f} us, worst "
      "{:.0f} us",
      to_string(portwave::instruction_set()), s.steps, iterations.mean(), 1e6 * s.slack_p01_s,
      1e6 * s.slack_p50_s, 1e6 * s.worst_slack_s);
  const auto share = [&](std::int64_t misses) {
    return std::vector<double>{static_cast<double>(misses) / static_cast<double>(s.steps)};
  };
  const std::string name = fmt::format("deadline/{}us", deadline_us);
  report.add({name + "/own_misses", Sense::at_most, 0.001, note},
             share(s.misses - s.preempted_misses), "of all steps");
  report.add({name + "/misses_without_a_switch", Sense::at_most, std::nullopt,
              note + "; as the operating system counts the switches"},
             share(undisturbed_misses), "of all steps");
  report.add({name + "/all_misses", Sense::at_most, std::nullopt, note}, share(s.misses),
             "of all steps");
}

}  // namespace

int main(int argc, char** argv) try {
  const Report report("deadline", 1);
  if (report.only_lists(argc, argv)) return 0;
  const Chain chain = equal_chain(kBlocks);
  const System system = chain_system(chain);
  check_answers(chain, system);
  report.add({"deadline/machine/late_arithmetic", Sense::at_most, std::nullopt,
              "20 us of pure arithmetic that took more than 3 us longer, not switched out"},
             {late_arithmetic()}, "of all windows");
  for (const double deadline_us : {200.0, 20.0}) measure(report, chain, system, deadline_us);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "deadline: {}\n", error.what());
  return 1;
}
