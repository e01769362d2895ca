#include "portwave/runtime/study/order_study.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <unsupported/Eigen/MatrixFunctions>
#include <utility>

#include <Eigen/Dense>
#include <fmt/format.h>

#include "portwave/coupling/network/collocation.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "scenario/settings/settings.hpp"
#include "study/order_runs.hpp"
#include "study/stepped_scenario.hpp"

namespace portwave {
namespace {

constexpr int kExponentialStates = 600;
constexpr int kDenseStates = 1000;
constexpr double kFinerReference = 8.0;
/// Of ‖x‖: errors below say nothing about the order.
constexpr double kOrderRoundOff = 1e-13;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Hairer & Wanner, Solving Ordinary Differential Equations II, table IV.5.6.
Tableau radau_of_order_five() {
  const double s = std::sqrt(6.0);
  Eigen::Matrix<double, 3, 3, Eigen::RowMajor> A;
  A << (88.0 - 7.0 * s) / 360.0, (296.0 - 169.0 * s) / 1800.0, (-2.0 + 3.0 * s) / 225.0,  //
      (296.0 + 169.0 * s) / 1800.0, (88.0 + 7.0 * s) / 360.0, (-2.0 - 3.0 * s) / 225.0,   //
      (16.0 - s) / 36.0, (16.0 + s) / 36.0, 1.0 / 9.0;
  const Eigen::Matrix<double, 3, 3, Eigen::RowMajor> inverse = A.inverse();
  Tableau tableau;
  tableau.stages = 3;
  tableau.A_inverse.assign(inverse.data(), inverse.data() + inverse.size());
  tableau.b = {A(2, 0), A(2, 1), A(2, 2)};
  tableau.c = {(4.0 - s) / 10.0, (4.0 + s) / 10.0, 1.0};
  tableau.stiffly_accurate = true;
  return tableau;
}

/// exp(A) x, dense.
Eigen::VectorXd exponential_times(const Eigen::MatrixXd& A, const Eigen::VectorXd& x) {
  const Eigen::MatrixXd exponential = A.exp();
  return exponential * x;
}

struct EndState {
  Eigen::VectorXd x;
  std::string source;
};

bool is_linear(const System& system) {
  return std::ranges::all_of(
      system.parts(), [](const Part& part) { return part.component->capabilities().linear; });
}

/// The states of all parts, in part order.
Eigen::VectorXd initial_states(const System& system) {
  std::vector<double> all;
  for (const Part& part : system.parts()) {
    all.insert(all.end(), part.initial_state.begin(), part.initial_state.end());
  }
  return Eigen::Map<const Eigen::VectorXd>(all.data(), static_cast<Eigen::Index>(all.size()));
}

/// Of a system with nonlinear parts.
EndState end_state(const OrderSetting& setting, double end_s, double smallest_step_s) {
  const int stages = gains_by_stages(setting.scenario.system) ? kMostStages : 1;
  // An eighth of the step, as below; with one stage, of order 2, a thirty-second.
  const double finer = stages > 1 ? kFinerReference : 4.0 * kFinerReference;
  const auto steps = static_cast<std::int64_t>(std::round(finer * end_s / smallest_step_s));
  const double step_s = end_s / static_cast<double>(steps);
  const std::unique_ptr<OrderRun> fine = fine_waves(setting, stages, step_s);
  fine->step(steps);
  std::string source = fmt::format("waves of {} Gauss stage{} with a step of {:.6g} s", stages,
                                   stages == 1 ? "" : "s", step_s);
  if (const std::int64_t missed = fine->missed(); missed > 0) {
    source += fmt::format(", of which {} did not converge: do not rely on it", missed);
  }
  return {fine->state(), std::move(source)};
}

EndState end_state(const CondensedSystem& system, const Eigen::VectorXd& start, double end_s,
                   double smallest_step_s) {
  const std::optional<DenseForm> form =
      system.inputs().empty() ? dense_form(system, kExponentialStates) : std::nullopt;
  if (form) return {exponential_times(end_s * form->A, start), "the matrix exponential"};
  const double steps = std::round(kFinerReference * end_s / smallest_step_s);
  CollocationReference fine(system, end_s / steps, radau_of_order_five());
  for (double n = 0.0; n < steps; ++n) fine.step();
  return {Eigen::Map<const Eigen::VectorXd>(fine.state().data(), system.size()),
          fmt::format("3-stage Radau IIA with a step of {:.6g} s", end_s / steps)};
}

/// A method by the name of its rows.
struct Contender {
  std::string name;
  std::function<std::unique_ptr<OrderRun>(double step_s)> make;
};

/// Steps a new run of the row's method to the end; of all such runs the row keeps the fastest time.
/// A method that refuses this step size is a row that failed.
void measure(const Contender& contender, const Eigen::VectorXd& reference, OrderRow& row) {
  if (!row.failure.empty()) return;
  std::unique_ptr<OrderRun> run;
  std::chrono::steady_clock::time_point begin;
  try {
    run = contender.make(row.step_s);
    begin = std::chrono::steady_clock::now();
    run->step(row.steps);
  } catch (const std::runtime_error& error) {
    row.failure = *error.what() == '\0' ? "a step failed" : error.what();
    row.error = row.time_s = kNaN;
    return;
  }
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  row.time_s = std::fmin(row.time_s, time.count());
  row.error = (run->state() - reference).norm();
  const auto of_all = [&](std::optional<double> operations) {
    return operations ? std::optional(*operations * static_cast<double>(row.steps)) : std::nullopt;
  };
  row.operations = of_all(run->operations());
  row.operations_sparse = of_all(run->operations_sparse());
}

double order_between(const OrderRow& longer, const OrderRow& shorter) {
  return std::log(longer.error / shorter.error) / std::log(longer.step_s / shorter.step_s);
}

/// log cost by log error: straight lines between the rows, prolonged beyond them.
class Curve {
 public:
  /// Of the most steps in a row with whose size errors fall: others, prolonged, would cost anything. Rows without that
  /// cost or without a meaningful error are left out.
  template <class Cost>
  Curve(const std::vector<OrderRow>& rows, const std::string& method, double least_error,
        const Cost& cost) {
    constexpr double kLeastOrder = 0.5;
    std::vector<const OrderRow*> own;
    for (const OrderRow& row : rows) {
      if (row.method == method && row.error > least_error) own.push_back(&row);
    }
    std::ranges::sort(own, {}, &OrderRow::step_s);
    std::vector<std::pair<double, double>> run;
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (i > 0 && !(order_between(*own[i], *own[i - 1]) > kLeastOrder)) run.clear();
      const std::optional<double> value = cost(*own[i]);
      if (!value || !(*value > 0.0)) continue;
      run.emplace_back(std::log(own[i]->error), std::log(*value));
      if (run.size() > points_.size()) points_ = run;
    }
    std::sort(points_.begin(), points_.end());
  }

