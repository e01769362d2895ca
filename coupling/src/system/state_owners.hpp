#pragma once

#include <vector>

#include "portwave/subsystems/core/component.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {

/// Entries of M as (row, column, value), zeros apart.
template <class Use>
void for_entries(const SparseMatrix& M, const Use& use) {
  for (int j = 0; j < M.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(M, j); it; ++it) {
      if (it.value() != 0.0) use(static_cast<int>(it.row()), j, it.value());
    }
  }
}

/// The equations of the uncut part, for both forms.
struct WholeStructure {
  const Signature& signature;
  Structure structure;  ///< of J, R, G and, where there is feedthrough, P, S and N
  const SparseMatrix& Q;
  const SparseMatrix* E = nullptr;  ///< null: the identity
  bool is_active = false;
};

/// The piece that owns the equation of each state when a part is cut into `parts` pieces; `count`: how many
/// there are, fewer where some would be empty. `with_algebraic`: states without derivative stay with their
/// neighbours. Errors: ConfigError where fewer groups of states can be parted.
std::vector<int> state_owners(const WholeStructure& whole, int parts, bool with_algebraic,
                              int& count);

}  // namespace portwave
