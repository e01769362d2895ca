#include "catalogue/general/linear_elements.hpp"

namespace portwave {
namespace {

std::unique_ptr<Subsystem> build_flexible_joint(const Parameters& p) {
  const double ratio = nonzero(p, "ratio");
  LinearPartBuilder part("flexible_joint");
  const auto motor = part.port("motor", Causality::effort_in, Domain::rotation);
  const auto link = part.port("link", Causality::flow_in, Domain::rotation);
  const auto torque = part.input("torque", "N m");
  const auto angle = part.displacement("angle", "rad", 0.0);
  const auto speed = part.velocity("speed", "rad/s", number_of(p, "motor_inertia_kgm2"));
  const auto twist = part.displacement("twist", "rad", number_of(p, "stiffness_Nm_per_rad"));
  part.exchange(angle, speed, 1.0);
  part.exchange(twist, speed, -1.0 / ratio);
  part.drive(twist, link, 1.0);
  part.drive(speed, motor, -1.0);
  part.drive(speed, torque, 1.0);
  part.dissipate(number_of(p, "motor_damping_Nms_per_rad"), {{speed, 1.0}});
  part.dissipate(number_of(p, "damping_Nms_per_rad"), {{link, 1.0}, {speed, -1.0 / ratio}});
  return std::move(part).build(allows_active(p));
}

}  // namespace

PartType flexible_joint_type() {
  PartType type;
  type.name = "flexible_joint";
  type.group = "rotation";
  type.summary = "Robot joint: a rotor that drives a link through a gear and an elastic shaft.";
  type.equations =
      "H = J w^2/2 + k d^2/2\n"
      "angle' = w,  d' = w_link - w/n,  s = k d + c d'\n"
      "J w' = T - b w - e_motor + s/n,  f_motor = -w\n"
      "f_link = w_link,  e_link = s\n"
      "Join the link to an inertia or the joint of an arm by a connection, the motor to the shaft "
      "of a\n"
      "dc_motor by common_flow.";
  type.parameters = {
      positive_number("motor_inertia_kgm2", "kg m^2", "moment of inertia J of the rotor"),
      positive_number("stiffness_Nm_per_rad", "N m/rad", "stiffness k, seen at the link"),
      damper("damping_Nms_per_rad", "N m s/rad", "damping c beside the stiffness"),
      damper("motor_damping_Nms_per_rad", "N m s/rad", "friction b of the rotor"),
      with_default(signed_ratio("ratio", "", "turns of the rotor for one of the link, n; not 0"),
                   1.0),
  };
  type.build = build_flexible_joint;
  type.example = {{"motor_inertia_kgm2", 0.01},
                  {"stiffness_Nm_per_rad", 30.0},
                  {"damping_Nms_per_rad", 0.4},
                  {"motor_damping_Nms_per_rad", 0.02},
                  {"ratio", 4.0}};
  return type;
}

}  // namespace portwave
