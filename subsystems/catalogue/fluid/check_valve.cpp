#include "catalogue/part_types.hpp"
#include "portwave/subsystems/nonlinear/ideal_switch.hpp"

namespace portwave {

PartType check_valve_type() {
  PartType type;
  type.name = "check_valve";
  type.group = "hydraulic";
  type.summary =
      "Ideal check valve: lets a flow pass forward without a drop of pressure, and none back.";
  type.equations =
      "0 <= f,  e <= 0,  e f = 0\n"
      "It opens where it would else have a forward pressure, and closes where its flow would\n"
      "reverse. Without loss. In series with a pump, a valve or a line: common_flow.";
  type.build = [](const Parameters&) -> std::unique_ptr<Component> {
    return std::make_unique<IdealSwitch>(
        Signature{"check_valve", {}, {{"line", Causality::effort_in, Domain::hydraulic, 1}}, {}},
        IdealSwitch::Rule::one_way);
  };
  return type;
}

}  // namespace portwave
