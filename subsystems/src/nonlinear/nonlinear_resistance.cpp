#include "portwave/subsystems/nonlinear/nonlinear_resistance.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"

namespace portwave {
namespace {

/// What is wrong with a law at the sizes that are tried, first the smallest.
Issues check_law(const NonlinearResistance::Law& law) {
  if (!law) return {{"/law", "must hold a function"}};
  Issues issues;
  if (const double at_rest = law(0.0).value; at_rest != 0.0) {
    issues.push_back({"/law", fmt::format("must be 0 at 0, got {}", at_rest)});
  }
  for (const double sign : {1.0, -1.0}) {
    double last = 0.0;
    for (int decade = -12; decade <= 12; ++decade) {
      const double u = sign * std::pow(10.0, decade);
      const PortLawValue at = law(u);
      if (!std::isfinite(at.value) || !std::isfinite(at.slope)) {
        issues.push_back({"/law", fmt::format("must be finite, got {} with slope {} at {}",
                                              shown_number(at.value), shown_number(at.slope), u)});
        break;
      }
      if (sign * at.value < last || at.slope < 0.0) {
        issues.push_back({"/law", fmt::format("must not decrease, got {} with slope {} at {}",
                                              shown_number(at.value), shown_number(at.slope), u)});
        break;
      }
      last = sign * at.value;
    }
  }
  return issues;
}

}  // namespace

NonlinearResistance::NonlinearResistance(Signature signature, Law law)
    : Subsystem(std::move(signature)), law_(std::move(law)) {
  Issues issues = check_law(law_);
  if (!this->signature().states.empty()) issues.push_back({"/states", "must be empty"});
  if (!this->signature().inputs.empty()) issues.push_back({"/inputs", "must be empty"});
  throw_if_any(std::move(issues));
  structure_ = Structure::zero(0, this->signature().wave_size());
}

NonlinearResistance::NonlinearResistance(Signature signature, const SaturatingLaw& law)
    : NonlinearResistance(std::move(signature), [law](double u) {
        const double t = std::tanh(u / law.reach);
        return PortLawValue{law.saturation * t + law.slope * u,
                            law.saturation / law.reach * (1.0 - t * t) + law.slope};
      }) {
  saturating_ = law;
}

/// What a port does is a number of the lane's, or a call: batches need only an equal number of ports.
std::string NonlinearResistance::batch_key() const {
  return fmt::format("{}/{}", saturating_ ? "saturating" : "law", signature().wave_size());
}

}  // namespace portwave
