#include "matrices/elimination_order.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <Eigen/OrderingMethods>

#include "portwave/subsystems/matrices/unpivoted_lu.hpp"

namespace portwave {
namespace {

/// Portions that the work is cut into, however many threads there are.
constexpr std::size_t kShares = 16;
/// Smaller matrices are not worth a dissection.
constexpr std::size_t kWorthDissecting = 2048;
/// Rows that are not dissected further. Substitutions of one after the other wait for one another.
constexpr std::size_t kLeaf = 24;
/// Entries more that a dissection may cost.
constexpr double kMostFill = 1.15;

/// The order of minimal degree: place of each row.
std::vector<int> minimal_degree(const SparseMatrix& A) {
  Eigen::PermutationMatrix<Eigen::Dynamic, Eigen::Dynamic, int> inverse;
  Eigen::AMDOrdering<int>()(A, inverse);
  std::vector<int> order(at(static_cast<int>(A.rows())));
  for (int place = 0; place < static_cast<int>(order.size()); ++place) {
    order[at(inverse.indices()[place])] = place;
  }
  return order;
}

/// An equivalent order, in which every subtree of the elimination tree lies side by side.
std::vector<int> in_postorder(const SparseMatrix& A, const std::vector<int>& order,
                              EliminationTree& tree) {
  const int n = static_cast<int>(order.size());
  std::vector<int> parent(order.size(), -1), entries(order.size(), 0);
  eliminate(A, order, [&](int row, int column) {
    if (parent[at(column)] < 0) parent[at(column)] = row;  // rows come in order
    ++entries[at(column)];
    return true;
  });
  // Children come before their parents: counted upwards, subtrees get their places downwards.
  std::vector<int> size(order.size(), 1), end(order.size(), 0), place(order.size());
  for (int i = 0; i < n; ++i) {
    if (parent[at(i)] >= 0) size[at(parent[at(i)])] += size[at(i)];
  }
  int last = n;
  for (int i = n - 1; i >= 0; --i) {
    int& free = parent[at(i)] >= 0 ? end[at(parent[at(i)])] : last;
    place[at(i)] = end[at(i)] = free - 1;
    free -= size[at(i)];
  }
  std::vector<int> out(order.size());
  for (std::size_t row = 0; row < order.size(); ++row) out[row] = place[at(order[row])];
  tree.parent.assign(order.size(), -1);
  tree.entries.resize(order.size());
  for (int i = 0; i < n; ++i) {
    tree.entries[at(place[at(i)])] = entries[at(i)];
    if (parent[at(i)] >= 0) tree.parent[at(place[at(i)])] = place[at(parent[at(i)])];
  }
  return out;
}

/// Nested dissection of the graph of A + Aᵀ: the middle one of the layers around an outermost node separates two
/// halves, and comes last.
class Dissection {
 public:
  Dissection(const SparseMatrix& A, const std::vector<int>& inner_order)
      : inner_order_(inner_order),
        begin_(inner_order.size() + 1, 0),
        part_(inner_order.size(), 0),
        layer_(inner_order.size(), -1) {
    const int n = static_cast<int>(inner_order.size());
    const auto for_entries = [&](const auto& act) {
      for (int j = 0; j < n; ++j) {
        for (SparseMatrix::InnerIterator it(A, j); it; ++it) {
          const int i = static_cast<int>(it.row());
          if (i == j) continue;
          act(i, j);
          act(j, i);
        }
      }
    };
    for_entries([&](int i, int) { ++begin_[at(i) + 1]; });
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    neighbours_.resize(at(begin_.back()));
    std::vector<int> next(begin_.begin(), begin_.end() - 1);
    for_entries([&](int i, int j) { neighbours_[at(next[at(i)]++)] = j; });
  }

  /// The place of each row.
  std::vector<int> order() {
    std::vector<int> all(inner_order_.size());
    std::iota(all.begin(), all.end(), 0);
    dissect(std::move(all));
    std::vector<int> out(inner_order_.size());
    for (std::size_t place = 0; place < sorted_.size(); ++place) {
      out[at(sorted_[place])] = static_cast<int>(place);
    }
    return out;
  }

 private:
  void put(std::vector<int> nodes) {
    std::ranges::sort(nodes, {}, [&](int node) { return inner_order_[at(node)]; });
    sorted_.insert(sorted_.end(), nodes.begin(), nodes.end());
  }

  void dissect(std::vector<int> nodes) {
    if (nodes.size() < kLeaf) return put(std::move(nodes));
    const int own = ++parts_;
    for (const int node : nodes) part_[at(node)] = own;
    const int outermost = layers_around(nodes.front(), nodes, own);
    layers_around(outermost, nodes, own);
    std::vector<int> count;
    for (const int node : nodes) {
      const int layer = layer_[at(node)];
      if (layer >= static_cast<int>(count.size())) count.resize(at(layer) + 1, 0);
      ++count[at(layer)];
    }
    // The smallest layer with at least a third of the nodes on either side.
    int middle = -1, below = 0;
    for (int layer = 0; layer < static_cast<int>(count.size()); ++layer) {
      const int above = static_cast<int>(nodes.size()) - below - count[at(layer)];
      const bool is_balanced = 3 * std::min(below, above) >= static_cast<int>(nodes.size()) - 3;
      if (is_balanced && (middle < 0 || count[at(layer)] < count[at(middle)])) middle = layer;
      below += count[at(layer)];
    }
    if (middle < 0) return put(std::move(nodes));
    std::vector<int> sides[2], separator;
    for (const int node : nodes) {
      const int layer = layer_[at(node)];
      (layer == middle ? separator : sides[layer > middle ? 1 : 0]).push_back(node);
    }
    for (std::vector<int>& side : sides) dissect(std::move(side));
    put(std::move(separator));
  }

