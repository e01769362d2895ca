#include "catalogue/general/linear_elements.hpp"

namespace portwave {
namespace {

std::unique_ptr<Subsystem> build_lever(const Parameters& p) {
  return lossless_two_port("lever", {"input", Causality::flow_in, Domain::translation, 1},
                           {"output", Causality::effort_in, Domain::translation, 1},
                           1.0 / nonzero(p, "ratio"), allows_active(p));
}

}  // namespace

PartType lever_type() {
  PartType type;
  type.name = "lever";
  type.group = "translation";
  type.summary = "Lever, or any massless link of a fixed ratio between two points.";
  type.equations =
      "v_input = n v_output,  f_input = v_input,  f_output = -v_output\n"
      "e_input = e_output/n\n"
      "The input behaves like the end of a spring, the output like a mass.\n"
      "n is the arm of the input over that of the output, < 0 with the pivot between them.";
  type.parameters = {
      signed_ratio("ratio", "", "velocity of the input over that of the output, n; not 0"),
  };
  type.build = build_lever;
  type.example = {{"ratio", -2.5}};
  return type;
}

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

namespace {

std::unique_ptr<Subsystem> build_rack_and_pinion(const Parameters& p) {
  return lossless_two_port("rack_and_pinion", {"pinion", Causality::flow_in, Domain::rotation, 1},
                           {"rack", Causality::effort_in, Domain::translation, 1},
                           nonzero(p, "radius_m"), allows_active(p));
}

}  // namespace

PartType rack_and_pinion_type() {
  PartType type;
  type.name = "rack_and_pinion";
  type.group = "transducers";
  type.summary = "Pinion on a shaft that moves a rack, or a wheel that rolls.";
  type.equations =
      "v = r w,  f_pinion = w,  f_rack = -v\n"
      "e_pinion = r e_rack\n"
      "The pinion behaves like the end of a torsional spring, the rack like a mass.";
  type.parameters = {
      signed_ratio("radius_m", "m", "radius r of the pinion; not 0, < 0: turned round"),
  };
  type.build = build_rack_and_pinion;
  type.example = {{"radius_m", 0.03}};
  return type;
}

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
