#include <utility>

#include "catalogue/general/linear_elements.hpp"
#include "catalogue/mechanical/contact.hpp"

namespace portwave {
namespace {

constexpr ContactNames kTeeth{"torque_Nm", "angle_rad", "damping_s_per_rad"};

std::unique_ptr<Component> build_gear_with_backlash(const Parameters& p) {
  ContactLaw law = contact_law(p, kTeeth, false);
  law.gap = 0.5 * number_of(p, "backlash_rad");
  law.faces = Faces::both;
  Signature signature{"gear_with_backlash",
                      {{"twist", "rad"}},
                      {{"input", Causality::flow_in, Domain::rotation, 1},
                       {"output", Causality::flow_in, Domain::rotation, 1}},
                      {}};
  return make_contact(std::move(signature), law, {1.0 / nonzero(p, "ratio"), -1.0});
}

}  // namespace

PartType gear_with_backlash_type() {
  PartType type;
  type.name = "gear_with_backlash";
  type.group = "rotation";
  type.summary =
      "Gear between two shafts, with elastic teeth and play between them, without inertia.";
  type.equations =
      "d' = w_input/n - w_output,  s = max(0, |d| - b/2)\n"
      "H = k s^2/2,  T = sign(d) k s max(0, 1 + a s'),  k = torque/angle\n"
      "f_input = w_input,  e_input = T/n,  f_output = w_output,  e_output = -T\n"
      "Both ends behave like those of a torsional spring: join them to inertias by connections.\n"
      "The twist d is how far the input is ahead, seen at the output; it starts in the middle of "
      "the\n"
      "play unless set. n < 0: the shafts turn against each other, as those of two spur gears.";
  type.parameters = contact_parameters(kTeeth, "rad");
  type.parameters[0].summary = "torque at the output that twists the teeth by angle_rad";
  type.parameters[1].summary =
      "twist of the teeth by torque_Nm, seen at the output, with the input held";
  type.parameters.push_back(non_negative_number(
      "backlash_rad", "rad", "play b from one flank to the other, seen at the output"));
  type.parameters.push_back(
      signed_ratio("ratio", "", "speed of the input over that of the output, n; not 0"));
  type.build = build_gear_with_backlash;
  type.example = {{"torque_Nm", 20.0},
                  {"angle_rad", 0.5},
                  {"damping_s_per_rad", 0.1},
                  {"backlash_rad", 0.2},
                  {"ratio", -2.5}};
  return type;
}

}  // namespace portwave
