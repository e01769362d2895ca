#pragma once

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

}  // namespace portwave
