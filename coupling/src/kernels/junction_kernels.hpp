#pragma once

#include "portwave/coupling/system/junction_run.hpp"
#include "portwave/subsystems/base/instruction_set.hpp"

namespace portwave {

struct JunctionKernels {
  /// Sets the loops of a run that is complete otherwise.
  void (*choose)(JunctionRun& run);
};

const JunctionKernels& junction_kernels();

PORTWAVE_DECLARE_KERNELS(const JunctionKernels kJunctionKernels)

}  // namespace portwave
