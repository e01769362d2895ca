#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "portwave/runtime/execution/stepper.hpp"
#include "scenario/scenario_names.hpp"
#include "scenario/scenario_parts.hpp"
#include "scenario/scenario_reader.hpp"
#include "scenario/schema_tools.hpp"

namespace portwave::scenario_file {

/// "signals", and the inputs of parts that signals drive: builds options.signals. `node`: null
/// without that section. Returns the names of the blocks, sound or not.
std::set<std::string> read_signals(const Node* node, const std::vector<DrivenInput>& inputs,
                                   const std::filesystem::path& folder, Names& names,
                                   StepperOptions& options, Defects& defects);

/// Schema of "signals".
Json signals_schema();

}  // namespace portwave::scenario_file
