#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

struct ToleranceOptions {
  /// One run for each, with each number of stages.
  std::vector<double> tolerances = {1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8};
  std::vector<int> stages = {};  ///< empty: the scenario's own
  int repeat = 1;                ///< runs of each row; the fastest counts
  int threads = 1;
};

/// A run to the end with one tolerance.
struct ToleranceRow {
  int stages = 1;  ///< 0: a method without waves
  double tolerance = 0.0;
  double error = 0.0;  ///< ‖x − x_reference‖₂/‖x_reference‖₂ at the end, all states
  std::int64_t steps = 0;
  std::int64_t rejected = 0;
  double smallest_s = 0.0;  ///< steps
  double largest_s = 0.0;
  std::int64_t missed = 0;       ///< steps whose inner iteration did not converge
  std::int64_t evaluations = 0;  ///< evaluations of S in the accepted steps
  double time_s = 0.0;           ///< wall time of all steps, none of the setup
  std::string failure = {};      ///< not empty: why there is no run to the end; error is NaN
};

struct ToleranceStudy {
  double end_s = 0.0;
  std::string method = {};     ///< that of the scenario
  std::string reference = {};  ///< reference of the errors
  std::vector<ToleranceRow> rows = {};
};

/// Work against precision: the error at the end of a run, and its cost, by tolerance of StepSizes. The
/// reference is a separate run, with a tolerance of a thousandth of the smallest, with the method `auto` and
/// with three stages where all parts can have them. A scenario with steps of one size is run with steps that
/// choose theirs, up to an eighth of the whole.
/// Errors: ConfigError — no tolerances, a method whose steps are of one size, stages for one without waves, what
/// Stepper refuses; StepError of the reference. A run that fails is a row.
ToleranceStudy study_tolerance(const Scenario& scenario, const ToleranceOptions& options,
                               const PhaseCallback& listener = {});

}  // namespace portwave
