#include <algorithm>
#include <cmath>

#include "catalogue/part_types.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_resistance.hpp"

namespace portwave {
namespace {

/// Beyond e^kMostExponent times the saturation current the characteristic goes on as a line.
constexpr double kMostExponent = 40.0;

PortLawValue diode_law(double saturation_A, double reach_V, double leakage_S, double u) {
  const double x = u / reach_V, bent = std::min(x, kMostExponent);
  // One of e^x and e^x - 1 gives the other to round-off.
  const bool is_small = std::abs(bent) < 1.0;
  const double rise = is_small ? std::expm1(bent) : std::exp(bent);
  const double slope = is_small ? rise + 1.0 : rise;
  const double current = (is_small ? rise : rise - 1.0) + slope * (x - bent);
  return {saturation_A * current + leakage_S * u, saturation_A / reach_V * slope + leakage_S};
}

}  // namespace

PartType diode_type() {
  PartType type;
  type.name = "diode";
  type.group = "electrical";
  type.summary = "Diode by Shockley's equation, with a leakage beside it.";
  type.equations =
      "i = Is (exp(u/(n VT)) - 1) + G u\n"
      "beyond u = 40 n VT the exponential goes on as its tangent";
  ParameterInfo leakage = non_negative_number("leakage_S", "S", "conductance G beside it");
  leakage.default_value = 1e-12;
  ParameterInfo emission =
      positive_number("emission_coefficient", "", "emission coefficient n, 1 to 2");
  emission.default_value = 1.0;
  ParameterInfo thermal = positive_number("thermal_voltage_V", "V", "thermal voltage VT, kT/q");
  thermal.default_value = 0.025852;
  type.parameters = {positive_number("saturation_current_A", "A", "saturation current Is"),
                     emission, thermal, leakage};
  type.build = [](const Parameters& p) -> std::unique_ptr<Component> {
    const double saturation_A = number_of(p, "saturation_current_A");
    const double reach_V = number_of(p, "emission_coefficient") * number_of(p, "thermal_voltage_V");
    const double leakage_S = number_of(p, "leakage_S");
    return std::make_unique<NonlinearResistance>(
        Signature{"diode", {}, {{"terminals", Causality::effort_in, Domain::electrical, 1}}, {}},
        [=](double u) { return diode_law(saturation_A, reach_V, leakage_S, u); });
  };
  type.example = {{"saturation_current_A", 1e-9}, {"emission_coefficient", 1.8}};
  return type;
}

}  // namespace portwave
