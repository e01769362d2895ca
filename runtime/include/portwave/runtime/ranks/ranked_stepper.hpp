#pragma once

#include <cstddef>
#include <span>

#include "portwave/runtime/ranks/followers.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

class Ranks;

/// A stepper whose system several ranks step together (StepperOptions::ranks): the functions that a single
/// process does not need. On rank 0 the stepper is used as if it were alone; all others `follow`:
///
///   Stepper stepper(system, options);  // on every rank
///   if (ranks->rank() != 0) RankedStepper(stepper).follow();
///   else stepper.step(1000);
///
/// A process that steps its system alone has no followers, and no terms to gather. This is a view: the
/// stepper must outlive it.
class RankedStepper {
 public:
  explicit RankedStepper(const Stepper& stepper) : stepper_(&stepper) {}

  /// The ranks that step the system; null where this process knows only the system that it steps: the whole,
  /// or a slice.
  Ranks* ranks() const;
  /// The rank that steps a part and has its terms; 0 where all ranks do, or where there are none.
  /// Errors: std::out_of_range.
  int rank_of_part(int part) const;

  /// On other ranks than 0: steps its share whenever rank 0 steps, until rank 0's stepper is destroyed. No
  /// other call is allowed there. Errors: RankError.
  void follow() const;
  /// The same, with `follower` taking part. Errors: the same; and exceptions of `follower`.
  void follow(Follower& follower) const;
  /// On rank 0: lets the others return from `follow`. Until they call it again, the stepper must be neither
  /// used nor destroyed.
  void release_followers() const;
  /// On rank 0: calls Follower::told on all others. Errors: std::logic_error, with no call made, where one of
  /// them follows without a Follower, or where `ranks` is null.
  void tell_followers(std::span<const std::byte> message) const;

  // Terms. Reading a single state or port sends all states and waves to everyone; reading terms sends
  // only their numbers, to rank 0. Errors: std::logic_error where `ranks` is null.
  /// On rank 0: registers terms that are read together, many times. Returns the number of the set.
  /// Errors: std::out_of_range.
  int prepare_terms(std::span<const QuantityTerm> terms) const;
  /// Their present values, in the order of the set. Errors: as Stepper::effort, Stepper::storage and
  /// WaveView::incident.
  void read_terms(int set, std::span<double> values) const;
  /// On any rank: terms of this rank's parts, without the others.
  void read_own(std::span<const QuantityTerm> terms, std::span<double> values) const;

 private:
  const Stepper* stepper_;
};

}  // namespace portwave