  bool is_known() const { return points_.size() >= 2 && least() < most(); }
  double least() const { return points_.front().first; }
  double most() const { return points_.back().first; }
  double at(double log_error) const {
    std::size_t i = 1;
    while (i + 1 < points_.size() && points_[i].first < log_error) ++i;
    const auto [e0, c0] = points_[i - 1];
    const auto [e1, c1] = points_[i];
    return e0 == e1 ? c0 : c0 + (c1 - c0) * (log_error - e0) / (e1 - e0);
  }

 private:
  std::vector<std::pair<double, double>> points_;
};

std::optional<double> time_of(const OrderRow& row) { return row.time_s; }

/// Where both have errors in the middle of those in common, else where the other begins.
std::optional<EqualErrorCost> compared(const std::vector<OrderRow>& rows, const std::string& method,
                                       const std::string& baseline, double least_error) {
  const Curve time(rows, method, least_error, time_of);
  const Curve base_time(rows, baseline, least_error, time_of);
  if (!time.is_known() || !base_time.is_known()) return std::nullopt;
  const double low = std::max(time.least(), base_time.least());
  const double high = std::min(time.most(), base_time.most());
  EqualErrorCost cost{.method = method, .baseline = baseline, .extrapolated = low > high};
  double at = 0.5 * (low + high);
  if (cost.extrapolated) at = time.most() < base_time.least() ? time.most() : time.least();
  cost.error = std::exp(at);
  cost.time = std::exp(time.at(at) - base_time.at(at));
  for (const auto count : {&OrderRow::operations, &OrderRow::operations_sparse}) {
    const auto operations = [count](const OrderRow& row) { return row.*count; };
    const Curve own(rows, method, least_error, operations);
    const Curve base(rows, baseline, least_error, operations);
    if (own.is_known() && base.is_known()) cost.operations = std::exp(own.at(at) - base.at(at));
  }
  return cost;
}

void add_orders(std::vector<OrderRow>& rows, double least_error) {
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const OrderRow& before = rows[i - 1];
    OrderRow& row = rows[i];
    if (before.method != row.method || before.step_s == row.step_s) continue;
    if (!(before.error > least_error) || !(row.error > least_error)) continue;
    row.order = order_between(before, row);
  }
}

