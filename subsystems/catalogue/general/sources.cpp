#include "catalogue/general/linear_elements.hpp"

namespace portwave {
namespace {

// The force on a mass is -e at its port.
bool is_mechanical(Domain domain) {
  return domain == Domain::translation || domain == Domain::rotation;
}

std::unique_ptr<Subsystem> build_effort_source(const Parameters& p) {
  const Domain domain = domain_of(p);
  LinearPartBuilder part("effort_source");
  const auto port = part.port("port", Causality::flow_in, domain);
  const auto effort = part.input("effort", std::string(units(domain).effort));
  part.pass(port, effort, is_mechanical(domain) ? -1.0 : 1.0);
  return std::move(part).build(allows_active(p));
}

}  // namespace

PartType effort_source_type() {
  PartType type;
  type.name = "effort_source";
  type.group = "sources";
  type.summary = "Ideal source of an effort: a voltage, a pressure, a force, a torque.";
  type.equations =
      "electrical, hydraulic, magnetic, thermal, generic:  e = effort\n"
      "translation, rotation:  e = -effort\n"
      "Joined by a connection, it gives a voltage or pressure to the other part, or pushes a mass\n"
      "or inertia in the positive direction; joined by common_flow to a spring's end, it pulls.";
  type.parameters = {
      domain_choice(),
  };
  type.build = build_effort_source;
  type.example = {{"domain", std::string("electrical")}};
  return type;
}

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
      "positive direction; joined by common_flow, it moves a mass or inertia so. To prescribe a\n"
      "displacement, an angle, a charge or a volume, let flow be its rate (rate_of): it is "
      "followed\n"
      "exactly at the end of every step.";
  type.parameters = {
      domain_choice(),
  };
  type.build = build_flow_source;
  type.example = {{"domain", std::string("rotation")}};
  return type;
}

}  // namespace portwave
