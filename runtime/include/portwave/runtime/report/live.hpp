#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "portwave/runtime/output/recorder.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

struct RunSummary;

/// Where a run is.
struct LiveFacts {
  std::int64_t step = 0;
  double time_s = 0.0;
  double step_s = 0.0;
  bool has_ledger = false;  ///< else energies are zeros
  double stored_J = 0.0;
  double tank_J = 0.0;
  EnergyTotals totals = {};  ///< since the start
  double passivity_residual_J = 0.0;
  std::int64_t iterations = 0;  ///< since the start
  std::int64_t windows = 0;     ///< likewise
  double residual = 0.0;
  std::optional<GuardStatistics> guard = {};  ///< nothing without one
  double alpha = 1.0;
  std::optional<double> slack_s = {};  ///< nothing without a time budget
  std::int64_t missed = 0;             ///< steps that missed a tolerance
  CertificateStatus status = CertificateStatus::holds;
  /// The part with most of the largest gap of a step that missed the tolerance; where none did, that
  /// which is nearest to its limit of passivity. Empty where there is none.
  std::string worst_part = {};
};

/// After a step with that report. Allocates.
LiveFacts live_facts(const Stepper& stepper, const StepReport& report);

/// A page of a run that goes on. Samples are taken now and then, by whoever steps; pages are made of them
/// by other threads meanwhile.
class LiveReport {
 public:
  /// `stepper`: looked at here only. `end_s`: when the run is to end. Of more than a few hundred
  /// `observables` the first ones are drawn.
  LiveReport(const Stepper& stepper, std::string title, double end_s,
             std::vector<Observable> observables);
  ~LiveReport();
  LiveReport(const LiveReport&) = delete;
  LiveReport& operator=(const LiveReport&) = delete;

  /// After a step. A sample is left out rather than waiting for a page that is being made.
  void sample(const Stepper& stepper, const LiveFacts& facts, double wall_s);
  /// The run has ended.
  void end(const RunSummary& summary);

  /// A page that asks its own server for `events`. Errors: as run_report.
  std::string page(const std::string& events) const;
  /// What the page is to show now, as JSON on one line.
  std::string news() const;
  /// Grows with every sample, and at the end.
  std::int64_t version() const;
  bool has_ended() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace portwave
