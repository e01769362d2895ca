#include "catalogue/general/linear_elements.hpp"

namespace portwave {
namespace {

std::unique_ptr<Subsystem> build_inductor(const Parameters& p) {
  LinearPartBuilder part("inductor");
  const auto terminals = part.port("terminals", Causality::effort_in, Domain::electrical);
  const auto current = part.velocity("current", "A", number_of(p, "inductance_H"));
  part.dissipate(number_of(p, "resistance_ohm"), {{current, 1.0}});
  part.drive(current, terminals, 1.0);
  return std::move(part).build(allows_active(p));
}

}  // namespace

PartType inductor_type() {
  PartType type;
  type.name = "inductor";
  type.group = "electrical";
  type.summary = "Coil with its winding resistance.";
  type.equations =
      "H = L i^2/2\n"
      "L i' = e - R i,  f = i";
  type.parameters = {
      positive_number("inductance_H", "H", "inductance L"),
      damper("resistance_ohm", "ohm", "winding resistance R, in series"),
  };
  type.build = build_inductor;
  type.example = {{"inductance_H", 0.5}, {"resistance_ohm", 0.2}};
  return type;
}

}  // namespace portwave
