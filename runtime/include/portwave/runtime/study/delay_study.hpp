#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

struct DelayOptions {
  int ranks = 2;                           ///< ≥ 2, threads of this process
  std::vector<int> delays = {0, 1, 2, 4};  ///< evaluations, 0 to ExchangeOptions::kMostDelay
  std::vector<int> budgets = {};           ///< iterations, ≥ 0; empty: the scenario's
  /// Messages are late by a random delay of at most the given one, and overtake one another; otherwise all
  /// are late by exactly the given delay.
  bool scattered = false;
};

/// A run whose ranks iterate on waves that are late.
struct DelayRow {
  int delay = 0;
  int iterations = 0;
  /// As in BudgetRow, against the monolithic reference.
  double rms = 0.0, max = 0.0, final = 0.0;
  std::int64_t guard_steps = 0;  ///< in which the guard acted
  double withheld_J = 0.0;       ///< withheld by the guard
  std::int64_t messages = 0;     ///< sent by the first rank
  CertificateStatus status = CertificateStatus::holds;
  std::string failure = {};  ///< not empty: why there are no numbers, which are NaN then
};

/// Accuracy and energy of an asynchronous exchange, by the delay of waves and by the budget. Results do not
/// depend on timing: the transport delays as specified. No tolerance ends an iteration.
/// Errors: ConfigError: those of monolithic_samples; methods other than Douglas–Rachford and
/// Peaceman–Rachford; a system that cannot be cut so that waves go from rank to rank.
/// std::invalid_argument: options out of range.
std::vector<DelayRow> study_delay(const Scenario& scenario, const DelayOptions& options = {},
                                  const PhaseCallback& listener = {});

}  // namespace portwave
