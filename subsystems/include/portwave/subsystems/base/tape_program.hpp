#pragma once

#include <cstdint>

#include "portwave/subsystems/base/expression_graph.hpp"

namespace portwave {

/// What an ExpressionTape does, as kernels read it. Registers hold a number of each lane: first the variables, then
/// the constants, then what steps write.
struct TapeProgram {
  using Code = ExpressionGraph::Code;
  /// to = code(a, b, c). A sine or cosine of a has also the other of the two, at b; or b = to.
  struct Step {
    Code code;
    std::uint16_t to, a, b, c;
  };

  int variables = 0, constants = 0, registers = 0, steps = 0, results = 0;
  const double* constant = nullptr;
  const Step* step = nullptr;
  const std::uint16_t* result = nullptr;  ///< registers
  /// Functions that kernels do not have, for so many lanes.
  void (*other)(Code code, const double* a, const double* b, double* to, int lanes) = nullptr;
};

}  // namespace portwave
