// Splitting: its kinds, its options and what is wrong with them.

#include "portwave/coupling/method/splitting.hpp"

#include <array>
#include <optional>

#include <fmt/format.h>

#include "portwave/coupling/method/method_table.hpp"

namespace portwave {
namespace {

constexpr int kMostTerms = 40;  ///< of a Taylor series: beyond, rounding outgrows what is gained

constexpr std::array<std::string_view, 3> kFlowNames = {"auto", "scalar", "low-rank"};

void check_split_dissipation(const CouplingMethod& method, Issues& issues) {
  const Splitting& splitting = method.splitting();
  if (splitting.kind != SplittingKind::impulse || !splitting.split_dissipation) return;
  issues.push_back({"/method/split_dissipation", "is not for \"impulse\""});
}

/// Their names are checked where the system is known: see check_fast_parts.
void check_fast(const CouplingMethod& method, Issues& issues) {
  const Splitting& splitting = method.splitting();
  if (splitting.kind != SplittingKind::impulse || !splitting.fast.empty()) return;
  issues.push_back({"/method/fast", "must name the fast subsystems, one at least"});
}

std::optional<DependentRange> order_range(const CouplingMethod& method) {
  switch (method.splitting().kind) {
    case SplittingKind::strang:
    case SplittingKind::impulse:
      return DependentRange{{.minimum = 2.0, .maximum = 4.0}, ""};
    case SplittingKind::kick_drift:
      return DependentRange{{.minimum = 4.0, .maximum = 6.0}, ""};
    case SplittingKind::taylor:
      break;
  }
  return DependentRange{{.minimum = 2.0, .maximum = kMostTerms}, ""};
}

/// All orders are even.
void check_order(const CouplingMethod& method, Issues& issues) {
  const int order = method.splitting().order;
  const NumberRange range = order_range(method)->range;
  if (order % 2 == 0 || !range.contains(order)) return;
  const bool is_taylor = method.splitting().kind == SplittingKind::taylor;
  issues.push_back({"/method/order", is_taylor ? fmt::format("must be even, got {}", order)
                                               : fmt::format("must be {} or {}, got {}",
                                                             range.minimum, range.maximum, order)});
}

std::span<const OptionInfo> splitting_options() {
  static const std::array options = {
      OptionInfo{.key = "coupling_flow",
                 .value = option_choice<&Splitting::coupling_flow>(kFlowNames),
                 .summary = "how the flow of the coupling is solved",
                 .only = {SplittingKind::strang}},
      OptionInfo{.key = "split_dissipation",
                 .value = option_at<&Splitting::split_dissipation>(),
                 .summary = "take dissipation out of the local flows",
                 .only = {SplittingKind::strang},
                 .check = check_split_dissipation},
      OptionInfo{.key = "fast",
                 .summary = "names of the fast subsystems",
                 .only = {SplittingKind::impulse},
                 .required = true,
                 .check = check_fast},
      OptionInfo{.key = "factor",
                 .value = option_at<&Splitting::factor>(),
                 .range = {.minimum = 1.0, .maximum = kMostSubsteps},
                 .summary = "fast steps per macro-step",
                 .only = {SplittingKind::impulse}},
      OptionInfo{.key = "order",
                 .value = option_at<&Splitting::order>(),
                 .range = {.minimum = 2.0, .maximum = kMostTerms},
                 .word = "auto",
                 .summary = "order of accuracy, 2 or 4 with strang and impulse, 4 or 6 with "
                            "kick-drift, even with taylor",
                 .note = ". auto: 2, 6, 16",
                 .range_of = order_range,
                 .check = check_order}};
  return options;
}

}  // namespace

std::string_view to_string(CouplingFlow flow) { return kFlowNames[static_cast<std::size_t>(flow)]; }

std::string_view to_string(SplittingKind kind) { return to_string(MethodKind(kind)); }

int order_of(const Splitting& splitting) {
  if (splitting.order != 0) return splitting.order;
  switch (splitting.kind) {
    case SplittingKind::strang:
    case SplittingKind::impulse:
      return 2;
    case SplittingKind::kick_drift:
      return 6;
    case SplittingKind::taylor:
      break;
  }
  return 16;
}

const MethodFamily& splitting_family() {
  static constexpr std::array kKinds = {
      MethodInfo{SplittingKind::strang, "strang",
                 "half a coupling flow, the local flows, half a coupling flow; linear parts"},
      MethodInfo{SplittingKind::impulse, "impulse",
                 "half a slow flow, many fast flows, half a slow flow; linear parts"},
      MethodInfo{SplittingKind::kick_drift, "kick-drift",
                 "kicks and drifts in turn, of order 4 or 6; networks of masses and springs of any "
                 "law, or of inductors and capacitors"},
      MethodInfo{SplittingKind::taylor, "taylor",
                 "Taylor series of islands, of any even order; linear parts without algebraic "
                 "equations"}};
  static const MethodFamily family{"splitting", false, kKinds, splitting_options()};
  return family;
}

}  // namespace portwave
