#include "catalogue/general/linear_elements.hpp"

namespace portwave {
namespace {

std::unique_ptr<Subsystem> build_flow_source(const Parameters& p) {
  const Domain domain = domain_of(p);
  LinearPartBuilder part("flow_source");
  const auto port = part.port("port", Causality::effort_in, domain);
  const auto flow = part.input("flow", std::string(units(domain).flow));
  part.pass(port, flow, -1.0);
  return std::move(part).build(allows_active(p));
}

}  // namespace

PartType flow_source_type() {
  PartType type;
  type.name = "flow_source";
  type.group = "sources";
  type.summary = "Ideal source of a flow: a current, a volume flow, a prescribed motion.";
  type.equations =
      "f = -flow\n"
      "Joined by a connection, the flow runs into the other part, or moves a spring's end in the\n"
      "positive direction; joined by common_flow, it moves a mass or inertia so.";
  type.parameters = {
      domain_choice(),
  };
  type.build = build_flow_source;
  type.example = {{"domain", std::string("rotation")}};
  return type;
}

}  // namespace portwave
