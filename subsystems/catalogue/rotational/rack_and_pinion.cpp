#include "catalogue/general/linear_elements.hpp"

namespace portwave {
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

}  // namespace portwave
