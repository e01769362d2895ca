#pragma once

#include <string>
#include <utility>
#include <vector>

#include "portwave/runtime/step/stepper.hpp"

namespace portwave::testing {

inline CouplingMethod method_of(MethodKind kind) {
  CouplingMethod method = CouplingMethod::of_kind(kind);
  set_iterations(method, 60);
  if (auto* const splitting = method.as<Splitting>()) {
    splitting->fast = {"first"};
    splitting->factor = 4;
  }
  return method;
}

// Options that some kinds have: no effect on the others.
inline void set_fast(CouplingMethod& method, std::vector<std::string> fast) {
  if (auto* const splitting = method.as<Splitting>()) splitting->fast = std::move(fast);
}
inline void set_window(CouplingMethod& method, int steps) {
  if (auto* const dynamic = method.as<DynamicIteration>()) dynamic->window_steps = steps;
}
inline void set_tolerance(CouplingMethod& method, double tolerance) {
  if (auto* const dynamic = method.as<DynamicIteration>()) dynamic->tolerance = tolerance;
}

inline constexpr MethodKind kKinds[] = {SplittingKind::strang, SplittingKind::impulse,
                                        IterationKind::lions_mercier, IterationKind::jacobi,
                                        IterationKind::gauss_seidel};

inline StepperOptions options_of(MethodKind kind, double step_s = 0.01) {
  StepperOptions options;
  options.step_s = step_s;
  options.method = method_of(kind);
  return options;
}

inline Issues refused(const System& system, const StepperOptions& options) {
  try {
    Stepper stepper(system, options);
  } catch (const ConfigError& error) {
    return error.issues();
  }
  return {};
}

}  // namespace portwave::testing
