#pragma once

#include "portwave/subsystems/core/step_batch.hpp"

namespace portwave {

/// A facet of batches whose parts can be exchanged one by one: what one lane costs does not depend on how
/// many lanes there are. It is asked for between steps only, by dynamic_cast.
class LaneExchange {
 public:
  /// Puts the part of `one` in the place of the part in a lane, prepared for the step size and the impedances
  /// in force. `one` is a batch of a single part of the same shape, made by the same function; it is not
  /// prepared, and used up. `impedance`: those of all lanes, as in StepBatch::prepare. The maps of other
  /// lanes keep their bits, records their layout; what the lane computes is, bit by bit, what a batch that
  /// is made of all parts anew would. False, nothing having changed, where it has to be made anew: its
  /// arrays would have other lengths.
  /// Errors: ConfigError, nothing having changed.
  virtual bool exchange(int lane, StepBatch& one, const double* impedance) = 0;

 protected:
  ~LaneExchange() = default;
};

}  // namespace portwave
