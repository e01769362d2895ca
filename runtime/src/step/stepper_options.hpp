#pragma once

#include <string>
#include <vector>

#include "portwave/runtime/step/stepper.hpp"

namespace portwave {

/// Checks that `options` fit `system`, and returns it. Errors: ConfigError with every defect.
const System& checked(const System& system, const StepperOptions& options);
/// Whether steps of a method can choose their size.
bool can_choose_sizes(const CouplingMethod& method);
/// Whether steps of several stages have a higher order: all parts can have them, and no stiffness jumps.
bool gains_by_stages(const System& system);
/// WaveCoupling::stages. If they are left open: one where more do not gain, else the number that is
/// cheapest on the examples at the tolerance of steps that choose their size. Errors: ConfigError if they are
/// left open and there is no such tolerance.
int chosen_stages(const System& system, const StepperOptions& options);
/// WaveCoupling::start; where that is left open the one that needs fewer evaluations for the same tolerance. Under a
/// deadline, or to no tolerance, results depend on it: the waves of the last step. `stages` must not be left open.
InnerStart chosen_start(const System& system, const StepperOptions& options);
/// The options with the method that `automatic` takes where it may leave waves (WaveCoupling::explicit_steps). `note`:
/// what it took and why, for people; empty where it had no choice. Precondition: `checked`.
StepperOptions with_choice(const System& system, const StepperOptions& options, std::string& note);
/// For runs that are compared or measured: no event ends them.
inline void go_past_ends(StepperOptions& options) {
  for (Watch& watch : options.watches) watch.ends_run = false;
}
/// Refuses a method that couples without waves. Errors: ConfigError ("/method/kind").
void refuse_without_waves(const CouplingMethod& method);
/// γ per scalar port of the system.
std::vector<double> impedance_by_port(const System& system, const WaveCoupling& method);

}  // namespace portwave
