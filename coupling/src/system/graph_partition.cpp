#include "portwave/coupling/system/graph_partition.hpp"

#include <algorithm>
#include <metis.h>
#include <numeric>
#include <queue>
#include <utility>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"

namespace portwave {
namespace {

using GraphEdges = GraphMatrix::InnerIterator;

std::size_t index_of(Eigen::Index i) { return static_cast<std::size_t>(i); }

// A graph as METIS has it. Weights are of vertices and of edges.
struct QuotientGraph {
  std::vector<idx_t> begin = {0};
  std::vector<idx_t> neighbour, edge_weight, weight;

  // Of groups: the weight of a vertex is the size of its group, that of an edge the number of edges
  // between two groups.
  QuotientGraph(const GraphMatrix& graph, const std::vector<int>& groups) {
    const int count = groups.empty() ? 0 : *std::max_element(groups.begin(), groups.end()) + 1;
    std::vector<std::vector<int>> members(at(count));
    for (int v = 0; v < static_cast<int>(groups.size()); ++v) {
      members[at(groups[at(v)])].push_back(v);
    }
    std::vector<idx_t> edges(at(count), 0);  // to each group
    for (int own = 0; own < count; ++own) {
      const std::size_t first = neighbour.size();
      for (const int v : members[at(own)]) {
        for (GraphEdges it(graph, v); it; ++it) {
          const int other = groups[index_of(it.row())];
          if (other != own && edges[at(other)]++ == 0) neighbour.push_back(other);
        }
      }
      std::sort(neighbour.begin() + static_cast<std::ptrdiff_t>(first), neighbour.end());
      for (std::size_t k = first; k < neighbour.size(); ++k) {
        edge_weight.push_back(std::exchange(edges[at(neighbour[k])], 0));
      }
      weight.push_back(static_cast<idx_t>(members[at(own)].size()));
      begin.push_back(static_cast<idx_t>(neighbour.size()));
    }
  }

  QuotientGraph(std::span<const double> weights, std::span<const GraphEdge> edges) {
    const int count = static_cast<int>(weights.size());
    // Sums fit METIS's integers.
    double sum = 0.0;
    for (const double own : weights) sum += own;
    const double scale = sum > 0.0 ? 1e9 / sum : 0.0;
    weight.reserve(weights.size());
    for (const double own : weights) weight.push_back(static_cast<idx_t>(own * scale));
    SparseEntries entries;
    for (const GraphEdge& edge : edges) {
      if (edge.a == edge.b) continue;
      entries.emplace_back(edge.a, edge.b, edge.weight);
      entries.emplace_back(edge.b, edge.a, edge.weight);
    }
    add(count, entries);
  }

  // By vertex. Recursive bisection cuts better, k ways are faster and need less memory.
  std::vector<idx_t> partition(int parts) {
    constexpr int kMostBisected = 64;
    auto count = static_cast<idx_t>(weight.size());
    std::vector<idx_t> part(weight.size(), 0);
    parts = std::min(parts, static_cast<int>(count));  // or METIS says on stdout that it cannot
    if (parts <= 1 || count <= 1) return part;
    idx_t options[METIS_NOPTIONS];
    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_SEED] = 1;
    options[METIS_OPTION_NUMBERING] = 0;
    idx_t constraints = 1, wanted = parts, cut = 0;
    const auto method = parts <= kMostBisected ? METIS_PartGraphRecursive : METIS_PartGraphKway;
    const int state =
        method(&count, &constraints, begin.data(), neighbour.data(), weight.data(), nullptr,
               edge_weight.data(), &wanted, nullptr, nullptr, options, &cut, part.data());
    if (state != METIS_OK) throw ConfigError("", "the graph partitioner METIS failed");
    return part;
  }

 private:
  void add(int count, const SparseEntries& edges) {
    SparseMatrix sums = sparse_matrix(count, count, edges);
    for (int j = 0; j < count; ++j) {
      for (SparseMatrix::InnerIterator it(sums, j); it; ++it) {
        neighbour.push_back(static_cast<idx_t>(it.row()));
        edge_weight.push_back(static_cast<idx_t>(it.value()));
      }
      begin.push_back(static_cast<idx_t>(neighbour.size()));
    }
  }
};

// One end of every edge between two parts, those with the most such edges first.
std::vector<char> cover_of_cut(const GraphMatrix& graph, const std::vector<int>& part) {
  const auto n = static_cast<std::size_t>(graph.cols());
  std::vector<int> open(n, 0);  // edges to other parts that are not covered yet
  for (int j = 0; j < graph.outerSize(); ++j) {
    for (GraphEdges it(graph, j); it; ++it) {
      if (part[index_of(it.row())] != part[at(j)]) ++open[at(j)];
    }
  }
  std::priority_queue<std::pair<int, int>> queue;  // the lower number first among equals
  for (std::size_t v = 0; v < n; ++v) {
    if (open[v] > 0) queue.emplace(open[v], -static_cast<int>(v));
  }
  std::vector<char> is_covering(n, 0);
  while (!queue.empty()) {
    const auto [count, negative] = queue.top();
    queue.pop();
    const int v = -negative;
    if (is_covering[at(v)] != 0 || count != open[at(v)] || count == 0) continue;
    is_covering[at(v)] = 1;
    for (GraphEdges it(graph, v); it; ++it) {
      const auto w = static_cast<int>(it.row());
      if (part[at(w)] == part[at(v)] || is_covering[at(w)] != 0) continue;
      if (--open[at(w)] > 0) queue.emplace(open[at(w)], -w);
    }
  }
  return is_covering;
}

bool have_common(const std::vector<int>& a, const std::vector<int>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&b](int piece) { return std::binary_search(b.begin(), b.end(), piece); });
}

