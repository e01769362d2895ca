#pragma once

#include <span>
#include <utility>
#include <vector>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

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

/// Vertices that belong together, as groups.
class VertexGroups {
 public:
  explicit VertexGroups(int vertices);
  void join(int a, int b);
  int root(int vertex);
  /// Numbers of the groups by vertex, in the order of their first vertices.
  std::vector<int> numbers();

 private:
  std::vector<int> parent_;
};

/// A symmetric pattern: every entry is an edge (its value is of no meaning), the diagonal none.
using GraphMatrix = SparseMatrix;

/// |M| + |Mᵀ| as a graph of ones.
GraphMatrix graph_of(const SparseMatrix& M);

/// Parts of about equal weight that few edges join, by vertex: METIS's recursive bisection with a
/// fixed seed. `groups` numbers vertices that stay together. Parts may be empty where groups are
/// large. Errors: ConfigError when METIS fails.
std::vector<int> partition_graph(const GraphMatrix& graph, const std::vector<int>& groups,
                                 int parts);

/// Which pieces hold which vertices when pieces may share some.
struct Tearing {
  int pieces = 0;
  std::vector<std::vector<int>> holders;   ///< by vertex: its pieces, ascending; never none
  std::vector<std::vector<int>> vertices;  ///< by piece, ascending
  std::vector<char> is_shared;             ///< by vertex
  /// Of each vertex of each piece: its place in `vertices`.
  int place(int piece, int vertex) const;
};

/// Shares as few vertices as a greedy cover finds, such that every edge lies within a piece.
/// `keep_owner`: a vertex stays in its own part also where its neighbours are elsewhere.
Tearing tear(const GraphMatrix& graph, const std::vector<int>& part, int parts, bool keep_owner);

}  // namespace portwave
