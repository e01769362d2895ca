#include "step/deadline_rehearsal.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "parallel/together.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "step/wave_engine.hpp"

namespace portwave {
namespace {

constexpr double kLongestDeadline_s = 20e-3;
constexpr double kTrial_s = 50e-3;  // of the steps of one rule
constexpr double kFewestTrialSteps = 8.0, kMostTrialSteps = 128.0;
constexpr std::size_t kMostPorts = 20'000;
/// Differences that may be chance.
constexpr double kClearly = 0.9;

bool can_be_tried(const System& system) {
  return system.scalar_ports().size() <= kMostPorts &&
         std::ranges::all_of(system.parts(), [](const Part& part) {
           return part.component->port_hamiltonian() != nullptr;
         });
}

std::vector<std::vector<double>> states_after(const System& system, const StepperOptions& options,
                                              const Anytime& anytime, int steps) {
  WaveEngine engine(system, options, std::make_unique<Together>(), anytime);
  for (int n = 0; n < steps; ++n) engine.step_by(options.step_s);
  std::vector<std::vector<double>> out;
  for (int part = 0; part < static_cast<int>(system.parts().size()); ++part) {
    const auto own = engine.state(part);
    out.emplace_back(own.begin(), own.end());
  }
  return out;
}

/// |a − b|², each state in units of the largest of its kind in b.
double distance(const System& system, const std::vector<std::vector<double>>& a,
                const std::vector<std::vector<double>>& b) {
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

}  // namespace

Anytime way_for_deadline(const System& system, const StepperOptions& options,
                         const Anytime& usual) {
  const TimeBudget& time = options.time;
  const double deadline_s = time.deadline_s > 0.0 ? time.deadline_s : options.step_s / time.pace;
  const bool can_be_compared = can_be_tried(system) && !options.sizes;
  if (!can_be_compared || !(deadline_s <= kLongestDeadline_s)) return usual;
  const int steps =
      static_cast<int>(std::clamp(kTrial_s / deadline_s, kFewestTrialSteps, kMostTrialSteps));
  StepperOptions trial = options;
  trial.profile = std::nullopt;
  trial.time = {};
  Anytime best = usual;
  std::vector<Anytime> ways = {usual, {.is_on = !usual.is_on}};
  for (const bool solves : {true, false}) {
    for (const ImpedanceKind rule :
         {ImpedanceKind::matched, ImpedanceKind::leaf, ImpedanceKind::adapted}) {
      ways.push_back({.is_on = true, .rule = rule, .solves = solves});
    }
  }
  try {
    const auto converged = states_after(system, trial, {}, steps);
    trial.time.deadline_s = deadline_s;
    double least = std::numeric_limits<double>::infinity();
    for (const Anytime& way : ways) {
      const double error = distance(system, states_after(system, trial, way, steps), converged);
      if (!(error < kClearly * kClearly * least)) continue;
      least = error;
      best = way;
    }
  } catch (const std::exception&) {  // the run itself will say what is wrong
    return usual;
  }
  return best;
}

}  // namespace portwave
