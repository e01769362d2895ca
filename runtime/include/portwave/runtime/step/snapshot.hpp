#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "portwave/subsystems/base/export.hpp"

// Of the library itself, hence not shown.
namespace portwave {
class StepIdentity;
}  // namespace portwave

namespace PORTWAVE_EXPORT portwave {

/// A run as it stands between two steps: states, waves and warm starts, the time, inputs, the energy
/// book, tanks and certificate, statistics, impedances, the choice of step sizes, controllers and
/// events. `Stepper::snapshot` takes one and `Stepper::restore` goes back to it, in the same stepper
/// or in another one of the same system and options; what then follows is the same bit by bit.
///
/// With it goes what it is of: parameters of parts, external inputs, laws of couplings, options. A stepper
/// in which any of these differs refuses it, and says what differs: a snapshot holds states, and does not
/// change a system. What callbacks do is not known; they are taken for the same.
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
  /// back. Bytes may come from anywhere: what is no state of a run is refused, here or by
  /// Stepper::restore.
  std::vector<std::byte> to_bytes() const;
  /// Errors: std::invalid_argument where they are not whole, were changed, or are of another version.
  static Snapshot from_bytes(std::span<const std::byte> bytes);

 private:
  friend class Stepper;
  std::vector<std::byte> bytes_;
  std::shared_ptr<const StepIdentity> of_;  // what it fits; null: none has been taken
  double time_s_ = 0.0;
  std::int64_t step_index_ = 0;
};

}  // namespace portwave
