#pragma once

// Made from the catalogue by subsystems/catalogue/part_factories.py: change the type there.
// clang-format off

#include <optional>
#include <string>
#include <vector>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/catalogue/catalogue_part.hpp"

namespace PORTWAVE_EXPORT portwave {
namespace parts {

/// Parameters of `effort_source`.
struct EffortSourceParameters {
  /// what the port carries; one of "translation", "rotation", "electrical", "magnetic",
  ///   "hydraulic", "thermal", "generic"; required
  std::string domain = {};
  /// the part may create energy
  bool allow_active = false;
};

/// Ideal source of an effort: a voltage, a pressure, a force, a torque.
///   electrical, hydraulic, magnetic, thermal, generic:  e = effort
///   translation, rotation:  e = -effort
///   Joined by a connection, it gives a voltage or pressure to the other part, or pushes a mass
///   or inertia in the positive direction; joined by common_flow to a spring's end, it pulls.
/// Ports:   port (electrical)
/// Inputs:  effort [V]
CataloguePart effort_source(const EffortSourceParameters& parameters);

/// Parameters of `flow_source`.
struct FlowSourceParameters {
  /// what the port carries; one of "translation", "rotation", "electrical", "magnetic",
  ///   "hydraulic", "thermal", "generic"; required
  std::string domain = {};
  /// the part may create energy
  bool allow_active = false;
};

/// Ideal source of a flow: a current, a volume flow, a prescribed motion.
///   f = -flow
///   Joined by a connection, the flow runs into the other part, or moves a spring's end in the
///   positive direction; joined by common_flow, it moves a mass or inertia so. To prescribe a
///   displacement, an angle, a charge or a volume, let flow be its rate (rate_of): it is followed
///   exactly at the end of every step.
/// Ports:   port (rotation)
/// Inputs:  flow [rad/s]
CataloguePart flow_source(const FlowSourceParameters& parameters);

}  // namespace parts
}  // namespace portwave
