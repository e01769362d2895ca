#include "catalogue/general/linear_elements.hpp"

namespace portwave {
namespace {

std::unique_ptr<Subsystem> build_spring(const Parameters& p) {
  return make_link({.type = "spring",
                    .domain = Domain::translation,
                    .elongation = "elongation",
                    .elongation_unit = "m",
                    .stiffness = number_of(p, "stiffness_N_per_m"),
                    .damping = 0.0},
                   allows_active(p));
}

}  // namespace

PartType spring_type() {
  PartType type;
  type.name = "spring";
  type.group = "translation";
  type.summary = "Spring between two ends.";
  type.equations =
      "H = k d^2/2\n"
      "d' = f_right - f_left,  e_right = k d,  e_left = -e_right\n"
      "The flows are the velocities of the ends. Join an end to a mass by a connection.\n"
      "d is a state of its own, with a start of its own: positions elsewhere do not set it.";
  type.parameters = {
      positive_number("stiffness_N_per_m", "N/m", "stiffness k"),
  };
  type.build = build_spring;
  type.example = {{"stiffness_N_per_m", 40.0}};
  return type;
}

}  // namespace portwave
