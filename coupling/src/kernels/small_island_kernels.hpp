#pragma once

#include "portwave/subsystems/base/instruction_set.hpp"
#include "portwave/subsystems/core/port_solves.hpp"

namespace portwave {

/// Two parts of one port each, and the junction between them.
struct PairTask {
  PortSolve parts[2];       ///< cubic ones first
  int waves[2] = {0, 0};    ///< offsets of their ports, P being seen from the first
  double p = 0.0, s = 0.0;  ///< of a junction that is no swap: P = [[p, s], [s, −p]]
};

/// â after so many evaluations of S from b, with `factor` in the update; waves stay in registers. False
/// when a port solve fails: nothing is written then.
using PairSweep = bool (*)(const PairTask& task, int evaluations, double factor, const double* b,
                           double* a);

struct SmallIslandKernels {
  enum Junction { swap, reflection };
  enum Pass { exchange, average, resolve };

  PairSweep (*pair_sweep)(PortSolve::Form first, PortSolve::Form second, Junction, Pass);
  /// b = S(u) of some parts, one by one; their waves lie part by part. False when one fails.
  bool (*solve)(const PortSolve* parts, int count, const double* u, double* b);
};

const SmallIslandKernels& small_island_kernels();

PORTWAVE_DECLARE_KERNELS(const SmallIslandKernels kSmallIslandKernels)

}  // namespace portwave
