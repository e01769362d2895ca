#include "system/semidefinite_split.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <Eigen/Cholesky>
#include <Eigen/SparseCholesky>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"

namespace portwave {
namespace {

using SparseLdlt = Eigen::SimplicialLDLT<SparseMatrix>;

constexpr double kShift = 1e-14;          // of a diagonal
constexpr double kSplitRounding = 8e-15;  // of a difference, beside the diagonal of its terms

SparseMatrix matrix_of(std::size_t size, const SparseEntries& entries) {
  const auto n = static_cast<Eigen::Index>(size);
  SparseMatrix M = sparse_matrix(n, n, entries);
  M.prune([](Eigen::Index, Eigen::Index, double value) { return value != 0.0; });
  return M;
}

double scale_of(double diagonal) { return diagonal > 0.0 ? 1.0 / std::sqrt(diagonal) : 0.0; }

// A little less than the least G that makes [A B; Bᵀ G] semidefinite for a semidefinite A: Bᵀ(A + s)⁻¹B
// with a shift s of each row, kShift of the diagonal and `floor`. With A + s = L D Lᵀ it is Yᵀ D⁻¹ Y,
// Y = L⁻¹B: the whole is that of rounded factors less the shift, semidefinite to kShift of the
// diagonal however badly A is conditioned. And the rounding of G, which a large A⁻¹B makes large,
// cannot make what is left of another matrix without it indefinite: the shift has taken more.
Eigen::MatrixXd least_complement(const SparseMatrix& A, const SparseMatrix& B,
                                 const Eigen::VectorXd& floor) {
  constexpr Eigen::Index kColumns = 64;
  const Eigen::VectorXd diagonal = A.diagonal() + floor;
  const Eigen::VectorXd scale = diagonal.unaryExpr(&scale_of);
  SparseMatrix scaled = scale.asDiagonal() * A * scale.asDiagonal();
  for (Eigen::Index i = 0; i < scaled.rows(); ++i) scaled.coeffRef(i, i) = 1.0;
  SparseLdlt ldlt;
  ldlt.setShift(kShift);
  ldlt.compute(scaled);
  const Eigen::VectorXd weight =
      ldlt.vectorD().unaryExpr([](double d) { return d > 0.0 ? 1.0 / std::sqrt(d) : 0.0; });
  Eigen::MatrixXd Y(B.rows(), B.cols());
  for (Eigen::Index j = 0; j < B.cols(); j += kColumns) {
    const Eigen::Index count = std::min(kColumns, B.cols() - j);
    Eigen::MatrixXd block = scale.asDiagonal() * Eigen::MatrixXd(B.middleCols(j, count));
    block = Eigen::MatrixXd(ldlt.permutationP() * block);
    ldlt.matrixL().solveInPlace(block);
    Y.middleCols(j, count) = weight.asDiagonal() * block;
  }
  Eigen::MatrixXd G = Eigen::MatrixXd::Zero(B.cols(), B.cols());
  G.selfadjointView<Eigen::Lower>().rankUpdate(Y.transpose());
  G = Eigen::MatrixXd(G.selfadjointView<Eigen::Lower>());
  // What has decayed below rounding fills shares and serves nothing.
  const Eigen::VectorXd size = G.diagonal().cwiseMax(0.0).cwiseSqrt();
  for (Eigen::Index j = 0; j < G.cols(); ++j) {
    for (Eigen::Index i = 0; i < G.rows(); ++i) {
      if (i != j && std::abs(G(i, j)) <= 1e-20 * size[i] * size[j]) G(i, j) = 0.0;
    }
  }
  return G;
}

bool is_definite(const SparseMatrix& A) {
  const Eigen::VectorXd diagonal = A.diagonal();
  if (diagonal.size() == 0) return true;
  if (!(diagonal.minCoeff() > 0.0)) return false;
  const Eigen::VectorXd scale = diagonal.unaryExpr(&scale_of);
  SparseLdlt ldlt(SparseMatrix(scale.asDiagonal() * A * scale.asDiagonal()));
  return ldlt.info() == Eigen::Success && ldlt.vectorD().minCoeff() > 1e-10;
}

// What is left over, by rows: it fills as vertices are eliminated.
class Remainder {
 public:
  void add(int row, int column, double value) {
    if (value != 0.0) rows_[row][column] += value;
  }
  double get(int row, int column) const {
    const auto found = rows_.find(row);
    if (found == rows_.end()) return 0.0;
    const auto entry = found->second.find(column);
    return entry == found->second.end() ? 0.0 : entry->second;
  }
  /// Vertices tied to those of `group` and not among them.
  std::vector<int> neighbours(const std::vector<int>& group) const {
    std::set<int> found;
    for (const int v : group) {
      const auto row = rows_.find(v);
      if (row == rows_.end()) continue;
      for (const auto& [w, value] : row->second) found.insert(w);
    }
    for (const int v : group) found.erase(v);
    return {found.begin(), found.end()};
  }
  void remove(const std::vector<int>& group) {
    for (const int w : neighbours(group)) {
      for (const int v : group) rows_[w].erase(v);
    }
    for (const int v : group) rows_.erase(v);
  }
  /// Rows that are 0 up to the rounding of a difference of matrices with this diagonal.
  void drop_noise(const std::vector<int>& vertices, const Eigen::VectorXd& diagonal) {
    for (const int v : vertices) {
      if (get(v, v) > kSplitRounding * diagonal[v]) continue;
      for (const int w : neighbours({v})) {
        if (std::abs(get(v, w)) > kSplitRounding * std::sqrt(diagonal[v] * diagonal[w])) continue;
        rows_[v].erase(w);
        rows_[w].erase(v);
      }
      if (rows_[v].size() <= 1) rows_.erase(v);
    }
  }
  Eigen::MatrixXd block(const std::vector<int>& rows, const std::vector<int>& columns) const {
    Eigen::MatrixXd M(rows.size(), columns.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t j = 0; j < columns.size(); ++j) {
        M(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) = get(rows[i], columns[j]);
      }
    }
    return M;
  }
  SparseMatrix matrix(const std::vector<int>& vertices) const {
    SparseEntries entries;
    for (std::size_t i = 0; i < vertices.size(); ++i) {
      const auto row = rows_.find(vertices[i]);
      if (row == rows_.end()) continue;
      for (const auto& [column, value] : row->second) {
        const auto place = std::lower_bound(vertices.begin(), vertices.end(), column);
        entries.emplace_back(static_cast<int>(i), static_cast<int>(place - vertices.begin()),
                             value);
      }
    }
    return matrix_of(vertices.size(), entries);
  }

