#pragma once

// The chain of peers/chain.hpp as the engine sees it: one part per block.

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "peers/chain.hpp"
#include "portwave/coupling/method/method.hpp"
#include "portwave/coupling/system/system.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/chain.hpp"

namespace portwave::bench {

/// Every block carries the spring to the next one at its right end.
inline System chain_system(const Chain& chain) {
  SystemBuilder builder;
  const std::size_t last = chain.blocks.size() - 1;
  for (std::size_t b = 0; b <= last; ++b) {
    const Block& block = chain.blocks[b];
    std::vector<double> state;
    for (std::size_t i = b * kMasses; i < (b + 1) * kMasses; ++i) {
      state.push_back(chain.q[i]);
      state.push_back(chain.v[i]);
    }
    if (b < last) state.push_back(chain.q[(b + 1) * kMasses] - chain.q[(b + 1) * kMasses - 1]);
    builder.add(
        "block" + std::to_string(b),
        mass_spring_damper_chain({.masses = static_cast<int>(kMasses),
                                  .mass_kg = block.mass_kg,
                                  .stiffness_N_per_m = block.stiffness_N_per_m,
                                  .damping_Ns_per_m = block.damping_Ns_per_m,
                                  .coupling_stiffness_N_per_m = block.coupling_stiffness_N_per_m,
                                  .right_end = b < last ? ChainEnd::spring : ChainEnd::mass}),
        {.initial_state = state});
  }
  for (std::size_t b = 0; b < last; ++b) {
    builder.connect("block" + std::to_string(b) + ".right",
                    "block" + std::to_string(b + 1) + ".left");
  }
  builder.join(joint::Free{}, {"block0.left"});
  builder.join(joint::Free{}, {"block" + std::to_string(last) + ".right"});
  return builder.build();
}

/// Matched impedance of every port: the response of its own block to one midpoint step, the block's
/// other port being idle. With A = 2M/h + R + hK/2 of the block, its right spring held:
/// mass end 1/(A⁻¹)₀₀; spring end (h k_c/2)(1 − (h k_c/2)(A⁻¹)₄₄).
inline std::vector<double> matched_impedance(const Chain& chain, double h) {
  std::vector<double> impedance;
  for (std::size_t b = 0; b < chain.blocks.size(); ++b) {
    const Block& block = chain.blocks[b];
    const bool spring_end = b + 1 < chain.blocks.size();
    const double inertia = 2.0 * block.mass_kg / h + block.damping_Ns_per_m;
    const double k = 0.5 * h * block.stiffness_N_per_m;
    const double kc = spring_end ? 0.5 * h * block.coupling_stiffness_N_per_m : 0.0;
    // What the first mass feels, elimination running from the last one, and the other way round.
    double from_right = inertia + k + kc, from_left = inertia + k;
    for (std::size_t m = 1; m < kMasses; ++m) {
      const bool end = m + 1 == kMasses;
      from_right = inertia + (end ? k : 2.0 * k) - k * k / from_right;
      from_left = inertia + (end ? k + kc : 2.0 * k) - k * k / from_left;
    }
    impedance.push_back(from_right);
    impedance.push_back(spring_end ? kc * (1.0 - kc / from_left) : from_left);
  }
  return impedance;
}

/// Without a ledger unless asked for: the peers keep none either.
inline StepperOptions chain_options(const Chain& chain, double h, int iterations,
                                    Certify certify = Certify::none) {
  StepperOptions options{.method = WaveCoupling{}};
  options.certify = certify;
  options.method.waves().guard = false;  // beside loops and solvers that have none; see chain_floor
  options.step_s = h;
  options.method.waves().iterations = iterations;
  options.method.waves().impedance = matched_impedance(chain, h);
  return options;
}

inline void read_engine(const Stepper& engine, std::vector<double>& q, std::vector<double>& v) {
  for (std::size_t i = 0; i < q.size(); ++i) {
    const auto state = engine.state(static_cast<int>(i / kMasses));
    q[i] = state[2 * (i % kMasses)];
    v[i] = state[2 * (i % kMasses) + 1];
  }
}

}  // namespace portwave::bench
