#pragma once

#include <span>

#include "portwave/coupling/system/system.hpp"

namespace portwave {

/// Several systems as one, uncoupled: parts, ports, junctions, islands and settable inputs of the
/// first, then those of the second, and so on, each in its own order. Parts keep their names, so
/// that names need not be unique, and find_part finds any of those of a name. Components and
/// junction structures are shared with the systems, which need not outlive it.
/// `states`: initial states, part by part in that order, in place of the systems' own; null: their own.
/// Cost     that of copying names, initial states and input lists.
System gathered_system(std::span<const System* const> systems, const double* states = nullptr);

}  // namespace portwave
