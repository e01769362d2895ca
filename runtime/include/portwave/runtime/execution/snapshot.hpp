#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// A run as it stands between two steps: states, waves and warm starts, the time, inputs, the energy
/// book, tanks and certificate, statistics, impedances, the choice of step sizes, controllers and
/// events. `Stepper::snapshot` takes one and `Stepper::restore` goes back to it, in the same stepper
/// or in another one of the same system and options; what then follows is the same bit by bit.
///
/// Not in it: what the clock on the wall says (deadlines and what was learnt about them, pace,
/// which executor is faster), observers, and what callbacks of the user keep to themselves.
///
/// It is a block of bytes of this machine and this build. Memory is used again when the next
/// snapshot is taken into it.
class Snapshot {
 public:
  bool empty() const { return bytes_.empty(); }
  std::size_t size_bytes() const { return bytes_.size(); }
  double time_s() const { return time_s_; }  ///< simulated time at which it was taken
  std::int64_t step_index() const { return step_index_; }

  /// All of it as bytes, to be handed to another process of the same build on such a machine; and
  /// back. Parts that were exchanged on the way (`set_component`) are known to their own process
  /// only: the snapshot then fits no stepper elsewhere.
  std::vector<std::byte> to_bytes() const;
  /// Errors: std::invalid_argument where they are not whole, were changed, or are of another version.
  static Snapshot from_bytes(std::span<const std::byte> bytes);

 private:
  friend class Stepper;
  std::vector<std::byte> bytes_;
  std::uint64_t fits_ = 0;  // what it fits: Stepper::fingerprint
  double time_s_ = 0.0;
  std::int64_t step_index_ = 0;
};

}  // namespace portwave
