#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>

#include "portwave/coupling/method/method.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "scenario/parts/system_draft.hpp"
#include "scenario/reader/node.hpp"
#include "scenario/settings/names.hpp"

namespace portwave::scenario_file {

/// All of a scenario but its name and its system.
struct RunSettings {
  StepperOptions options;
  std::int64_t steps = 0;
  double end_s = 0.0;
  RecordingOptions recording = {};
  std::set<std::string> signal_names = {};  ///< of "signals", sound or not
};

/// The number of steps that make `length_s`; nothing unless it is a whole number up to the round-off of
/// lengths, or of times up to `end_s` that they are differences of.
std::optional<std::int64_t> whole_steps(double length_s, double step_s, double end_s = 0.0);

/// "time".
void read_time(const Node& node, RunSettings& settings);
Json time_schema();

/// "outputs", after "time", all but what names quantities.
void read_outputs(const Node& node, RunSettings& settings);
Json outputs_schema();
/// The observed quantities of "outputs".
void read_quantities(const Node& node, Names& names, RunSettings& settings);

/// "signals", and the inputs and parameters of parts that signals drive, as in `draft`: builds options.signals.
/// `node`: null without that section. Returns the names of the blocks, sound or not.
std::set<std::string> read_signals(const Node* node, const SystemDraft& draft,
                                   const std::filesystem::path& folder, Names& names,
                                   StepperOptions& options, Defects& defects);

/// What the label of a quantity measures. Nothing where it measures nothing, which is noted at
/// `where`, or where what it names is missing.
std::optional<Sensor> read_sensor_label(const std::string& label, const std::string& where,
                                        MethodKind method, Names& names, Defects& defects);

/// "events", after "signals": what is watched.
void read_events(const Node& node, Names& names, RunSettings& settings);

/// Schema of "events".
Json events_schema();

/// "method", all but what names ports or subsystems. Its keys are those of the tables of the
/// methods (method_table.hpp); those with a shape of their own are in method_keys.cpp.
void read_method(const Node& node, CouplingMethod& method);
/// Sets what `method`, the JSON value, does not give and the steps decide: with steps that choose their size, as
/// many stages as suit their tolerance; with steps of one size, the tolerance that suits the stages.
void prefer_what_suits_steps(const Json& method, StepperOptions& options);
/// The impedances, initial waves and fast subsystems of "method".
void read_method_names(const Node& node, Names& names, CouplingMethod& method);

/// The schema of "method", from the tables of the methods.
Json method_schema();

}  // namespace portwave::scenario_file
