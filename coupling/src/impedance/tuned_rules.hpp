#pragma once

#include <vector>

#include "portwave/coupling/impedance/tuning.hpp"

namespace portwave {

/// A rule and what it comes to.
struct Tuned {
  ImpedanceKind kind;
  TunedImpedance impedance;
  std::vector<double> condition = {};  ///< of the worst step map, by island
};

/// What `method` leaves to choose from, those first that are taken among equals: one rule where it is named, else all
/// that have different impedances; `across`, the last, only if there may be interface equations, and first if there
/// is nothing else. Errors: ConfigError ("/method/impedance").
std::vector<Tuned> tuned_by_rules(const PortResponses& responses, const WaveCoupling& method);

}  // namespace portwave
