// The error of a run under a deadline, from 1 % to 200 % of the time that a step takes to converge: `auto` beside the
// best of the methods that one could have fixed and that keep the deadline, on five systems. An error is the distance
// of all states, after some steps, from the same run without a deadline, over the size of these.
//
// `deadline_error --simulated [system]`: the same in simulated time. What evaluations, commits and solves take is
// measured first, each with a method that does nothing else, and printed; `--costs a,b,c,d,e` gives it instead
// (microseconds). Nothing else takes time then, so that figures can be compared to the digit, whatever else the machine
// does. With `--busy` what work takes varies from step to step.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "friction_ring.hpp"
#include "parallel/clock.hpp"
#include "portwave/runtime/generate/generate.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "report.hpp"

namespace {

using namespace portwave::bench;
using portwave::ImpedanceKind;
using portwave::Scenario;
using portwave::Stepper;
using portwave::WaveCoupling;
using portwave::WaveUpdate;

/// Below that, errors count as equal: they are those of the tolerance.
constexpr double kConverged = 1e-7;
constexpr int kMostIterations = 1000, kRepetitions = 5;
constexpr double kShares[] = {0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0};

struct Subject {
  std::string name;
  std::function<Scenario()> make;
  std::int64_t steps = 150;
};

Scenario generated(const portwave::Network& network) {
  return portwave::parse_scenario(portwave::generate_scenario(network), "generated.json", ".");
}

Scenario example(const char* name) {
  return portwave::load_scenario(std::filesystem::path(PORTWAVE_EXAMPLES) / name);
}

std::vector<Subject> subjects() {
  return {{"chain of 1024", [] { return generated(portwave::network::Chain{.blocks = 1024}); }},
          {"grid of 32 x 32",
           [] {
             return generated(portwave::network::Grid{32, 32});
           }},
          {"network of 2000", [] { return friction_ring(true); }},
          {"arm", [] { return example("robot_arm.json"); }, 2000},
          {"crane", [] { return example("crane.json"); }, 3000}};
}

struct Fixed {
  const char* name;
  WaveUpdate kind;
  ImpedanceKind impedance;
  double relaxation = 1.0;
  int acceleration = 0;
};

constexpr Fixed kFixed[] = {
    {"Douglas-Rachford", WaveUpdate::douglas_rachford, ImpedanceKind::matched},
    {"Peaceman-Rachford, matched", WaveUpdate::peaceman_rachford, ImpedanceKind::matched},
    {"Peaceman-Rachford, leaf", WaveUpdate::peaceman_rachford, ImpedanceKind::leaf},
    {"Peaceman-Rachford, adapted", WaveUpdate::peaceman_rachford, ImpedanceKind::adapted},
    {"averaged, accelerated", WaveUpdate::peaceman_rachford, ImpedanceKind::matched, 0.5, 5},
    {"interface, matched", WaveUpdate::interface, ImpedanceKind::matched},
    {"interface, across", WaveUpdate::interface, ImpedanceKind::across},
};

WaveCoupling coupling_of(const Fixed& fixed) {
  WaveCoupling waves = WaveCoupling::automatic(1e-10);
  waves.kind = fixed.kind;
  waves.impedance_kind = fixed.impedance;
  waves.relaxation = fixed.relaxation;
  waves.acceleration = fixed.acceleration;
  return waves;
}

/// A clock of the machine's or, with costs, one that stands still but for work.
struct Time {
  std::optional<portwave::WorkCosts> costs;
  bool is_busy = false;  ///< costs vary, as on a machine with other work
  int repetitions() const { return costs ? 1 : kRepetitions; }
  /// In a step: within 15 % of what they are and, in every fiftieth or so, four times as much.
  portwave::WorkCosts costs_in(std::int64_t step) const {
    portwave::WorkCosts own = *costs;
    std::mt19937_64 random(static_cast<std::uint64_t>(step) + 1);
    const double factor = std::uniform_real_distribution<double>(0.85, 1.15)(random) *
                          (std::uniform_int_distribution<int>(0, 49)(random) == 0 ? 4.0 : 1.0);
    for (double& cost : own) cost *= factor;
    return own;
  }
  void step(Stepper& stepper, std::int64_t steps) const {
    if (!is_busy) return static_cast<void>(stepper.step(steps));
    for (std::int64_t n = 0; n < steps; ++n) {
      const portwave::SimulatedTime own(costs_in(n));
      stepper.step();
    }
  }
};

/// `fixed` null: auto. `deadline_s` 0: none.
Stepper stepper_of(const Subject& subject, const Fixed* fixed, double deadline_s) {
  Scenario scenario = subject.make();
  portwave::StepperOptions options = scenario.options;
  options.method = fixed != nullptr ? coupling_of(*fixed) : WaveCoupling::automatic(1e-10);
  if (deadline_s > 0.0) {
    options.method.waves().iterations = kMostIterations;
    options.time.deadline_s = deadline_s;
  }
  options.executor = portwave::ExecutorKind::serial;
  options.threads = 1;
  return {std::move(scenario.system), options};
}

std::vector<double> states_of(const Stepper& stepper) {
  std::vector<double> all;
  for (int part = 0; part < static_cast<int>(stepper.system().parts().size()); ++part) {
    const auto own = stepper.state(part);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

double distance(std::span<const double> a, std::span<const double> b) {
  double off = 0.0, size = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    off += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  if (!(size > 0.0)) throw std::runtime_error("nothing moves: there is nothing to compare");
  const double error = std::sqrt(off / size);
  return std::isfinite(error) ? error : std::numeric_limits<double>::max();
}

struct Result {
  double error = HUGE_VAL;  ///< HUGE_VAL where the method is not for the system
  double late = 1.0;  ///< share of the steps that end late, other than by losing the processor
};

/// The medians of some runs.
Result result_of(const Subject& subject, const Fixed* fixed, double deadline_s,
                 std::span<const double> converged, const Time& time) {
  std::vector<double> errors, late;
  try {
    for (int i = 0; i < time.repetitions(); ++i) {
      std::optional<portwave::SimulatedTime> simulated;
      if (time.costs) simulated.emplace(*time.costs);
      Stepper stepper = stepper_of(subject, fixed, deadline_s);
      time.step(stepper, subject.steps);
      errors.push_back(distance(states_of(stepper), converged));
      const auto deadline = stepper.deadline().value();
      late.push_back(static_cast<double>(deadline.misses - deadline.preempted_misses) /
                     static_cast<double>(subject.steps));
    }
  } catch (const portwave::ConfigError&) {
    return {};
  } catch (const portwave::StepError& error) {
    fmt::print(stderr, "  {}, {} under {:.1f} us: {}\n", subject.name,
               fixed == nullptr ? "auto" : fixed->name, 1e6 * deadline_s, error.what());
    return {};
  }
  return {quantile(errors, 0.5), quantile(late, 0.5)};
}

/// The median time of the inner iteration and the commit of some steps, in which `wanted` holds.
struct Phases {
  double inner_s = 0.0, commit_s = 0.0;
  int iterations = 0;
};
Phases phases_of(const Subject& subject, const Fixed& fixed, int iterations, bool linearises) {
  constexpr int kSteps = 60;
  Scenario scenario = subject.make();
  portwave::StepperOptions options = scenario.options;
  options.method = coupling_of(fixed);
  options.method.waves().iterations = iterations;
  options.method.waves().tolerance = 1e-15;  // gaps are measured and not met
  options.method.waves().rescue_after = 0;
  options.method.waves().guard =
      false;  // it would make commits again, with waves that do not agree
  options.executor = portwave::ExecutorKind::serial;
  options.threads = 1;
  options.timed = true;
  Stepper stepper(std::move(scenario.system), options);
  stepper.step(subject.steps / 2);  // some are at rest at first
  std::vector<double> inner, commit;
  Phases out;
  for (int n = 0; n < kSteps; ++n) {
    const portwave::StepReport report = stepper.step();
    if ((report.linearisations > 0) != linearises || report.iterations < 2) continue;
    inner.push_back(report.times.iterate_s / report.iterations);
    commit.push_back(report.times.commit_s);
    out.iterations = report.iterations;
  }
  if (inner.empty()) return out;
  out.inner_s = quantile(inner, 0.5);
  out.commit_s = quantile(commit, 0.5);
  return out;
}

/// What work takes on this machine.
portwave::WorkCosts measured_costs(const Subject& subject) {
  using portwave::Work;
  constexpr int kMany = 20, kFew = 6, kTwo = 2;
  const Phases plain = phases_of(subject, kFixed[0], kMany, false);
  const Phases two = phases_of(subject, kFixed[0], kTwo, false);
  portwave::WorkCosts out{};
  const double evaluation_s = cost(out, Work::evaluation) = plain.inner_s;
  cost(out, Work::first_evaluation) = std::max(kTwo * two.inner_s - evaluation_s, evaluation_s);
  cost(out, Work::commit) = plain.commit_s;
  constexpr const Fixed& kSolving = kFixed[5];
  const auto beside_evaluation = [&](bool linearises) {
    const Phases solving = phases_of(subject, kSolving, kFew, linearises);
    const double solves = std::max(solving.iterations - 1, 1);
    return std::max((solving.inner_s - evaluation_s) * solving.iterations / solves, evaluation_s);
  };
  cost(out, Work::solve) = beside_evaluation(false);
  cost(out, Work::linearise) = std::max(beside_evaluation(true), cost(out, Work::solve));
  cost(out, Work::check) = cost(out, Work::change) = 2.0 * cost(out, Work::linearise);
  return out;
}

/// "a,b,c,d" or "a,b,c,d,e" in microseconds, e: the first evaluation of a step. Checks and changes of impedances take
/// twice a linearisation.
portwave::WorkCosts costs_from(const std::string& text) {
  using portwave::Work;
  portwave::WorkCosts out{};
  std::istringstream in(text);
  for (const Work work :
       {Work::evaluation, Work::commit, Work::solve, Work::linearise, Work::first_evaluation}) {
    char comma = ',';
    double cost_us = 0.0;
    if (work == Work::first_evaluation && in.peek() == std::istringstream::traits_type::eof()) {
      cost(out, work) = cost(out, Work::evaluation);
      break;
    }
    if (work != Work::evaluation) in >> comma;
    if (!(in >> cost_us) || comma != ',' || !(cost_us > 0.0)) {
      throw std::runtime_error(
          "--costs: four positive numbers are needed, or five, as in 8,20,10,30");
    }
    cost(out, work) = 1e-6 * cost_us;
  }
  cost(out, Work::check) = cost(out, Work::change) = 2.0 * cost(out, Work::linearise);
  return out;
}

void measure(const Report& report, const Subject& subject, const Time& time) {
  double step_s = 0.0;
  Stepper converged = [&] {
    std::optional<portwave::SimulatedTime> simulated;
    if (time.costs) simulated.emplace(*time.costs);
    Stepper stepper = stepper_of(subject, nullptr, 0.0);
    std::vector<double> seconds;
    for (std::int64_t n = 0; n < subject.steps; ++n) {
      const double before = simulated ? simulated->now_s() : 0.0;
      const double took = timed([&] { stepper.step(); })(1);
      seconds.push_back(simulated ? simulated->now_s() - before : took);
    }
    step_s = quantile(seconds, 0.5);
    return stepper;
  }();
  const std::string kind = time.is_busy ? "deadline_error/busy"
                           : time.costs ? "deadline_error/simulated"
                                        : "deadline_error";
  const std::vector<double> states = states_of(converged);
  fmt::print(stderr, "  {}: {:.1f} us by step, {}\n", subject.name, 1e6 * step_s,
             converged.method().reason);
  double last = HUGE_VAL, worst_rise = 0.0;
  for (const double share : kShares) {
    const double deadline_s = share * step_s;
    const Result own = result_of(subject, nullptr, deadline_s, states, time);
    // What ends late clearly more often is no peer.
    constexpr double kFewLate = 0.1;
    double best = HUGE_VAL, best_late = HUGE_VAL;
    const char *best_name = "none", *best_late_name = "none";
    for (const Fixed& fixed : kFixed) {
      const Result its = result_of(subject, &fixed, deadline_s, states, time);
      const bool counts = its.late <= own.late + kFewLate;
      double& least = counts ? best : best_late;
      if (its.error >= least) continue;
      least = its.error;
      (counts ? best_name : best_late_name) = fixed.name;
    }
    std::string note =
        fmt::format("deadline {:.1f} us; error {:.1e}, {:.0f} % late; best fixed {:.1e} ({})",
                    1e6 * deadline_s, own.error, 100.0 * own.late, best, best_name);
    if (best_late < best) note += fmt::format("; late {:.1e} ({})", best_late, best_late_name);
    const auto visible = [](double error) { return std::max(error, kConverged); };
    worst_rise = std::max(worst_rise, visible(own.error) / visible(last));
    last = own.error;
    report.add({fmt::format("{}/{}/{:.0f} %", kind, subject.name, 100.0 * share), Sense::at_most,
                1.5, note},
               {visible(own.error) / visible(best)}, "of the best fixed method's error");
  }
  report.add({fmt::format("{}/{}/rise", kind, subject.name), Sense::at_most, 1.5,
              "the largest error under a longer deadline over that under the next shorter one"},
             {worst_rise}, "times");
}

}  // namespace

int main(int argc, char** argv) try {
  const Report report("deadline_error", 1);
  if (report.only_lists(argc, argv)) return 0;
  bool simulated = false, busy = false;
  std::string wanted;
  std::optional<portwave::WorkCosts> given;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--simulated") {
      simulated = true;
    } else if (word == "--busy") {
      busy = true;
    } else if (word == "--costs" && i + 1 < argc) {
      given = costs_from(argv[++i]);
    } else {
      wanted = word;
    }
  }
  for (const Subject& subject : subjects()) {
    if (subject.name.find(wanted) == std::string::npos) continue;
    Time time;
    if (simulated || busy) {
      time.is_busy = busy;
      using portwave::Work;
      time.costs = given ? given : measured_costs(subject);
      const auto in_us = [&](Work work) { return 1e6 * cost(*time.costs, work); };
      fmt::print(stderr,
                 "  {}: {:.2f},{:.2f},{:.2f},{:.2f},{:.2f} us by evaluation, commit, solve, "
                 "linearisation, first "
                 "evaluation\n",
                 subject.name, in_us(Work::evaluation), in_us(Work::commit), in_us(Work::solve),
                 in_us(Work::linearise), in_us(Work::first_evaluation));
    }
    measure(report, subject, time);
  }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "deadline_error: {}\n", error.what());
  return 1;
}
