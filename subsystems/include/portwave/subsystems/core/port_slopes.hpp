#pragma once

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// A facet of batches of nonlinear parts that know roughly how S(a) moves with a: asked for by dynamic_cast.
class PortSlopes {
 public:
  /// D ≈ ∂S/∂a of one lane into `matrix`, wave_size × wave_size, row-major: of the step from the frozen
  /// record, with derivatives of the part at its start, so that the error is O(h). A function of the state and
  /// of what `prepare` was given. False where none is known, and nothing written.
  /// Cost: less than a port solve. Several threads may ask at once.
  virtual bool port_slopes(int lane, const double* record, double* matrix) const = 0;

 protected:
  ~PortSlopes() = default;
};

}  // namespace portwave
