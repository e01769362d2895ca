#pragma once

#include <memory>
#include <string>

#include "portwave/coupling/system/system.hpp"

namespace portwave {

/// Why a component cannot replace another while a system is being stepped; empty: it can.
/// It must be of the same class, with the same states, ports, external inputs and capabilities, and
/// may be active only if the other one is.
std::string exchange_defect(const Component& present, const Component& other);

/// Replaces a part's component by another one. Nothing else of the system changes.
/// Preconditions: there is such a part, and no `exchange_defect`.
void exchange_component(System& system, int part, std::shared_ptr<const Component> component);

}  // namespace portwave
