#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "portwave/runtime/step/stepper.hpp"
#include "scenario/parts/system_draft.hpp"
#include "scenario/reader/node.hpp"
#include "scenario/reader/schema_tools.hpp"
#include "scenario/settings/names.hpp"

namespace portwave::scenario_file {

/// "signals", and the inputs of parts that signals drive: builds options.signals. `node`: null
/// without that section. Returns the names of the blocks, sound or not.
std::set<std::string> read_signals(const Node* node, const std::vector<DrivenInput>& inputs,
                                   const std::filesystem::path& folder, Names& names,
                                   StepperOptions& options, Defects& defects);

/// What the label of a quantity measures. Nothing where it measures nothing, which is noted at
/// `where`, or where what it names is missing.
std::optional<Sensor> read_sensor_label(const std::string& label, const std::string& where,
                                        MethodKind method, Names& names, Defects& defects);

}  // namespace portwave::scenario_file
