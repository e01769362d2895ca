#pragma once

#include <cmath>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/port.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Effort and flow of one scalar port.
struct EffortFlow {
  double effort;
  double flow;
};

/// Incident (into the part) and outgoing wave of one scalar port, in √J.
struct WavePair {
  double incident;
  double outgoing;
};

/// The scattering transform of one scalar port with impedance γ > 0 over a step h > 0:
///   e + γ f = √(2γ/h) a,   e − γ f = √(2γ/h) b,
/// so that h e f = ½(a² − b²) [J].
class WaveTransform {
 public:
  WaveTransform(double impedance, double step_s)
      : impedance_(impedance), scale_(std::sqrt(2.0 * impedance / step_s)) {}

  double impedance() const { return impedance_; }
  /// √(2γ/h)
  double scale() const { return scale_; }

  EffortFlow to_effort_flow(WavePair w) const {
    return {0.5 * scale_ * (w.incident + w.outgoing),
            0.5 * scale_ / impedance_ * (w.incident - w.outgoing)};
  }
  WavePair to_waves(EffortFlow p) const {
    return {(p.effort + impedance_ * p.flow) / scale_, (p.effort - impedance_ * p.flow) / scale_};
  }

 private:
  double impedance_;
  double scale_;
};

}  // namespace portwave
