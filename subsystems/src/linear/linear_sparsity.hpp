#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "kernels/linear_kernels.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"

namespace portwave {

/// Where the entries of a list are, and which values of a part's matrices each is the sum of.
class EntryList {
 public:
  const std::vector<LinearEntry>& at() const { return at_; }
  std::size_t size() const { return at_.size(); }

 private:
  friend class LinearSparsity;
  static constexpr int kNone = -1;
  /// Value number `index` of a matrix, times `factor`.
  struct Term {
    int matrix = kNone;
    int index = 0;
    double factor = 1.0;
  };
  std::vector<LinearEntry> at_;
  std::vector<std::array<Term, 2>> terms_;
};

/// Where the matrices of a linear part have entries that are not zero: parts of the same sparsity are read
/// alike, without a look at where each entry is. Q is that of the part, the structure its own or with stages
/// that of all of them (see LinearEnergy); both are compressed.
class LinearSparsity {
 public:
  /// `ports` of the structure's inputs are ports, the others external inputs.
  LinearSparsity(const SparseMatrix& Q, const Structure& structure, int ports);

  /// Whether these matrices have entries at the same places.
  bool fits(const SparseMatrix& Q, const Structure& structure) const;
  /// The same for all matrices that fit the same.
  static std::size_t hash_of(const SparseMatrix& Q, const Structure& structure);

  int states() const { return states_; }
  int inputs() const { return inputs_; }

  // Of the step: see ClosedStep. By rows, columns ascending; of C and D the rows of ports alone.
  EntryList Q, JR, B, C, D;
  // Of the energies: see LinearShape. Values are those of the matrices, as they are multiplied in
  // `values`; of the diagonal of Q there is half in `storage`.
  EntryList storage, dissipation, output;

  /// The values of a list, times `factor`: the k-th at out[k·step]. For matrices that fit.
  static void read(const EntryList& list, const SparseMatrix& Q, const Structure& structure,
                   double factor, double* out, std::size_t step);

 private:
  /// The part's matrices, by number.
  enum Matrix { kQ, kJ, kR, kG, kP, kS, kN, kMatrices };
  static std::array<const SparseMatrix*, kMatrices> matrices(const SparseMatrix& Q,
                                                             const Structure& structure) {
    return {&Q, &structure.J, &structure.R, &structure.G, &structure.P, &structure.S, &structure.N};
  }

  int states_, inputs_;
  struct Positions {
    std::vector<int> outer, inner;
    std::vector<char> is_zero;
  };
  std::array<Positions, kMatrices> positions_;
};

}  // namespace portwave
