#pragma once

#include <string>
#include <utility>

#include <portwave/runtime/scenario/scenario.hpp>

#include "support/systems/systems.hpp"

namespace portwave::testing {

/// Initial energy of duffing_linear_pair() [J]: ½·100·0.4² + ¼·8000·0.4⁴ + ½·120·0.4².
inline constexpr double kPairEnergy_J = 68.8;

/// The published method, so unguarded.
inline StepperOptions pair_options(int iterations, int threads = 1) {
  StepperOptions options{.method = WaveCoupling{}};
  options.step_s = 0.01;
  options.method.waves().iterations = iterations;
  options.method.waves().impedance = {0.4};
  options.method.waves().guard = false;
  options.threads = threads;
  options.grain = Grain::per_part();
  if (threads > 1) options.executor = ExecutorKind::async;  // too small a system for `automatic`
  return options;
}

inline Quantity quantity(const System& system, const std::string& label) {
  Quantity result;
  Issues issues;
  resolve_quantity(system, label, "", result, issues);
  throw_if_any(std::move(issues));
  return result;
}

/// The benchmark of arXiv 2603.16424 as a scenario: 10 s, observed at the two masses' positions.
inline Scenario pair_scenario() {
  System system = duffing_linear_pair();
  std::vector<Quantity> positions = {quantity(system, "A.q1"), quantity(system, "B.q2")};
  return {.name = "pair",
          .system = std::move(system),
          .options = pair_options(20),
          .steps = 1000,
          .recording = {.quantities = std::move(positions)}};
}

}  // namespace portwave::testing
