#include <string>
#include <utility>

#include "catalogue/part_types.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_resistance.hpp"

namespace portwave {
namespace {

/// Dry friction at a port of a part type of that name; the parameters by their names and units.
PartType dry_friction(const std::string& name, const Port& port, ParameterInfo friction,
                      ParameterInfo creep_speed, ParameterInfo viscosity) {
  PartType type;
  type.name = name;
  type.equations = "e = F tanh(f/v0) + c f";
  viscosity.default_value = 0.0;
  type.example = {{friction.name, 2.0}, {creep_speed.name, 0.1}, {viscosity.name, 0.3}};
  type.build = [name, port, of_force = friction.name, of_reach = creep_speed.name,
                of_viscous = viscosity.name](const Parameters& p) -> std::unique_ptr<Component> {
    return std::make_unique<NonlinearResistance>(Signature{name, {}, {port}, {}},
                                                 SaturatingLaw{.saturation = number_of(p, of_force),
                                                               .reach = number_of(p, of_reach),
                                                               .slope = number_of(p, of_viscous)});
  };
  type.parameters = {std::move(friction), std::move(creep_speed), std::move(viscosity)};
  return type;
}

constexpr const char* kFriction = "friction F while it slides";
constexpr const char* kCreepSpeed =
    "speed v0 at which it has three quarters of F: sticking is creep below it";
constexpr const char* kViscosity = "viscous part c";

}  // namespace

PartType coulomb_damper_type() {
  PartType type =
      dry_friction("coulomb_damper", {"end", Causality::flow_in, Domain::translation, 1},
                   non_negative_number("friction_N", "N", kFriction),
                   positive_number("creep_speed_m_per_s", "m/s", kCreepSpeed),
                   non_negative_number("viscosity_Ns_per_m", "N s/m", kViscosity));
  type.group = "translation";
  type.summary = "Dry friction with a viscous part, between its port and the ground.";
  return type;
}

PartType rotational_coulomb_damper_type() {
  PartType type =
      dry_friction("rotational_coulomb_damper", {"shaft", Causality::flow_in, Domain::rotation, 1},
                   non_negative_number("friction_Nm", "N m", kFriction),
                   positive_number("creep_speed_rad_per_s", "rad/s", kCreepSpeed),
                   non_negative_number("viscosity_Nms_per_rad", "N m s/rad", kViscosity));
  type.group = "rotation";
  type.summary = "Dry friction of a bearing or brake with a viscous part.";
  return type;
}

}  // namespace portwave
