#include "catalogue/general/linear_elements.hpp"

namespace portwave {
namespace {

std::unique_ptr<Subsystem> build_mass(const Parameters& p) {
  return make_body({.type = "mass",
                    .domain = Domain::translation,
                    .position = "position",
                    .position_unit = "m",
                    .velocity = "velocity",
                    .velocity_unit = "m/s",
                    .force = "force",
                    .force_unit = "N",
                    .port = "port",
                    .inertia = number_of(p, "mass_kg"),
                    .damping = number_of(p, "damping_Ns_per_m"),
                    .ports = value_of<int>(p, "ports")},
                   allows_active(p));
}

}  // namespace

PartType mass_type() {
  PartType type;
  type.name = "mass";
  type.group = "translation";
  type.summary = "Mass that moves along a line; its ports act on it.";
  type.equations =
      "H = m v^2/2\n"
      "q' = v,  m v' = -c v - sum of e_i + F,  f_i = -v\n"
      "Join a spring's end to a port by a connection, another mass by common_flow.";
  type.parameters = {
      positive_number("mass_kg", "kg", "mass m"),
      damper("damping_Ns_per_m", "N s/m", "damper c to ground"),
      port_count(),
  };
  type.build = build_mass;
  type.example = {{"mass_kg", 2.0}, {"damping_Ns_per_m", 0.3}};
  return type;
}

}  // namespace portwave
