#include "portwave/runtime/study/study.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <new>
#include <stdexcept>
#include <unistd.h>

#include <fmt/core.h>

#include "portwave/coupling/reference/gauss_reference.hpp"
#include "portwave/coupling/reference/monolithic.hpp"
#include "portwave/runtime/study/tune.hpp"
#include "study/deviation.hpp"
#include "study/stepped_scenario.hpp"

namespace portwave {
namespace {

std::string_view name_of(Quantity::Kind kind) {
  switch (kind) {
    case Quantity::Kind::state:
      return "state";
    case Quantity::Kind::effort:
      return "effort";
    case Quantity::Kind::flow:
      return "flow";
    case Quantity::Kind::incident:
      return "incident wave";
    case Quantity::Kind::outgoing:
      return "outgoing wave";
    case Quantity::Kind::signal:
      return "signal";
    case Quantity::Kind::coenergy:
      return "co-energy variable";
    case Quantity::Kind::storage:
      break;
  }
  return "storage";
}

/// The reference knows states only: its efforts and flows exist where waves do, but no waves do.
Issues check_quantities(const std::vector<Quantity>& quantities) {
  Issues issues;
  if (quantities.empty()) {
    issues.push_back(
        {"/outputs/observe", "this study compares states, and the scenario observes none"});
  }
  for (std::size_t i = 0; i < quantities.size(); ++i) {
    if (quantities[i].kind == Quantity::Kind::state) continue;
    if (quantities[i].kind == Quantity::Kind::signal) {
      issues.push_back(
          {fmt::format("/outputs/observe/{}", i),
           fmt::format("this study compares states; \"{}\" is a signal", quantities[i].label)});
      continue;
    }
    issues.push_back({fmt::format("/outputs/observe/{}", i),
                      fmt::format("this study compares states; \"{}\" is the {} of a {}",
                                  quantities[i].label, name_of(quantities[i].kind),
                                  quantities[i].kind == Quantity::Kind::coenergy  ? "state"
                                  : quantities[i].kind == Quantity::Kind::storage ? "part"
                                                                                  : "port")});
  }
  return issues;
}

template <typename Value>
bool contains(const std::vector<Value>& values, Value value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

Issues check_axes(const CouplingMethod& method, const BudgetAxes& axes) {
  Issues issues;
  if (axes.budgets.empty()) issues.push_back({"", "study budget needs at least one budget"});
  for (const int budget : axes.budgets) {
    if (budget < 0) issues.push_back({"", fmt::format("budget {} is negative", budget)});
  }
  const std::vector<MethodKind> kinds =
      axes.methods.empty() ? std::vector{method.kind()} : axes.methods;
  for (const MethodKind kind : kinds) {
    if (!kind.is<SplittingKind>()) continue;
    issues.push_back({"/method/kind", fmt::format("the method \"{}\" does not iterate: it has no "
                                                  "budget to vary",
                                                  to_string(kind))});
  }
  const auto takes_impedances = [](MethodKind kind) {
    return kind.couples_by_waves() && kind != WaveUpdate::automatic;
  };
  if (!method.couples_by_waves() && axes.impedances.empty() &&
      std::any_of(kinds.begin(), kinds.end(), takes_impedances)) {
    issues.push_back(
        {"/method/impedance",
         fmt::format("the method \"{}\" couples without waves and gives no impedances; "
                     "name rules to take them from",
                     to_string(method.kind()))});
  }
  const bool chooses = axes.methods.empty()
                           ? method.kind() == WaveUpdate::automatic
                           : std::all_of(axes.methods.begin(), axes.methods.end(),
                                         [](MethodKind k) { return k == WaveUpdate::automatic; });
  if (chooses && !axes.impedances.empty()) {
    issues.push_back({"/method/kind",
                      "the method \"auto\" chooses the impedances itself; name other methods to "
                      "compare impedances"});
  }
  const bool gives_values =
      method.couples_by_waves() && method.waves().impedance_kind == ImpedanceKind::given;
  if (!gives_values && contains(axes.impedances, ImpedanceKind::given)) {
    issues.push_back({"/method/impedance",
                      fmt::format("gives no values: its kind is \"{}\"", impedance_rule(method))});
  }
  return issues;
}

/// Every combination of the axes but the budget.
std::vector<CouplingMethod> methods_of(const CouplingMethod& method, const BudgetAxes& axes) {
  const auto or_own = [](auto values, auto own) {
    if (values.empty()) values.push_back(own);
    return values;
  };
  std::vector<CouplingMethod> methods;
  for (const MethodKind kind : or_own(axes.methods, method.kind())) {
    CouplingMethod each = method.with_kind(kind);
    auto* const waves = each.as<WaveCoupling>();
    if (waves == nullptr) {
      methods.push_back(std::move(each));
      continue;
    }
    if (kind != method.kind()) waves->relaxation = 1.0;
    const std::vector<ImpedanceKind> impedances =
        kind == WaveUpdate::automatic ? std::vector<ImpedanceKind>{ImpedanceKind::automatic}
                                      : or_own(axes.impedances, waves->impedance_kind);
    for (const ImpedanceKind impedance : impedances) {
      for (const bool guard : or_own(axes.guards, waves->guard)) {
        waves->impedance_kind = impedance;
        waves->guard = guard;
        methods.push_back(each);
      }
    }
  }
  return methods;
}

/// Not positive where the system does not tell.
double memory_of_machine_B() {
  return static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<double>(::sysconf(_SC_PAGESIZE));
}

/// Room for all samples, so that memory runs out here or not at all.
Samples room_for_samples(const Scenario& scenario) {
  const double rows = static_cast<double>(scenario.steps) + 1.0;
  const auto columns = static_cast<double>(scenario.recording.quantities.size());
  const double size_B = rows * columns * sizeof(double);
  const std::string wanted =
      fmt::format("not enough memory: the study would keep {} samples of {} state{} ({:.3g} GB)",
                  scenario.steps + 1, scenario.recording.quantities.size(),
                  columns == 1.0 ? "" : "s", size_B / 1e9);
  // Asked here, because systems grant memory that they do not have.
  if (const double there_B = memory_of_machine_B(); there_B > 0.0 && size_B > there_B) {
    throw std::runtime_error(fmt::format("{}; this machine has {:.3g} GB", wanted, there_B / 1e9));
  }
  try {
    Samples samples;
    samples.reserve(static_cast<std::size_t>(scenario.steps + 1) *
                    scenario.recording.quantities.size());
    return samples;
  } catch (const std::bad_alloc&) {
    throw std::runtime_error(wanted);
  }
}

/// No tolerance ends an iteration.
void spend_the_budget(CouplingMethod& method) {
  if (auto* const waves = method.as<WaveCoupling>()) {
    waves->tolerance = waves->energy_tolerance_J = 0.0;
  }
  if (auto* const dynamic = method.as<DynamicIteration>()) dynamic->tolerance = 0.0;
}

/// True when a method takes its impedances, if any, from where the scenario's own does, so that a
/// defect of it is one of the scenario.
bool is_as_asked_for(const CouplingMethod& method, const CouplingMethod& own) {
  const auto* const waves = method.as<WaveCoupling>();
  if (waves == nullptr) return method.kind() == own.kind();
  return own.couples_by_waves() && waves->impedance_kind == own.waves().impedance_kind;
}

/// Fills in all that the run tells.
void run_budget(const Scenario& scenario, const Samples& reference, const CouplingMethod& method,
                int threads, BudgetRow& row) {
  StepperOptions options = scenario.options;
  options.start = start_beside_a_reference(options);
  options.method = method;
  set_iterations(options.method, row.iterations);
  spend_the_budget(options.method);
  options.certify = Certify::full;
  options.threads = threads;
  Stepper stepper(scenario.system, options);

  Deviation deviation(scenario.recording.quantities, reference);
  deviation.compare(stepper);
  for (std::int64_t n = 0; n < scenario.steps; ++n) {
    stepper.step();
    deviation.compare(stepper);
  }

  const Certificate& certificate = stepper.certificate();
  const double ratio = stepper.energy().max_energy_ratio;
  row.rms = deviation.rms();
  row.max = deviation.max();
  row.final = deviation.last();
  row.max_passivity_residual_J = certificate.max_passivity_residual_J;
  row.max_augmented_residual_J = certificate.max_augmented_residual_J;
  row.min_fne_margin = certificate.min_fne_margin;
  row.min_nonexpansiveness_margin = certificate.min_nonexpansiveness_margin;
  if (std::isfinite(ratio)) row.max_energy_ratio = ratio;
  const WaveView* const waves = stepper.waves();
  if (waves != nullptr && waves->guard() != nullptr) row.guard_steps = waves->guard()->steps;
  row.status = certificate.status;
}

/// A run that fails is a row that says so.
BudgetRow budget_row(const Scenario& scenario, const Samples& reference,
                     const CouplingMethod& method, int iterations, int threads) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  BudgetRow row{.iterations = iterations,
                .method = method.kind(),
                .impedance = impedance_rule(method),
                .guard = method.couples_by_waves() && method.waves().guard,
                .rms = kNone,
                .max = kNone,
                .final = kNone,
                .max_passivity_residual_J = kNone};
  try {
    run_budget(scenario, reference, method, threads, row);
  } catch (const StepError& error) {
    row.failure = error.what();
  } catch (const ConfigError& error) {
    if (is_as_asked_for(method, scenario.options.method)) throw;
    row.failure = error.what();
  }
  return row;
}

/// Of the steps that a method takes.
int stages_of(const CouplingMethod& method) {
  return method.couples_by_waves() ? method.waves().stages : 1;
}

/// What a reference passes through.
template <class Reference>
Samples samples_of(Reference reference, const Scenario& scenario) {
  Samples samples = room_for_samples(scenario);
  const auto sample = [&] {
    for (const Quantity& quantity : scenario.recording.quantities) {
      samples.push_back(reference.state(quantity.part)[static_cast<std::size_t>(quantity.index)]);
    }
  };
  sample();
  for (std::int64_t n = 0; n < scenario.steps; ++n) {
    reference.step();
    sample();
  }
  return samples;
}

Samples samples_for(const Scenario& scenario, int stages, const PhaseCallback& listener) {
  throw_if_any(check_quantities(scenario.recording.quantities));
  tell(listener, {"stepping the monolithic reference"});
  if (stages > 1) {
    return samples_of(GaussReference(scenario.system, scenario.options.step_s, stages), scenario);
  }
  return samples_of(MonolithicReference(scenario.system, scenario.options.step_s), scenario);
}

}  // namespace

Samples monolithic_samples(const Scenario& scenario, const PhaseCallback& listener) {
  return samples_for(scenario, stages_of(scenario.options.method), listener);
}

std::vector<BudgetRow> study_budget_axes(const Scenario& scenario, const BudgetAxes& axes,
                                         int threads, const PhaseCallback& listener) {
  refuse_chosen_steps(scenario);
  refuse_signals(scenario);
  Issues issues = check_quantities(scenario.recording.quantities);
  append(issues, "", check_axes(scenario.options.method, axes));
  throw_if_any(std::move(issues));

  const std::vector<CouplingMethod> methods = methods_of(scenario.options.method, axes);
  std::map<int, Samples> references;  // by the stages of the methods that are compared with them
  for (const CouplingMethod& method : methods) {
    const int stages = stages_of(method);
    if (!references.contains(stages)) {
      references.emplace(stages, samples_for(scenario, stages, listener));
    }
  }
  const auto count = static_cast<std::int64_t>(methods.size() * axes.budgets.size());
  std::vector<BudgetRow> rows;
  for (const CouplingMethod& method : methods) {
    for (const int budget : axes.budgets) {
      tell(listener, {"running combination", static_cast<std::int64_t>(rows.size()) + 1, count});
      rows.push_back(
          budget_row(scenario, references.at(stages_of(method)), method, budget, threads));
    }
  }
  return rows;
}

std::vector<BudgetRow> study_budget(const Scenario& scenario, const std::vector<int>& budgets,
                                    int threads) {
  return study_budget_axes(scenario, BudgetAxes{.budgets = budgets}, threads);
}

}  // namespace portwave
