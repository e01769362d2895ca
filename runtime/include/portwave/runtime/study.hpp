#pragma once

#include <optional>
#include <vector>

#include "portwave/runtime/scenario.hpp"

namespace portwave {

/// One row of the budget study: K inner iterations against the monolithic reference.
struct BudgetRow {
  int iterations = 0;
  double rms = 0.0;    ///< √(Σ_n ‖Δ_n‖² / samples), ‖·‖ over the observed quantities
  double max = 0.0;    ///< max_n ‖Δ_n‖
  double final = 0.0;  ///< ‖Δ‖ at the last sample
  double max_passivity_residual_J = 0.0;
  std::optional<double> max_augmented_residual_J;
  std::optional<double> min_fne_margin;
  std::optional<double> max_energy_ratio;
  CertificateStatus status = CertificateStatus::holds;  ///< of this run, certified in full
};

/// Samples of the observables at t = 0, h, …: row-major, one row per sample.
using Samples = std::vector<double>;

/// Steps the monolithic reference and samples the scenario's observables (states only).
/// Errors: ConfigError for other observables; std::runtime_error when the samples do not fit memory.
Samples monolithic_samples(const Scenario& scenario);

/// Runs the scenario at every budget, certified in full. Errors: StepError, and those of
/// monolithic_samples.
std::vector<BudgetRow> study_budget(const Scenario& scenario, const std::vector<int>& budgets,
                                    int threads = 1);

}  // namespace portwave
