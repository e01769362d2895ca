#pragma once

#include <string>
#include <vector>

#include "portwave/coupling/system/system.hpp"
#include "portwave/runtime/signals/signal_graph.hpp"

namespace portwave {

/// The function of time that a parameter follows, sampled before every step: its value halfway through the step holds
/// over it (block::held_source). Null where a signal, or a function sampled less often, drives the parameter.
const Signal* held_function(const SignalGraph& graph, const SignalGraph::ParameterActuator& driven);

/// A sentence for each table of an input or a source that a run does not come to: it lies wholly before or
/// after its knots. `graph`: null where there is none.
std::vector<std::string> tables_out_of_reach(const System& system, const SignalGraph* graph,
                                             double start_s, double end_s);

}  // namespace portwave
