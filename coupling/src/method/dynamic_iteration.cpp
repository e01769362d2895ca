// Dynamic iteration: its kinds, its options and what is wrong with them.

#include "portwave/coupling/method/dynamic_iteration.hpp"

#include <array>

#include <fmt/format.h>

#include "portwave/coupling/method/method_table.hpp"

namespace portwave {
namespace {

constexpr std::array<std::string_view, 3> kIntegratorNames = {"auto", "midpoint", "radau-iia"};
constexpr std::array<std::string_view, 3> kMetricNames = {"auto", "identity", "energy"};

void check_omega(const CouplingMethod& method, Issues& issues) {
  const DynamicIteration& d = method.dynamic();
  if (d.kind != IterationKind::lions_mercier || !d.mu || !d.omega) return;
  const NumberRange range = NumberRange::non_negative();
  if (!range.contains(*d.mu) || !range.contains(*d.omega) || *d.omega >= *d.mu) return;
  issues.push_back(
      {"/method/omega", fmt::format("must be at least mu, {}, got {}", *d.mu, *d.omega)});
}

std::span<const OptionInfo> dynamic_iteration_options() {
  static const std::vector<MethodKind> lions_mercier = {IterationKind::lions_mercier};
  static const std::array options = {
      OptionInfo{.key = "iterations",
                 .value = option_at<&DynamicIteration::iterations>(),
                 .range = NumberRange::non_negative(),
                 .summary = "with a dynamic iteration, iterations of each window"},
      OptionInfo{.key = "tolerance",
                 .value = option_at<&DynamicIteration::tolerance>(),
                 .range = NumberRange::non_negative(),
                 .summary = "relative; 0: use the whole budget"},
      OptionInfo{.key = "lambda",
                 .value = option_at<&DynamicIteration::lambda>(),
                 .range = NumberRange::positive(),
                 .word = "auto",
                 .summary = "step of the iteration",
                 .only = lions_mercier},
      OptionInfo{.key = "mu",
                 .value = option_at<&DynamicIteration::mu>(),
                 .range = NumberRange::non_negative(),
                 .word = "auto",
                 .unit = "1/s",
                 .summary = "shift",
                 .only = lions_mercier},
      OptionInfo{.key = "omega",
                 .value = option_at<&DynamicIteration::omega>(),
                 .range = NumberRange::non_negative(),
                 .word = "auto",
                 .unit = "1/s",
                 .summary = "exponent of the weight",
                 .note = ", at least mu",
                 .only = lions_mercier,
                 .check = check_omega},
      OptionInfo{.key = "alpha",
                 .value = option_at<&DynamicIteration::alpha>(),
                 .range = {.minimum = 0.0, .maximum = 1.0},
                 .summary = "share of the dissipation that stays in the parts",
                 .only = lions_mercier},
      OptionInfo{.key = "window_steps",
                 .value = option_at<&DynamicIteration::window_steps>(),
                 .range = {.minimum = 1.0, .maximum = kMostSubsteps},
                 .summary = "macro-steps per window"},
      OptionInfo{.key = "integrator",
                 .value = option_choice<&DynamicIteration::integrator>(kIntegratorNames),
                 .summary = "auto is midpoint, and radau-iia where E of the coupled system is "
                            "singular"},
      OptionInfo{.key = "metric",
                 .value = option_choice<&DynamicIteration::metric>(kMetricNames),
                 .summary = "inner product; auto is energy, and identity where a part is a "
                            "descriptor system",
                 .only = lions_mercier},
      OptionInfo{.key = "divergence_limit",
                 .value = option_at<&DynamicIteration::divergence_limit>(),
                 .range = {.minimum = 1.0, .minimum_excluded = true},
                 .may_be_infinite = true,
                 .word = "none",
                 .summary = "give up when waveforms change by more than this times their size at "
                            "the start",
                 .only = {IterationKind::jacobi, IterationKind::gauss_seidel}}};
  return options;
}

}  // namespace

std::string_view to_string(Integrator integrator) {
  return kIntegratorNames[static_cast<std::size_t>(integrator)];
}

std::string_view to_string(IterationMetric metric) {
  return kMetricNames[static_cast<std::size_t>(metric)];
}

std::string_view to_string(IterationKind kind) { return to_string(MethodKind(kind)); }

const MethodFamily& dynamic_iteration_family() {
  static constexpr std::array kKinds = {
      MethodInfo{IterationKind::lions_mercier, "lions-mercier",
                 "waveforms over windows, monotone in a weighted norm; linear passive parts"},
      MethodInfo{IterationKind::jacobi, "jacobi",
                 "waveforms over windows, with the others' last ones; may diverge; linear parts"},
      MethodInfo{IterationKind::gauss_seidel, "gauss-seidel",
                 "waveforms over windows, with the newest ones; may diverge; linear parts"}};
  static const MethodFamily family{"dynamic iteration", false, kKinds, dynamic_iteration_options()};
  return family;
}

}  // namespace portwave
