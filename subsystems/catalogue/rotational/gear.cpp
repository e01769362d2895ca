#include "catalogue/general/linear_elements.hpp"

namespace portwave {
namespace {

std::unique_ptr<Subsystem> build_gear(const Parameters& p) {
  LinearPartBuilder part("gear");
  const auto input = part.port("input", Causality::flow_in, Domain::rotation);
  const auto output = part.port("output", Causality::effort_in, Domain::rotation);
  part.pass(input, output, 1.0 / nonzero(p, "ratio"));
  part.dissipate(number_of(p, "damping_Nms_per_rad"), {{input, 1.0}});
  return std::move(part).build(allows_active(p));
}

}  // namespace

PartType gear_type() {
  PartType type;
  type.name = "gear";
  type.group = "rotation";
  type.summary = "Gear between two shafts, without inertia and play.";
  type.equations =
      "w_input = n w_output,  f_input = w_input,  f_output = -w_output\n"
      "e_input = e_output/n + b w_input\n"
      "The input behaves like the end of a torsional spring, the output like an inertia.\n"
      "n < 0: the shafts turn against each other, as those of two spur gears.";
  type.parameters = {
      signed_ratio("ratio", "", "speed of the input over that of the output, n; not 0"),
      damper("damping_Nms_per_rad", "N m s/rad", "friction b, seen at the input"),
  };
  type.build = build_gear;
  type.example = {{"ratio", 5.0}, {"damping_Nms_per_rad", 0.02}};
  return type;
}

}  // namespace portwave