/// Steps with their numbers; those that do not divide the end time are told all at once.
std::vector<std::pair<double, std::int64_t>> counted(const std::vector<double>& steps_s,
                                                     double end_s) {
  Issues issues;
  std::vector<std::pair<double, std::int64_t>> counts;
  if (steps_s.empty()) issues.push_back({"", "study order needs at least one step size"});
  for (const double step_s : steps_s) {
    const auto steps = step_s > 0.0 ? scenario_file::whole_steps(end_s, step_s) : std::nullopt;
    if (!steps) {
      issues.push_back(
          {"", fmt::format("a step of {} s does not divide the end time, {} s", step_s, end_s)});
      continue;
    }
    constexpr std::int64_t kMost = 1'000'000'000;
    if (*steps > kMost) {
      issues.push_back(
          {"", fmt::format("a step of {} s makes {} steps to {} s; at most {} are taken", step_s,
                           *steps, end_s, kMost)});
      continue;
    }
    counts.emplace_back(end_s / static_cast<double>(*steps), *steps);
  }
  throw_if_any(std::move(issues));
  return counts;
}

class OrderComparison {
 public:
  OrderComparison(const Scenario& scenario, const OrderOptions& options,
                  const PhaseCallback& listener)
      : options_(options),
        listener_(listener),
        end_s_(static_cast<double>(scenario.steps) * scenario.options.step_s),
        steps_(counted(options.steps_s, end_s_)),
        system_(condensed(scenario)),
        start_(system_ ? system_->initial_state() : initial_states(scenario.system)),
        setting_{scenario, system_ ? &*system_ : nullptr, start_, options.threads} {
    if (system_) form_ = dense_form(*system_, kDenseStates);
  }

  OrderStudy run() {
    OrderStudy study{.states = static_cast<int>(start_.size()), .end_s = end_s_};
    const std::vector<Contender> others = coupled();
    for (const Contender& contender : others) refuse_unless_it_applies(contender);
    const auto finest = std::min_element(steps_.begin(), steps_.end());
    tell(listener_, {"computing the reference"});
    EndState reference = system_ ? end_state(*system_, start_, end_s_, finest->first)
                                 : end_state(setting_, end_s_, finest->first);
    study.reference = std::move(reference.source);
    const std::vector<Contender> baselines = monolithic();
    study.rows = measured(baselines, others, reference.x);
    const double least_error = kOrderRoundOff * reference.x.norm();
    add_orders(study.rows, least_error);
    for (const Contender& contender : others) {
      for (const Contender& baseline : baselines) {
        const auto cost = compared(study.rows, contender.name, baseline.name, least_error);
        if (cost) study.equal_error.push_back(*cost);
      }
    }
    return study;
  }

