// Studies: what a scenario does under many budgets, methods, steps or threads.

#include "study.hpp"

#include <chrono>
#include <cstdint>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "names.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/study/iteration_study.hpp"
#include "portwave/runtime/study/order_study.hpp"
#include "portwave/runtime/study/rate_study.hpp"
#include "portwave/runtime/study/scaling.hpp"
#include "portwave/runtime/study/study.hpp"
#include "portwave/runtime/study/tolerance_study.hpp"
#include "portwave/runtime/study/tune.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using portwave::MethodKind;
using portwave::Scenario;

using Overrides = std::vector<std::pair<std::string, std::string>>;

Scenario scenario_from(const std::string& text, const std::string& folder,
                       const Overrides& overrides) {
  std::vector<portwave::Override> set;
  for (const auto& [pointer, value] : overrides) set.push_back({pointer, value});
  return portwave::parse_scenario(text, "scenario", folder, set);
}

nb::list scenario_notes(const std::string& text, const std::string& folder,
                        const Overrides& overrides) {
  return pairs_of(scenario_from(text, folder, overrides).notes);
}

/// Ends a study where the user presses Ctrl-C.
portwave::PhaseCallback interruptible() {
  return [last = std::chrono::steady_clock::now()](const portwave::Phase&) mutable {
    const auto now = std::chrono::steady_clock::now();
    if (now - last < std::chrono::milliseconds(50)) return;
    last = now;
    const nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  };
}

MethodKind method_named(const std::string& name) {
  using enum portwave::WaveUpdate;
  using enum portwave::SplittingKind;
  using portwave::IterationKind;
  const MethodKind all[] = {douglas_rachford,
                            peaceman_rachford,
                            interface,
                            automatic,
                            strang,
                            impulse,
                            IterationKind::lions_mercier,
                            IterationKind::jacobi,
                            IterationKind::gauss_seidel};
  std::string known;
  for (const MethodKind kind : all) {
    if (to_string(kind) == name) return kind;
    known += (known.empty() ? "" : ", ") + std::string(to_string(kind));
  }
  throw std::invalid_argument("no method is named \"" + name + "\"; there are: " + known);
}

std::vector<MethodKind> methods_named(const std::vector<std::string>& names) {
  std::vector<MethodKind> out;
  for (const std::string& name : names) out.push_back(method_named(name));
  return out;
}

portwave::ImpedanceKind impedances_named(const std::string& name) {
  std::string known = "given";
  if (name == known) return portwave::ImpedanceKind::given;
  for (const portwave::ImpedanceKind kind : portwave::kTunedImpedances) {
    if (to_string(kind) == name) return kind;
    known += ", " + std::string(to_string(kind));
  }
  throw std::invalid_argument("no rule of impedances is named \"" + name +
                              "\"; there are: " + known);
}

/// None where it is absent.
template <class T>
nb::object optional_number(const std::optional<T>& value) {
  return value ? nb::cast(*value) : nb::none();
}

nb::dict rate_dict(const portwave::PredictedRate& rate) {
  nb::dict out;
  out["contraction"] = rate.contraction;
  out["evaluations"] = rate.evaluations;
  out["converges"] = rate.converges;
  return out;
}

nb::list study_budget(const std::string& text, const std::string& folder, const Overrides& set,
                      const std::vector<int>& budgets, const std::vector<std::string>& methods,
                      const std::vector<std::string>& impedances, const std::vector<bool>& guards,
                      int threads) {
  const Scenario scenario = scenario_from(text, folder, set);
  portwave::BudgetAxes axes;
  axes.budgets = budgets;
  axes.methods = methods_named(methods);
  for (const std::string& name : impedances) axes.impedances.push_back(impedances_named(name));
  axes.guards = guards;
  std::vector<portwave::BudgetRow> rows;
  {
    const nb::gil_scoped_release unlocked;
    rows = portwave::study_budget_axes(scenario, axes, threads, interruptible());
  }
  nb::list out;
  for (const portwave::BudgetRow& own : rows) {
    nb::dict row;
    row["iterations"] = own.iterations;
    row["method"] = std::string(to_string(own.method));
    row["impedance"] = own.impedance;
    row["guard"] = own.guard;
    row["rms"] = own.rms;
    row["max"] = own.max;
    row["final"] = own.final;
    row["max_passivity_residual_J"] = own.max_passivity_residual_J;
    row["guard_steps"] = own.guard_steps;
    row["status"] = own.failure.empty() ? std::string(to_string(own.status)) : "failed";
    row["failure"] = own.failure;
    out.append(row);
  }
  return out;
}

