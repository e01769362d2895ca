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
  /// For a step without inner iterations: `iteration` equals `budget`.
  static constexpr int kNoIterations = -1;

  /// `budget` is K, so that iteration K reads as the commit. `part` empty: the network as a whole.
  StepError(std::string part, std::int64_t step, int iteration, int budget, StepFault fault,
            const std::string& detail);

  const std::string& part() const { return part_; }  ///< name of the part
  std::int64_t step() const { return step_; }        ///< macro-step that failed, from 0
  /// For a block of a signal graph, which fails before the step has begun. `part` is empty.
  static StepError of_signal(const std::string& name, std::int64_t step, StepFault fault,
                             const std::string& detail);

  /// For states that violate a rigid joint. `part` is the first one.
  static StepError of_odds(std::string part, std::int64_t step, const std::string& detail);

  int iteration() const {
    return iteration_;
  }  ///< inner iteration; -1: before the first, K: the commit
  StepFault fault() const { return fault_; }
  /// The part's state before the step, its external inputs and incident waves, and the residual of its
  /// equations, as far as known. They are not known where other processes step the part, for the network as
  /// a whole, and with methods without waves.
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

/// Statistics of the step sizes chosen in a run.
struct StepSizeStatistics {
  std::int64_t rejected = 0;               ///< attempts that were taken back, for whatever reason
  std::int64_t rejected_for_coupling = 0;  ///< these: the inner iteration did not converge
  std::int64_t comparisons = 0;            ///< of a step with two half steps, to find a first step
  std::int64_t shortened = 0;  ///< attempts repeated with a shorter step, to end at an event
  std::int64_t changes = 0;    ///< changes of the step size
  double smallest_s = std::numeric_limits<double>::infinity();
  double largest_s = 0.0;
  double last_s = 0.0;
};

/// Whether the steps of a run resolve its motion (docs/concepts/step-size.md): the worst defect that was
/// seen. Energy may still be kept to the last digit.
struct Resolution {
  enum class Kind {
    resolved,           ///< nothing was seen
    jumps,              ///< the local error of a step is a share of all motion
    alternates,         ///< states alternate from step to step
    effort_alternates,  ///< the effort of a port alternates
    flow_alternates,    ///< the flow of a port alternates
    damped_away,        ///< damped steps take energy from oscillations that go on
    pulses,             ///< an input jumps to and fro within steps
    undersampled,       ///< an input changes too fast for the steps: they take another mean for it
  };
  Kind kind = Kind::resolved;
  /// Amplitude of the error, of all motion of parts of its kind; of the largest effort or flow there; of what damped
  /// steps take, of all energy that was stored or went in and out; of the mean square of a source, what steps do
  /// not see.
  double share = 0.0;
  double h_lambda =
      0.0;  ///< rate of the decay or oscillation that was seen times the step; 0: not known
  std::int64_t step = -1;  ///< step with the worst defect
  int part = -1;
  int port = -1;           ///< scalar port, of efforts and flows
  int state = -1;          ///< of the part, where it is one state beside its own motion; else −1
  int input = -1;          ///< of the part, likewise
  std::int64_t looks = 0;  ///< number of steps examined
};

std::string_view to_string(Resolution::Kind kind);

/// An impulse: states at odds with rigid joints jumped to where these hold (Start::consistent).
struct Impulse {
  double time_s = 0.0;
  std::string cause;  ///< "q.flow jumps from 0 to 10 rad/s"
  std::string joint;  ///< the joint that was violated most: "common_flow of q.port, j.shaft"
  std::string jumps;  ///< the states, the first few: "j.speed 0 -> 10 rad/s"
  ImpulseEnergies energies;
};

/// The impulses of a run.
struct Impulses {
  static constexpr std::size_t kKept = 16;
  std::int64_t count = 0;
  std::vector<Impulse> first;  ///< the first kKept
  ImpulseEnergies in_all;
  ImpulseEnergies at_start;  ///< of those with which the run began, before its first step
};

/// Inconsistent states that were stepped as they were, with Start::as_given or where ports have no physical
/// domain.
struct StartsAtOdds {
  std::int64_t count = 0;  ///< instants with inconsistent states
  double first_s = 0.0;
  std::string first;  ///< the joint, its parts, and their values
};

/// Wall time of the phases of one macro-step [s]; zeros unless timed.
struct StepTimes {
  double begin_s = 0.0;    ///< inputs and freezing
  double iterate_s = 0.0;  ///< inner iteration
  double commit_s = 0.0;   ///< advance and ledger
};

/// The report of one macro-step.
struct StepReport {
  /// Evaluations of S before the commit: the maximum over islands. With a dynamic iteration, those of the
  /// window that the step belongs to.
  int iterations = 0;
  bool begins_window = true;  ///< false: the iterations were made in an earlier step of its window
  double residual = 0.0;   ///< largest island residual at the last iteration that stands; 0 where
                           ///< not measured: without tolerance and acceleration
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

/// Iterations over a run. A window is iterated as a unit: one step, or as many steps as a dynamic
/// iteration says. It is counted when it is iterated, in its first step.
struct IterationStatistics {
  std::int64_t steps = 0;
  std::int64_t windows = 0;
  std::int64_t total = 0;
  int max = 0;  ///< largest number in a window
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

/// State of the coupling when a run was examined: after 1, 2, 4, 8, … steps.
struct CouplingLooks {
  std::int64_t count = 0;
  /// The largest sum over parts of the energy of their motion since the start [J]: the distance of H from
  /// H(x₀) or, if larger, from H(x₀) + ∇H(x₀)ᵀ(x − x₀), which for a linear part is ½(x − x₀)ᵀQ(x − x₀) and
  /// ignores preloads. With a ledger, and not in slices.
  double moved_J = 0.0;
  /// If no convergence was asked for: the largest |P b − a| relative to the waves, of committed waves.
  double residual = 0.0;
};

}  // namespace portwave
