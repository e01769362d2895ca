#include "system/condensed_split.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/matrices/condensed_factors.hpp"

namespace portwave {
namespace {

constexpr double kPivotShift = 1e-14;  // of a diagonal, as in SemidefiniteSplitter

/// Places of vertices among those of one piece and among the shared ones; −1: not there.
struct Places {
  std::vector<int> piece, shared;
};

/// What a piece takes of A_SS, and its shared vertices.
struct Complement {
  std::vector<int> shared;  ///< numbers of its shared vertices
  Eigen::MatrixXd less;     ///< −A_SI A_II⁺ A_IS; empty: nothing
};

struct Split {
  std::vector<SparseMatrix> pieces;
  SparseMatrix interface;
};

class Splitter {
 public:
  explicit Splitter(const Tearing& tearing, const std::vector<int>& shared)
      : tearing_(tearing), shared_(shared) {
    places_.piece.assign(tearing.holders.size(), -1);
    places_.shared.assign(tearing.holders.size(), -1);
    for (std::size_t k = 0; k < shared.size(); ++k) {
      places_.shared[at(shared[k])] = static_cast<int>(k);
    }
  }

  Split split(const SparseMatrix& A) {
    Split out{std::vector<SparseMatrix>(at(tearing_.pieces)), {}};
    std::vector<Complement> complements(at(tearing_.pieces));
    for (int piece = 0; piece < tearing_.pieces; ++piece) {
      take_piece(A, tearing_.vertices[at(piece)], complements[at(piece)], out.pieces[at(piece)]);
    }
    take_rest(A, complements, out.interface);
    return out;
  }

 private:
  bool is_shared(int vertex) const { return places_.shared[at(vertex)] >= 0; }

  /// Entries of a column of A within the piece, but for those between two shared vertices; ascending.
  template <class Visit>
  void for_own_entries(const SparseMatrix& A, int vertex, const Visit& visit) const {
    for (SparseMatrix::InnerIterator it(A, vertex); it; ++it) {
      const auto row = static_cast<int>(it.row());
      const int i = places_.piece[at(row)];
      if (i < 0 || it.value() == 0.0 || (is_shared(vertex) && is_shared(row))) continue;
      visit(i, it.value(), is_shared(row));
    }
  }

  void take_piece(const SparseMatrix& A, const std::vector<int>& vertices, Complement& complement,
                  SparseMatrix& own) {
    const auto size = static_cast<int>(vertices.size());
    for (int k = 0; k < size; ++k) places_.piece[at(vertices[at(k)])] = k;
    std::vector<int> boundary;
    bool crosses = false;
    SparseMatrix shifted(size, size);
    shifted.reserve(A.nonZeros() / tearing_.pieces);
    for (int k = 0; k < size; ++k) {
      const int vertex = vertices[at(k)];
      if (is_shared(vertex)) {
        boundary.push_back(k);
        complement.shared.push_back(places_.shared[at(vertex)]);
      }
      shifted.startVec(k);
      for_own_entries(A, vertex, [&](int i, double value, bool is_across) {
        crosses = crosses || is_across;
        shifted.insertBack(i, k) = i == k ? value * (1.0 + kPivotShift) : value;
      });
    }
    shifted.finalize();
    if (crosses) {
      CondensedFactors factors;
      if (!factors.factorise(shifted, boundary, CondensedFactors::Pivots::semidefinite)) {
        throw ConfigError("", "cannot be cut: a share of a piece is not finite");
      }
      complement.less = factors.schur();
    }
    own.resize(size, size);
    own.reserve(shifted.nonZeros() + complement.less.size());
    for (int k = 0, column = 0; k < size; ++k) {
      const int vertex = vertices[at(k)];
      const bool has_complement = crosses && is_shared(vertex);
      own.startVec(k);
      std::size_t next = 0;  // of the boundary
      const auto add_until = [&](int end) {
        for (; has_complement && next < boundary.size() && boundary[next] < end; ++next) {
          const double value = -complement.less(static_cast<Eigen::Index>(next), column);
          if (value != 0.0) own.insertBack(boundary[next], k) = value;
        }
      };
      for_own_entries(A, vertex, [&](int i, double value, bool /*is_across*/) {
        add_until(i);
        own.insertBack(i, k) = value;
      });
      add_until(size);
      if (is_shared(vertex)) ++column;
    }
    own.finalize();
    for (const int vertex : vertices) places_.piece[at(vertex)] = -1;
  }

