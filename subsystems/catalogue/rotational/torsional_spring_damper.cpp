#include "catalogue/general/linear_elements.hpp"

namespace portwave {
namespace {

std::unique_ptr<Subsystem> build_torsional_spring_damper(const Parameters& p) {
  return make_link({.type = "torsional_spring_damper",
                    .domain = Domain::rotation,
                    .elongation = "twist",
                    .elongation_unit = "rad",
                    .stiffness = number_of(p, "stiffness_Nm_per_rad"),
                    .damping = number_of(p, "damping_Nms_per_rad")},
                   allows_active(p));
}

}  // namespace

PartType torsional_spring_damper_type() {
  PartType type;
  type.name = "torsional_spring_damper";
  type.group = "rotation";
  type.summary = "Torsional spring and damper side by side between two ends.";
  type.equations =
      "H = k d^2/2\n"
      "d' = f_right - f_left,  e_right = k d + c d',  e_left = -e_right\n"
      "The flows are the angular velocities of the ends. Join an end to an inertia by a "
      "connection.\n"
      "d is a state of its own, with a start of its own: positions elsewhere do not set it.";
  type.parameters = {
      positive_number("stiffness_Nm_per_rad", "N m/rad", "stiffness k"),
      required_damper("damping_Nms_per_rad", "N m s/rad", "damping c"),
  };
  type.build = build_torsional_spring_damper;
  type.example = {{"stiffness_Nm_per_rad", 40.0}, {"damping_Nms_per_rad", 0.7}};
  return type;
}

}  // namespace portwave
