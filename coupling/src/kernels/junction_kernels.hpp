#pragma once

#include "portwave/coupling/junction_run.hpp"

namespace portwave {

/// The loops behind JunctionProgram, for one run.
struct JunctionKernels {
  void (*exchange)(const JunctionRun& run, const int* places, const double* values, const double* b,
                   double* a);
  /// `work` has arity doubles; only dense runs use it.
  void (*douglas_rachford)(const JunctionRun& run, const int* places, const double* values,
                           double relaxation, const double* b, double* u, double* work);
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
