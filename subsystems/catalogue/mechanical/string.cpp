#include <utility>

#include "catalogue/general/linear_elements.hpp"
#include "portwave/subsystems/catalogue/chain.hpp"

namespace portwave {
namespace {

// Cells of length l with their mass m l in the middle are a chain of masses with springs T/l between
// them and T/(l/2) at the ends.
std::unique_ptr<Subsystem> build_string(const Parameters& p) {
  const int cells = value_of<int>(p, "cells");
  const double cell_m = number_of(p, "length_m") / cells;
  const double tension_N = number_of(p, "tension_N");
  const bool allow_active = allows_active(p);
  const std::unique_ptr<Subsystem> chain = mass_spring_damper_chain(
      {.masses = cells,
       .mass_kg = number_of(p, "density_kg_per_m") * cell_m,
       .stiffness_N_per_m = tension_N / cell_m,
       .damping_Ns_per_m = number_of(p, "damping_Ns_per_m2") * cell_m,
       .internal_damping_Ns_per_m = number_of(p, "internal_damping_Ns") / cell_m,
       .coupling_stiffness_N_per_m = 2.0 * tension_N / cell_m,
       .coupling_damping_Ns_per_m = 2.0 * number_of(p, "internal_damping_Ns") / cell_m,
       .left_end = ChainEnd::spring,
       .right_end = ChainEnd::spring,
       .allow_active = allow_active});
  Signature signature = chain->signature();
  signature.type = "string";
  LinearPortHamiltonian::Options options;
  options.allow_active = allow_active;
  return std::make_unique<LinearPortHamiltonian>(std::move(signature), chain->structure(),
                                                 *chain->linear_form().Q, std::move(options));
}

}  // namespace

PartType string_type() {
  PartType type;
  type.name = "string";
  type.group = "translation";
  type.summary = "Taut string that swings sideways, with a port at either end.";
  type.equations =
      "rho w_tt = (T w_x)_x - c w_t + eta w_txx + F\n"
      "n cells of length l, their masses in the middle: displacements q_i, velocities v_i\n"
      "H = sum rho l v_i^2/2 + sum T (q_{i+1} - q_i)^2/(2 l) + T (d_left^2 + d_right^2)/l\n"
      "d' = f - v,  e = 2 (T d + eta d')/l at the ends, whose displacements are q + d";
  type.parameters = {
      cell_count("cells", "number of cells n; the error falls as 1/n^2"),
      positive_number("length_m", "m", "length"),
      positive_number("tension_N", "N", "tension T"),
      positive_number("density_kg_per_m", "kg/m", "mass per length rho"),
      damper("damping_Ns_per_m2", "N s/m^2", "damping c by the air, per length"),
      damper("internal_damping_Ns", "N s", "damping eta within the string"),
  };
  type.build = build_string;
  type.example = {{"cells", 3},
                  {"length_m", 1.5},
                  {"tension_N", 20.0},
                  {"density_kg_per_m", 0.8},
                  {"damping_Ns_per_m2", 0.1},
                  {"internal_damping_Ns", 0.05}};
  return type;
}

}  // namespace portwave