nb::list study_rate(const std::string& text, const std::string& folder, const Overrides& set,
                    int steps, int limit) {
  const Scenario scenario = scenario_from(text, folder, set);
  std::vector<portwave::RateRow> rows;
  {
    const nb::gil_scoped_release unlocked;
    rows = portwave::study_rate(scenario, {.steps = steps, .limit = limit}, interruptible());
  }
  nb::list out;
  for (const portwave::RateRow& own : rows) {
    nb::dict row;
    row["impedance"] = own.impedance;
    row["method"] = std::string(own.update.rule()->name());
    row["relaxation"] = own.update.relaxation();
    row["predicted"] = own.predicted.contraction;
    row["observed"] = own.observed.contraction;
    row["worst"] = own.observed.worst_contraction;
    row["predicted_evaluations"] = own.predicted.evaluations;
    row["observed_evaluations"] = own.observed.max_evaluations;
    row["not_converged"] = own.observed.not_converged;
    row["failure"] = own.problem;
    out.append(row);
  }
  return out;
}

nb::dict study_order(const std::string& text, const std::string& folder, const Overrides& set,
                     const std::vector<double>& steps_s,
                     const std::optional<std::vector<std::string>>& methods, int repeat,
                     int threads) {
  const Scenario scenario = scenario_from(text, folder, set);
  portwave::OrderOptions options{.steps_s = steps_s, .repeat = repeat, .threads = threads};
  if (methods) options.methods = methods_named(*methods);
  portwave::OrderStudy study;
  {
    const nb::gil_scoped_release unlocked;
    study = portwave::study_order(scenario, options, interruptible());
  }
  nb::list rows, costs;
  for (const portwave::OrderRow& own : study.rows) {
    nb::dict row;
    row["method"] = own.method;
    row["step_s"] = own.step_s;
    row["steps"] = own.steps;
    row["error"] = own.error;
    row["order"] = optional_number(own.order);
    row["operations"] = optional_number(own.operations);
    row["operations_sparse"] = optional_number(own.operations_sparse);
    row["time_s"] = own.time_s;
    row["failure"] = own.failure;
    rows.append(row);
  }
  for (const portwave::EqualErrorCost& own : study.equal_error) {
    nb::dict cost;
    cost["method"] = own.method;
    cost["baseline"] = own.baseline;
    cost["error"] = own.error;
    cost["extrapolated"] = own.extrapolated;
    cost["operations"] = optional_number(own.operations);
    cost["time"] = own.time;
    costs.append(cost);
  }
  nb::dict out;
  out["rows"] = rows;
  out["states"] = study.states;
  out["end_s"] = study.end_s;
  out["reference"] = study.reference;
  out["equal_error"] = costs;
  return out;
}

nb::dict study_tolerance(const std::string& text, const std::string& folder, const Overrides& set,
                         const std::vector<double>& tolerances, const std::vector<int>& stages,
                         int repeat, int threads) {
  const Scenario scenario = scenario_from(text, folder, set);
  portwave::ToleranceStudy study;
  {
    const nb::gil_scoped_release unlocked;
    study = portwave::study_tolerance(
        scenario,
        {.tolerances = tolerances, .stages = stages, .repeat = repeat, .threads = threads},
        interruptible());
  }
  nb::list rows;
  for (const portwave::ToleranceRow& own : study.rows) {
    nb::dict row;
    row["stages"] = own.stages;
    row["tolerance"] = own.tolerance;
    row["error"] = own.error;
    row["steps"] = own.steps;
    row["rejected"] = own.rejected;
    row["smallest_s"] = own.smallest_s;
    row["largest_s"] = own.largest_s;
    row["missed"] = own.missed;
    row["evaluations"] = own.evaluations;
    row["time_s"] = own.time_s;
    row["failure"] = own.failure;
    rows.append(row);
  }
  nb::dict out;
  out["rows"] = rows;
  out["end_s"] = study.end_s;
  out["reference"] = study.reference;
  return out;
}

nb::dict study_iteration(const std::string& text, const std::string& folder, const Overrides& set,
                         int iterations, std::int64_t windows,
                         const std::optional<std::pair<double, double>>& start_error) {
  const Scenario scenario = scenario_from(text, folder, set);
  portwave::IterationOptions options{.iterations = iterations, .windows = windows};
  if (start_error) {
    options.start_error =
        portwave::StartError{.size_per_s = start_error->first, .decay_per_s = start_error->second};
  }
  portwave::IterationStudy study;
  {
    const nb::gil_scoped_release unlocked;
    study = portwave::study_iteration(scenario, options, interruptible());
  }
  nb::list rows, failures;
  for (const portwave::IterationWindow& window : study.windows) {
    for (const portwave::IterationRow& own : window.rows) {
      nb::dict row;
      row["start_s"] = window.start_s;
      row["iteration"] = own.iteration;
      row["x_error"] = own.x_error;
      row["x_relative"] = own.x_relative;
      row["x_largest"] = own.x_largest;
      row["z_error"] = optional_number(own.z_error);
      row["z_weighted"] = optional_number(own.z_weighted);
      row["ratio"] = optional_number(own.ratio);
      rows.append(row);
    }
    if (!window.failure.empty()) failures.append(nb::make_tuple(window.start_s, window.failure));
  }
  nb::dict out;
  out["rows"] = rows;
  out["method"] = std::string(to_string(study.parameters.kind));
  out["integrator"] = std::string(to_string(study.parameters.integrator));
  out["states"] = study.states;
  out["step_s"] = study.step_s;
  out["window_steps"] = study.window_steps;
  out["failures"] = failures;
  return out;
}