 private:
  /// All rows take their measurements in turn, so that a slow spell of the machine hits them alike.
  std::vector<OrderRow> measured(const std::vector<Contender>& baselines,
                                 const std::vector<Contender>& others,
                                 const Eigen::VectorXd& reference) const {
    std::vector<OrderRow> rows;
    std::vector<const Contender*> contenders;
    for (const auto* list : {&baselines, &others}) {
      for (const Contender& contender : *list) {
        for (const auto& [step_s, steps] : steps_) {
          contenders.push_back(&contender);
          rows.push_back({.method = contender.name,
                          .step_s = step_s,
                          .steps = steps,
                          .error = kNaN,
                          .time_s = kNaN});
        }
      }
    }
    for (int i = 0; i < options_.repeat; ++i) {
      for (std::size_t k = 0; k < rows.size(); ++k) {
        const auto count = static_cast<std::int64_t>(rows.size());
        tell(listener_, {"measuring run", i * count + static_cast<std::int64_t>(k) + 1,
                         options_.repeat * count});
        measure(*contenders[k], reference, rows[k]);
      }
    }
    return rows;
  }

  /// With one of the step sizes, that is. Errors: ConfigError, why not with the first.
  void refuse_unless_it_applies(const Contender& contender) const {
    std::optional<ConfigError> first;
    for (const auto& [step_s, steps] : steps_) {
      try {
        contender.make(step_s);
        return;
      } catch (const ConfigError& error) {
        if (!first) first = error;
      }
    }
    if (first) throw ConfigError(*first);
  }

  static std::optional<CondensedSystem> condensed(const Scenario& scenario) {
    if (!is_linear(scenario.system)) return std::nullopt;
    return std::optional<CondensedSystem>(std::in_place, scenario.system, scenario.options.start_s);
  }

  std::vector<Contender> monolithic() const {
    std::vector<Contender> list;
    if (!system_) return list;
    if (form_) {
      list.push_back({"midpoint (dense)",
                      [this](double step_s) { return dense_midpoint(setting_, *form_, step_s); }});
    }
    const Integrator integrator =
        is_algebraic(*system_) ? Integrator::radau_iia : Integrator::midpoint;
    list.push_back(
        {fmt::format("{} (sparse)", to_string(integrator)), [this, integrator](double step_s) {
           return sparse_collocation(setting_, integrator, step_s);
         }});
    return list;
  }

  std::vector<Contender> coupled() const {
    std::vector<Contender> list;
    for (const MethodKind kind : kinds()) list.push_back(contender(kind));
    return list;
  }

  Contender contender(MethodKind kind) const {
    return {std::string(to_string(kind)),
            [this, kind](double step_s) { return coupled_run(setting_, kind, step_s); }};
  }

  std::vector<MethodKind> kinds() const {
    if (options_.methods) return *options_.methods;
    std::vector<MethodKind> list;
    const MethodKind own = setting_.scenario.options.method.kind();
    if (system_ && own != SplittingKind::strang && strang_applies())
      list.emplace_back(SplittingKind::strang);
    list.push_back(own);
    return list;
  }

  bool strang_applies() const {
    try {
      refuse_unless_it_applies(contender(SplittingKind::strang));
      return true;
    } catch (const ConfigError&) {
      return false;
    }
  }

  const OrderOptions& options_;
  const PhaseCallback& listener_;
  double end_s_;
  std::vector<std::pair<double, std::int64_t>> steps_;
  std::optional<CondensedSystem> system_;  ///< empty: a part is not linear
  Eigen::VectorXd start_;
  OrderSetting setting_;
  std::optional<DenseForm> form_;
};

}  // namespace

OrderStudy study_order(const Scenario& scenario, const OrderOptions& options,
                       const PhaseCallback& listener) {
  refuse_chosen_steps(scenario);
  refuse_signals(scenario);
  tell(listener, {"preparing the methods"});
  return OrderComparison(scenario, options, listener).run();
}

}  // namespace portwave
