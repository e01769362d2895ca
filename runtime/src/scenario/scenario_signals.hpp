#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "portwave/runtime/step/stepper.hpp"
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

/// What the label of a quantity measures. Nothing where it measures nothing, which is noted at
/// `where`, or where what it names is missing.
std::optional<Sensor> read_sensor_label(const std::string& label, const std::string& where,
                                        MethodKind method, Names& names, Defects& defects);

/// Schema of "signals".
Json signals_schema();

}  // namespace portwave::scenario_file
