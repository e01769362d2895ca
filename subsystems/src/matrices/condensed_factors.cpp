#include "portwave/subsystems/matrices/condensed_factors.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <Eigen/Core>
#include <Eigen/OrderingMethods>

#include "kernels/factor_kernels.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {

namespace factor_columns {

const Kernels& kernels() { return PORTWAVE_KERNELS(kFactorColumns); }

}  // namespace factor_columns

struct CondensedFactors::Symbolic {
  std::vector<int> place;  // by row of A
};

namespace {

using Matrix = Eigen::MatrixXd;

int width_of(const FactorBlock& node) { return node.last - node.first; }
int height_of(const FactorBlock& node) { return width_of(node) + node.below_count; }

/// Rows of the interior in the order of minimal degree. `number` of a row there; −1: none.
std::vector<int> minimal_degree(const SparseMatrix& A, const std::vector<int>& interior,
                                const std::vector<int>& number) {
  const auto n = static_cast<int>(interior.size());
  SparseMatrix lower(n, n);
  lower.reserve(A.nonZeros() / 2 + n);
  for (int j = 0; j < n; ++j) {
    lower.startVec(j);
    for (SparseMatrix::InnerIterator it(A, interior[at(j)]); it; ++it) {
      const int i = number[at(static_cast<int>(it.row()))];
      if (i >= j) lower.insertBack(i, j) = 1.0;
    }
  }
  lower.finalize();
  Eigen::PermutationMatrix<Eigen::Dynamic, Eigen::Dynamic, int> inverse;
  if (n > 0) Eigen::AMDOrdering<int>()(lower.selfadjointView<Eigen::Lower>(), inverse);
  std::vector<int> order(at(n));
  for (int k = 0; k < n; ++k) order[at(k)] = interior[at(inverse.indices()[k])];
  return order;
}

/// Parents in the elimination tree; −1: none. `place` gives the place of each row.
std::vector<int> elimination_tree(const SparseMatrix& A, const std::vector<int>& order,
                                  const std::vector<int>& place, int interior) {
  std::vector<int> parent(at(interior), -1), ancestor(at(interior), -1);
  for (int k = 0; k < interior; ++k) {
    for (SparseMatrix::InnerIterator it(A, order[at(k)]); it; ++it) {
      int i = place[at(static_cast<int>(it.row()))];
      while (i < k && i >= 0) {
        const int next = ancestor[at(i)];
        ancestor[at(i)] = k;
        if (next < 0) parent[at(i)] = k;
        if (next == k) break;
        i = next;
      }
    }
  }
  return parent;
}

/// Numbers such that the columns below a node come right before it.
std::vector<int> postorder(const std::vector<int>& parent) {
  const auto n = static_cast<int>(parent.size());
  std::vector<int> first(at(n), -1), next(at(n), -1), roots, number(at(n), -1), stack;
  for (int v = n - 1; v >= 0; --v) {
    if (parent[at(v)] < 0) {
      roots.push_back(v);
    } else {
      next[at(v)] = first[at(parent[at(v)])];
      first[at(parent[at(v)])] = v;
    }
  }
  int count = 0;
  while (!roots.empty()) {
    stack.push_back(roots.back());
    roots.pop_back();
    while (!stack.empty()) {
      const int v = stack.back();
      const int child = first[at(v)];
      if (child >= 0) {
        first[at(v)] = next[at(child)];
        stack.push_back(child);
      } else {
        number[at(v)] = count++;
        stack.pop_back();
      }
    }
  }
  return number;
}

/// Whether a block and the one above it are better one: few zeros more, for fewer and wider columns.
bool is_worth_joining(double entries, double zeros, int width) {
  const double share = zeros / entries;
  return width <= 4    ? share < 0.5
         : width <= 16 ? share < 0.15
         : width <= 48 ? share < 0.08
                       : share < 0.03;
}

}  // namespace

