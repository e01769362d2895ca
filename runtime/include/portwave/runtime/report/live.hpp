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

/// Progress of a run.
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
  /// The part with most of the largest gap of a step that missed the tolerance; if no step did, the part
  /// nearest to its limit of passivity. Empty where there is none.
  std::string worst_part = {};
};

/// After a step with that report. Allocates.
LiveFacts live_facts(const Stepper& stepper, const StepReport& report);

/// A page of a run in progress. The stepping thread takes samples now and then; other threads make pages of
/// them meanwhile.
class LiveReport {
 public:
  /// `stepper`: read here only. `end_s`: when the run is to end. If there are more than a few hundred
  /// `quantities`, the first ones are drawn.
  LiveReport(const Stepper& stepper, std::string title, double end_s,
             std::vector<Quantity> quantities);
  ~LiveReport();
  LiveReport(const LiveReport&) = delete;
  LiveReport& operator=(const LiveReport&) = delete;

  /// Call after a step. It skips a sample rather than wait for a page that is being made.
  void sample(const Stepper& stepper, const LiveFacts& facts, double wall_s);
  /// The run has ended.
  void end(const RunSummary& summary);

  /// A page that asks its own server for `events`. Errors: as run_report.
  std::string page(const std::string& events) const;
  /// The current contents of the page, as JSON on one line.
  std::string news() const;
  /// Grows with every sample, and at the end.
  std::int64_t version() const;
  bool has_ended() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace portwave
