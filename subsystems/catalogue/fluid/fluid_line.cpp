#include "catalogue/general/linear_elements.hpp"

namespace portwave {
namespace {

std::unique_ptr<Subsystem> build_fluid_line(const Parameters& p) {
  const int cells = value_of<int>(p, "cells");
  const double inertance = number_of(p, "inertance_kg_per_m4") / cells;
  const double capacitance = number_of(p, "capacitance_m3_per_Pa") / cells;
  const double friction = number_of(p, "friction_Pas_per_m3") / cells;
  LinearPartBuilder part("fluid_line");
  const auto left = part.port("left", Causality::effort_in, Domain::hydraulic);
  const auto right = part.port("right", Causality::effort_in, Domain::hydraulic);
  const auto branch = [&](int number, double share) {
    const auto flow = part.velocity("flow_" + std::to_string(number), "m^3/s", share * inertance);
    part.dissipate(share * friction, {{flow, 1.0}});
    return flow;
  };
  auto flow = branch(1, 0.5);
  part.drive(flow, left, 1.0);
  for (int cell = 1; cell <= cells; ++cell) {
    const auto pressure = part.velocity("pressure_" + std::to_string(cell), "Pa", capacitance);
    part.exchange(pressure, flow, 1.0);
    flow = branch(cell + 1, cell < cells ? 1.0 : 0.5);
    part.exchange(flow, pressure, 1.0);
  }
  part.drive(flow, right, -1.0);
  return std::move(part).build(allows_active(p));
}

}  // namespace

PartType fluid_line_type() {
  PartType type;
  type.name = "fluid_line";
  type.group = "hydraulic";
  type.summary =
      "Pipe as a line of cells: half the inertance of a cell, its capacitance, the other half.";
  type.equations =
      "H = sum I_j Q_j^2/2 + sum C p_i^2/2,  I and C of the whole line divided by n\n"
      "I_j Q_j' = p_{j-1} - p_j - R_j Q_j,  C p_i' = Q_i - Q_{i+1}\n"
      "Q_1 and Q_{n+1} have half a cell's I and R;  p_0 = e_left,  p_{n+1} = e_right\n"
      "f_left = Q_1,  f_right = -Q_{n+1}";
  type.parameters = {
      cell_count("cells", "number of cells n; the error falls as 1/n^2"),
      positive_number("inertance_kg_per_m4", "kg/m^4",
                      "of the whole line: density times length over area"),
      positive_number("capacitance_m3_per_Pa", "m^3/Pa",
                      "of the whole line: volume over bulk modulus"),
      damper("friction_Pas_per_m3", "Pa s/m^3", "pressure lost per flow by the whole line"),
  };
  type.build = build_fluid_line;
  type.example = {{"cells", 3},
                  {"inertance_kg_per_m4", 2.0},
                  {"capacitance_m3_per_Pa", 0.6},
                  {"friction_Pas_per_m3", 0.3}};
  return type;
}

}  // namespace portwave
