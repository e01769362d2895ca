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

}  // namespace portwave
