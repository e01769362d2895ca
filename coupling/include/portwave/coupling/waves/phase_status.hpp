#pragma once

#include <string>
#include <utility>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/step_batch.hpp"

namespace PORTWAVE_EXPORT portwave {

/// How a phase of a macro-step failed: the part with the lowest number.
struct PhaseStatus {
  int part = -1;
  StepFault fault = StepFault::none;
  std::string detail;  ///< text of the exception, for StepFault::threw

  bool ok() const { return fault == StepFault::none; }
  /// Keeps the failure of the lower part number. Failures may be merged in any order and grouping.
  void merge(PhaseStatus other) {
    if (!other.ok() && (ok() || other.part < part)) *this = std::move(other);
  }
};

}  // namespace portwave
