#include "verbs/remedies.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

namespace portwave::cli {

std::string remedy_of(const StepError& error, const Scenario& scenario) {
  if (error.fault() != StepFault::not_converged && error.fault() != StepFault::not_finite)
    return {};
  const auto is_finite = [](double own) { return std::isfinite(own); };
  if (!std::ranges::all_of(error.solve().inputs, is_finite)) return {};
  if (scenario.options.sizes) {
    return "Allow shorter steps (--set /time/step/smallest_s=0), or ask for a smaller tolerance";
  }
  const std::string shorter = fmt::format("Shorter steps may help (--set /time/step_s={:.6g})",
                                          0.125 * scenario.options.step_s);
  const auto is_opaque = [](const Part& part) { return part.port_hamiltonian() == nullptr; };
  if (std::ranges::any_of(scenario.system.parts(), is_opaque)) return shorter;  // of one size only
  return fmt::format(
      "{}, or steps that choose their size:\n"
      "  --set '/time={{\"step\": {{\"kind\": \"adaptive\", \"tolerance\": 1e-6}}, \"end_s\": "
      "{:.6g}}}'",
      shorter, scenario.end_s);
}

}  // namespace portwave::cli
