#include "portwave/runtime/study/tolerance_study.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "portwave/coupling/method/method_table.hpp"
#include "portwave/coupling/system/derived_systems.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "step/stepper_options.hpp"

namespace portwave {
namespace {

void check(const Scenario& scenario, const ToleranceOptions& options) {
  Issues issues;
  const CouplingMethod& method = scenario.options.method;
  if (!can_choose_sizes(method)) {
    issues.push_back(
        {"/method/kind",
         "steps choose their size with wave coupling, \"kick-drift\" and \"taylor\" only"});
  }
  if (!options.stages.empty() && !method.couples_by_waves()) {
    issues.push_back(
        {"/stages", fmt::format("the method \"{}\" has an order instead (/method/order)",
                                to_string(method.kind()))});
  }
  if (options.tolerances.empty()) issues.push_back({"/tolerances", "needs at least one"});
  for (std::size_t i = 0; i < options.tolerances.size(); ++i) {
    if (StepSizes::tolerances().contains(options.tolerances[i])) continue;
    issues.push_back(
        {fmt::format("/tolerances/{}", i),
         fmt::format("must be in [1e-13, 0.1], got {}", shown_number(options.tolerances[i]))});
  }
  throw_if_any(std::move(issues));
}

/// 0: couples without waves.
int stages_asked(const CouplingMethod& method) {
  return method.couples_by_waves() ? method.waves().stages : 0;
}

StepperOptions options_for(const Scenario& scenario, int stages, double tolerance, int threads) {
  StepperOptions out = scenario.options;
  if (!out.sizes) {
    constexpr double kStepsAtLeast = 8.0;
    out.sizes.emplace();
    if (out.signals != nullptr) out.signals_every_s = out.step_s;
    out.step_s = (scenario.end_s - out.start_s) / kStepsAtLeast;
  }
  out.sizes->tolerance = tolerance;
  if (out.method.couples_by_waves()) out.method.waves().stages = stages;
  out.threads = threads;
  go_past_ends(out);
  return out;
}

std::vector<double> states_of(const Stepper& stepper) {
  std::vector<double> out;
  for (int part = 0; part < static_cast<int>(stepper.system().parts().size()); ++part) {
    const std::span<const double> x = stepper.state(part);
    out.insert(out.end(), x.begin(), x.end());
  }
  return out;
}

double relative_error(const std::vector<double>& x, const std::vector<double>& expected) {
  double difference = 0.0, size = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    difference += (x[i] - expected[i]) * (x[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  if (difference == 0.0) return 0.0;
  return std::sqrt(difference / size);
}

ToleranceRow run_once(const Scenario& scenario, const StepperOptions& options,
                      const std::vector<double>& reference) {
  using Wall = std::chrono::steady_clock;
  ToleranceRow row;
  row.tolerance = options.sizes->tolerance;
  Stepper stepper(scenario.system, options);
  const Wall::time_point start = Wall::now();
  stepper.run_until(scenario.end_s);
  row.time_s = std::chrono::duration<double>(Wall::now() - start).count();
  row.stages = stepper.waves() != nullptr ? stepper.waves()->stages() : 0;
  row.error = relative_error(states_of(stepper), reference);
  row.steps = stepper.step_index();
  row.evaluations = stepper.iterations().total;
  const StepSizeStatistics& sizes = *stepper.step_sizes();
  row.rejected = sizes.rejected;
  row.missed = stepper.iterations().not_converged;
  row.smallest_s = sizes.smallest_s;
  row.largest_s = sizes.largest_s;
  return row;
}

ToleranceRow run(const Scenario& scenario, const StepperOptions& options, int repeat,
                 const std::vector<double>& reference) {
  try {
    ToleranceRow best = run_once(scenario, options, reference);
    for (int i = 1; i < repeat; ++i) {
      best.time_s = std::min(best.time_s, run_once(scenario, options, reference).time_s);
    }
    return best;
  } catch (const StepError& failure) {
    ToleranceRow row;
    row.stages = stages_asked(options.method);
    row.tolerance = options.sizes->tolerance;
    row.error = row.time_s = std::numeric_limits<double>::quiet_NaN();
    row.failure = failure.what();
    return row;
  }
}

}  // namespace

ToleranceStudy study_tolerance(const Scenario& scenario, const ToleranceOptions& options,
                               const PhaseCallback& listener) {
  check(scenario, options);
  const double smallest = *std::ranges::min_element(options.tolerances);
  const double tolerance = std::max(1e-3 * smallest, StepSizes::tolerances().minimum);
  const int most = gains_by_stages(scenario.system) ? kMostStages : 1;
  ToleranceStudy out;
  out.end_s = scenario.end_s;
  out.method = to_string(scenario.options.method.kind());
  if (const auto* const splitting = scenario.options.method.as<Splitting>()) {
    out.method += fmt::format(", order {}", order_of(*splitting));
  }
  out.reference =
      fmt::format("auto, {} stage{}, tolerance {:g}", most, most == 1 ? "" : "s", tolerance);
  if (!scenario.options.method.couples_by_waves()) {
    // What the method refuses is told before the reference takes its time.
    const Stepper refusing(scenario.system,
                           options_for(scenario, 0, options.tolerances.front(), options.threads));
  }
  if (listener) listener({"the reference: " + out.reference});
  // Not by the scenario's own method: that may be what is off.
  StepperOptions of_reference = options_for(scenario, most, tolerance, options.threads);
  of_reference.method = WaveCoupling::automatic();
  of_reference.method.waves().stages = most;
  Stepper reference(scenario.system, of_reference);
  reference.run_until(scenario.end_s);
  if (const std::int64_t missed = reference.iterations().not_converged; missed > 0) {
    out.reference += fmt::format(", of which {} steps did not converge: do not rely on it", missed);
  }
  const std::vector<double> expected = states_of(reference);
  std::vector<int> stages = options.stages;
  if (stages.empty()) stages.push_back(stages_asked(scenario.options.method));
  for (const int s : stages) {
    for (const double own : options.tolerances) {
      const std::string method = s > 0 ? fmt::format("{} stages", s) : out.method;
      if (listener) listener({fmt::format("{}, tolerance {:g}", method, own)});
      out.rows.push_back(
          run(scenario, options_for(scenario, s, own, options.threads), options.repeat, expected));
    }
  }
  return out;
}

}  // namespace portwave
