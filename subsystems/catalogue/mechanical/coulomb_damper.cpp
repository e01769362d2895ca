#include <cmath>

#include "catalogue/part_types.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_resistance.hpp"

namespace portwave {

PartType coulomb_damper_type() {
  PartType type;
  type.name = "coulomb_damper";
  type.group = "translation";
  type.summary = "Dry friction with a viscous part, between its port and the ground.";
  type.equations = "e = F tanh(f/v0) + c f";
  type.parameters = {
      non_negative_number("friction_N", "N", "friction F while it slides"),
      positive_number("creep_speed_m_per_s", "m/s",
                      "speed v0 at which it has three quarters of F: sticking is creep below it"),
      non_negative_number("viscosity_Ns_per_m", "N s/m", "viscous part c"),
  };
  type.parameters.back().default_value = 0.0;
  type.build = [](const Parameters& p) -> std::unique_ptr<Component> {
    const double force = number_of(p, "friction_N"), reach = number_of(p, "creep_speed_m_per_s");
    const double viscous = number_of(p, "viscosity_Ns_per_m");
    return std::make_unique<NonlinearResistance>(
        Signature{"coulomb_damper", {}, {{"end", Causality::flow_in, Domain::translation, 1}}, {}},
        [force, reach, viscous](double u) {
          const double t = std::tanh(u / reach);
          return PortLawValue{force * t + viscous * u, force / reach * (1.0 - t * t) + viscous};
        });
  };
  type.example = {{"friction_N", 2.0}, {"creep_speed_m_per_s", 0.1}, {"viscosity_Ns_per_m", 0.3}};
  return type;
}

}  // namespace portwave
