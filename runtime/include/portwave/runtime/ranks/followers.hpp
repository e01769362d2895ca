#pragma once

#include <cstddef>
#include <span>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

class Stepper;
struct StepReport;

/// A number that can be read off a system between two steps: a state or its co-energy variable, the effort, flow or
/// a wave of a scalar port, the stored energy of a part. For a port only `index` counts, its number in the
/// system.
struct QuantityTerm {
  enum class Kind { state, effort, flow, incident, outgoing, storage, coenergy };
  Kind kind = Kind::state;
  int part = 0;
  int index = 0;
};
/// Or of a port.
inline bool is_of_a_part(const QuantityTerm& term) {
  return term.kind == QuantityTerm::Kind::state || term.kind == QuantityTerm::Kind::storage ||
         term.kind == QuantityTerm::Kind::coenergy;
}

/// The tasks of a rank other than 0 beside stepping its share (RankedStepper::follow). An exception of its
/// functions ends `follow`. They may read terms of this rank's own parts (RankedStepper::read_own), and
/// nothing else that is not known to all ranks.
class Follower {
 public:
  virtual ~Follower() = default;
  /// After every committed step.
  virtual void stepped(const Stepper& stepper, const StepReport& report) = 0;
  /// Rank 0 calls RankedStepper::tell_followers. All others receive this call at the same time, so that they
  /// can make calls of `Ranks` together with rank 0.
  virtual void told(const Stepper& stepper, std::span<const std::byte> message) = 0;
};

}  // namespace portwave
