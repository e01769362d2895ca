#include "portwave/runtime/study/delay_study.hpp"

#include <limits>
#include <memory>
#include <stdexcept>

#include <fmt/format.h>

#include "portwave/coupling/method/method_table.hpp"
#include "portwave/runtime/ranks/ranked_stepper.hpp"
#include "portwave/runtime/ranks/thread_ranks.hpp"
#include "portwave/subsystems/base/digest.hpp"
#include "study/deviation.hpp"
#include "study/stepped_scenario.hpp"

namespace portwave {
namespace {

void check_options(const DelayOptions& options) {
  if (options.ranks < 2) throw std::invalid_argument("waves are late between ranks: at least two");
  if (options.delays.empty()) throw std::invalid_argument("study delay needs at least one delay");
  for (const int delay : options.delays) {
    if (delay < 0 || delay > ExchangeOptions::kMostDelay) {
      throw std::invalid_argument(fmt::format("a delay is an integer from 0 to {}, got {}",
                                              ExchangeOptions::kMostDelay, delay));
    }
  }
  for (const int budget : options.budgets) {
    if (budget < 0) throw std::invalid_argument(fmt::format("budget {} is negative", budget));
  }
}

/// The same for the same message, whatever the order in which they are sent.
int scattered(int delay, int from, int to, std::uint64_t number) {
  Digest hash;
  hash.add(from);
  hash.add(to);
  hash.add(static_cast<double>(number));
  return static_cast<int>(hash.value() % static_cast<std::uint64_t>(delay + 1));
}

ThreadRanksOptions transport_for(int delay, bool is_scattered) {
  ThreadRanksOptions transport;
  transport.lateness = [=](int from, int to, std::uint64_t number) {
    return is_scattered ? scattered(delay, from, to, number) : delay;
  };
  return transport;
}

/// Also small systems are to be cut.
Grain grain_for(const Scenario& scenario, int ranks) {
  constexpr int kSmall = 32;  // parts of a rank
  if (scenario.options.grain.kind != Grain::Kind::automatic) return scenario.options.grain;
  const int parts = static_cast<int>(scenario.system.parts().size());
  return parts < kSmall * ranks ? Grain::per_part() : Grain::of_parts(parts / ranks);
}

StepperOptions options_of(const Scenario& scenario, int delay, int iterations, int ranks) {
  StepperOptions options = scenario.options;
  options.start = start_beside_a_reference(options);
  WaveCoupling& waves = options.method.waves();
  waves.iterations = iterations;
  waves.tolerance = waves.energy_tolerance_J = 0.0;
  waves.acceleration = 0;
  waves.exchange = {};
  if (delay > 0) waves.exchange = {ExchangeKind::asynchronous, delay};
  options.threads = 1;
  options.executor = ExecutorKind::automatic;
  options.time = {};
  options.grain = grain_for(scenario, ranks);
  return options;
}

/// As rank 0.
void run_row(const Scenario& scenario, const Samples& reference, Stepper& stepper, Ranks& ranks,
             DelayRow& row) {
  Deviation deviation(scenario.recording.quantities, reference);
  deviation.compare(stepper);
  for (std::int64_t n = 0; n < scenario.steps; ++n) {
    stepper.step();
    deviation.compare(stepper);
  }
  row.rms = deviation.rms();
  row.max = deviation.max();
  row.final = deviation.last();
  if (const GuardStatistics* const guard = stepper.waves()->guard(); guard != nullptr) {
    row.guard_steps = guard->steps;
    row.withheld_J = guard->withheld_J;
  }
  row.status = stepper.certificate().status;
  row.messages = ranks.traffic().messages;
}

DelayRow delay_row(const Scenario& scenario, const Samples& reference, const DelayOptions& options,
                   int delay, int iterations) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  DelayRow row{
      .delay = delay, .iterations = iterations, .rms = kNone, .max = kNone, .final = kNone};
  StepperOptions shared = options_of(scenario, delay, iterations, options.ranks);
  run_thread_ranks(
      options.ranks,
      [&](const std::shared_ptr<Ranks>& own) {
        StepperOptions stepping = shared;
        stepping.ranks = own;
        Stepper stepper(scenario.system, stepping);
        if (own->rank() != 0) {
          RankedStepper(stepper).follow();
          return;
        }
        try {
          run_row(scenario, reference, stepper, *own, row);
        } catch (const StepError& error) {
          row.failure = error.what();
        }
      },
      transport_for(delay, options.scattered));
  return row;
}

void check_method_of(const Scenario& scenario) {
  CouplingMethod method = scenario.options.method;
  if (!method.couples_by_waves()) refuse_without_waves(method);
  WaveCoupling& waves = method.waves();
  waves.exchange.kind = ExchangeKind::asynchronous;
  waves.tolerance = waves.energy_tolerance_J = 0.0;
  waves.acceleration = 0;
  throw_if_any(check_method(method));
}

}  // namespace

std::vector<DelayRow> study_delay(const Scenario& scenario, const DelayOptions& options,
                                  const PhaseCallback& listener) {
  check_options(options);
  refuse_chosen_steps(scenario);
  refuse_signals(scenario);
  check_method_of(scenario);
  std::vector<int> budgets = options.budgets;
  if (budgets.empty()) budgets = {scenario.options.method.waves().iterations};
  const Samples reference = monolithic_samples(scenario, listener);
  const auto count = static_cast<std::int64_t>(budgets.size() * options.delays.size());
  std::vector<DelayRow> rows;
  for (const int budget : budgets) {
    for (const int delay : options.delays) {
      tell(listener, {"running combination", static_cast<std::int64_t>(rows.size()) + 1, count});
      rows.push_back(delay_row(scenario, reference, options, delay, budget));
      const DelayRow& row = rows.back();
      if (row.failure.empty() && row.messages == 0) {
        throw ConfigError("/subsystems",
                          fmt::format("the system cannot be cut so that waves go between {} ranks: "
                                      "nothing could be late",
                                      options.ranks));
      }
    }
  }
  return rows;
}

}  // namespace portwave
