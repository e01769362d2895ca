#pragma once

#include <optional>

#include "portwave/subsystems/base/expression_graph.hpp"

namespace portwave {

/// (V(y + δ) − V(y))/δ of a node of a graph of one variable, as a node of another graph, where y and δ are. By rules
/// for each operation, as derivatives are, that do not cancel: near δ = 0 it is V′(y + δ/2), and its product with δ is
/// V(y + δ) − V(y) to the round-off of V. None where an operation has no rule: logarithms, inverse functions, powers
/// that are not whole, what can change over.
std::optional<ExpressionGraph::Node> divided_difference(const ExpressionGraph& graph,
                                                        ExpressionGraph::Node of,
                                                        ExpressionGraph& to,
                                                        ExpressionGraph::Node y,
                                                        ExpressionGraph::Node delta);

}  // namespace portwave
