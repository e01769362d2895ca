#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// The axes of the budget study. An empty list stands for the scenario's value. Methods
/// without waves can be studied only if they iterate; they have neither impedances nor guard.
struct BudgetAxes {
  std::vector<int> budgets = {};
  std::vector<MethodKind> methods = {};
  /// `given`: the scenario's own values. WaveUpdate::automatic chooses its impedances itself, and
  /// takes no part in this axis.
  std::vector<ImpedanceKind> impedances = {};
  std::vector<bool> guards = {};
};

/// One row of the budget study: K inner iterations against the monolithic reference.
struct BudgetRow {
  int iterations = 0;
  MethodKind method = WaveUpdate::douglas_rachford;
  std::string impedance = {};  ///< as scenario files call the rule; "none" without waves
  bool guard = true;
  double rms = 0.0;    ///< √(Σ_n ‖Δ_n‖² / samples), ‖·‖ over the observed quantities
  double max = 0.0;    ///< max_n ‖Δ_n‖
  double final = 0.0;  ///< ‖Δ‖ at the last sample
  double max_passivity_residual_J = 0.0;
  std::optional<double> max_augmented_residual_J = {};
  std::optional<double> min_fne_margin = {};               ///< of Douglas–Rachford
  std::optional<double> min_nonexpansiveness_margin = {};  ///< of Peaceman–Rachford
  std::optional<double> max_energy_ratio = {};
  std::int64_t guard_steps = 0;                         ///< in which the guard acted
  CertificateStatus status = CertificateStatus::holds;  ///< of this run, certified in full
  /// Not empty: why the run has no numbers, which are NaN or empty then. A step failed, a rule of the axes
  /// has no impedances for this system, or a method of the axes does not suit it.
  std::string failure = {};
};

/// Samples of the quantities at t = 0, h, …: row-major, one row per sample.
using Samples = std::vector<double>;

/// Steps the monolithic reference and samples the scenario's quantities (states only).
/// Errors: ConfigError for other quantities; std::runtime_error when the samples do not fit
/// memory.
Samples monolithic_samples(const Scenario& scenario, const PhaseCallback& listener = {});

/// Runs the scenario at every budget with every combination of the axes, certified in full: by method,
/// within it by impedance, within that with and without guard. If the iteration is not the scenario's, the
/// relaxation is 1. Runs that fail are rows. Errors: ConfigError (an empty or impossible axis, bad options)
/// and those of monolithic_samples.
std::vector<BudgetRow> study_budget_axes(const Scenario& scenario, const BudgetAxes& axes,
                                         int threads = 1, const PhaseCallback& listener = {});
/// The scenario's own method at every budget.
std::vector<BudgetRow> study_budget(const Scenario& scenario, const std::vector<int>& budgets,
                                    int threads = 1);

}  // namespace portwave
