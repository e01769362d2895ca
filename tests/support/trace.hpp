#pragma once

#include <cstring>
#include <initializer_list>
#include <vector>

#include "portwave/runtime/step/stepper.hpp"

namespace portwave::testing {

inline bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

/// States, waves and stored energies after the last step.
inline void append_interface(const Stepper& stepper, std::vector<double>& out) {
  for (int i = 0; i < static_cast<int>(stepper.system().parts().size()); ++i) {
    const auto x = stepper.state(i);
    out.insert(out.end(), x.begin(), x.end());
    out.push_back(stepper.storage(i));
  }
  const WaveView* const waves = stepper.waves();
  if (waves == nullptr) return;
  for (int j = 0; j < static_cast<int>(stepper.system().scalar_ports().size()); ++j) {
    out.insert(out.end(), {waves->incident(j), waves->outgoing(j)});
  }
}

/// Every committed number of a run: states, waves, iterations, ledger, certificate.
inline std::vector<double> trace(const System& system, const StepperOptions& options, int steps) {
  Stepper stepper(system, options);
  std::vector<double> out;
  for (int n = 0; n < steps; ++n) {
    const StepReport r = stepper.step();
    out.insert(out.end(),
               {static_cast<double>(r.iterations), r.residual, r.gap_J,
                static_cast<double>(r.converged), static_cast<double>(r.reason), r.energy.stored_J,
                r.energy.supplied_J, r.energy.dissipated_J, r.energy.mismatch_J, r.energy.tank_J,
                r.energy.max_passivity_residual_J});
    for (int i = 0; stepper.waves() != nullptr && i < system.island_count(); ++i) {
      out.push_back(stepper.waves()->iterations_of_island(i));
    }
    append_interface(stepper, out);
  }
  const EnergyTotals& e = stepper.energy();
  const Certificate& c = stepper.certificate();
  out.insert(
      out.end(),
      {e.max_J, e.supplied_J, e.dissipated_J, e.mismatch_J, e.tank_J, e.max_energy_ratio,
       static_cast<double>(c.status), c.max_passivity_residual_J,
       static_cast<double>(c.worst_passivity_part), static_cast<double>(c.worst_passivity_step),
       c.max_augmented_residual_J.value_or(0.0), c.max_fejer_residual_J.value_or(0.0),
       c.min_fne_margin.value_or(0.0), static_cast<double>(c.steps_without_fixed_point),
       static_cast<double>(c.steps_without_margin)});
  return out;
}

}  // namespace portwave::testing