nb::dict study_scaling(const std::string& text, const std::string& folder, const Overrides& set,
                       const std::vector<int>& threads, int repetitions, std::int64_t steps,
                       int cores) {
  const Scenario scenario = scenario_from(text, folder, set);
  portwave::ScalingOptions options;
  options.threads = threads;
  options.repetitions = repetitions;
  options.steps = steps;
  options.cores = cores;
  portwave::ScalingStudy study;
  {
    const nb::gil_scoped_release unlocked;
    study = portwave::study_strong_scaling(scenario, options, interruptible());
  }
  nb::list rows;
  for (const portwave::ScalingRow& own : study.rows) {
    nb::dict row;
    row["threads"] = own.threads;
    row["predicted"] = own.predicted;
    row["step_s"] = own.step_s;
    row["spread"] = optional_number(own.spread);
    row["speed_up"] = own.speed_up;
    row["efficiency"] = own.efficiency;
    row["predicted_step_s"] = own.predicted_step_s;
    row["tasks"] = own.tasks;
    row["imbalance"] = own.imbalance;
    row["execution"] = own.execution;
    rows.append(row);
  }
  nb::dict out;
  out["rows"] = rows;
  out["cores"] = study.cores;
  out["repetitions"] = study.repetitions;
  out["steps"] = study.steps;
  return out;
}

nb::dict tune(const std::string& text, const std::string& folder, const Overrides& set,
              const std::string& rule) {
  const Scenario scenario = scenario_from(text, folder, set);
  portwave::TuningReport report;
  {
    const nb::gil_scoped_release unlocked;
    report = portwave::tune(scenario, impedances_named(rule), interruptible());
  }
  nb::list rows, ports, parts;
  const auto add = [&](const portwave::RuleRates& own, std::string_view method,
                       const portwave::PredictedRate& rate) {
    nb::dict row;
    row["impedance"] = own.rule;
    row["method"] = std::string(method);
    row.update(rate_dict(rate));
    row["failure"] = own.problem;
    rows.append(row);
  };
  for (const portwave::RuleRates& own : report.rules) {
    for (const portwave::UpdateRate& one : own.updates) {
      add(own, one.update.rule()->name(), one.predicted);
    }
    if (own.problem.empty()) {
      add(own, "averaged", own.averaged);
    } else {
      add(own, "", {});
    }
  }
  for (const portwave::PortTuning& own : report.ports) {
    nb::dict port;
    port["port"] = own.port;
    port["impedance"] = own.impedance;
    port["match"] = own.match;
    ports.append(port);
  }
  for (const portwave::PartMargins& own : report.parts) {
    nb::dict part;
    part["part"] = own.part;
    part["firmly_nonexpansive"] = own.firm;
    part["nonexpansive"] = own.nonexpansive;
    parts.append(part);
  }
  nb::dict out;
  out["rows"] = rows;
  out["ports"] = ports;
  out["parts"] = parts;
  out["method"] = std::string(to_string(report.choice.method.kind()));
  out["impedance"] = portwave::impedance_rule(report.choice.method);
  out["reason"] = report.choice.reason;
  return out;
}

}  // namespace

void bind_studies(nb::module_& m) {
  m.def("scenario_notes", &scenario_notes, "text"_a, "folder"_a, "overrides"_a);
  m.def("study_budget", &study_budget, "text"_a, "folder"_a, "overrides"_a, "budgets"_a,
        "methods"_a, "impedances"_a, "guards"_a, "threads"_a);
  m.def("study_rate", &study_rate, "text"_a, "folder"_a, "overrides"_a, "steps"_a, "limit"_a);
  m.def("study_order", &study_order, "text"_a, "folder"_a, "overrides"_a, "steps_s"_a,
        "methods"_a.none(), "repeat"_a, "threads"_a);
  m.def("study_tolerance", &study_tolerance, "text"_a, "folder"_a, "overrides"_a, "tolerances"_a,
        "stages"_a, "repeat"_a, "threads"_a);
  m.def("study_iteration", &study_iteration, "text"_a, "folder"_a, "overrides"_a, "iterations"_a,
        "windows"_a, "start_error"_a.none());
  m.def("study_scaling", &study_scaling, "text"_a, "folder"_a, "overrides"_a, "threads"_a,
        "repetitions"_a, "steps"_a, "cores"_a);
  m.def("tune", &tune, "text"_a, "folder"_a, "overrides"_a, "rule"_a);
}
