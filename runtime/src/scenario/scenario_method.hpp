#pragma once

#include "portwave/coupling/method/method.hpp"
#include "scenario/scenario_names.hpp"
#include "scenario/scenario_reader.hpp"

namespace portwave::scenario_file {

/// "method", all but what names ports or subsystems. Its keys are those of the tables of the
/// methods (method_table.hpp); those with a shape of their own are in method_special_options.cpp.
void read_method(const Node& node, CouplingMethod& method);
/// Sets what `method`, the JSON value, does not give and the steps decide: with steps that choose their size, as
/// many stages as suit their tolerance; with steps of one size, the tolerance that suits the stages.
void prefer_what_suits_steps(const Json& method, StepperOptions& options);
/// The impedances, initial waves and fast subsystems of "method".
void read_method_names(const Node& node, Names& names, CouplingMethod& method);

}  // namespace portwave::scenario_file
