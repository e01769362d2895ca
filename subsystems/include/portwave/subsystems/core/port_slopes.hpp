#pragma once

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// A facet of batches of nonlinear parts that know roughly how S(a) moves with a: asked for by dynamic_cast.
class PortSlopes {
 public:
  /// D ≈ ∂S/∂a of one lane into `matrix`, wave_size × wave_size, row-major: of the step from the frozen record,
  /// exactly, or with derivatives of the part at its start, so that the error is O(h). Entry j of a lies at
  /// a[j·step]. A function of (x, ū, a) and of what `prepare` was given. False where none is known; what is
  /// written then means nothing.
  /// Cost: about a port solve at most. Several threads may ask at once.
  virtual bool port_slopes(int lane, const double* record, const double* a, int step,
                           double* matrix) const = 0;

 protected:
  ~PortSlopes() = default;
};

}  // namespace portwave
