#include "step/deadline_rehearsal.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "parallel/clock.hpp"
#include "parallel/together.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "step/wave_engine.hpp"

namespace portwave {
namespace {

constexpr double kLongestDeadline_s = 20e-3;
constexpr double kTrial_s = 25e-3;  // of the steps of one way, in each half
constexpr double kFewestTrialSteps = 8.0, kMostTrialSteps = 64.0;
/// What a rehearsal may take: no other way is tried after that.
constexpr double kRehearsal_s = 0.5;
constexpr std::size_t kMostPorts = 20'000;
/// Differences that may be chance.
constexpr double kClearly = 0.7;
/// Time for a step that is to converge, in units of what nearly all take.
constexpr double kMargin = 1.6, kNearlyAll = 0.9;

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

/// Steps, in which the settable inputs swing by 1 in their units about what they are at the start.
void drive(WaveEngine& engine, int first, int steps) {
  constexpr double kTurn = 0.2;  // per step [rad]
  const std::vector<double> at_rest = engine.system().initial_settings();
  for (int n = first; n < first + steps; ++n) {
    const std::span<double> settings = engine.settings();
    for (std::size_t i = 0; i < settings.size(); ++i) {
      settings[i] = at_rest[i] + std::sin(kTurn * n + static_cast<double>(i));
    }
    if (!settings.empty()) engine.settings_changed();
    engine.step_by(engine.step_s());
  }
}

/// Where converged steps lead: after the first half and the second one; and what nearly all take [s].
struct Converged {
  States middle, end;
  double step_s = 0.0;
};

Converged converged_run(const System& system, const StepperOptions& options, int steps) {
  WaveEngine engine(system, options, std::make_unique<Together>(), {});
  Converged out;
  drive(engine, 0, steps);
  out.middle = states_of(engine);
  std::vector<double> took;
  for (int n = 0; n < steps; ++n) {
    const auto start = Clock::now();
    drive(engine, steps + n, 1);
    took.push_back(seconds(Clock::now() - start));
  }
  out.end = states_of(engine);
  const auto place = took.begin() + static_cast<std::ptrdiff_t>(kNearlyAll * (steps - 1));
  std::ranges::nth_element(took, place);
  out.step_s = *place;
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

/// The larger error of two halves: from the start on, and from the converged state in the middle on.
double worst_error(const System& system, const StepperOptions& options, const Anytime& way,
                   const Converged& converged, int steps) {
  WaveEngine engine(system, options, std::make_unique<Together>(), way);
  drive(engine, 0, steps);
  const double early = distance(system, states_of(engine), converged.middle);
  std::vector<double> middle;
  for (const std::vector<double>& own : converged.middle) {
    middle.insert(middle.end(), own.begin(), own.end());
  }
  engine.states_changed(middle);
  drive(engine, steps, steps);
  return std::max(early, distance(system, states_of(engine), converged.end));
}

}  // namespace

double time_of_step(const StepperOptions& options) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const TimeBudget& time = options.time;
  return std::min(time.deadline_s > 0.0 ? time.deadline_s : kNone,
                  time.pace > 0.0 ? options.step_s / time.pace : kNone);
}

Anytime way_for_deadline(const System& system, const StepperOptions& options,
                         const Anytime& usual) {
  const auto start = Clock::now();
  const double deadline_s = time_of_step(options);
  const bool can_be_compared = can_be_tried(system) && !options.sizes;
  if (!can_be_compared || !(deadline_s <= kLongestDeadline_s)) return usual;
  const int steps =
      static_cast<int>(std::clamp(kTrial_s / deadline_s, kFewestTrialSteps, kMostTrialSteps));
  StepperOptions trial = options;
  trial.profile = std::nullopt;
  trial.time = {};
  // In this order, as far as there is time. A later one must be clearly better.
  std::vector<Anytime> ways = {{.is_on = true, .rule = ImpedanceKind::adapted, .solves = false},
                               {.is_on = true, .rule = ImpedanceKind::adapted},
                               {.is_on = true},
                               {}};
  for (const bool solves : {false, true}) {
    for (const ImpedanceKind rule : {ImpedanceKind::matched, ImpedanceKind::leaf}) {
      ways.push_back({.is_on = true, .rule = rule, .solves = solves});
    }
  }
  Anytime best = ways.front();
  try {
    const Converged converged = converged_run(system, trial, steps);
    if (kMargin * converged.step_s <= deadline_s) return {};
    trial.time.deadline_s = deadline_s;
    double least = std::numeric_limits<double>::infinity();
    for (const Anytime& way : ways) {
      const double error = worst_error(system, trial, way, converged, steps);
      if (error < kClearly * kClearly * least) {
        least = error;
        best = way;
      }
      if (seconds(Clock::now() - start) > kRehearsal_s) break;
    }
    if (!(least > 0.0)) return usual;  // nothing moves
  } catch (const std::exception&) {    // the run itself will say what is wrong
    return usual;
  }
  return best;
}

}  // namespace portwave
