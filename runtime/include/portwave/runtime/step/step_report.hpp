#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "portwave/coupling/energy/ledger.hpp"
#include "portwave/runtime/parallel/budget.hpp"
#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/step_batch.hpp"

namespace PORTWAVE_EXPORT portwave {

/// A macro-step that failed. The stepper keeps the last committed state and stays usable.
class StepError : public std::runtime_error {
 public:
  /// As `budget`: of a step that is not made of inner iterations.
  static constexpr int kNoIterations = -1;

  /// `budget` is K, so that iteration K reads as the commit. `part` empty: the network as a whole.
  StepError(std::string part, std::int64_t step, int iteration, int budget, StepFault fault,
            const std::string& detail);

  const std::string& part() const { return part_; }  ///< name of the part
  std::int64_t step() const { return step_; }        ///< macro-step that failed, from 0
  /// Of a block of a signal graph, which fails before the step has begun. `part` is empty.
  static StepError of_signal(const std::string& name, std::int64_t step, StepFault fault,
                             const std::string& detail);

  /// Of states that violate a rigid joint. `part` is the first one.
  static StepError of_odds(std::string part, std::int64_t step, const std::string& detail);

  int iteration() const {
    return iteration_;
  }  ///< inner iteration; -1: before the first, K: the commit
  StepFault fault() const { return fault_; }
  /// The part's state before the step, its external inputs and incident waves, and what was left of its
  /// equations: as far as known, which it is not where other processes step the part, of the network
  /// as a whole, and with methods without waves.
  const FailedSolve& solve() const { return solve_; }
  /// The same in words, for people: "1.2e-09 of the terms of its equations are left, from q = 1 m, …".
  const std::string& circumstances() const { return circumstances_; }
  StepError& with(FailedSolve solve, std::string circumstances) {
    solve_ = std::move(solve);
    circumstances_ = std::move(circumstances);
    return *this;
  }

 private:
  StepError(const std::string& text, std::int64_t step, StepFault fault);

  std::string part_;
  std::int64_t step_;
  int iteration_;
  StepFault fault_;
  FailedSolve solve_;
  std::string circumstances_;
};

/// What steps of chosen size came to in a run.
struct StepSizeStatistics {
  std::int64_t rejected = 0;  ///< attempts that were taken back, for whatever reason
  std::int64_t rejected_for_coupling =
      0;                         ///< of them: because the inner iteration did not converge
  std::int64_t comparisons = 0;  ///< of a step with two of half its size, to find a first step
  std::int64_t shortened = 0;    ///< attempts taken anew to end at an event
  std::int64_t changes = 0;      ///< of the step size
  double smallest_s = std::numeric_limits<double>::infinity();
  double largest_s = 0.0;
  double last_s = 0.0;
};

/// Whether the steps of a run resolve its motion (docs/concepts/step-size.md): the worst that was seen of
/// what they do not. Energy may be kept to the last digit all the same.
struct Resolution {
  enum class Kind {
    resolved,           ///< nothing was seen
    jumps,              ///< the local error of a step is a share of all motion
    alternates,         ///< states go to and fro from step to step
    effort_alternates,  ///< so does the effort of a port,
    flow_alternates,    ///< or its flow
  };
  Kind kind = Kind::resolved;
  double share =
      0.0;  ///< amplitude of the error, of all motion of parts of its kind; of the largest
            ///< effort or flow there
  double h_lambda =
      0.0;  ///< rate of the decay or oscillation that was seen times the step; 0: not known
  std::int64_t step = -1;  ///< where
  int part = -1;
  int port = -1;           ///< scalar port, of efforts and flows
  std::int64_t looks = 0;  ///< steps that were looked at
};

std::string_view to_string(Resolution::Kind kind);

/// States at odds that were stepped as they were, with Start::as_given.
struct StartsAtOdds {
  std::int64_t count = 0;  ///< instants at which there were some
  double first_s = 0.0;
  std::string first;  ///< the joint, its parts, and their values
};

/// Wall time of the phases of one macro-step [s]; zeros unless timed.
struct StepTimes {
  double begin_s = 0.0;    ///< inputs and freezing
  double iterate_s = 0.0;  ///< inner iteration
  double commit_s = 0.0;   ///< advance and ledger
};

/// What one macro-step did.
struct StepReport {
  /// Evaluations of S before the commit: the most over islands. Of a dynamic iteration those of the
  /// window that the step belongs to.
  int iterations = 0;
  bool begins_window = true;  ///< they were made in this step, not in an earlier one of its window
  double residual = 0.0;   ///< largest island residual at the last iteration that stands; 0 where
                           ///< nobody looks: without tolerance and acceleration
  double gap_J = 0.0;      ///< ½|P b̂ − u|², likewise, all islands
  bool converged = false;  ///< every island met a tolerance (false without one)
  StopReason reason = StopReason::budget;
  int rejected_trials = 0;  ///< accelerated evaluations that were not kept, all islands
  /// Evaluations of the nonlinear parts to renew D of the interface update; not in `iterations`.
  int linearisations = 0;
  int rescues = 0;         ///< islands that went on with the interface update within the step
  double step_s = 0.0;     ///< h
  int rejected_steps = 0;  ///< attempts that were taken back before this step
  double error = 0.0;    ///< with StepSizes: estimate of the local error, relative to the tolerance
  double slack_s = 0.0;  ///< deadline − duration; 0 without a time budget
  StepTimes times;
  StepLedger energy;  ///< zeros with Certify::none
};

/// Iterations over a run. A window is what is iterated at once: one step, or of a dynamic iteration
/// as many as it says. It is counted when it is iterated: in its first step.
struct IterationStatistics {
  std::int64_t steps = 0;
  std::int64_t windows = 0;
  std::int64_t total = 0;
  int max = 0;  ///< of a window
  /// Windows by their number of iterations, counts above kHistogram − 1 in the last entry.
  static constexpr int kHistogram = 257;
  std::vector<std::int64_t> histogram = std::vector<std::int64_t>(kHistogram, 0);
  std::array<std::int64_t, kStopReasons> reasons = {};  ///< windows by StopReason
  std::int64_t rejected_trials = 0;  ///< accelerated evaluations that were not kept
  std::int64_t linearisations = 0;   ///< as in StepReport
  std::int64_t rescues = 0;          ///< as in StepReport
  std::int64_t not_converged = 0;    ///< windows that ended without meeting the tolerance

  double mean() const { return ratio(windows); }  ///< per window
  double per_step() const { return ratio(steps); }

 private:
  double ratio(std::int64_t count) const {
    return count == 0 ? 0.0 : static_cast<double>(total) / static_cast<double>(count);
  }
};

/// What the coupling came to where a run was looked at: after 1, 2, 4, 8, … steps.
struct CouplingLooks {
  std::int64_t count = 0;
  /// The largest sum over parts of the energy of their motion since the start [J]: of how far H was from
  /// H(x₀) or, where that is more, from H(x₀) + ∇H(x₀)ᵀ(x − x₀), which of a linear part is ½(x − x₀)ᵀQ(x − x₀)
  /// and does not see preloads. With a ledger, and not in slices.
  double moved_J = 0.0;
  /// Where nobody asked for convergence: the largest |P b − a| beside the waves, of committed waves.
  double residual = 0.0;
};

}  // namespace portwave
