#pragma once

#include "portwave/coupling/method/method.hpp"
#include "scenario/reader/node.hpp"
#include "scenario/settings/names.hpp"

namespace portwave::scenario_file {

/// "method", all but what names ports or subsystems. Its keys are those of the tables of the
/// methods (method_table.hpp); those with a shape of their own are in method_special_options.cpp.
void read_method(const Node& node, CouplingMethod& method);
/// What nobody says: as many stages as suit the tolerance of steps that choose their size, and a tolerance of
/// the coupling that suits the stages of steps of one size.
void prefer_what_suits_steps(const Node& node, StepperOptions& options);
/// The impedances, initial waves and fast subsystems of "method".
void read_method_names(const Node& node, Names& names, CouplingMethod& method);

}  // namespace portwave::scenario_file