 private:
  std::map<int, std::map<int, double>> rows_;
};

void add_dense(const Eigen::MatrixXd& M, const std::vector<int>& rows,
               const std::vector<int>& columns, const Tearing& tearing, int piece,
               SparseEntries& entries) {
  for (Eigen::Index j = 0; j < M.cols(); ++j) {
    const int column = tearing.place(piece, columns[static_cast<std::size_t>(j)]);
    for (Eigen::Index i = 0; i < M.rows(); ++i) {
      const int row = tearing.place(piece, rows[static_cast<std::size_t>(i)]);
      entries.emplace_back(row, column, M(i, j));
    }
  }
}

}  // namespace

SemidefiniteSplitter::SemidefiniteSplitter(const Tearing& tearing, Rest rest)
    : tearing_(tearing), rest_(rest) {
  const auto n = static_cast<int>(tearing.holders.size());
  if (rest == Rest::to_core) {
    for (int v = 0; v < n; ++v) {
      if (tearing.is_shared[at(v)] != 0) core_.push_back(v);
    }
    return;
  }
  // The pieces as sets of shared vertices: those that one set alone has are eliminated into it; a
  // set within another is dropped. A hypergraph without rings ends empty (Graham's reduction).
  std::vector<std::set<int>> sets(at(tearing.pieces));
  std::vector<std::set<int>> of_vertex(at(n));
  for (int v = 0; v < n; ++v) {
    if (tearing.is_shared[at(v)] == 0) continue;
    for (const int piece : tearing.holders[at(v)]) {
      sets[at(piece)].insert(v);
      of_vertex[at(v)].insert(piece);
    }
  }
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (int piece = 0; piece < tearing.pieces; ++piece) {
      std::set<int>& set = sets[at(piece)];
      Ear ear{piece, {}};
      for (const int v : set) {
        if (of_vertex[at(v)].size() == 1) ear.vertices.push_back(v);
      }
      for (const int v : ear.vertices) set.erase(v);
      if (!ear.vertices.empty()) {
        ears_.push_back(std::move(ear));
        goes_on = true;
      }
      if (set.empty()) continue;
      std::set<int> others = of_vertex[at(*set.begin())];
      others.erase(piece);
      const bool is_within = std::any_of(others.begin(), others.end(), [&](int other) {
        return std::includes(sets[at(other)].begin(), sets[at(other)].end(), set.begin(),
                             set.end());
      });
      if (!is_within) continue;
      for (const int v : set) of_vertex[at(v)].erase(piece);
      set.clear();
      goes_on = true;
    }
  }
  std::set<int> core;
  for (const std::set<int>& set : sets) core.insert(set.begin(), set.end());
  core_.assign(core.begin(), core.end());
}

int SemidefiniteSplitter::first_holder(int a, int b) const {
  const std::vector<int>& of_a = tearing_.holders[at(a)];
  const std::vector<int>& of_b = tearing_.holders[at(b)];
  for (const int piece : of_a) {
    if (std::binary_search(of_b.begin(), of_b.end(), piece)) return piece;
  }
  return -1;
}

