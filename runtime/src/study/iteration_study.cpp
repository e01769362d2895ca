#include "portwave/runtime/study/iteration_study.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include <fmt/format.h>

#include "portwave/coupling/network/collocation.hpp"
#include "portwave/coupling/network/condensed.hpp"
#include "portwave/coupling/network/dynamic_iteration.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "study/stepped_scenario.hpp"

namespace portwave {
namespace {

/// Of the first error: what is below is round-off, and says nothing about the iteration.
constexpr double kWindowRoundOff = 1e-11;

Issues check(const Scenario& scenario, const IterationOptions& options) {
  Issues issues;
  const MethodKind kind = scenario.options.method.kind();
  if (!kind.is<IterationKind>()) {
    issues.push_back(
        {"/method/kind",
         fmt::format("is \"{}\"; study iteration follows a dynamic iteration: \"lions-mercier\", "
                     "\"jacobi\" or \"gauss-seidel\"",
                     to_string(kind))});
  }
  if (options.start_error && kind == IterationKind::lions_mercier) {
    issues.push_back({"/method/kind",
                      "is \"lions-mercier\", whose start follows from the method; a start error is "
                      "for \"jacobi\" and \"gauss-seidel\""});
  }
  if (options.iterations < 0) {
    issues.push_back({"", fmt::format("{} iterations are negative", options.iterations)});
  }
  if (options.windows < 1) {
    issues.push_back({"", "study iteration needs at least one window"});
  }
  return issues;
}

/// The window's waveforms, [step][stage][state].
class IterationRun {
 public:
  IterationRun(const Scenario& scenario, const IterationOptions& options)
      : options_(options),
        method_(scenario.options.method.dynamic()),
        step_s_(scenario.options.step_s),
        system_(scenario.system),
        waveforms_(system_, step_s_, method_),
        tableau_(tableau(waveforms_.parameters().integrator)),
        solution_(system_, step_s_, waveforms_.parameters().integrator),
        contracts_(waveforms_.parameters().kind == IterationKind::lions_mercier) {
    x_solution_.resize(waveforms_.stages_size());
    x_.resize(waveforms_.stages_size());
    if (!contracts_) return;
    z_solution_.resize(waveforms_.stages_size());
    z_.resize(waveforms_.stages_size());
  }

  IterationStudy run(std::int64_t steps, const PhaseCallback& listener) {
    IterationStudy study{.parameters = waveforms_.parameters(),
                         .step_s = step_s_,
                         .window_steps = waveforms_.window_steps(),
                         .stages_per_step = waveforms_.stages_per_step(),
                         .states = system_.size(),
                         .windows = {}};
    const std::int64_t length = waveforms_.window_steps();
    const std::int64_t windows = std::min(options_.windows, (steps + length - 1) / length);
    for (std::int64_t i = 0; i < windows; ++i) {
      tell(listener, {"iterating window", i + 1, windows});
      study.windows.push_back(window(solution_.time_s()));
    }
    return study;
  }

 private:
  IterationWindow window(double start_s) {
    IterationWindow window{.start_s = start_s, .rows = {}};
    const std::vector<double> start(solution_.state().begin(), solution_.state().end());
    solve_window();
    try {
      waveforms_.begin(start_s, start);
      if (options_.start_error) start_with(*options_.start_error);
      iterate(window);
    } catch (const NetworkFault& fault) {
      const std::string detail = *fault.what() == '\0' ? "" : fmt::format(": {}", fault.what());
      window.failure = fmt::format("iteration {} failed, {}{}", window.rows.size(),
                                   to_string(fault.fault()), detail);
    }
    find_rise(window);
    return window;
  }

  /// The solution over the window, to its end.
  void solve_window() {
    auto to = x_solution_.begin();
    for (int n = 0; n < waveforms_.window_steps(); ++n) {
      solution_.step();
      to = std::copy(solution_.stages().begin(), solution_.stages().end(), to);
    }
    if (contracts_) waveforms_.z_of_solution(x_solution_, z_solution_);
    x_size_ = waveforms_.plain_norm(x_solution_);
  }

  void start_with(const StartError& error) {
    x_ = x_solution_;
    double* x = x_.data();
    for (int n = 0; n < waveforms_.window_steps(); ++n) {
      for (int i = 0; i < tableau_.stages; ++i) {
        const double t = (n + tableau_.c[at(i)]) * step_s_;
        const double difference = error.size_per_s * t * std::exp(-error.decay_per_s * t);
        for (int j = 0; j < system_.size(); ++j) *x++ += difference;
      }
    }
    waveforms_.start_from(x_);
  }

