#include "step/step_engine.hpp"

#include <algorithm>
#include <limits>

#include "portwave/runtime/step/wave_view.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/state_archive.hpp"
#include "portwave/subsystems/core/coenergy.hpp"

namespace portwave {

void StepEngine::state_at(int part, double /*time_s*/, std::span<double> state) {
  std::ranges::copy(this->state(part), state.begin());
}

EffortFlow StepEngine::port_at(int scalar_port, double /*time_s*/) {
  return effort_flow(scalar_port);
}

/// The nonzero entries of the histogram.
void archive(StateArchive& archive, IterationStatistics& statistics) {
  IterationStatistics& s = statistics;
  const auto end = [&s] {
    return s.histogram.begin() + std::clamp(s.max, -1, IterationStatistics::kHistogram - 1) + 1;
  };
  if (archive.reads()) std::fill(s.histogram.begin(), end(), 0);
  archive.values(s.steps, s.windows, s.total, s.max, s.reasons, s.rejected_trials, s.linearisations,
                 s.rescues, s.not_converged);
  constexpr const char* kWhat = "the number of steps or iterations so far";
  archive.expect_counts({s.steps, s.windows, s.total, s.max, s.rejected_trials, s.linearisations,
                         s.rescues, s.not_converged},
                        kWhat);
  archive.array(std::span(s.histogram.begin(), end()));
  for (const std::int64_t count : s.reasons) archive.expect_counts({count}, kWhat);
  for (auto count = s.histogram.begin(); count != end(); ++count) {
    archive.expect_counts({*count}, kWhat);
  }
}

void count(const StepReport& report, bool has_tolerance, IterationStatistics& statistics) {
  ++statistics.steps;
  if (!report.begins_window) return;
  ++statistics.windows;
  statistics.total += report.iterations;
  statistics.max = std::max(statistics.max, report.iterations);
  ++statistics.histogram[static_cast<std::size_t>(
      std::min(report.iterations, IterationStatistics::kHistogram - 1))];
  ++statistics.reasons[static_cast<std::size_t>(report.reason)];
  if (has_tolerance && !report.converged) ++statistics.not_converged;
}

namespace {

/// Not a number where the method has no waves: nobody can name them there.
double wave_of(StepEngine& engine, const QuantityTerm& term) {
  const WaveView* const waves = engine.waves();
  if (waves == nullptr) return std::numeric_limits<double>::quiet_NaN();
  return term.kind == QuantityTerm::Kind::incident ? waves->incident(term.index)
                                                   : waves->outgoing(term.index);
}

}  // namespace

double read(StepEngine& engine, const QuantityTerm& term) {
  switch (term.kind) {
    case QuantityTerm::Kind::state:
      return engine.state(term.part)[at(term.index)];
    case QuantityTerm::Kind::effort:
      return engine.effort_flow(term.index).effort;
    case QuantityTerm::Kind::flow:
      return engine.effort_flow(term.index).flow;
    case QuantityTerm::Kind::incident:
    case QuantityTerm::Kind::outgoing:
      return wave_of(engine, term);
    case QuantityTerm::Kind::coenergy:
      return coenergy(*engine.system().parts()[at(term.part)].component,
                      engine.state(term.part).data(), term.index);
    case QuantityTerm::Kind::storage:
      break;
  }
  return engine.storage(term.part);
}

}  // namespace portwave