void CondensedFactors::analyse(const SparseMatrix& A, std::span<const int> boundary,
                               Symbolic& symbolic) {
  const auto n = static_cast<int>(A.rows());
  interior_ = n - static_cast<int>(boundary.size());
  std::vector<int>& place = symbolic.place;
  place.assign(at(n), 0);
  for (const int row : boundary) place[at(row)] = -1;
  std::vector<int> inner, number(at(n), -1);
  for (int i = 0; i < n; ++i) {
    if (place[at(i)] < 0) continue;
    number[at(i)] = static_cast<int>(inner.size());
    inner.push_back(i);
  }
  order_ = minimal_degree(A, inner, number);
  const auto set_places = [&] {
    for (int k = 0; k < interior_; ++k) place[at(order_[at(k)])] = k;
    for (std::size_t k = 0; k < boundary.size(); ++k) {
      place[at(boundary[k])] = interior_ + static_cast<int>(k);
    }
  };
  set_places();
  std::vector<int> parent = elimination_tree(A, order_, place, interior_);
  {
    const std::vector<int> post = postorder(parent);
    std::vector<int> moved(at(interior_)), moved_parent(at(interior_));
    for (int k = 0; k < interior_; ++k) {
      moved[at(post[at(k)])] = order_[at(k)];
      const int above = parent[at(k)];
      moved_parent[at(post[at(k)])] = above < 0 ? -1 : post[at(above)];
    }
    order_ = std::move(moved);
    parent = std::move(moved_parent);
  }
  order_.insert(order_.end(), boundary.begin(), boundary.end());
  set_places();

  // Entries by column, the diagonal included: each row climbs the tree from its own entries.
  std::vector<int> count(at(interior_), 1), mark(at(interior_), -1);
  for (int i = 0; i < n; ++i) {
    if (i < interior_) mark[at(i)] = i;
    for (SparseMatrix::InnerIterator it(A, order_[at(i)]); it; ++it) {
      int j = place[at(static_cast<int>(it.row()))];
      if (j >= interior_ || j >= i) continue;
      for (; j >= 0 && j < i && mark[at(j)] != i; j = parent[at(j)]) {
        mark[at(j)] = i;
        ++count[at(j)];
      }
    }
  }

  // Columns of one pattern, then blocks joined to the one above where that is the next.
  struct Block {
    int first, last;
    double height, zeros;
  };
  std::vector<Block> blocks;
  const auto join_back = [&] {
    while (blocks.size() > 1) {
      const Block &own = blocks.back(), &before = blocks[blocks.size() - 2];
      const int above = parent[at(before.last - 1)];
      if (above < own.first || above >= own.last) return;
      const double of_before = before.last - before.first;
      const double height = own.height + of_before;
      const double zeros = own.zeros + before.zeros + of_before * (height - before.height);
      const int width = own.last - before.first;
      if (!is_worth_joining(width * height, zeros, width)) return;
      const Block joined{before.first, own.last, height, zeros};
      blocks.pop_back();
      blocks.back() = joined;
    }
  };
  for (int j = 0; j < interior_;) {
    int last = j + 1;
    while (last < interior_ && parent[at(last - 1)] == last &&
           count[at(last)] == count[at(last - 1)] - 1) {
      ++last;
    }
    blocks.push_back({j, last, static_cast<double>(count[at(j)]), 0.0});
    j = last;
    join_back();
  }

  // Rows of each block: those of A and of the blocks below.
  nodes_.assign(blocks.size(), {});
  rows_.clear();
  std::vector<int> node_of(at(interior_)), first_child(blocks.size(), -1),
      sibling(blocks.size(), -1);
  std::vector<int> seen(at(n), -1), own_rows;
  std::size_t values = 0;
  longest_ = 0;
  for (std::size_t s = 0; s < blocks.size(); ++s) {
    for (int j = blocks[s].first; j < blocks[s].last; ++j) node_of[at(j)] = static_cast<int>(s);
  }
  for (std::size_t s = 0; s < blocks.size(); ++s) {
    Node& node = nodes_[s];
    node.first = blocks[s].first;
    node.last = blocks[s].last;
    own_rows.clear();
    const auto take = [&](int row) {
      if (row < node.last || seen[at(row)] == static_cast<int>(s)) return;
      seen[at(row)] = static_cast<int>(s);
      own_rows.push_back(row);
    };
    for (int j = node.first; j < node.last; ++j) {
      for (SparseMatrix::InnerIterator it(A, order_[at(j)]); it; ++it) {
        take(place[at(static_cast<int>(it.row()))]);
      }
    }
    for (int child = first_child[s]; child >= 0; child = sibling[at(child)]) {
      const Node& below = nodes_[at(child)];
      for (int i = 0; i < below.below_count; ++i) take(rows_[below.below + at(i)]);
    }
    std::sort(own_rows.begin(), own_rows.end());
    node.below = rows_.size();
    node.below_count = static_cast<int>(own_rows.size());
    rows_.insert(rows_.end(), own_rows.begin(), own_rows.end());
    node.values = values;
    values += at(width_of(node)) * at(height_of(node));
    values = (values + 7) / 8 * 8;
    longest_ = std::max(longest_, at(height_of(node)));
    node.parent =
        own_rows.empty() || own_rows.front() >= interior_ ? -1 : node_of[at(own_rows.front())];
    if (node.parent >= 0) {
      sibling[s] = first_child[at(node.parent)];
      first_child[at(node.parent)] = static_cast<int>(s);
    }
  }
  values_.assign(values, 0.0);
  inverse_.assign(at(interior_), 0.0);
}

