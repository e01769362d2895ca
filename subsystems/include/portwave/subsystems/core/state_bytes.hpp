#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// A batch whose records refer to states that a program keeps, and which can write them as bytes: snapshots hold these
/// beside the records. A facet that few batches have: whoever archives asks each batch for it (dynamic_cast).
class StateBytes {
 public:
  virtual ~StateBytes() = default;

  /// Of all lanes of the record. Errors: std::exception.
  virtual std::vector<std::byte> write_states(const double* record) const = 0;
  /// Makes the record one of these states. Errors: std::exception for bytes that are none.
  virtual void read_states(std::span<const std::byte> bytes, double* record) const = 0;
};

/// A component that is not `restorable` (Capabilities), and tells whether its batches are StateBytes.
class MayHaveStateBytes {
 public:
  virtual ~MayHaveStateBytes() = default;
  /// Why they are not; empty: they are.
  virtual std::string why_no_state_bytes() const = 0;
};

}  // namespace portwave