std::vector<SparseMatrix> SemidefiniteSplitter::assign(const SparseMatrix& A) const {
  std::vector<SparseEntries> entries(at(tearing_.pieces));
  for (int j = 0; j < A.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(A, j); it; ++it) {
      const auto i = static_cast<int>(it.row());
      const int piece = first_holder(i, j);
      if (it.value() == 0.0 || piece < 0) continue;
      entries[at(piece)].emplace_back(tearing_.place(piece, i), tearing_.place(piece, j),
                                      it.value());
    }
  }
  std::vector<SparseMatrix> shares;
  for (int piece = 0; piece < tearing_.pieces; ++piece) {
    shares.push_back(matrix_of(tearing_.vertices[at(piece)].size(), entries[at(piece)]));
  }
  return shares;
}

bool SemidefiniteSplitter::split_dominant(const SparseMatrix& A, bool definite,
                                          SplitMatrix& split) const {
  split.pieces = assign(A);
  split.core = SparseMatrix(static_cast<Eigen::Index>(core_.size()),
                            static_cast<Eigen::Index>(core_.size()));
  // The diagonal of a shared vertex by piece: the magnitudes of its entries there, and an even part
  // of what is left.
  std::vector<double> rest(tearing_.holders.size(), 0.0);
  std::vector<Eigen::VectorXd> sums;
  for (int piece = 0; piece < tearing_.pieces; ++piece) {
    SparseMatrix& M = split.pieces[at(piece)];
    Eigen::VectorXd sum = Eigen::VectorXd::Zero(M.rows());
    for (int j = 0; j < M.outerSize(); ++j) {
      for (SparseMatrix::InnerIterator it(M, j); it; ++it) {
        if (it.row() != j) sum[it.row()] += std::abs(it.value());
      }
    }
    const std::vector<int>& vertices = tearing_.vertices[at(piece)];
    for (std::size_t k = 0; k < vertices.size(); ++k) {
      rest[at(vertices[k])] -= sum[static_cast<Eigen::Index>(k)];
    }
    sums.push_back(std::move(sum));
  }
  for (int v = 0; v < static_cast<int>(rest.size()); ++v) {
    if (tearing_.is_shared[at(v)] == 0) continue;
    const double diagonal = A.coeff(v, v);
    rest[at(v)] += diagonal;
    const auto entries = static_cast<double>(tearing_.holders[at(v)].size());
    if (rest[at(v)] < -kSplitRounding * diagonal) return false;
    if (definite && !(rest[at(v)] > 1e-6 * diagonal)) return false;
    rest[at(v)] /= entries;
  }
  for (int piece = 0; piece < tearing_.pieces; ++piece) {
    SparseMatrix& M = split.pieces[at(piece)];
    const std::vector<int>& vertices = tearing_.vertices[at(piece)];
    for (std::size_t k = 0; k < vertices.size(); ++k) {
      if (tearing_.is_shared[at(vertices[k])] == 0) continue;
      const auto i = static_cast<Eigen::Index>(k);
      M.coeffRef(i, i) = sums[at(piece)][i] + rest[at(vertices[k])];
    }
    M.prune([](Eigen::Index, Eigen::Index, double value) { return value != 0.0; });
    if (definite ? !is_definite(M) : !is_positive_semidefinite(M)) return false;
  }
  return true;
}

