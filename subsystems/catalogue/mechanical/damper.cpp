#include "catalogue/general/linear_elements.hpp"

namespace portwave {
namespace {

std::unique_ptr<Subsystem> build_damper(const Parameters& p) {
  return make_link({.type = "damper",
                    .domain = Domain::translation,
                    .elongation = "",
                    .elongation_unit = "",
                    .stiffness = 0.0,
                    .damping = number_of(p, "damping_Ns_per_m")},
                   allows_active(p));
}

}  // namespace

PartType damper_type() {
  PartType type;
  type.name = "damper";
  type.group = "translation";
  type.summary = "Damper between two ends.";
  type.equations =
      "H = 0\n"
      "e_right = c (f_right - f_left),  e_left = -e_right\n"
      "The flows are the velocities of the ends. Join an end to a mass by a connection.";
  type.parameters = {
      required_damper("damping_Ns_per_m", "N s/m", "damping c"),
  };
  type.build = build_damper;
  type.example = {{"damping_Ns_per_m", 0.7}};
  return type;
}

}  // namespace portwave
