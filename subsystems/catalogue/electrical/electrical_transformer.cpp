#include "catalogue/general/linear_elements.hpp"

namespace portwave {
namespace {

std::unique_ptr<Subsystem> build_electrical_transformer(const Parameters& p) {
  return lossless_two_port("electrical_transformer",
                           {"primary", Causality::effort_in, Domain::electrical, 1},
                           {"secondary", Causality::flow_in, Domain::electrical, 1},
                           -1.0 / nonzero(p, "ratio"), allows_active(p));
}

}  // namespace

PartType electrical_transformer_type() {
  PartType type;
  type.name = "electrical_transformer";
  type.group = "electrical";
  type.summary = "Ideal transformer of voltages and currents.";
  type.equations =
      "e_primary = n e_secondary,  f_secondary = -n f_primary\n"
      "The currents f flow into the part.";
  type.parameters = {
      signed_ratio("ratio", "", "turns of the primary over those of the secondary, n; not 0"),
  };
  type.build = build_electrical_transformer;
  type.example = {{"ratio", 10.0}};
  return type;
}

}  // namespace portwave
