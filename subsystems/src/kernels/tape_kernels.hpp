#pragma once

#include "portwave/subsystems/base/instruction_set.hpp"
#include "portwave/subsystems/base/tape_program.hpp"

namespace portwave {

/// Evaluation of an ExpressionTape.
namespace tape {

struct Kernels {
  /// Value i of lane l is at [i·lanes + l], in x and out alike.
  void (*run)(const TapeProgram& program, const double* x, double* out, double* registers);
  void (*run_alone)(const TapeProgram& program, const double* x, double* out, double* registers);
};

const Kernels& kernels();

}  // namespace tape

PORTWAVE_DECLARE_KERNELS(const tape::Kernels kTape)

}  // namespace portwave
