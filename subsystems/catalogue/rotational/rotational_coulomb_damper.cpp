#include <cmath>

#include "catalogue/part_types.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_resistance.hpp"

namespace portwave {

PartType rotational_coulomb_damper_type() {
  PartType type;
  type.name = "rotational_coulomb_damper";
  type.group = "rotation";
  type.summary = "Dry friction of a bearing or brake with a viscous part.";
  type.equations = "e = F tanh(f/v0) + c f";
  type.parameters = {
      non_negative_number("friction_Nm", "N m", "friction F while it slides"),
      positive_number("creep_speed_rad_per_s", "rad/s",
                      "speed v0 at which it has three quarters of F: sticking is creep below it"),
      non_negative_number("viscosity_Nms_per_rad", "N m s/rad", "viscous part c"),
  };
  type.parameters.back().default_value = 0.0;
  type.build = [](const Parameters& p) -> std::unique_ptr<Component> {
    const double force = number_of(p, "friction_Nm"), reach = number_of(p, "creep_speed_rad_per_s");
    const double viscous = number_of(p, "viscosity_Nms_per_rad");
    return std::make_unique<NonlinearResistance>(
        Signature{"rotational_coulomb_damper",
                  {},
                  {{"shaft", Causality::flow_in, Domain::rotation, 1}},
                  {}},
        [force, reach, viscous](double u) {
          const double t = std::tanh(u / reach);
          return PortLawValue{force * t + viscous * u, force / reach * (1.0 - t * t) + viscous};
        });
  };
  type.example = {
      {"friction_Nm", 2.0}, {"creep_speed_rad_per_s", 0.1}, {"viscosity_Nms_per_rad", 0.3}};
  return type;
}

}  // namespace portwave
