#pragma once

#include <span>
#include <vector>

#include "portwave/coupling/impedance/tuning.hpp"

namespace portwave {

/// By island: 1 where impedances are so far from what the parts respond with (a factor 1e9 at some
/// port, or a condition of I + M̂ of 1e9) that ½|a|² drowns what the island stores: whether such a
/// step creates energy cannot be computed from its waves any more (see EnergyLedger). No tuning
/// rule leads there. `impedance`: one per scalar port.
std::vector<char> islands_drowned_by_waves(const PortResponses& responses,
                                           std::span<const double> impedance);

}  // namespace portwave
