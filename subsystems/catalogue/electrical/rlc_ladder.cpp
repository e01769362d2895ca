#include "catalogue/general/linear_elements.hpp"

namespace portwave {
namespace {

std::unique_ptr<Subsystem> build_rlc_ladder(const Parameters& p) {
  const int cells = value_of<int>(p, "cells");
  LinearPartBuilder part("rlc_ladder");
  const auto left = part.port("left", Causality::flow_in, Domain::electrical);
  const auto right = part.port("right", Causality::effort_in, Domain::electrical);
  auto last = LinearPartBuilder::State{-1};
  for (int cell = 1; cell <= cells; ++cell) {
    const std::string number = std::to_string(cell);
    const auto voltage = part.velocity("voltage_" + number, "V", number_of(p, "capacitance_F"));
    if (cell == 1) {
      part.drive(voltage, left, 1.0);
    } else {
      part.exchange(voltage, last, 1.0);
    }
    last = part.velocity("current_" + number, "A", number_of(p, "inductance_H"));
    part.exchange(last, voltage, 1.0);
    part.dissipate(number_of(p, "resistance_ohm"), {{last, 1.0}});
  }
  part.drive(last, right, -1.0);
  return std::move(part).build(allows_active(p));
}

}  // namespace

PartType rlc_ladder_type() {
  PartType type;
  type.name = "rlc_ladder";
  type.group = "electrical";
  type.summary =
      "Ladder of equal cells: a capacitor across, then a coil with its resistance along.";
  type.equations =
      "H = sum C u_i^2/2 + sum L i_i^2/2\n"
      "C u_i' = i_{i-1} - i_i,  L i_i' = u_i - u_{i+1} - R i_i\n"
      "i_0 = f_left,  e_left = u_1;  u_{n+1} = e_right,  f_right = -i_n";
  type.parameters = {
      cell_count("cells", "number of cells n"),
      positive_number("capacitance_F", "F", "each capacitance C"),
      positive_number("inductance_H", "H", "each inductance L"),
      damper("resistance_ohm", "ohm", "resistance R in series with each inductance"),
  };
  type.build = build_rlc_ladder;
  type.example = {
      {"cells", 3}, {"capacitance_F", 0.5}, {"inductance_H", 2.0}, {"resistance_ohm", 0.2}};
  return type;
}

}  // namespace portwave
