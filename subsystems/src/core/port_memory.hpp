#pragma once

#include "portwave/subsystems/core/subsystem.hpp"

namespace portwave {

/// Of a part whose nonlinear resistances depend on what its ports did in the steps before: its states, on which
/// neither H nor any matrix depends. They are held within a step, so that each law is that of a resistance
/// there, whose wave relation has one solution.
class PortMemory {
 public:
  virtual ~PortMemory() = default;
  /// Subsystem::port_law in a step from x.
  virtual PortLawValue port_law_after(const double* x, int scalar_port, double u) const = 0;
  /// x⁺ of a step in which u was the mean input of each scalar port.
  virtual void remember(const double* mean_inputs, double* x_next) const = 0;
};

}  // namespace portwave