  /// A_SS and what the pieces have taken of it, column by column.
  void take_rest(const SparseMatrix& A, const std::vector<Complement>& complements,
                 SparseMatrix& rest) const {
    const auto size = static_cast<int>(shared_.size());
    std::vector<std::vector<std::pair<int, int>>> holders(at(size));  // piece, place there
    for (std::size_t piece = 0; piece < complements.size(); ++piece) {
      if (complements[piece].less.size() == 0) continue;
      const std::vector<int>& own = complements[piece].shared;
      for (std::size_t k = 0; k < own.size(); ++k) {
        holders[at(own[k])].emplace_back(static_cast<int>(piece), static_cast<int>(k));
      }
    }
    rest.resize(size, size);
    std::vector<double> column(at(size), 0.0);
    std::vector<char> is_there(at(size), 0);
    std::vector<int> rows;
    for (int j = 0; j < size; ++j) {
      rows.clear();
      const auto add = [&](int row, double value) {
        column[at(row)] += value;
        if (is_there[at(row)] != 0) return;
        is_there[at(row)] = 1;
        rows.push_back(row);
      };
      for (SparseMatrix::InnerIterator it(A, shared_[at(j)]); it; ++it) {
        const int i = places_.shared[at(static_cast<int>(it.row()))];
        if (i >= 0) add(i, it.value());
      }
      for (const auto& [piece, place] : holders[at(j)]) {
        const Complement& own = complements[at(piece)];
        for (std::size_t i = 0; i < own.shared.size(); ++i) {
          add(own.shared[i], own.less(static_cast<Eigen::Index>(i), place));
        }
      }
      std::sort(rows.begin(), rows.end());
      rest.startVec(j);
      for (const int row : rows) {
        if (column[at(row)] != 0.0) rest.insertBack(row, j) = column[at(row)];
        column[at(row)] = 0.0;
        is_there[at(row)] = 0;
      }
    }
    rest.finalize();
  }

  const Tearing& tearing_;
  const std::vector<int>& shared_;
  Places places_;
};

/// The largest of ½, ¼, … of its diagonal that A can do without.
double dispensable_share(const SparseMatrix& A) {
  const Eigen::VectorXd scale = A.diagonal().cwiseSqrt().cwiseInverse();
  const SparseMatrix unit = scale.asDiagonal() * A * scale.asDiagonal();
  SparseMatrix identity(A.rows(), A.cols());
  identity.setIdentity();
  for (double share = 0.5; share > 1e-11; share *= 0.5) {
    CondensedFactors factors;
    if (factors.factorise(unit - share * identity, {})) return share;
  }
  return 0.0;
}

}  // namespace

CondensedShares condensed_shares(const SecondOrderForm& form,
                                 const std::optional<ProportionalDamping>& damping,
                                 const Tearing& tearing) {
  CondensedShares out;
  for (std::size_t v = 0; v < tearing.is_shared.size(); ++v) {
    if (tearing.is_shared[v] != 0) out.shared.push_back(static_cast<int>(v));
  }
  Splitter splitter(tearing, out.shared);
  Split M = splitter.split(form.M);
  Split K = splitter.split(form.K);
  std::optional<Split> D;
  if (!damping) D = splitter.split(form.D);
  const double share = 0.5 * dispensable_share(M.interface);
  if (!(share > 0.0)) {
    throw ConfigError("", "cannot be cut: the mass at the cut is singular but for rounding");
  }
  const Eigen::VectorXd diagonal = M.interface.diagonal();
  for (std::size_t k = 0; k < out.shared.size(); ++k) {
    const int vertex = out.shared[k];
    const std::vector<int>& holders = tearing.holders[at(vertex)];
    const double given = share * diagonal[static_cast<Eigen::Index>(k)];
    for (const int piece : holders) {
      const int place = tearing.place(piece, vertex);
      M.pieces[at(piece)].coeffRef(place, place) += given / static_cast<double>(holders.size());
    }
    const auto row = static_cast<int>(k);
    M.interface.coeffRef(row, row) -= given;
  }
  const auto take = [&damping](SparseMatrix& mass, SparseMatrix& stiffness,
                               SparseMatrix* own_damping, SecondOrderForm& to) {
    mass.makeCompressed();
    to.M.swap(mass);
    to.K.swap(stiffness);
    if (damping) {
      to.D = damping->of_mass * to.M + damping->of_stiffness * to.K;
    } else {
      to.D.swap(*own_damping);
    }
  };
  out.pieces.resize(at(tearing.pieces));
  for (int piece = 0; piece < tearing.pieces; ++piece) {
    take(M.pieces[at(piece)], K.pieces[at(piece)], D ? &D->pieces[at(piece)] : nullptr,
         out.pieces[at(piece)]);
  }
  take(M.interface, K.interface, D ? &D->interface : nullptr, out.interface);
  return out;
}

}  // namespace portwave
