#pragma once

#include <utility>
#include <vector>

#include "expressions/expression_part.hpp"
#include "portwave/subsystems/base/expression_tape.hpp"

namespace portwave {

/// ∂((J − R)g + (G − P)u)/∂x of expressions, as a program of (x, g, u).
struct TurningTape {
  TurningTape() = default;
  /// For a part with so many scalar ports and external inputs.
  TurningTape(const ExpressionPhysics& physics, int ports, int externals);

  /// Whether columns at ports, S and N are constant, and others are not.
  bool is_known = false;
  ExpressionTape tape;
  std::vector<std::pair<int, int>> places;  ///< of its results
};

}  // namespace portwave
