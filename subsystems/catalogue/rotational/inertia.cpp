#include "catalogue/general/linear_elements.hpp"

namespace portwave {
namespace {

std::unique_ptr<Subsystem> build_inertia(const Parameters& p) {
  return make_body({.type = "inertia",
                    .domain = Domain::rotation,
                    .position = "angle",
                    .position_unit = "rad",
                    .velocity = "speed",
                    .velocity_unit = "rad/s",
                    .force = "torque",
                    .force_unit = "N m",
                    .port = "shaft",
                    .inertia = number_of(p, "inertia_kgm2"),
                    .damping = number_of(p, "damping_Nms_per_rad"),
                    .ports = value_of<int>(p, "ports")},
                   allows_active(p));
}

}  // namespace

PartType inertia_type() {
  PartType type;
  type.name = "inertia";
  type.group = "rotation";
  type.summary = "Body that turns about an axis; its ports act on it.";
  type.equations =
      "H = J w^2/2\n"
      "angle' = w,  J w' = -b w - sum of e_i + T,  f_i = -w\n"
      "Join a torsional spring's end to a port by a connection, another inertia by common_flow.";
  type.parameters = {
      positive_number("inertia_kgm2", "kg m^2", "moment of inertia J"),
      damper("damping_Nms_per_rad", "N m s/rad", "damper b to ground"),
      port_count(),
  };
  type.build = build_inertia;
  type.example = {{"inertia_kgm2", 0.2}, {"damping_Nms_per_rad", 0.05}};
  return type;
}

}  // namespace portwave
