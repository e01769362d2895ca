#pragma once

#include <cstddef>
#include <span>

#include "portwave/runtime/ranks/followers.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

class Ranks;

/// A stepper whose system several ranks step together (StepperOptions::ranks), as their programs see it beyond
/// what one process alone needs. On rank 0 the stepper is used as if it were alone; all others `follow`:
///
///   Stepper stepper(system, options);  // on every rank
///   if (ranks->rank() != 0) RankedStepper(stepper).follow();
///   else stepper.run(1000);
///
/// Of a process that steps its system alone nobody follows, and there are no channels to be gathered.
/// A view: the stepper must outlive it.
class RankedStepper {
 public:
  explicit RankedStepper(const Stepper& stepper) : stepper_(&stepper) {}

  /// The ranks that step the system; null where this process has no more of it than it steps: all, or a
  /// slice.
  Ranks* ranks() const;
  /// Which of them steps a part and has its channels; 0 where all do, or where there are none.
  /// Errors: std::out_of_range.
  int rank_of_part(int part) const;

  /// On other ranks than 0: steps its share whenever rank 0 steps, until rank 0's stepper is gone. Nothing
  /// else is to be called there. Errors: RankError.
  void follow() const;
  /// The same, `follower` taking part in it. Errors: likewise; what `follower` throws.
  void follow(Follower& follower) const;
  /// On rank 0: lets the others return from `follow`. Until they call it again, the stepper is not to be
  /// used, nor to end.
  void release_followers() const;
  /// On rank 0: Follower::told on all others. Errors: std::logic_error, and nobody is told, where one of
  /// them follows without a Follower, or where `ranks` is null.
  void tell_followers(std::span<const std::byte> message) const;

  // Channels. Where a look at a state or port by itself has all states and waves sent to everyone, only the
  // numbers of these are sent, to rank 0. Errors: std::logic_error where `ranks` is null.
  /// On rank 0: channels that are read together, many times. Gives the number of the set.
  /// Errors: std::out_of_range.
  int prepare_channels(std::span<const ScalarChannel> channels) const;
  /// As they are now, in the order of the set. Errors: as Stepper::effort, Stepper::storage and
  /// WaveView::incident.
  void read_channels(int set, std::span<double> values) const;
  /// On any rank: of parts of this rank, without the others.
  void read_own(std::span<const ScalarChannel> channels, std::span<double> values) const;

 private:
  const Stepper* stepper_;
};

}  // namespace portwave
