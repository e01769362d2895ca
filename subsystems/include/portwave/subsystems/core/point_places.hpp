#pragma once

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Facet of parts with ports for forces on points of bodies in space. Joined points have equal speeds, and stay as far
/// apart as they start: a system is not built where that is not 0.
class PointPlaces {
 public:
  virtual ~PointPlaces() = default;
  /// Where in the world the point of a port is at x: three numbers [m]. False: the port is none of a point.
  virtual bool place_of(int port, const double* x, double* place) const = 0;
};

}  // namespace portwave
