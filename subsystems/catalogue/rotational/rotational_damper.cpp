#include "catalogue/general/linear_elements.hpp"

namespace portwave {
namespace {

std::unique_ptr<Subsystem> build_rotational_damper(const Parameters& p) {
  return make_link({.type = "rotational_damper",
                    .domain = Domain::rotation,
                    .elongation = "",
                    .elongation_unit = "",
                    .stiffness = 0.0,
                    .damping = number_of(p, "damping_Nms_per_rad")},
                   allows_active(p));
}

}  // namespace

PartType rotational_damper_type() {
  PartType type;
  type.name = "rotational_damper";
  type.group = "rotation";
  type.summary = "Rotational damper between two ends.";
  type.equations =
      "H = 0\n"
      "e_right = c (f_right - f_left),  e_left = -e_right\n"
      "The flows are the angular velocities of the ends. Join an end to an inertia by a "
      "connection.";
  type.parameters = {
      required_damper("damping_Nms_per_rad", "N m s/rad", "damping c"),
  };
  type.build = build_rotational_damper;
  type.example = {{"damping_Nms_per_rad", 0.7}};
  return type;
}

}  // namespace portwave
