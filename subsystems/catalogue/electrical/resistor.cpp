#include <cmath>

#include <fmt/format.h>

#include "catalogue/general/linear_elements.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave {
namespace {

std::unique_ptr<Subsystem> build_resistor(const Parameters& p) {
  const double resistance_ohm = number_of(p, "resistance_ohm");
  const bool gives_current = value_of<std::string>(p, "gives") == "current";
  if (gives_current && resistance_ohm == 0.0) {
    throw ConfigError("/resistance_ohm", "must not be 0 where it gives the current");
  }
  LinearPartBuilder part("resistor");
  const auto terminals = part.port(
      "terminals", gives_current ? Causality::effort_in : Causality::flow_in, Domain::electrical);
  part.dissipate(gives_current ? 1.0 / resistance_ohm : resistance_ohm, {{terminals, 1.0}});
  return std::move(part).build(allows_active(p));
}

}  // namespace

std::unique_ptr<Subsystem> make_resistor(double resistance, const Port& port) {
  if (!std::isfinite(resistance) || resistance < 0.0) {
    throw ConfigError("/resistance",
                      fmt::format("must be finite and >= 0, got {}", shown_number(resistance)));
  }
  Port closing = port;
  closing.causality = Causality::flow_in;
  Structure structure = Structure::zero(0, closing.dimension);
  for (int i = 0; i < closing.dimension; ++i) structure.S.insert(i, i) = resistance;
  return std::make_unique<LinearPortHamiltonian>(
      Signature{"resistor", {}, {std::move(closing)}, {}}, std::move(structure),
      SparseMatrix(0, 0));
}

PartType resistor_type() {
  ParameterInfo gives;
  gives.name = "gives";
  gives.kind = ParameterKind::choice;
  gives.summary = "what the port gives: voltage for a current (flow_in), or current for a voltage";
  gives.choices = {"voltage", "current"};
  gives.default_value = std::string("voltage");
  PartType type;
  type.name = "resistor";
  type.group = "electrical";
  type.summary = "Resistor between two terminals.";
  type.equations =
      "e = R f\n"
      "Methods without waves want it to give a current where it meets a capacitor, and a voltage\n"
      "where it meets an inductor.";
  type.parameters = {required_damper("resistance_ohm", "ohm", "resistance R"), std::move(gives)};
  type.build = build_resistor;
  type.example = {{"resistance_ohm", 3.0}};
  return type;
}

}  // namespace portwave
