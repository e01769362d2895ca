#include "catalogue/general/linear_elements.hpp"

namespace portwave {
namespace {

std::unique_ptr<Subsystem> build_tank(const Parameters& p) {
  const double area_m2 = number_of(p, "area_m2");
  const double weight_N_per_m3 =
      number_of(p, "density_kg_per_m3") * number_of(p, "gravity_m_per_s2");
  LinearPartBuilder part("tank");
  const auto outlet = part.port("outlet", Causality::flow_in, Domain::hydraulic);
  const auto inflow = part.input("inflow", "m^3/s");
  const auto level = part.displacement("level", "m", weight_N_per_m3 * area_m2);
  part.drive(level, outlet, 1.0 / area_m2);
  part.drive(level, inflow, 1.0 / area_m2);
  return std::move(part).build(allows_active(p));
}

}  // namespace

PartType tank_type() {
  PartType type;
  type.name = "tank";
  type.group = "hydraulic";
  type.summary = "Open tank with upright walls; pressure is that at its bottom above the ambient.";
  type.equations =
      "H = rho g A h^2/2\n"
      "A h' = f + inflow,  e = rho g h\n"
      "Below 0 the level goes on like that of a full pipe: no outlet runs dry.";
  type.parameters = {
      positive_number("area_m2", "m^2", "area A of the surface"),
      with_default(positive_number("density_kg_per_m3", "kg/m^3", "density rho of the liquid"),
                   1000.0),
      with_default(positive_number("gravity_m_per_s2", "m/s^2", "gravity g"), 9.80665),
  };
  type.build = build_tank;
  type.example = {{"area_m2", 0.5}, {"density_kg_per_m3", 2.0}, {"gravity_m_per_s2", 1.5}};
  return type;
}

}  // namespace portwave
