#pragma once

#include <string>
#include <vector>

#include "portwave/coupling/method/method_choice.hpp"
#include "portwave/coupling/method/update_rule.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

struct RateOptions {
  int steps = 20;   ///< macro-steps to observe, or fewer if the scenario has fewer
  int limit = 100;  ///< evaluations of one step
};

/// The observed iteration, counted as in PredictedRate.
struct ObservedRate {
  int steps = 0;                   ///< in which there was a gap to close
  double contraction = 0.0;        ///< geometric mean over the steps, 2.2e-16 for less
  double worst_contraction = 0.0;  ///< of the slowest step
  double evaluations = 0.0;        ///< mean over the steps
  int max_evaluations = 0;
  int not_converged = 0;  ///< steps that did not reach 1e-10 within the limit
};

/// One update rule with one rule of impedances.
struct RateRow {
  InnerUpdate update;
  std::string impedance = {};  ///< as scenario files call the rule of impedances
  std::string problem = {};    ///< not empty: why there is no prediction or observation
  PredictedRate predicted = {};
  ObservedRate observed = {};
};

/// Predicted and observed contraction of the residual |P S(u) − u|/max(|u|, |S(u)|) per evaluation,
/// for every rule of impedances with either iteration. Observed is the nonlinear iteration at
/// frozen states, without acceleration or guard, over the scenario's first steps. Like the
/// prediction it starts from u = 0, as far away as possible; a run starts closer, from P bⁿ. Each row
/// commits the result of its own iteration.
/// Errors: ConfigError (a singular implicit step, a method without waves); failures of a step are
/// the row's problem.
std::vector<RateRow> study_rate(const Scenario& scenario, const RateOptions& options = {},
                                const PhaseCallback& listener = {});

}  // namespace portwave
