#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "portwave/coupling/method/dynamic_iteration.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// D t e^{−τt} in every state, t from the window's start.
struct StartError {
  double size_per_s = 0.0;   ///< D
  double decay_per_s = 0.0;  ///< τ
};

struct IterationOptions {
  int iterations = 20;       ///< per window, ≥ 0
  std::int64_t windows = 1;  ///< number of windows, ≥ 1; no more than the scenario has
  /// Jacobi and Gauss–Seidel: starts each window from the solution and this error, in place of the
  /// constant waveform.
  std::optional<StartError> start_error = {};
};

/// Iterate xᵏ of a window against the solution of the same integrator.
struct IterationRow {
  int iteration = 0;        ///< k; 0 is the start
  double x_error = 0.0;     ///< L² of the stage values, √(Σₙ h Σᵢ bᵢ|Δxₙᵢ|²)
  double x_relative = 0.0;  ///< over that of the solution
  double x_largest = 0.0;   ///< largest |Δx|₂ at the end of a step
  std::optional<double> z_error = {};     ///< L² of the stage values; Lions–Mercier
  std::optional<double> z_weighted = {};  ///< in the norm that it contracts; Lions–Mercier
  /// z_weighted divided by that of the previous iterate; for the others the same ratio of x_error.
  std::optional<double> ratio = {};
};

struct IterationWindow {
  double start_s = 0.0;
  std::vector<IterationRow> rows;
  /// Largest ratio above round-off: as long as the error exceeds 1e-11 of the first.
  std::optional<double> largest_rise = {};
  /// First iteration whose largest error is beyond single precision, 3.4028e38.
  std::optional<int> beyond_single = {};
  /// First iteration at which a run would give up: the change is beyond the divergence limit.
  std::optional<int> gives_up = {};
  std::string failure = {};  ///< not empty: why there are no more rows
};

struct IterationStudy {
  DynamicParameters parameters;
  double step_s = 0.0;
  int window_steps = 0;
  int stages_per_step = 1;
  int states = 0;
  std::vector<IterationWindow> windows;
};

/// A dynamic iteration, iterate by iterate, against its limit: the whole system by the same integrator,
/// monolithically. Every window starts from the state of that solution, so that its errors are its own and
/// none are inherited.
/// Errors: ConfigError — another method, a start error for Lions–Mercier, and those of the method.
/// An iteration that breaks down ends its window's rows.
IterationStudy study_iteration(const Scenario& scenario, const IterationOptions& options,
                               const PhaseCallback& listener = {});

}  // namespace portwave