SplitMatrix SemidefiniteSplitter::split_by_elimination(const SparseMatrix& A) const {
  Remainder C;
  for (int j = 0; j < A.outerSize(); ++j) {
    if (tearing_.is_shared[at(j)] == 0) continue;
    for (SparseMatrix::InnerIterator it(A, j); it; ++it) {
      if (tearing_.is_shared[static_cast<std::size_t>(it.row())] != 0) {
        C.add(static_cast<int>(it.row()), j, it.value());
      }
    }
  }
  std::vector<SparseEntries> entries(at(tearing_.pieces));
  for (int piece = 0; piece < tearing_.pieces; ++piece) {
    const std::vector<int>& vertices = tearing_.vertices[at(piece)];
    std::vector<int> shared;
    std::vector<int> number(vertices.size());  // within the interior, or within the shared ones
    int inner = 0;
    for (std::size_t k = 0; k < vertices.size(); ++k) {
      const bool is_shared = tearing_.is_shared[at(vertices[k])] != 0;
      number[k] = is_shared ? static_cast<int>(shared.size()) : inner++;
      if (is_shared) shared.push_back(vertices[k]);
    }
    SparseEntries interior, across;
    for (std::size_t k = 0; k < vertices.size(); ++k) {
      if (tearing_.is_shared[at(vertices[k])] != 0) continue;
      for (SparseMatrix::InnerIterator it(A, vertices[k]); it; ++it) {
        const auto row = static_cast<int>(it.row());
        const int place = tearing_.place(piece, row);
        entries[at(piece)].emplace_back(place, static_cast<int>(k), it.value());
        if (tearing_.is_shared[at(row)] == 0) {
          interior.emplace_back(number[at(place)], number[k], it.value());
        } else {
          entries[at(piece)].emplace_back(static_cast<int>(k), place, it.value());
          across.emplace_back(number[k], number[at(place)], it.value());
        }
      }
    }
    if (across.empty()) continue;
    SparseMatrix A_IS = sparse_matrix(inner, static_cast<Eigen::Index>(shared.size()), across);
    const Eigen::MatrixXd G =
        least_complement(matrix_of(at(inner), interior), A_IS, Eigen::VectorXd::Zero(inner));
    add_dense(G, shared, shared, tearing_, piece, entries[at(piece)]);
    for (std::size_t j = 0; j < shared.size(); ++j) {
      for (std::size_t i = 0; i < shared.size(); ++i) {
        C.add(shared[i], shared[j], -G(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)));
      }
    }
  }

  std::vector<int> all;
  for (int v = 0; v < static_cast<int>(tearing_.holders.size()); ++v) {
    if (tearing_.is_shared[at(v)] != 0) all.push_back(v);
  }
  const Eigen::VectorXd diagonal_of_A = A.diagonal();
  C.drop_noise(all, diagonal_of_A);
  // The largest even share of the diagonal, in powers of two, that leaves C definite.
  const SparseMatrix left = C.matrix(all);
  for (double share = 0.5; share > 1e-11; share *= 0.5) {
    SparseMatrix rest = left;
    const Eigen::VectorXd diagonal = left.diagonal();
    if (diagonal.size() == 0 || !(diagonal.minCoeff() > 0.0)) break;
    const Eigen::VectorXd scale = diagonal.unaryExpr(&scale_of);
    rest = scale.asDiagonal() * rest * scale.asDiagonal();
    SparseLdlt ldlt;
    ldlt.setShift(-share);
    ldlt.compute(rest);
    if (ldlt.info() != Eigen::Success || !(ldlt.vectorD().minCoeff() > 0.0)) continue;
    for (std::size_t k = 0; k < all.size(); ++k) {
      const std::vector<int>& holders = tearing_.holders[at(all[k])];
      const double each = 0.5 * share * diagonal[static_cast<Eigen::Index>(k)] /
                          static_cast<double>(holders.size());
      for (const int piece : holders) {
        const int place = tearing_.place(piece, all[k]);
        entries[at(piece)].emplace_back(place, place, each);
        C.add(all[k], all[k], -each);
      }
    }
    break;
  }

  for (const Ear& ear : ears_) {
    C.drop_noise(ear.vertices, diagonal_of_A);
    const std::vector<int> tied = C.neighbours(ear.vertices);
    const Eigen::MatrixXd own = C.block(ear.vertices, ear.vertices);
    const Eigen::MatrixXd across = C.block(ear.vertices, tied);
    add_dense(own, ear.vertices, ear.vertices, tearing_, ear.piece, entries[at(ear.piece)]);
    add_dense(across, ear.vertices, tied, tearing_, ear.piece, entries[at(ear.piece)]);
    add_dense(across.transpose(), tied, ear.vertices, tearing_, ear.piece, entries[at(ear.piece)]);
    if (tied.empty()) {
      C.remove(ear.vertices);
      continue;
    }
    Eigen::VectorXd floor(own.rows());
    for (Eigen::Index i = 0; i < floor.size(); ++i) {
      floor[i] = kSplitRounding * diagonal_of_A[ear.vertices[static_cast<std::size_t>(i)]];
    }
    const Eigen::MatrixXd G = least_complement(own.sparseView(), across.sparseView(), floor);
    add_dense(G, tied, tied, tearing_, ear.piece, entries[at(ear.piece)]);
    C.remove(ear.vertices);
    for (std::size_t j = 0; j < tied.size(); ++j) {
      for (std::size_t i = 0; i < tied.size(); ++i) {
        C.add(tied[i], tied[j], -G(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)));
      }
    }
  }
  SplitMatrix split;
  for (int piece = 0; piece < tearing_.pieces; ++piece) {
    split.pieces.push_back(matrix_of(tearing_.vertices[at(piece)].size(), entries[at(piece)]));
  }
  C.drop_noise(core_, diagonal_of_A);
  split.core = C.matrix(core_);
  return split;
}

SplitMatrix SemidefiniteSplitter::split(const SparseMatrix& A, bool definite) const {
  SplitMatrix split;
  if (rest_ == Rest::to_pieces && split_dominant(A, definite, split)) return split;
  return split_by_elimination(A);
}

}  // namespace portwave
