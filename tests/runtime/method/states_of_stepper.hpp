#pragma once

#include <vector>

#include "portwave/runtime/step/stepper.hpp"

namespace portwave::testing {

/// The states of all parts, in order.
inline std::vector<double> all_states(const Stepper& stepper) {
  std::vector<double> all;
  for (int part = 0; part < static_cast<int>(stepper.system().parts().size()); ++part) {
    const auto x = stepper.state(part);
    all.insert(all.end(), x.begin(), x.end());
  }
  return all;
}

/// These, and the effort and flow of every port.
inline std::vector<double> states_and_ports(const Stepper& stepper) {
  std::vector<double> all = all_states(stepper);
  for (int port = 0; port < static_cast<int>(stepper.system().scalar_ports().size()); ++port) {
    all.push_back(stepper.effort(port));
    all.push_back(stepper.flow(port));
  }
  return all;
}

/// The states, and the energies of the run.
inline std::vector<double> states_and_energies(const Stepper& stepper) {
  std::vector<double> all = all_states(stepper);
  const EnergyTotals e = stepper.energy();
  all.insert(all.end(), {e.final_J, e.dissipated_J, e.numerical_dissipation_J, e.mismatch_J});
  return all;
}

/// What `look` gives after each of some steps.
inline std::vector<std::vector<double>> go_on(
    Stepper& stepper, int steps,
    std::vector<double> (*look)(const Stepper&) = states_and_energies) {
  std::vector<std::vector<double>> out;
  for (int n = 0; n < steps; ++n) {
    stepper.step();
    out.push_back(look(stepper));
  }
  return out;
}

}  // namespace portwave::testing
