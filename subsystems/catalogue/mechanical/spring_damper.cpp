#include "catalogue/general/linear_elements.hpp"

namespace portwave {
namespace {

std::unique_ptr<Subsystem> build_spring_damper(const Parameters& p) {
  return make_link({.type = "spring_damper",
                    .domain = Domain::translation,
                    .elongation = "elongation",
                    .elongation_unit = "m",
                    .stiffness = number_of(p, "stiffness_N_per_m"),
                    .damping = number_of(p, "damping_Ns_per_m")},
                   allows_active(p));
}

}  // namespace

PartType spring_damper_type() {
  PartType type;
  type.name = "spring_damper";
  type.group = "translation";
  type.summary = "Spring and damper side by side between two ends.";
  type.equations =
      "H = k d^2/2\n"
      "d' = f_right - f_left,  e_right = k d + c d',  e_left = -e_right\n"
      "The flows are the velocities of the ends. Join an end to a mass by a connection.\n"
      "d is a state of its own, with a start of its own: positions elsewhere do not set it.";
  type.parameters = {
      positive_number("stiffness_N_per_m", "N/m", "stiffness k"),
      required_damper("damping_Ns_per_m", "N s/m", "damping c"),
  };
  type.build = build_spring_damper;
  type.example = {{"stiffness_N_per_m", 40.0}, {"damping_Ns_per_m", 0.7}};
  return type;
}

}  // namespace portwave
