#pragma once

#include <string>

#include "portwave/runtime/signals/signal_graph.hpp"

namespace portwave {

/// How a part of the catalogue is made again with another value of one number among its parameters. Null, and
/// `defect` says why, where there is no such number, or where the part cannot tell its parameters.
SignalGraph::ParameterChange parameter_change(const Component& part, const std::string& parameter,
                                              std::string& defect);

}  // namespace portwave