/// Columns of a block that has all its terms, and what the rows below it are multiplied by.
bool CondensedFactors::eliminate_block(const Node& node, Pivots pivots) {
  const bool skips = pivots == Pivots::semidefinite;
  const double smallest = factor_columns::kernels().factorise(
      {values_.data() + node.values, height_of(node), width_of(node)}, skips,
      inverse_.data() + node.first);
  if (!(smallest >= smallest_pivot_)) smallest_pivot_ = smallest;
  return smallest > 0.0 || (skips && !std::isnan(smallest));
}

bool CondensedFactors::eliminate(const SparseMatrix& A, const Symbolic& symbolic, Pivots pivots) {
  const auto n = static_cast<int>(A.rows());
  const int outer = n - interior_;
  const std::vector<int>& place = symbolic.place;
  smallest_pivot_ = std::numeric_limits<double>::infinity();
  work_ = 0.0;
  schur_.resize(0, 0);
  if (interior_ == 0) return true;
  schur_ = Matrix::Zero(outer, outer);
  for (int j = 0; j < outer; ++j) {
    for (SparseMatrix::InnerIterator it(A, order_[at(interior_ + j)]); it; ++it) {
      const int i = place[at(static_cast<int>(it.row()))] - interior_;
      if (i >= j) schur_(i, j) += it.value();
    }
  }
  std::vector<Matrix> updates(nodes_.size());
  std::vector<std::vector<int>> children(nodes_.size());
  std::vector<int> local(at(n), 0);
  for (std::size_t s = 0; s < nodes_.size(); ++s) {
    const Node& node = nodes_[s];
    const int width = width_of(node), height = height_of(node), below = node.below_count;
    const int* const rows = rows_.data() + node.below;
    double* const block = values_.data() + node.values;
    for (int k = 0; k < width; ++k) local[at(node.first + k)] = k;
    for (int i = 0; i < below; ++i) local[at(rows[i])] = width + i;
    for (int k = 0; k < width; ++k) {
      double* const own = block + static_cast<std::ptrdiff_t>(k) * height;
      for (SparseMatrix::InnerIterator it(A, order_[at(node.first + k)]); it; ++it) {
        const int i = place[at(static_cast<int>(it.row()))];
        if (i >= node.first + k) own[local[at(i)]] += it.value();
      }
    }
    Matrix rest = Matrix::Zero(below, below);
    for (const int child : children[s]) {
      const Node& from = nodes_[at(child)];
      const int* const from_rows = rows_.data() + from.below;
      const Matrix& update = updates[at(child)];
      for (int j = 0; j < from.below_count; ++j) {
        const int column = local[at(from_rows[j])];
        double* const to =
            column < width
                ? block + static_cast<std::ptrdiff_t>(column) * height
                : rest.data() + static_cast<std::ptrdiff_t>(column - width) * below - width;
        const double* const values =
            update.data() + static_cast<std::ptrdiff_t>(j) * from.below_count;
        for (int i = j; i < from.below_count; ++i) to[local[at(from_rows[i])]] += values[i];
      }
      updates[at(child)] = Matrix();
    }
    if (!eliminate_block(node, pivots)) return false;
    if (below == 0) continue;
    work_ += 0.5 * width * static_cast<double>(height) * height;
    factor_columns::kernels().subtract_square({block, height, width}, rest.data());
    if (node.parent >= 0) {
      children[at(node.parent)].push_back(static_cast<int>(s));
      updates[s] = std::move(rest);
      continue;
    }
    for (int j = 0; j < below; ++j) {
      for (int i = j; i < below; ++i) {
        schur_(rows[i] - interior_, rows[j] - interior_) += rest(i, j);
      }
    }
  }
  schur_.triangularView<Eigen::StrictlyUpper>() = schur_.transpose();
  return schur_.allFinite();
}

bool CondensedFactors::factorise(const SparseMatrix& A, std::span<const int> boundary,
                                 Pivots pivots) {
  Symbolic symbolic;
  analyse(A, boundary, symbolic);
  return eliminate(A, symbolic, pivots);
}

void CondensedFactors::reduce(double* w, double* scratch) const {
  factor_columns::kernels().reduce(
      {nodes_.data(), nodes_.size(), rows_.data(), values_.data(), inverse_.data()}, w, scratch);
}

void CondensedFactors::expand(double* w, double* scratch) const {
  factor_columns::kernels().expand(
      {nodes_.data(), nodes_.size(), rows_.data(), values_.data(), inverse_.data()}, w, scratch);
}

void CondensedFactors::multiply_schur(const double* x, double* y) const {
  const auto size = static_cast<int>(schur_.rows());
  std::fill_n(y, size, 0.0);
  factor_columns::kernels().multiply(schur_.data(), size, size, x, y);
}

std::size_t CondensedFactors::bytes() const {
  return 8 * (values_.capacity() + inverse_.capacity()) +
         4 * (rows_.capacity() + order_.capacity()) + sizeof(Node) * nodes_.capacity() +
         8 * static_cast<std::size_t>(schur_.size());
}

}  // namespace portwave
