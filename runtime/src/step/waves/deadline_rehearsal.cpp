#include "step/waves/deadline_rehearsal.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numbers>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "parallel/clock.hpp"
#include "parallel/together.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "step/waves/wave_engine.hpp"

namespace portwave {
namespace {

constexpr double kLongestDeadline_s = 100e-3;
/// Of the steps of one way, in each half: what they may take in any case, and for as many as tell ways apart. One late
/// step of eight would be more than a way that keeps its deadline may have.
constexpr double kTrial_s = 25e-3, kLongTrial_s = 0.5;
constexpr double kFewestTrialSteps = 8.0, kEnoughTrialSteps = 24.0, kMostTrialSteps = 256.0;
/// What a rehearsal may take: no other way that solves is tried after that.
constexpr double kRehearsal_s = 0.5;
constexpr std::size_t kMostPorts = 100'000;
/// Time for steps that are to converge, in units of what they take, and the share of steps that must.
constexpr double kMargin = 1.12, kNearlyAll = 0.95;
constexpr int kFreeSteps = 3;
/// Squared errors that are rounding.
constexpr double kExact = 1e-16;
/// A deadline that no step misses.
constexpr double kNoDeadline_s = 1e3;

bool can_be_tried(const System& system) {
  return system.scalar_ports().size() <= kMostPorts &&
         std::ranges::all_of(system.parts(), [](const Part& part) {
           return part.component->port_hamiltonian() != nullptr;
         });
}

using States = std::vector<std::vector<double>>;

States states_of(WaveEngine& engine) {
  States out;
  for (int part = 0; part < static_cast<int>(engine.system().parts().size()); ++part) {
    const auto own = engine.state(part);
    out.emplace_back(own.begin(), own.end());
  }
  return out;
}

/// Steps, in which the settable inputs swing by 1 in their units about what they are at the start: half a turn in both
/// halves of a trial, since inputs are slow beside steps.
void drive(WaveEngine& engine, int of_half, int first, int steps) {
  const double turn = 0.5 * std::numbers::pi / of_half;  // per step [rad]
  const std::vector<double> at_rest = engine.system().initial_settings();
  for (int n = first; n < first + steps; ++n) {
    const std::span<double> settings = engine.settings();
    for (std::size_t i = 0; i < settings.size(); ++i) {
      settings[i] = at_rest[i] + std::sin(turn * n + static_cast<double>(i));
    }
    if (!settings.empty()) engine.settings_changed();
    engine.step_by(engine.step_s());
  }
}

/// Where converged steps lead: after the first half and the second one; and what work costs.
struct Converged {
  States middle, end;
  WorkCosts costs{}, spreads{};
  int steps = 0;  ///< of each half
};

Converged converged_run(const System& system, StepperOptions options, double deadline_s) {
  constexpr double kUsually = 4.0;  // evaluations and commits that a converged step takes
  options.time.deadline_s = kNoDeadline_s;
  WaveEngine engine(system, options, std::make_unique<Together>(), {});
  Converged out;
  const WorkCosts guess = engine.work_costs();
  const double converged_s = kUsually * (cost(guess, Work::evaluation) + cost(guess, Work::commit));
  const double longest_s = std::max({deadline_s, converged_s, 1e-9});
  const double enough = std::min(kLongTrial_s / longest_s, kEnoughTrialSteps);
  const int steps = out.steps = static_cast<int>(
      std::clamp(std::max(kTrial_s / longest_s, enough), kFewestTrialSteps, kMostTrialSteps));
  drive(engine, steps, 0, steps);
  out.middle = states_of(engine);
  drive(engine, steps, steps, steps);
  out.end = states_of(engine);
  out.costs = engine.work_costs();
  out.spreads = engine.work_spreads();
  return out;
}

/// |a − b|², each state in units of the largest of its kind in b.
double distance(const System& system, const States& a, const States& b) {
  std::map<std::pair<std::string, std::size_t>, double> sizes, squares;
  for (std::size_t part = 0; part < b.size(); ++part) {
    const std::string& type = system.parts()[part].component->signature().type;
    for (std::size_t i = 0; i < b[part].size(); ++i) {
      double& size = sizes[{type, i}];
      size = std::max(size, std::abs(b[part][i]));
      const double off = a[part][i] - b[part][i];
      squares[{type, i}] += off * off;
    }
  }
  double sum = 0.0;
  for (const auto& [kind, square] : squares) {
    const double size = sizes[kind];
    if (size > 0.0) sum += square / (size * size);
  }
  return std::isfinite(sum) ? sum : std::numeric_limits<double>::infinity();
}

/// The steps are made in simulated time, so that nothing else that the machine does counts. Solves take what they take
/// in the rehearsal of the engine.
WayTrial trial_of(const System& system, const StepperOptions& options, const Anytime& way,
                  const Converged& converged, int steps) {
  WaveEngine engine(system, options, std::make_unique<Together>(), way);
  WorkCosts costs = engine.work_costs(), spreads = engine.work_spreads();
  for (const Work work : {Work::first_evaluation, Work::evaluation, Work::commit}) {
    cost(costs, work) = cost(converged.costs, work);
    cost(spreads, work) = cost(converged.spreads, work);
  }
  if (!way.is_on) {  // the way of the converged steps, whose solves have shown what they take
    for (const Work work : {Work::solve, Work::linearise}) {
      if (!(cost(converged.costs, work) > 0.0)) continue;
      cost(costs, work) = cost(converged.costs, work);
      cost(spreads, work) = cost(converged.spreads, work);
    }
  }
  const SimulatedTime time(costs, spreads);
  const auto took_s = [&](int first, int count) {
    const double before_s = time.now_s();
    drive(engine, steps, first, count);
    return time.now_s() - before_s;
  };
  double all_s = took_s(0, steps);
  WayTrial out{.error = distance(system, states_of(engine), converged.middle)};
  std::vector<double> middle;
  for (const std::vector<double>& own : converged.middle) {
    middle.insert(middle.end(), own.begin(), own.end());
  }
  engine.states_changed(middle);
  // Waves and factors are those of nowhere then. Some steps have all the time that they need to find them.
  const int free_steps = std::min(kFreeSteps, steps - 1);
  engine.set_deadline(kNoDeadline_s);
  drive(engine, steps, steps, free_steps);
  engine.set_deadline(options.time.deadline_s);
  // The first half begins with an empty tank: the guard acts where a run under way has energy in store, but not in most
  // steps of that half. Of few steps one that is late says little.
  constexpr double kAtStart = 0.25;
  double before = static_cast<double>(engine.deadline()->misses), looks = 0.0;
  const auto looked = [&] { return static_cast<double>(engine.deadline()->guard_misses); };
  const double looked_before = looked();
  all_s += took_s(steps + free_steps, steps - free_steps);
  out.error = std::max(out.error, distance(system, states_of(engine), converged.end));
  // Of steps that are exact nothing is left in the tank, and the guard looks at their rounding. A run under way has the
  // rest of a step that was not: its first one.
  if (out.error <= kExact && engine.guard() != nullptr && engine.guard()->steps == 0) {
    looks = looked();
    before -= looked_before;
    all_s -= looks * cost(costs, Work::commit);
  }
  const auto misses = [&] { return static_cast<double>(engine.deadline()->misses) - looks; };
  const double all = 2.0 * steps;
  out.converged = 1.0 - static_cast<double>(engine.iterations().not_converged) / all;
  out.length = all_s / ((all - free_steps) * options.time.deadline_s);
  const double late_later = (misses() - before) / (steps - free_steps);
  out.missed = std::min(misses() / all, std::max(late_later, kAtStart * before / steps));
  return out;
}

/// The same with what evaluations and commits take in steps of this way, where there is time for some: acceleration is
/// work, too.
Converged with_costs_of(const Anytime& way, const System& system, StepperOptions options,
                        const Converged& converged) {
  constexpr double kSome = 2.0;  // in units of the time of a step
  options.time.deadline_s *= kSome;
  WaveEngine engine(system, options, std::make_unique<Together>(), way);
  drive(engine, converged.steps, 0, converged.steps);
  Converged out = converged;
  out.costs = engine.work_costs();
  out.spreads = engine.work_spreads();
  return out;
}

/// Ways that make the most of little time, in the order in which they are tried: plain ones are cheap.
std::vector<Anytime> ways_that_count(bool may_solve) {
  std::vector<Anytime> ways;
  constexpr ImpedanceKind kRules[] = {ImpedanceKind::adapted, ImpedanceKind::leaf,
                                      ImpedanceKind::matched};
  for (const ImpedanceKind rule : kRules) {
    ways.push_back({.is_on = true, .rule = rule, .solves = false});
  }
  if (!may_solve) return ways;
  ways.insert(ways.end(), {{}, {.is_on = true, .rule = ImpedanceKind::adapted}, {.is_on = true}});
  ways.push_back({.is_on = true, .rule = ImpedanceKind::leaf});
  ways.push_back({.is_on = true, .rule = ImpedanceKind::matched});
  return ways;
}

/// Nothing where nothing moves.
std::optional<Anytime> best_way(const System& system, StepperOptions options, double deadline_s) {
  const auto start = Clock::now();
  const Converged converged = converged_run(system, options, deadline_s);
  const int steps = converged.steps;
  options.executor = ExecutorKind::serial;
  options.threads = 1;
  options.time.deadline_s = deadline_s / kMargin;
  const double least_s =
      cost(converged.costs, Work::first_evaluation) + cost(converged.costs, Work::commit);
  struct Tried {
    Anytime way;
    WayTrial trial;
    bool by_own_costs = false;
  };
  std::vector<Tried> tried;
  if (least_s <= deadline_s) {  // else nothing converges
    const WayTrial usual = trial_of(system, options, {}, converged, steps);
    if (usual.converged >= kNearlyAll && usual.keeps_deadline()) return Anytime{};
    tried.push_back({{}, usual, true});
  }
  options.time.deadline_s = deadline_s;
  const bool may_solve = cost(converged.costs, Work::first_evaluation) +
                             1.2 * cost(converged.costs, Work::evaluation) +
                             cost(converged.costs, Work::solve) +
                             cost(converged.costs, Work::commit) <=
                         deadline_s;
  for (const Anytime& way : ways_that_count(may_solve)) {
    tried.push_back({way, trial_of(system, options, way, converged, steps)});
    if (way.solves && seconds(Clock::now() - start) > kRehearsal_s) break;
  }
  // The best one is tried again by its own costs, until the best one has been.
  for (;;) {
    Tried* best = &tried.front();
    for (Tried& each : tried) {
      if (is_better(each.trial, best->trial)) best = &each;
    }
    if (!(best->trial.error > 0.0)) return {};
    if (std::exchange(best->by_own_costs, true)) return best->way;
    best->trial = trial_of(system, options, best->way,
                           with_costs_of(best->way, system, options, converged), steps);
  }
}

}  // namespace

bool is_better(const WayTrial& a, const WayTrial& b) {
  constexpr double kClearly = 0.9;  // smaller differences say nothing about the steps to come
  /// So much more late steps are worth an error that is smaller by 1/e, up to where a way is of no use.
  static constexpr double kDearer = 0.05, kHopeless = 0.6;
  const auto late = [](const WayTrial& trial) {
    return std::max(trial.missed - WayTrial::kMostMissed, 0.0);
  };
  const auto worth = [&late](const WayTrial& trial) {
    const double length = trial.keeps_deadline() ? 1.0 : std::max(trial.length, 1.0);
    return trial.error * length * length * std::exp(std::min(late(trial), kHopeless) / kDearer);
  };
  // Of ways that are exact, the one that takes less of the time has more to spare.
  if (std::max(a.error, b.error) <= kExact && a.keeps_deadline() && b.keeps_deadline()) {
    return a.length < kClearly * b.length;
  }
  const bool is_hopeless = late(a) >= kHopeless;
  if (is_hopeless != (late(b) >= kHopeless)) return !is_hopeless;
  return worth(a) < kClearly * kClearly * worth(b);
}

double time_of_step(const StepperOptions& options) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const TimeBudget& time = options.time;
  return std::min(time.deadline_s > 0.0 ? time.deadline_s : kNone,
                  time.pace > 0.0 ? options.step_s / time.pace : kNone);
}

Anytime way_for_deadline(const System& system, const StepperOptions& options,
                         const Anytime& usual) {
  const double deadline_s = time_of_step(options);
  const bool can_be_compared = can_be_tried(system) && !options.sizes;
  if (!can_be_compared || !(deadline_s <= kLongestDeadline_s)) return usual;
  StepperOptions trial = options;
  trial.profile = std::nullopt;
  trial.time = {};
  try {
    return best_way(system, trial, deadline_s).value_or(usual);
  } catch (const std::exception&) {  // the run itself will say what is wrong
    return usual;
  }
}

}  // namespace portwave
