#pragma once

#include <cmath>

#include "portwave/runtime/generate/generate.hpp"

namespace portwave {

inline double step_of(const Network& network, const GenerateOptions& options) {
  return options.step_s.value_or(std::holds_alternative<network::Grid>(network) ? 1e-2 : 1e-3);
}

/// Masses of the block that is larger than the others.
inline double heavy_masses(const network::Imbalanced& network) {
  return std::round(network.factor * network.masses);
}

}  // namespace portwave
