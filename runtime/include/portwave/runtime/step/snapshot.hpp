#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "portwave/subsystems/base/archive_section.hpp"
#include "portwave/subsystems/base/export.hpp"

// Internal to the library, hence not shown.
namespace portwave {
struct Exchanges;
class StepIdentity;
}  // namespace portwave

namespace PORTWAVE_EXPORT portwave {

/// The state of a run between two steps: states, waves and warm starts, the time, inputs, the energy
/// ledger, tanks and certificate, statistics, impedances, the choice of step sizes, controllers and
/// events. `Stepper::snapshot` saves one and `Stepper::restore` goes back to it, in the same stepper or in
/// another one with the same system and options; the steps that follow are the same bit by bit.
///
/// Parameters that were changed during the run (Stepper::set_component, set_parameter) belong to its state: a
/// snapshot holds them, and going back brings them back.
///
/// A snapshot also identifies the system that the run began with: parameters of parts, external inputs, laws
/// of couplings, options. A stepper that began with others, and has others now, refuses it and names the
/// difference. Callbacks cannot be compared; they are taken to be the same.
///
/// A snapshot leaves out wall-clock data (deadlines and what was learnt about them, pace, the faster
/// executor), observers, and the private state of user callbacks.
///
/// It is a block of bytes of this machine and this build. Saving the next snapshot into it reuses its
/// memory.
class Snapshot {
 public:
  bool empty() const { return bytes_.empty(); }
  std::size_t size_bytes() const { return bytes_.size(); }
  double time_s() const { return time_s_; }  ///< simulated time at which it was taken
  std::int64_t step_index() const { return step_index_; }

  /// The whole snapshot as bytes, to hand to another process of the same build on such a machine; and back.
  /// Of a part that was exchanged bytes hold its parameters, if all of them are numbers, truth values and
  /// choices; snapshots of other exchanges fit only steppers that have made the same.
  /// Bytes may come from anywhere: bytes that are no state of a run are refused, here or by
  /// Stepper::restore.
  std::vector<std::byte> to_bytes() const;
  /// Errors: std::invalid_argument where they are incomplete, were changed, or are of another version.
  static Snapshot from_bytes(std::span<const std::byte> bytes);

 private:
  friend class Stepper;
  std::vector<std::byte> bytes_;
  std::vector<ArchiveSection> sections_;    // of bytes_; not of bytes from elsewhere
  std::shared_ptr<const StepIdentity> of_;  // what the run began with; null: nothing has been saved
  std::shared_ptr<const Exchanges> exchanged_;  // since then; null: nothing
  /// From bytes: the digest of what the run began with, `of_` being what it was then. 0: not from bytes.
  std::uint64_t origin_ = 0;
  double time_s_ = 0.0;
  std::int64_t step_index_ = 0;
};

}  // namespace portwave
