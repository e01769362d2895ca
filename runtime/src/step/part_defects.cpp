#include "portwave/runtime/step/part_defects.hpp"

#include <algorithm>
#include <cmath>

#include "portwave/runtime/step/stepper.hpp"
#include "portwave/runtime/step/wave_view.hpp"

namespace portwave {

void PartDefects::add(const FinalStep& own) {
  net_J += own.defect_J;
  astray_J += own.astray_J;
  exchanged_J += own.exchanged_J;
  carried_J += own.carried_J;
  missed_J += own.missed_J;
  received_J += own.received_J;
  least_J = std::min(least_J, received_J);
  most_J = std::max(most_J, received_J);
  if (own.astray_J > worst_J) {
    worst_J = own.astray_J;
    worst_step = steps;
  }
  ++steps;
}

double PartDefects::share() const {
  constexpr double kRounding = 1e-9;
  // At a free or a fixed port one of effort and flow is no more than the tolerance of the waves, and so is the energy.
  constexpr double kNothing = 1e-4;
  if (!(astray_J > kRounding * exchanged_J)) return 0.0;
  const bool is_shut = exchanged_J <= kNothing * carried_J;
  if (is_shut && missed_J <= kNothing * kNothing * carried_J) return 0.0;
  const double range_J = most_J - least_J;
  return std::max(astray_J / exchanged_J, range_J > 0.0 ? std::abs(net_J) / range_J : 0.0);
}

std::span<const PartDefects> defects_of(const Stepper& stepper) {
  const auto* const view = dynamic_cast<const PartDefectsView*>(stepper.waves());
  return view == nullptr ? std::span<const PartDefects>() : view->defects();
}

}  // namespace portwave
