#pragma once

#include <cmath>
#include <string>
#include <string_view>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Which port variable the part takes as its input u; the other one is its output y.
enum class Causality {
  effort_in,  ///< u = e, y = f (a force acts on a mass, a voltage on an RL branch)
  flow_in,    ///< u = f, y = e (a velocity drives the end of a spring)
};

/// Physical domain of a port. Ports of different domains meet only in a transformer, a gyrator, a
/// skew gain or a kernel given by its matrices; `generic` meets every domain.
enum class Domain { generic, translation, rotation, electrical, magnetic, hydraulic, thermal };

/// Unit symbols of a domain's port variables; effort × flow is power [W].
struct DomainUnits {
  std::string_view effort;     ///< e.g. "N"
  std::string_view flow;       ///< e.g. "m/s"
  std::string_view impedance;  ///< effort per flow, e.g. "N s/m"
};

DomainUnits units(Domain domain);
std::string_view to_string(Domain domain);
std::string_view to_string(Causality causality);

/// A power port: `dimension` pairs (e_j, f_j), the flow counted into the part, so that Σ e_j f_j is
/// the power [W] that the part receives.
struct Port {
  std::string name;
  Causality causality = Causality::effort_in;
  Domain domain = Domain::generic;
  int dimension = 1;
};

/// An external input u(t). Its conjugate output y is such that u·y is the power [W]
/// supplied through it.
struct ExternalInput {
  std::string name;
  std::string unit;
};

/// One entry of the state vector.
struct StateVariable {
  std::string name;
  std::string unit;
};

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
