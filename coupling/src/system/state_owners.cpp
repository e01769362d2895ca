#include "system/state_owners.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "portwave/coupling/system/graph_partition.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "system/cut_pieces.hpp"

namespace portwave {
namespace {

/// States that cannot be parted, by number of their group.
std::vector<int> kept_together(const WholeStructure& whole, bool with_algebraic) {
  const Structure& s = whole.structure;
  const int n = s.states(), m = s.inputs();
  VertexGroups groups(n + m);
  const auto join = [&groups](int a, int b, double) { groups.join(a, b); };
  // What feeds through belongs to the states that it acts on.
  std::vector<char> feeds(at(m), 0);
  const auto mark = [&](int a, int b, double) { feeds[at(a)] = feeds[at(b)] = 1; };
  for_entries(s.S, mark);
  for_entries(s.N, mark);
  for_entries(s.P, [&](int, int input, double) { feeds[at(input)] = 1; });
  const auto join_inputs = [&](int a, int b, double) { groups.join(n + a, n + b); };
  for_entries(s.S, join_inputs);
  for_entries(s.N, join_inputs);
  for (const SparseMatrix* const M : {&s.G, &s.P}) {
    for_entries(*M, [&](int state, int input, double) {
      if (feeds[at(input)] != 0) groups.join(state, n + input);
    });
  }
  if (whole.E != nullptr) {
    for_entries(*whole.E, join);
    for_entries(whole.Q, join);
    if (with_algebraic) {
      std::vector<char> has_derivative(at(n), 0);
      for_entries(*whole.E, [&](int row, int, double) { has_derivative[at(row)] = 1; });
      const auto join_algebraic = [&](int a, int b, double) {
        if (has_derivative[at(a)] == 0 || has_derivative[at(b)] == 0) groups.join(a, b);
      };
      for_entries(s.J, join_algebraic);
      for_entries(s.R, join_algebraic);
    }
  }
  std::vector<int> numbers = groups.numbers();
  // Inputs are no vertices of the graph: their groups may leave gaps in the numbers.
  numbers.resize(at(n));
  std::map<int, int> dense;
  for (int& number : numbers)
    number = dense.emplace(number, static_cast<int>(dense.size())).first->second;
  return numbers;
}

}  // namespace

std::vector<int> state_owners(const WholeStructure& whole, int parts, bool with_algebraic,
                              int& count) {
  const std::vector<int> groups = kept_together(whole, with_algebraic);
  const int group_count = *std::max_element(groups.begin(), groups.end()) + 1;
  if (group_count < parts) {
    throw ConfigError(
        "", fmt::format("cannot be cut into {} parts: its states hang together in {} group{}, "
                        "tied by {}",
                        parts, group_count, group_count == 1 ? "" : "s",
                        whole.E != nullptr ? "E and Q.\nA system with a mass matrix can be given "
                                             "as second_order_system, which can be cut"
                                           : "inputs that feed through (P, S, N)"));
  }
  const Structure& s = whole.structure;
  SparseMatrix pattern = s.J.cwiseAbs() + SparseMatrix(s.R.cwiseAbs());
  pattern = pattern + SparseMatrix(whole.Q.cwiseAbs());
  if (whole.E != nullptr) pattern = pattern + SparseMatrix(whole.E->cwiseAbs());
  std::vector<int> owner = partition_graph(graph_of(pattern), groups, parts);
  count = without_empty_parts(owner, parts);
  return owner;
}

}  // namespace portwave
