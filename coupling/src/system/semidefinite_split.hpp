#pragma once

#include <vector>

#include "portwave/coupling/system/graph_partition.hpp"

namespace portwave {

/// A symmetric matrix as a sum of shares, one per piece and one that is left over:
///   A = Σ Rᵢᵀ Aᵢ Rᵢ + R_cᵀ A_c R_c, exact to the rounding of that sum.
struct SplitMatrix {
  std::vector<SparseMatrix> pieces;  ///< over Tearing::vertices of the piece
  SparseMatrix core;                 ///< over SemidefiniteSplitter::core
};

/// Splits symmetric positive semidefinite matrices into semidefinite shares.
///
/// 1. Where the rows at the cut are diagonally dominant, as with springs, conductances and lumped
///    masses, each entry goes to a piece with its magnitude on the diagonal, and what is left of the
///    diagonal is dealt out evenly. Taken if all shares are then semidefinite.
/// 2. Else a piece with interior I and cut coordinates S takes
///      [A_II A_IS; A_SI A_SI A_II⁺ A_IS],
///    the least that makes it semidefinite; what is left, C = A_SS − Σ A_SI A_II⁺ A_IS, is a Schur
///    complement of A and so semidefinite too. Of C a share of the diagonal that leaves C definite is
///    dealt out evenly. Then, as long as some piece alone still has coordinates of C, these are
///    eliminated from C into it. What remains, where pieces form rings, is the core.
class SemidefiniteSplitter {
 public:
  enum class Rest {
    to_pieces,  ///< as above
    to_core,    ///< all of C is the core; the shared vertices are those given
  };

  explicit SemidefiniteSplitter(const Tearing& tearing, Rest rest = Rest::to_pieces);

  /// The vertices that pieces cannot take up, ascending. The same for all matrices.
  const std::vector<int>& core() const { return core_; }

  /// The first way; false where a share is not semidefinite (`definite`: not definite).
  bool split_dominant(const SparseMatrix& A, bool definite, SplitMatrix& split) const;
  /// The second way.
  SplitMatrix split_by_elimination(const SparseMatrix& A) const;
  /// The first way where it holds, else the second.
  SplitMatrix split(const SparseMatrix& A, bool definite) const;
  /// Each entry to the first of the pieces that hold it: for matrices of no sign.
  std::vector<SparseMatrix> assign(const SparseMatrix& A) const;

 private:
  struct Ear {  ///< vertices of C that piece `piece` eliminates
    int piece;
    std::vector<int> vertices;
  };

  int first_holder(int a, int b) const;

  const Tearing& tearing_;
  Rest rest_;
  std::vector<Ear> ears_;
  std::vector<int> core_;
};

}  // namespace portwave
