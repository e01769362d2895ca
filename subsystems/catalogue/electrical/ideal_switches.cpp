#include "catalogue/part_types.hpp"
#include "portwave/subsystems/nonlinear/ideal_switch.hpp"

namespace portwave {

PartType ideal_diode_type() {
  PartType type;
  type.name = "ideal_diode";
  type.group = "electrical";
  type.summary = "Ideal diode: lets a current pass forward without a voltage, and none back.";
  type.equations =
      "0 <= i,  u <= 0,  u i = 0\n"
      "It conducts where it would else have a forward voltage, and stops where its current would\n"
      "reverse. Without loss. In series with a source, a load or a line: common_flow.";
  type.build = [](const Parameters&) -> std::unique_ptr<Component> {
    return std::make_unique<IdealSwitch>(
        Signature{
            "ideal_diode", {}, {{"terminals", Causality::effort_in, Domain::electrical, 1}}, {}},
        IdealSwitch::Rule::one_way);
  };
  return type;
}

PartType ideal_switch_type() {
  PartType type;
  type.name = "ideal_switch";
  type.group = "electrical";
  type.summary = "Ideal switch: a short while its input is 0.5 or more, else open.";
  type.equations =
      "u = 0 where closed >= 0.5,  i = 0 elsewhere\n"
      "Without loss. A step has it open or closed throughout, and its duty is right in the mean. "
      "Where\n"
      "it opens under the current of an inductor, or closes on a charged capacitor, an impulse "
      "acts.";
  type.build = [](const Parameters&) -> std::unique_ptr<Component> {
    return std::make_unique<IdealSwitch>(
        Signature{"ideal_switch",
                  {},
                  {{"terminals", Causality::effort_in, Domain::electrical, 1}},
                  {{"closed", ""}}},
        IdealSwitch::Rule::controlled);
  };
  return type;
}

}  // namespace portwave
