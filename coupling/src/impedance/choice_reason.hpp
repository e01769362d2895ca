#pragma once

#include <string>

#include "portwave/coupling/impedance/tuning.hpp"

namespace portwave {

/// "Peaceman-Rachford with leaf impedances: 3 evaluations predicted (matched: 100 and more, …)".
std::string reason_of(const MethodChoice& choice, const System& system);

}  // namespace portwave
