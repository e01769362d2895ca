#pragma once

#include <span>
#include <vector>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// The exchange between two vertices; either order, and several of the same two add up.
struct GraphEdge {
  int a = 0, b = 0;
  int weight = 1;  ///< > 0
};

/// Cuts a graph into parts of about equal weight with little exchange between them: the part of each vertex,
/// 0 to parts − 1, numbered in the order of their first vertices; fewer if vertices are heavy. METIS with a
/// fixed seed: repeatable, unless another thread uses std::rand meanwhile. `weights`: of the vertices, ≥ 0.
/// Errors: ConfigError when METIS fails.
std::vector<int> cut_graph(std::span<const double> weights, std::span<const GraphEdge> edges,
                           int parts);

}  // namespace portwave
