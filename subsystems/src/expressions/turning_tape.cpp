#include "expressions/turning_tape.hpp"

#include <algorithm>
#include <array>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

/// Nodes of a graph in one that has more variables behind those of the first.
class WiderGraph {
 public:
  using Node = ExpressionGraph::Node;

  WiderGraph(const ExpressionGraph& from, int variables) : out(variables) {
    for (Node i = 0; i < from.size(); ++i) {
      std::array<Node, 3> arguments = {-1, -1, -1};
      for (std::size_t k = 0; k < 3; ++k) {
        const Node argument = from.at(i).arguments[k];
        if (argument >= 0) arguments[k] = node_[at(argument)];
      }
      node_.push_back(i < from.variables() ? i : out.copied(from.at(i), arguments));
    }
  }

  Node of(Node node) const { return node_[at(node)]; }
  ExpressionGraph out;

 private:
  std::vector<Node> node_;
};

}  // namespace

TurningTape::TurningTape(const ExpressionPhysics& physics, int ports, int externals) {
  const int n = physics.graph.variables(), inputs = ports + externals;
  const auto changes = [&](const ExpressionPhysics::Entries& entries, int columns) {
    return std::ranges::any_of(entries, [&](const auto& entry) {
      return entry.column < columns && !physics.graph.number_of(entry.value);
    });
  };
  is_known = !changes(physics.G, ports) && !changes(physics.P, ports) &&
             !changes(physics.S, inputs) && !changes(physics.N, inputs) &&
             (changes(physics.J, n) || changes(physics.R, n) || changes(physics.G, inputs) ||
              changes(physics.P, inputs));
  if (!is_known) return;
  WiderGraph wide(physics.graph, 2 * n + inputs);
  ExpressionGraph& graph = wide.out;
  std::vector<ExpressionGraph::Node> rate(at(n), graph.number(0.0));
  const auto add = [&](const ExpressionPhysics::Entries& entries, int first, bool is_positive) {
    for (const auto& entry : entries) {
      if (physics.graph.number_of(entry.value)) continue;
      const ExpressionGraph::Node term =
          graph.product(wide.of(entry.value), graph.variable(first + entry.column));
      ExpressionGraph::Node& sum = rate[at(entry.row)];
      sum = is_positive ? graph.sum(sum, term) : graph.difference(sum, term);
    }
  };
  add(physics.J, n, true);
  add(physics.R, n, false);
  add(physics.G, 2 * n, true);
  add(physics.P, 2 * n, false);
  std::vector<ExpressionGraph::Node> results;
  for (int i = 0; i < n; ++i) {
    const std::vector<ExpressionGraph::Node> slopes = graph.gradient(rate[at(i)]);
    for (int j = 0; j < n; ++j) {
      if (graph.is_zero(slopes[at(j)])) continue;
      places.emplace_back(i, j);
      results.push_back(slopes[at(j)]);
    }
  }
  tape = ExpressionTape(graph, results);
}

}  // namespace portwave
