// Studies: what a scenario does under many budgets, methods, steps or threads.

#include "study.hpp"

#include <chrono>
#include <cstdint>
#include <limits>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "matrices.hpp"
#include "names.hpp"
#include "portwave/coupling/method/method_table.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/study/scaling_figure.hpp"
#include "portwave/runtime/study/step_comparison.hpp"
#include "portwave/runtime/study/study_json.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using portwave::MethodKind;
using portwave::Scenario;

/// The text of a scenario, the folder that its files lie in, whether it may load plugins, and what replaces its values.
using Given =
    std::tuple<std::string, std::string, bool, std::vector<std::pair<std::string, std::string>>>;

Scenario scenario_from(const Given& given) {
  const auto& [text, folder, allows_plugins, overrides] = given;
  std::vector<portwave::Override> set;
  for (const auto& [pointer, value] : overrides) set.push_back({pointer, value});
  return portwave::parse_scenario(text, "scenario", folder, set, {}, plugins_of(allows_plugins));
}

nb::list scenario_notes(const Given& given) { return pairs_of(scenario_from(given).notes); }

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
  if (const auto kind = portwave::find_method_kind(name)) return *kind;
  std::string known;
  for (const std::string& one : portwave::method_names()) {
    known += (known.empty() ? "" : ", ") + one;
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

portwave::ExecutorKind executor_named(const std::string& name) {
  using Kind = portwave::ExecutorKind;
  for (const Kind kind : {Kind::automatic, Kind::serial, Kind::async, Kind::graph}) {
    if (to_string(kind) == name) return kind;
  }
  throw std::invalid_argument("no executor is named \"" + name +
                              "\"; there are: auto, serial, async, graph");
}

/// The study as JSON. Other threads of Python go on meanwhile.
template <class Study>
std::string unlocked(const Given& given, const Study& study) {
  const Scenario scenario = scenario_from(given);
  const nb::gil_scoped_release unlocked;
  return study(scenario);
}

std::string study_budget(const Given& given, const std::vector<int>& budgets,
                         const std::vector<std::string>& methods,
                         const std::vector<std::string>& impedances,
                         const std::vector<bool>& guards, int threads) {
  portwave::BudgetAxes axes{
      .budgets = budgets, .methods = methods_named(methods), .guards = guards};
  for (const std::string& name : impedances) axes.impedances.push_back(impedances_named(name));
  return unlocked(given, [&](const Scenario& scenario) {
    return study_json(portwave::study_budget_axes(scenario, axes, threads, interruptible()));
  });
}

std::string study_rate(const Given& given, int steps, int limit) {
  return unlocked(given, [&](const Scenario& scenario) {
    return study_json(
        portwave::study_rate(scenario, {.steps = steps, .limit = limit}, interruptible()));
  });
}

std::string study_order(const Given& given, const std::vector<double>& steps_s,
                        const std::optional<std::vector<std::string>>& methods, int repeat,
                        int threads) {
  portwave::OrderOptions options{.steps_s = steps_s, .repeat = repeat, .threads = threads};
  if (methods) options.methods = methods_named(*methods);
  return unlocked(given, [&](const Scenario& scenario) {
    return study_json(portwave::study_order(scenario, options, interruptible()), scenario);
  });
}

std::string study_tolerance(const Given& given, const std::vector<double>& tolerances,
                            const std::vector<int>& stages, int repeat, int threads) {
  const portwave::ToleranceOptions options{
      .tolerances = tolerances, .stages = stages, .repeat = repeat, .threads = threads};
  return unlocked(given, [&](const Scenario& scenario) {
    return study_json(portwave::study_tolerance(scenario, options, interruptible()), scenario);
  });
}

nb::object study_accuracy(const Given& given, bool whole) {
  using portwave::StepComparison;
  const Scenario scenario = scenario_from(given);
  std::optional<portwave::StepAgreement> found;
  {
    const nb::gil_scoped_release unlocked;
    StepComparison comparison(
        scenario, scenario.options,
        whole ? StepComparison::Extent::whole : StepComparison::Extent::beginning);
    const bool is_chosen = scenario.options.sizes.has_value();
    found = comparison.finish(is_chosen ? std::numeric_limits<std::int64_t>::max() : scenario.steps,
                              0.0, interruptible());
  }
  if (!found || found->is_skipped) return nb::none();
  nb::dict out;
  out[found->is_chosen ? "tolerance" : "step_s"] = found->finer;
  out["until_s"] = found->until_s;
  out["whole"] = found->is_whole;
  out["instants"] = found->instants;
  out["state"] =
      found->state.empty() ? nb::object(nb::none()) : nb::object(nb::str(found->state.c_str()));
  out["share"] = found->share;
  out["time_s"] = found->time_s;
  out["error"] = found->error();
  nb::dict instant;
  instant["state"] = found->state_of_instant.empty()
                         ? nb::object(nb::none())
                         : nb::object(nb::str(found->state_of_instant.c_str()));
  instant["share"] = found->instant_share;
  instant["error"] = found->instant_error();
  instant["time_s"] = found->instant_s;
  out["instant"] = instant;
  out["expected"] =
      found->expected > 0.0 ? nb::object(nb::float_(found->expected)) : nb::object(nb::none());
  out["far"] = found->is_far();
  out["failure"] =
      found->failure.empty() ? nb::object(nb::none()) : nb::object(nb::str(found->failure.c_str()));
  return out;
}

std::string study_iteration(const Given& given, int iterations, std::int64_t windows,
                            const std::optional<std::pair<double, double>>& start_error) {
  portwave::IterationOptions options{.iterations = iterations, .windows = windows};
  if (start_error) {
    options.start_error =
        portwave::StartError{.size_per_s = start_error->first, .decay_per_s = start_error->second};
  }
  return unlocked(given, [&](const Scenario& scenario) {
    return study_json(portwave::study_iteration(scenario, options, interruptible()), scenario);
  });
}

/// The study as JSON, and its figure: "svg" or "pdf", or empty where `image` is.
std::pair<std::string, nb::bytes> study_scaling(const std::vector<Given>& systems,
                                                const std::vector<int>& threads,
                                                const std::vector<std::string>& executors,
                                                int repetitions, std::int64_t steps, int cores,
                                                const std::string& image) {
  portwave::ScalingOptions options;
  options.threads = threads;
  options.executors.clear();
  for (const std::string& name : executors) options.executors.push_back(executor_named(name));
  options.repetitions = repetitions;
  options.steps = steps;
  options.cores = cores;
  std::vector<Scenario> scenarios;
  for (const Given& given : systems) scenarios.push_back(scenario_from(given));
  std::string json, figure;
  {
    const nb::gil_scoped_release unlocked;
    const auto study = portwave::study_strong_scaling(scenarios, options, interruptible());
    json = study_json(study, options);
    using portwave::FigureFormat;
    if (!image.empty()) {
      figure = scaling_figure(study, image == "pdf" ? FigureFormat::pdf : FigureFormat::svg);
    }
  }
  return {json, nb::bytes(figure.data(), figure.size())};
}

std::string tune(const Given& given, const std::string& rule) {
  const portwave::ImpedanceKind impedances = impedances_named(rule);
  return unlocked(given, [&](const Scenario& scenario) {
    return study_json(portwave::tune(scenario, impedances, interruptible()), scenario);
  });
}

}  // namespace

void bind_studies(nb::module_& m) {
  m.def("scenario_notes", &scenario_notes, "given"_a);
  m.def("study_budget", &study_budget, "given"_a, "budgets"_a, "methods"_a, "impedances"_a,
        "guards"_a, "threads"_a);
  m.def("study_rate", &study_rate, "given"_a, "steps"_a, "limit"_a);
  m.def("study_order", &study_order, "given"_a, "steps_s"_a, "methods"_a.none(), "repeat"_a,
        "threads"_a);
  m.def("study_accuracy", &study_accuracy, "given"_a, "whole"_a);
  m.def("study_tolerance", &study_tolerance, "given"_a, "tolerances"_a, "stages"_a, "repeat"_a,
        "threads"_a);
  m.def("study_iteration", &study_iteration, "given"_a, "iterations"_a, "windows"_a,
        "start_error"_a.none());
  m.def("study_scaling", &study_scaling, "systems"_a, "threads"_a, "executors"_a, "repetitions"_a,
        "steps"_a, "cores"_a, "image"_a);
  m.def("tune", &tune, "given"_a, "rule"_a);
}