void insert_sorted(std::vector<int>& list, int value) {
  const auto place = std::lower_bound(list.begin(), list.end(), value);
  if (place == list.end() || *place != value) list.insert(place, value);
}

}  // namespace

VertexGroups::VertexGroups(int vertices) : parent_(at(vertices)) {
  std::iota(parent_.begin(), parent_.end(), 0);
}

int VertexGroups::root(int vertex) {
  while (parent_[at(vertex)] != vertex) {
    parent_[at(vertex)] = parent_[at(parent_[at(vertex)])];
    vertex = parent_[at(vertex)];
  }
  return vertex;
}

void VertexGroups::join(int a, int b) {
  a = root(a);
  b = root(b);
  if (a != b) parent_[at(std::max(a, b))] = std::min(a, b);
}

std::vector<int> VertexGroups::numbers() {
  std::vector<int> number(parent_.size(), -1);
  int next = 0;
  for (int v = 0; v < static_cast<int>(parent_.size()); ++v) {
    const int top = root(v);  // never after v
    if (top == v) number[at(v)] = next++;
    number[at(v)] = number[at(top)];
  }
  return number;
}

GraphMatrix graph_of(const SparseMatrix& M) {
  const SparseMatrix transposed = M.transpose();
  GraphMatrix graph(M.rows(), M.cols());
  graph.reserve(M.nonZeros());
  for (int j = 0; j < M.outerSize(); ++j) {
    graph.startVec(j);
    int last = -1;
    const auto add = [&](SparseMatrix::InnerIterator& it) {
      const auto row = static_cast<int>(it.row());
      if (it.value() != 0.0 && row != j && row != last) graph.insertBack(last = row, j) = 1.0;
      ++it;
    };
    SparseMatrix::InnerIterator own(M, j), other(transposed, j);
    while (own || other) add(!other || (own && own.row() <= other.row()) ? own : other);
  }
  graph.finalize();
  return graph;
}

std::vector<int> partition_graph(const GraphMatrix& graph, const std::vector<int>& groups,
                                 int parts) {
  QuotientGraph quotient(graph, groups);
  const std::vector<idx_t> of_group = quotient.partition(parts);
  std::vector<int> part(groups.size());
  for (std::size_t v = 0; v < groups.size(); ++v) part[v] = of_group[at(groups[v])];
  return part;
}

std::vector<int> cut_graph(std::span<const double> weights, std::span<const GraphEdge> edges,
                           int parts) {
  QuotientGraph graph(weights, edges);
  const std::vector<idx_t> found = graph.partition(parts);
  std::vector<int> number(at(std::max(parts, 1)), -1), part;
  int next = 0;
  for (const idx_t own : found) {
    if (number[at(own)] < 0) number[at(own)] = next++;
    part.push_back(number[at(own)]);
  }
  return part;
}

int Tearing::place(int piece, int vertex) const {
  const std::vector<int>& list = vertices[at(piece)];
  return static_cast<int>(std::lower_bound(list.begin(), list.end(), vertex) - list.begin());
}

Tearing tear(const GraphMatrix& graph, const std::vector<int>& part, int parts, bool keep_owner) {
  const auto n = static_cast<int>(graph.cols());
  const std::vector<char> covers = cover_of_cut(graph, part);
  // A small piece may consist of vertices of the cut alone: it keeps them, or nothing would be left.
  std::vector<char> is_bare(at(parts), 1);
  for (int v = 0; v < n; ++v) {
    if (covers[at(v)] == 0) is_bare[at(part[at(v)])] = 0;
  }
  Tearing tearing;
  tearing.pieces = parts;
  tearing.holders.resize(at(n));
  for (int v = 0; v < n; ++v) {
    std::vector<int>& holders = tearing.holders[at(v)];
    if (covers[at(v)] != 0) {
      for (GraphEdges it(graph, v); it; ++it) {
        if (covers[index_of(it.row())] == 0) insert_sorted(holders, part[index_of(it.row())]);
      }
    }
    const bool keeps = keep_owner || is_bare[at(part[at(v)])] != 0;
    if (holders.empty() || covers[at(v)] == 0 || keeps) insert_sorted(holders, part[at(v)]);
  }
  // Two of them that are joined need a piece in common.
  for (int v = 0; v < n; ++v) {
    if (covers[at(v)] == 0) continue;
    for (GraphEdges it(graph, v); it; ++it) {
      const auto w = index_of(it.row());
      if (covers[w] == 0 || have_common(tearing.holders[at(v)], tearing.holders[w])) continue;
      insert_sorted(tearing.holders[w], tearing.holders[at(v)].front());
    }
  }
  tearing.vertices.resize(at(parts));
  tearing.is_shared.resize(at(n));
  for (int v = 0; v < n; ++v) {
    for (const int piece : tearing.holders[at(v)]) tearing.vertices[at(piece)].push_back(v);
    tearing.is_shared[at(v)] = tearing.holders[at(v)].size() > 1 ? 1 : 0;
  }
  return tearing;
}

}  // namespace portwave