  /// Numbers the layers of these nodes, which belong to part `own`, around `start`; what is not connected with it
  /// follows in layers of its own. Returns a node of the last layer.
  int layers_around(int start, const std::vector<int>& nodes, int own) {
    for (const int node : nodes) layer_[at(node)] = -1;
    std::vector<int> queue;
    int layer = 0;
    const auto spread = [&](int from) {
      layer_[at(from)] = layer;
      queue.push_back(from);
      for (std::size_t head = queue.size() - 1; head < queue.size(); ++head) {
        const int node = queue[head];
        for (int p = begin_[at(node)]; p < begin_[at(node) + 1]; ++p) {
          const int other = neighbours_[at(p)];
          if (part_[at(other)] != own || layer_[at(other)] >= 0) continue;
          layer_[at(other)] = layer_[at(node)] + 1;
          queue.push_back(other);
        }
      }
      layer = layer_[at(queue.back())] + 1;
    };
    spread(start);
    for (const int node : nodes) {
      if (layer_[at(node)] < 0) spread(node);
    }
    return queue.back();
  }

  const std::vector<int>& inner_order_;
  std::vector<int> begin_, neighbours_;
  std::vector<int> part_;  // the last one that a node belonged to
  std::vector<int> layer_;
  std::vector<int> sorted_;  // nodes in the order of elimination
  int parts_ = 0;
};

void sort_by_rows(std::vector<std::pair<int, int>>& subtrees, std::span<const int> row_at) {
  std::vector<std::pair<int, std::pair<int, int>>> sorted;
  std::vector<int> rows;
  for (const auto& [begin, end] : subtrees) {
    rows.assign(row_at.begin() + begin, row_at.begin() + end);
    const auto middle = rows.begin() + (end - begin) / 2;
    std::ranges::nth_element(rows, middle);
    sorted.emplace_back(*middle, std::pair(begin, end));
  }
  std::ranges::sort(sorted);
  std::ranges::transform(sorted, subtrees.begin(), [](const auto& own) { return own.second; });
}

}  // namespace

std::size_t EliminationTree::entries_in_all() const {
  return std::accumulate(entries.begin(), entries.end(), entries.size());
}

EliminationTree::Cut EliminationTree::cut(std::span<const int> row_at) const {
  const int n = static_cast<int>(parent.size());
  std::vector<int> first(parent.size());  // of the subtree of each node
  std::vector<std::size_t> weight(parent.size());
  for (int i = 0; i < n; ++i) first[at(i)] = i;
  for (int i = 0; i < n; ++i) {
    weight[at(i)] += 1 + at(entries[at(i)]);
    if (parent[at(i)] < 0) continue;
    first[at(parent[at(i)])] = std::min(first[at(parent[at(i)])], first[at(i)]);
    weight[at(parent[at(i)])] += weight[at(i)];
  }
  const auto with_subtrees_of = [&](std::size_t most) {
    Cut out;
    for (int root = n - 1; root >= 0;) {
      if (weight[at(root)] > most) {
        out.above.push_back(root);
        out.entries_above += 1 + at(entries[at(root)]);
        --root;  // where its last child, or another tree, ends
      } else {
        out.subtrees.emplace_back(first[at(root)], root + 1);
        root = first[at(root)] - 1;
      }
    }
    std::ranges::reverse(out.above);
    return out;
  };
  const std::size_t all = entries_in_all();
  const std::size_t share = std::max<std::size_t>(all / kShares, 1);
  Cut out = with_subtrees_of(share);
  // Of a tree that is a chain much would be above.
  if (out.entries_above > share) out = with_subtrees_of(2 * share);
  if (row_at.empty()) return out;
  sort_by_rows(out.subtrees, row_at);
  const std::size_t below = std::max<std::size_t>(all - out.entries_above, 1);
  std::size_t sum = 0, portion = kShares;
  for (int i = 0; i < static_cast<int>(out.subtrees.size()); ++i) {
    const std::size_t own = weight[at(out.subtrees[at(i)].second - 1)];
    const std::size_t middle = (2 * sum + own) * kShares / (2 * below);
    if (std::exchange(portion, middle) != middle) out.first_of_block.push_back(i);
    sum += own;
  }
  out.first_of_block.push_back(static_cast<int>(out.subtrees.size()));
  return out;
}

std::vector<int> elimination_order(const SparseMatrix& A, EliminationTree& tree) {
  const std::vector<int> minimal = minimal_degree(A);
  std::vector<int> order = in_postorder(A, minimal, tree);
  const std::size_t entries = tree.entries_in_all();
  if (entries < kWorthDissecting) return order;
  EliminationTree other;
  std::vector<int> dissected = in_postorder(A, Dissection(A, minimal).order(), other);
  const bool is_lean =
      static_cast<double>(other.entries_in_all()) <= kMostFill * static_cast<double>(entries);
  if (!is_lean || other.cut().entries_above >= tree.cut().entries_above) return order;
  tree = std::move(other);
  return dissected;
}

std::size_t expected_lu_entries(const SparseMatrix& A, std::size_t most) {
  std::size_t lower = 0;
  const auto count = [&] { return 2 * lower + at(static_cast<int>(A.rows())); };
  eliminate(A, minimal_degree(A), [&](int, int) {
    ++lower;
    return count() <= most;
  });
  return count();
}

}  // namespace portwave
