#pragma once

#include <string>
#include <utility>
#include <vector>

#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/catalogue/chain.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"

namespace portwave::testing {

/// The Duffing–linear pair of arXiv 2603.16424.
inline System duffing_linear_pair() {
  SystemBuilder builder;
  builder.add("A",
              duffing_oscillator({.mass_kg = 8,
                                  .stiffness_N_per_m = 100,
                                  .cubic_stiffness_N_per_m3 = 8000,
                                  .coupling_stiffness_N_per_m = 120,
                                  .coupling_damping_Ns_per_m = 0.05}),
              {.initial_state = {0.4, 0, -0.4}});
  builder.add("B", linear_oscillator({.mass_kg = 4, .stiffness_N_per_m = 50}));
  builder.connect("A.coupling", "B.coupling");
  return builder.build();
}

/// Two lossless oscillators joined mass to mass, both effort-in (m=1, k=10 and m=1.5, k=20).
inline System lossless_pair() {
  SystemBuilder builder;
  builder.add("A", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 10}),
              {.initial_state = {1, 0}});
  builder.add("B", linear_oscillator({.mass_kg = 1.5, .stiffness_N_per_m = 20}),
              {.initial_state = {-1, 0}});
  builder.connect("A.coupling", "B.coupling");
  return builder.build();
}

/// `blocks` chains of `masses` masses in a row, both far ends free, the first mass displaced.
inline System chain_of_blocks(int blocks, int masses) {
  SystemBuilder builder;
  for (int i = 0; i < blocks; ++i) {
    std::vector<double> x(static_cast<std::size_t>(2 * masses + (i + 1 < blocks ? 1 : 0)), 0.0);
    if (i == 0) x[0] = 0.1;
    builder.add(
        "block" + std::to_string(i),
        mass_spring_damper_chain({.masses = masses,
                                  .mass_kg = 0.3,
                                  .stiffness_N_per_m = 50,
                                  .damping_Ns_per_m = 0.1,
                                  .coupling_stiffness_N_per_m = 50,
                                  .right_end = i + 1 < blocks ? ChainEnd::spring : ChainEnd::mass}),
        {.initial_state = x});
  }
  for (int i = 0; i + 1 < blocks; ++i) {
    builder.connect("block" + std::to_string(i) + ".right",
                    "block" + std::to_string(i + 1) + ".left");
  }
  builder.join(joint::Free{}, {"block0.left"});
  builder.join(joint::Free{}, {"block" + std::to_string(blocks - 1) + ".right"});
  return builder.build();
}

/// Three Duffing limbs and a driven linear one on a rigid hub (a 1-junction of forces would be a
/// 0-junction of flows here: all efforts equal, flows summing to zero).
inline System star() {
  SystemBuilder builder;
  for (int i = 0; i < 3; ++i) {
    builder.add("limb" + std::to_string(i),
                duffing_oscillator({.mass_kg = 1.0 + i,
                                    .stiffness_N_per_m = 20,
                                    .cubic_stiffness_N_per_m3 = 50.0 * i,
                                    .damping_Ns_per_m = 0.02,
                                    .coupling_stiffness_N_per_m = 10.0 + i,
                                    .coupling_damping_Ns_per_m = 0.1}),
                {.initial_state = {0.1 * i, 0.2, 0.05}});
  }
  builder.add(
      "driver", linear_oscillator({.mass_kg = 2, .stiffness_N_per_m = 8}),
      {.initial_state = {}, .inputs = {{"force", Signal::sine_product(3.0, {{1.5, 0.2}})}}});
  builder.join(joint::CommonEffort{},
               {"limb0.coupling", "limb1.coupling", "limb2.coupling", "driver.coupling"});
  return builder.build();
}

/// A ring with every kind of junction that needs a dense block or a closed form: 1-junction,
/// transformer, gyrator, skew gain by its kernel, resistive and fixed ends.
inline System ring_of_junctions() {
  const auto mass = [](double kg) {
    return linear_oscillator({.mass_kg = kg, .stiffness_N_per_m = 5, .damping_Ns_per_m = 0.1});
  };
  const auto two_ports = [] {
    return mass_spring_damper_chain({.masses = 2,
                                     .mass_kg = 0.5,
                                     .stiffness_N_per_m = 30,
                                     .internal_damping_Ns_per_m = 0.05,
                                     .coupling_stiffness_N_per_m = 40,
                                     .coupling_damping_Ns_per_m = 0.02});
  };
  SystemBuilder builder;
  for (const char* name : {"c1", "c2", "c3"}) {
    builder.add(name, two_ports(), {.initial_state = {0.1, 0, 0.2, -0.3, 0.05}});
  }
  builder.add("m1", mass(1.0), {.initial_state = {0.3, 0.1}});
  builder.add("m2", mass(2.0));
  builder.add("m3", mass(0.7));
  builder.join(joint::CommonFlow{}, {"c1.right", "m1.coupling", "c2.left"});
  builder.join(joint::Transformer{2.5}, {"c2.right", "m2.coupling"});
  builder.join(joint::Gyrator{0.8}, {"c3.left", "m3.coupling"});
  builder.join(joint::Fixed{}, {"c1.left"});
  builder.join(joint::Resistive{0.4}, {"c3.right"});
  return builder.build();
}

/// The systems above, by name, for laws that hold for all of them.
struct NamedSystem {
  std::string name;
  System (*make)();
  double impedance;  ///< a γ that satisfies firm nonexpansiveness at h ≤ 0.02
};

inline std::vector<NamedSystem> sample_systems() {
  return {{"duffing_linear_pair", duffing_linear_pair, 0.4},
          {"chain", [] { return chain_of_blocks(4, 3); }, 0.1},
          {"star", star, 0.05},
          {"ring", ring_of_junctions, 0.1}};
}

}  // namespace portwave::testing
