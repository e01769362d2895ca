#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

struct OrderOptions {
  std::vector<double> steps_s;  ///< steps to compare; each divides the end time
  /// Methods beside the monolithic midpoint rule, which takes part where the system is linear. Absent: the scenario's own,
  /// and Strang splitting where it applies. A method that is not the scenario's has default options.
  std::optional<std::vector<MethodKind>> methods = {};
  int repeat = 3;   ///< runs of each row; the fastest counts
  int threads = 1;  ///< of the methods; the midpoint rule has one
};

/// One method with one step size, over the whole run.
struct OrderRow {
  std::string method;  ///< "midpoint (dense)", "midpoint (sparse)", "strang", …
  double step_s = 0.0;
  std::int64_t steps = 0;
  double error = 0.0;                ///< ‖x − x_reference‖₂ at the end, all states
  std::optional<double> order = {};  ///< observed against the row before it, of the same method
  /// Pairs of a multiplication and an addition, over all steps; where the method counts them.
  std::optional<double> operations = {};         ///< with dense step maps
  std::optional<double> operations_sparse = {};  ///< of the sparse solves
  double time_s = 0.0;                           ///< wall time of all steps, none of the setup
  std::string failure = {};  ///< not empty: why there is no run to the end; error and time are NaN
};

/// Cost of a method relative to the midpoint rule where their errors are equal, as shares. Only of steps short enough
/// for errors to fall with them.
struct EqualErrorCost {
  std::string method;
  std::string baseline;       ///< "midpoint (dense)", "midpoint (sparse)"
  double error = 0.0;         ///< error at which they are compared
  bool extrapolated = false;  ///< the rows have no error in common; the baseline's were prolonged
  std::optional<double> operations = {};  ///< dense against dense, sparse against sparse
  double time = 0.0;
};

struct OrderStudy {
  int states = 0;
  double end_s = 0.0;
  std::string reference =
      {};  ///< "the matrix exponential", or the integrator or the waves, and the step
  std::vector<OrderRow> rows = {};
  std::vector<EqualErrorCost> equal_error = {};
};

/// Errors, observed orders, operations and times of methods, by step size. Of linear systems, beside:
///   midpoint (dense)   x⁺ = (I − hA/2)⁻¹(I + hA/2)x + h(I − hA/2)⁻¹Bu(t + h/2), as one dense map
///   midpoint (sparse)  the same, by one sparse LU; where E is singular Radau IIA instead
/// Reference: exp(A·end) x₀, A = E⁻¹(J − R)Q, where nothing is driven, E is regular and there are
/// at most 600 states; else 3-stage Radau IIA (order 5) with an eighth of the smallest step.
/// Of nonlinear systems, whose states are those of all parts, there is neither the midpoint rule nor a cost at equal
/// error, and the reference is waves with 3 Gauss stages and an eighth of the smallest step; where a part is not smooth,
/// one stage and a thirty-second.
/// Dynamic iterations keep the length of their windows [s], rounded to whole steps.
/// Errors: ConfigError — steps that do not divide the end time, a system that has no condensed
/// form, a method that applies with none of the step sizes. A run that fails, or that a method
/// refuses to make with its step size, is a row.
OrderStudy study_order(const Scenario& scenario, const OrderOptions& options,
                       const PhaseCallback& listener = {});

}  // namespace portwave
