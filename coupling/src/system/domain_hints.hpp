#pragma once

#include <string>

#include "portwave/subsystems/core/port.hpp"

namespace portwave {

/// What usually joins ports of two domains, as a sentence to follow a message; empty where nothing
/// usual does. The order of the domains does not matter.
std::string hint_for_domains(Domain first, Domain second);

}  // namespace portwave