  void iterate(IterationWindow& window) {
    double first_size = 0.0;
    for (int k = 0;; ++k) {
      IterationRow row = row_of(k);
      if (!std::isfinite(row.x_error) || !std::isfinite(row.x_largest)) {
        window.failure = fmt::format("iteration {} overflows: its error has no finite norm", k);
        return;
      }
      if (!window.rows.empty()) row.ratio = ratio(window.rows.back(), row);
      if (!window.beyond_single && row.x_largest > std::numeric_limits<float>::max()) {
        window.beyond_single = k;
      }
      window.rows.push_back(row);
      if (k == options_.iterations) return;
      const WaveformChange change = waveforms_.iterate(each_);
      if (k == 0) first_size = std::max(change.size, change.change);
      const bool gives_up =
          !contracts_ && first_size > 0.0 && change.change > method_.divergence_limit * first_size;
      if (!window.gives_up && gives_up) window.gives_up = k + 1;
    }
  }

  IterationRow row_of(int k) {
    IterationRow row{.iteration = k};
    waveforms_.solve(each_, x_);
    for (std::size_t i = 0; i < x_.size(); ++i) x_[i] -= x_solution_[i];
    row.x_error = waveforms_.plain_norm(x_);
    row.x_relative = row.x_error / x_size_;
    row.x_largest = largest_at_steps(x_);
    if (!contracts_) return row;
    waveforms_.z(z_);
    for (std::size_t i = 0; i < z_.size(); ++i) z_[i] -= z_solution_[i];
    row.z_error = waveforms_.plain_norm(z_);
    row.z_weighted = waveforms_.weighted_norm(z_);
    return row;
  }

  /// The largest Euclidean norm of what the integrator makes of such stages: both solutions start
  /// from the same state, so that the difference starts at zero.
  double largest_at_steps(std::span<const double> stages) {
    const std::size_t n = at(system_.size());
    end_.assign(n, 0.0);
    double largest = 0.0;
    const std::size_t step_size = n * at(tableau_.stages);
    for (std::size_t first = 0; first < stages.size(); first += step_size) {
      const std::span<const double> last = stages.subspan(first + step_size - n, n);
      double square = 0.0;
      for (std::size_t i = 0; i < n; ++i) {
        // Stiffly accurate, or the midpoint of a step.
        end_[i] = tableau_.stiffly_accurate ? last[i] : 2.0 * last[i] - end_[i];
        square += end_[i] * end_[i];
      }
      largest = std::max(largest, square);
      if (std::isnan(square)) largest = square;
    }
    return std::sqrt(largest);
  }

  std::optional<double> ratio(const IterationRow& before, const IterationRow& row) const {
    const double from = contracts_ ? *before.z_weighted : before.x_error;
    const double to = contracts_ ? *row.z_weighted : row.x_error;
    return from > 0.0 ? std::optional(to / from) : std::nullopt;
  }

  void find_rise(IterationWindow& window) const {
    const auto error = [&](const IterationRow& row) {
      return contracts_ ? *row.z_weighted : row.x_error;
    };
    for (std::size_t i = 1; i < window.rows.size(); ++i) {
      const bool is_above =
          error(window.rows[i - 1]) > kWindowRoundOff * error(window.rows.front());
      if (!is_above || !window.rows[i].ratio) continue;
      window.largest_rise = std::max(window.largest_rise.value_or(0.0), *window.rows[i].ratio);
    }
  }

  const IterationOptions& options_;
  const DynamicIteration& method_;
  double step_s_;
  CondensedSystem system_;
  WaveformIteration waveforms_;
  Tableau tableau_;
  CollocationReference solution_;
  bool contracts_;  ///< Lions–Mercier: there is a z, and a norm in which its error falls
  ForEach each_;
  double x_size_ = 0.0;
  std::vector<double> x_solution_, z_solution_;
  std::vector<double> x_, z_;
  std::vector<double> end_;
};

}  // namespace

IterationStudy study_iteration(const Scenario& scenario, const IterationOptions& options,
                               const PhaseCallback& listener) {
  refuse_signals(scenario);
  throw_if_any(check(scenario, options));
  tell(listener, {"preparing the iteration"});
  return IterationRun(scenario, options).run(scenario.steps, listener);
}

}  // namespace portwave
