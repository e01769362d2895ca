#pragma once

#include <cstddef>
#include <span>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

class Stepper;
struct StepReport;

/// A number that can be read off a system between two steps: a component of a state, effort, flow or a
/// wave of a scalar port, the stored energy of a part. Of a port only `index` counts, its number in the
/// system.
struct ScalarChannel {
  enum class Kind { state, effort, flow, incident, outgoing, storage };
  Kind kind = Kind::state;
  int part = 0;
  int index = 0;
};

/// What another rank than 0 does beside stepping its share (RankedStepper::follow). What its functions throw
/// ends `follow`. They may read channels of this rank's own parts (RankedStepper::read_own), and nothing else
/// that is not known to all ranks.
class Follower {
 public:
  virtual ~Follower() = default;
  /// After every step that was made.
  virtual void stepped(const Stepper& stepper, const StepReport& report) = 0;
  /// Rank 0 calls RankedStepper::tell_followers. All others are told at the same time, so that they can make
  /// calls of `Ranks` together with rank 0.
  virtual void told(const Stepper& stepper, std::span<const std::byte> message) = 0;
};

}  // namespace portwave
