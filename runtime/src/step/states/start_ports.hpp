#pragma once

#include <vector>

#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/core/port.hpp"

namespace portwave {

class StepEngine;

/// Efforts and flows of ports before the first step: those of the initial states and inputs, found on
/// demand. The run does not depend on that.
///
/// If the equations of the parts do not determine them they are the means of a first step of another
/// stepper. That needs parts that can go back (Capabilities::restorable); with others, and in slices,
/// they are 0.
class StartPorts {
 public:
  /// For steppers with such options.
  explicit StartPorts(const StepperOptions& options);

  EffortFlow of(int scalar_port, StepEngine& engine);
  /// States, inputs or parts have changed.
  void forget() { effort_.clear(); }

 private:
  void find(StepEngine& engine);

  StepperOptions options_;
  std::vector<double> effort_, flow_;  // empty: not known
};

}  // namespace portwave
