#pragma once

#include "portwave/subsystems/base/lane_group.hpp"

namespace portwave {

/// Nonlinear parts that take gradients at several states in little more time than one.
class GradientsSideBySide {
 public:
  virtual ~GradientsSideBySide() = default;

  /// Whether this one does.
  virtual bool takes_gradients() const = 0;
  /// ∇H at kLaneGroup states: a number of `x` and of `g` is kLaneGroup doubles, one for each. To round-off what
  /// the part's own gradient is, and the same bits on every instruction set.
  virtual void gradients(const double* x, double* g) const = 0;
};

}  // namespace portwave
