#pragma once

#include <string>

#include "portwave/runtime/output/summary.hpp"

namespace portwave {

/// Motions that the steps do not resolve, and the remedy. Precondition: there are some.
std::string resolution_text(const RunSummary& summary);
/// Of a run that was compared with one of finer steps.
std::string agreement_text(const RunSummary& summary);
/// A switch whose changes are not those asked for, and the remedy.
std::string switches_text(const RunSummary& summary);

}  // namespace portwave
