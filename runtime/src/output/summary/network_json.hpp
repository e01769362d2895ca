#pragma once

#include <span>
#include <string>

#include "portwave/coupling/system/system.hpp"
#include "portwave/runtime/output/recorder.hpp"

namespace portwave {

/// What the tables of a run do not say of its network, as JSON (docs/reference/scenario.md):
///   part_count, junction_count, islands
///   units       of the quantities, by name
///   parts       {name, type, island}, and `junctions`, each a list of {part, port}, parts by number;
///               both empty beyond `kMostPartsTold` parts.
/// The entries of a wider port are one port.
std::string network_json(const System& system, std::span<const Quantity> quantities);

inline constexpr std::size_t kMostPartsTold = 100'000;

}  // namespace portwave
