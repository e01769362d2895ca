#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "portwave/runtime/scenario/scenario.hpp"
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
void read_observables(const Node& node, Names& names, RunSettings& settings);

}  // namespace portwave::scenario_file
