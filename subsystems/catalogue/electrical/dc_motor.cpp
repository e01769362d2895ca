#include "catalogue/general/linear_elements.hpp"

namespace portwave {
namespace {

std::unique_ptr<Subsystem> build_dc_motor(const Parameters& p) {
  LinearPartBuilder part("dc_motor");
  const auto terminals = part.port("terminals", Causality::effort_in, Domain::electrical);
  const auto shaft = part.port("shaft", Causality::effort_in, Domain::rotation);
  const auto current = part.velocity("current", "A", number_of(p, "inductance_H"));
  const auto angle = part.displacement("angle", "rad", 0.0);
  const auto speed = part.velocity("speed", "rad/s", number_of(p, "inertia_kgm2"));
  part.exchange(angle, speed, 1.0);
  part.exchange(speed, current, number_of(p, "motor_constant_Vs_per_rad"));
  part.dissipate(number_of(p, "resistance_ohm"), {{current, 1.0}});
  part.dissipate(number_of(p, "damping_Nms_per_rad"), {{speed, 1.0}});
  part.drive(current, terminals, 1.0);
  part.drive(speed, shaft, -1.0);
  return std::move(part).build(allows_active(p));
}

}  // namespace

PartType dc_motor_type() {
  PartType type;
  type.name = "dc_motor";
  type.group = "transducers";
  type.summary = "Direct current motor: winding, magnet and rotor.";
  type.equations =
      "H = L i^2/2 + J w^2/2\n"
      "L i' = e_terminals - R i - k w,  angle' = w\n"
      "J w' = k i - b w - e_shaft,  f_terminals = i,  f_shaft = -w\n"
      "Join the shaft to a gear's input or a torsional spring by a connection, to another inertia "
      "or\n"
      "the rotor of a flexible_joint by common_flow: a connection would turn the two against each "
      "other.";
  type.parameters = {
      positive_number("inductance_H", "H", "inductance L of the winding"),
      damper("resistance_ohm", "ohm", "resistance R of the winding"),
      signed_ratio("motor_constant_Vs_per_rad", "V s/rad",
                   "constant k: voltage per speed, and torque per current"),
      positive_number("inertia_kgm2", "kg m^2", "moment of inertia J of the rotor"),
      damper("damping_Nms_per_rad", "N m s/rad", "friction b of the bearings"),
  };
  type.build = build_dc_motor;
  type.example = {{"inductance_H", 0.5},
                  {"resistance_ohm", 1.0},
                  {"motor_constant_Vs_per_rad", 0.2},
                  {"inertia_kgm2", 0.1},
                  {"damping_Nms_per_rad", 0.05}};
  return type;
}

}  // namespace portwave
