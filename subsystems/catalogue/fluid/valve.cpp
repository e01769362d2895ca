#include <cmath>

#include "catalogue/part_types.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_resistance.hpp"

namespace portwave {

PartType valve_type() {
  PartType type;
  type.name = "valve";
  type.group = "hydraulic";
  type.summary = "Turbulent restriction: the flow goes with the root of the pressure drop.";
  type.equations =
      "f = C e/(e^2 + p0^2)^(1/4), which is C sqrt(|e|) sign(e) where |e| >> p0\n"
      "C = nominal flow/sqrt(nominal pressure)";
  type.parameters = {
      positive_number("nominal_flow_m3_per_s", "m^3/s", "flow at the nominal pressure"),
      positive_number("nominal_pressure_Pa", "Pa", "pressure drop at the nominal flow"),
      positive_number("laminar_pressure_Pa", "Pa", "p0, below which the flow is laminar"),
  };
  type.build = [](const Parameters& p) -> std::unique_ptr<Component> {
    const double flow =
        number_of(p, "nominal_flow_m3_per_s") / std::sqrt(number_of(p, "nominal_pressure_Pa"));
    const double laminar = number_of(p, "laminar_pressure_Pa");
    return std::make_unique<NonlinearResistance>(
        Signature{"valve", {}, {{"line", Causality::effort_in, Domain::hydraulic, 1}}, {}},
        [flow, laminar](double u) {
          const double size = std::hypot(u, laminar), root = std::sqrt(size);
          const double share = u / size;
          return PortLawValue{flow * share * root, flow / root * (1.0 - 0.5 * share * share)};
        });
  };
  type.example = {
      {"nominal_flow_m3_per_s", 0.5}, {"nominal_pressure_Pa", 1.0}, {"laminar_pressure_Pa", 0.2}};
  return type;
}

}  // namespace portwave
