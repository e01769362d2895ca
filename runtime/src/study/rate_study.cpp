#include "portwave/runtime/study/rate_study.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "portwave/coupling/impedance/tuning.hpp"
#include "portwave/coupling/system/step_clock.hpp"
#include "portwave/coupling/waves/residual.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/coupling/waves/wave_iteration.hpp"
#include "portwave/runtime/study/tune.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "step/stepper_options.hpp"
#include "study/stepped_scenario.hpp"

namespace portwave {
namespace {

constexpr double kReduction = 1e-10;

/// One iteration over some macro-steps.
class Observation {
 public:
  Observation(const Scenario& scenario, std::span<const double> impedance,
              const InnerUpdate& update, int limit)
      : scenario_(scenario),
        waves_(scenario.system, scenario.options.step_s, impedance),
        update_(update),
        iteration_(waves_, update),
        limit_(limit),
        record_(waves_.initial_record()),
        next_(record_.size()),
        input_(waves_.input_size()),
        b_next_(at(waves_.wave_size())),
        islands_(at(scenario.system.island_count())) {
    clock_ = StepClock(scenario.options.start_s);
  }

  /// What is wrong, or nothing.
  std::string run(int steps, ObservedRate& observed) {
    double sum_of_logs = 0.0;
    int evaluations = 0;
    for (int n = 0; n < steps; ++n) {
      const PhaseStatus status = step(observed, sum_of_logs, evaluations);
      if (!status.ok()) return fmt::format("{} failed in step {}", name_of(status.part), n);
    }
    if (observed.steps > 0) {
      observed.contraction = std::exp(sum_of_logs / observed.steps);
      observed.evaluations = static_cast<double>(evaluations) / observed.steps;
    }
    return {};
  }

 private:
  PhaseStatus step(ObservedRate& observed, double& sum_of_logs, int& evaluations) {
    PhaseStatus status;
    if (waves_.driven()) {
      if (!waves_.sample_inputs(clock_.time_s(), input_.data(), status)) return status;
      status = waves_.freeze_all(record_.data(), input_.data(), /*driven_only=*/true);
      if (!status.ok()) return status;
    }
    status = iterate(observed, sum_of_logs, evaluations);
    if (!status.ok()) return status;
    status = iteration_.commit(record_.data(), next_.data(), b_next_.data());
    clock_.advance(waves_.step_s());
    std::swap(record_, next_);
    return status;
  }

  /// From u = 0, not P bⁿ: all the way to the fixed point.
  PhaseStatus iterate(ObservedRate& observed, double& sum_of_logs, int& evaluations) {
    std::ranges::fill(iteration_.u(), 0.0);
    double first = 0.0, contraction = 0.0;
    bool converged = false;
    PhaseStatus status = evaluate(first);
    if (!status.ok() || first == 0.0) return status;
    int k = 1;
    for (double residual = first; k < limit_ && residual > kReduction * first; ++k) {
      update();
      status = evaluate(residual);
      if (!status.ok()) return status;
      contraction = std::pow(residual / first, 1.0 / k);
      converged = residual <= kReduction * first;
    }
    count(contraction, k, converged, observed);
    sum_of_logs += std::log(std::max(contraction, std::numeric_limits<double>::epsilon()));
    evaluations += k;
    return status;
  }

  static void count(double contraction, int evaluations, bool converged, ObservedRate& observed) {
    ++observed.steps;
    observed.worst_contraction = std::max(observed.worst_contraction, contraction);
    observed.max_evaluations = std::max(observed.max_evaluations, evaluations);
    observed.not_converged += converged ? 0 : 1;
  }

  /// b = S(u) and P b. The residual |P b − u|/max(|u|, |b|), the largest of the islands.
  PhaseStatus evaluate(double& residual) {
    PhaseStatus status = iteration_.evaluate(record_.data());
    const std::span<const double> u = iteration_.u(), b = iteration_.b();
    const std::span<const double> exchanged = iteration_.shadow();
    std::fill(islands_.begin(), islands_.end(), GapSquares{});
    for (std::size_t j = 0; j < u.size(); ++j) {
      const int part = waves_.part_of_wave(static_cast<int>(j));
      if (part < 0) continue;
      islands_[at(waves_.system().island_of_part(part))].add(u[j], b[j], exchanged[j]);
    }
    residual = 0.0;
    for (const GapSquares& squares : islands_) {
      const double own = squares.residual();
      residual =
          std::isfinite(own) ? std::max(residual, own) : std::numeric_limits<double>::infinity();
    }
    return status;
  }

  /// The averaged iteration is rounded as this study always did, wave by wave and not in the fused
  /// loops of runs, so that its rates keep their last digits.
  void update() {
    if (update_.rule() != &peaceman_rachford() || update_.relaxation() == 1.0) {
      return iteration_.update();
    }
    const std::span<const double> exchanged = iteration_.shadow();
    const std::span<double> u = iteration_.u();
    for (std::size_t j = 0; j < u.size(); ++j) u[j] += update_.relaxation() * (exchanged[j] - u[j]);
  }

  std::string name_of(int part) const {
    return part < 0 ? std::string("it") : "\"" + scenario_.system.parts()[at(part)].name + "\"";
  }

  const Scenario& scenario_;
  WaveDiscretisation waves_;
  InnerUpdate update_;
  WaveIteration iteration_;
  StepClock clock_;
  int limit_;
  AlignedVector record_, next_, input_, b_next_;
  std::vector<GapSquares> islands_;
};

}  // namespace

std::vector<RateRow> study_rate(const Scenario& given, const RateOptions& options,
                                const PhaseCallback& listener) {
  refuse_without_waves(given.options.method);
  refuse_signals(given);
  const SteppedScenario stepped(given);
  const Scenario& scenario = stepped.get();
  tell(listener, {"linearising the subsystems"});
  const PortResponses responses(scenario.system, scenario.options.step_s);
  const int steps = static_cast<int>(std::min<std::int64_t>(options.steps, scenario.steps));
  std::vector<RateRow> rows;
  const std::vector<RuleRates> rules = rates_of_rules(scenario, responses, listener);
  const auto count = static_cast<std::int64_t>(rules.size() * update_rules().size());
  for (const RuleRates& rule : rules) {
    for (const UpdateRate& own : rule.updates) {
      tell(listener, {"observing iteration", static_cast<std::int64_t>(rows.size()) + 1, count});
      RateRow row{.update = own.update,
                  .impedance = rule.rule,
                  .problem = rule.problem,
                  .predicted = own.predicted};
      if (row.problem.empty()) {
        row.problem =
            Observation(scenario, rule.by_port, own.update, options.limit).run(steps, row.observed);
      }
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace portwave
