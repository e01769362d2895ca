#pragma once

#include "portwave/coupling/system/junction_run.hpp"

namespace portwave {

struct JunctionKernels {
  /// Sets the loops of a run that is complete otherwise.
  void (*choose)(JunctionRun& run);
};

const JunctionKernels& junction_kernels();

namespace baseline {
extern const JunctionKernels kJunctionKernels;
}
namespace v3 {
extern const JunctionKernels kJunctionKernels;
}
namespace v4 {
extern const JunctionKernels kJunctionKernels;
}

}  // namespace portwave
