#include "catalogue/general/linear_elements.hpp"

namespace portwave {
namespace {

std::unique_ptr<Subsystem> build_capacitor(const Parameters& p) {
  LinearPartBuilder part("capacitor");
  const auto terminals = part.port("terminals", Causality::flow_in, Domain::electrical);
  const auto voltage = part.velocity("voltage", "V", number_of(p, "capacitance_F"));
  part.dissipate(number_of(p, "leakage_S"), {{voltage, 1.0}});
  part.drive(voltage, terminals, 1.0);
  return std::move(part).build(allows_active(p));
}

}  // namespace

PartType capacitor_type() {
  PartType type;
  type.name = "capacitor";
  type.group = "electrical";
  type.summary = "Capacitor with its leakage.";
  type.equations =
      "H = C u^2/2\n"
      "C u' = f - G u,  e = u";
  type.parameters = {
      positive_number("capacitance_F", "F", "capacitance C"),
      damper("leakage_S", "S", "leakage conductance G, in parallel"),
  };
  type.build = build_capacitor;
  type.example = {{"capacitance_F", 0.25}, {"leakage_S", 0.01}};
  return type;
}

}  // namespace portwave
