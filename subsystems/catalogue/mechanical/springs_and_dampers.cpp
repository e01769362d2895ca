// Springs, dampers and both side by side, between two ends that move along a line or turn.

#include <string>
#include <string_view>

#include "catalogue/general/linear_elements.hpp"

namespace portwave {
namespace {

/// The words for the motion of the ends.
struct EndMotion {
  Domain domain;
  std::string_view group;
  std::string_view elongation, elongation_unit;
  std::string_view stiffness, stiffness_unit;  ///< a parameter
  std::string_view damping, damping_unit;      ///< likewise
  std::string_view ends;
};

constexpr EndMotion kTranslation{
    .domain = Domain::translation,
    .group = "translation",
    .elongation = "elongation",
    .elongation_unit = "m",
    .stiffness = "stiffness_N_per_m",
    .stiffness_unit = "N/m",
    .damping = "damping_Ns_per_m",
    .damping_unit = "N s/m",
    .ends = "The flows are the velocities of the ends. Join an end to a mass by a connection.",
};
constexpr EndMotion kRotation{
    .domain = Domain::rotation,
    .group = "rotation",
    .elongation = "twist",
    .elongation_unit = "rad",
    .stiffness = "stiffness_Nm_per_rad",
    .stiffness_unit = "N m/rad",
    .damping = "damping_Nms_per_rad",
    .damping_unit = "N m s/rad",
    .ends =
        "The flows are the angular velocities of the ends. Join an end to an inertia by a "
        "connection.",
};

struct LinkType {
  std::string_view name;
  std::string_view summary;
  bool is_spring;
  bool is_damper;
};

std::string link_equations(const EndMotion& motion, const LinkType& link) {
  if (!link.is_spring) {
    return "H = 0\n"
           "e_right = c (f_right - f_left),  e_left = -e_right\n" +
           std::string(motion.ends);
  }
  return std::string("H = k d^2/2\nd' = f_right - f_left,  e_right = k d") +
         (link.is_damper ? " + c d'" : "") + ",  e_left = -e_right\n" + std::string(motion.ends) +
         "\nd is a state of its own, with a start of its own: positions elsewhere do not set it.";
}

PartType link_type(const EndMotion& motion, const LinkType& link) {
  const std::string stiffness(motion.stiffness), damping(motion.damping);
  PartType type;
  type.name = link.name;
  type.group = motion.group;
  type.summary = link.summary;
  type.equations = link_equations(motion, link);
  if (link.is_spring) {
    type.parameters.push_back(
        positive_number(stiffness, std::string(motion.stiffness_unit), "stiffness k"));
    type.example.emplace(stiffness, 40.0);
  }
  if (link.is_damper) {
    type.parameters.push_back(
        required_damper(damping, std::string(motion.damping_unit), "damping c"));
    type.example.emplace(damping, 0.7);
  }
  type.build = [motion, link](const Parameters& p) -> std::unique_ptr<Component> {
    Link built;
    built.type = link.name;
    built.domain = motion.domain;
    if (link.is_spring) {
      built.elongation = motion.elongation;
      built.elongation_unit = motion.elongation_unit;
      built.stiffness = number_of(p, motion.stiffness);
    }
    if (link.is_damper) built.damping = number_of(p, motion.damping);
    return make_link(built, allows_active(p));
  };
  return type;
}

}  // namespace

PartType spring_type() {
  return link_type(kTranslation, {"spring", "Spring between two ends.", true, false});
}
PartType damper_type() {
  return link_type(kTranslation, {"damper", "Damper between two ends.", false, true});
}
PartType spring_damper_type() {
  return link_type(kTranslation, {"spring_damper",
                                  "Spring and damper side by side between two ends.", true, true});
}
PartType torsional_spring_type() {
  return link_type(kRotation,
                   {"torsional_spring", "Torsional spring between two ends.", true, false});
}
PartType rotational_damper_type() {
  return link_type(kRotation,
                   {"rotational_damper", "Rotational damper between two ends.", false, true});
}
PartType torsional_spring_damper_type() {
  return link_type(kRotation,
                   {"torsional_spring_damper",
                    "Torsional spring and damper side by side between two ends.", true, true});
}

}  // namespace portwave
