#pragma once

#include "portwave/coupling/impedance/tuning.hpp"
#include "portwave/runtime/step/options.hpp"

namespace portwave {

/// The time that a step has at most, by its deadline and its pace [s].
double time_of_step(const StepperOptions& options);

/// What steps that are made for a trial make of the time.
struct WayTrial {
  /// Squared; the larger one of two halves: from the start on, and from the converged state in the middle.
  double error = 0.0;
  double converged = 0.0;  ///< share of the steps
  double missed =
      0.0;  ///< share of those that end late: of all, or of the second half if that is less
  double length = 1.0;  ///< mean time of a step over the deadline
  static constexpr double kMostMissed = 0.1;
  bool keeps_deadline() const { return missed <= kMostMissed; }
};

/// Whether `a` is clearly better than `b`: its error is smaller by so much that it is worth the share of its steps that
/// are late, and their length. No error is worth it where seven of ten are late.
bool is_better(const WayTrial& a, const WayTrial& b);

/// What serves best where a deadline, or a pace, leaves little time. Where nearly all steps converge in it, what one would
/// take without a deadline. Else some steps are made in each way, in that time, and compared with converged ones: from
/// the start, and from a later state, with inputs that swing; the worse of the two errors counts. That time is simulated,
/// by the costs that the converged steps have shown, and for what seems best by its own. Plain waves are tried first,
/// solves only where one fits, and another way must be clearly better. No way that solves is tried after half a second.
/// `usual` where nothing can be said: parts of other programs, which are not stepped for a trial, nothing that moves,
/// large systems, long deadlines.
Anytime way_for_deadline(const System& system, const StepperOptions& options, const Anytime& usual);

}  // namespace portwave
