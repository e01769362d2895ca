#pragma once

#include <string>

#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/runtime/step/step_report.hpp>

namespace portwave::cli {

/// What may help where a part could not be stepped; empty where steps are not what is wrong.
std::string remedy_of(const StepError& error, const Scenario& scenario);

}  // namespace portwave::cli
