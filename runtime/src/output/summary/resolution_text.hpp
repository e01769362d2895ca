#pragma once

#include <string>

#include "portwave/runtime/output/summary.hpp"

namespace portwave {

/// Motions that the steps do not resolve, and the remedy. Precondition: there are some.
std::string resolution_text(const RunSummary& summary);

}  // namespace portwave
