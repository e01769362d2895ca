#pragma once

#include <optional>
#include <vector>

#include "portwave/coupling/system/graph_partition.hpp"
#include "portwave/subsystems/descriptor/second_order.hpp"

namespace portwave {

/// M, D and K as shares of the pieces, over Tearing::vertices, and of the interface, over `shared`.
struct CondensedShares {
  std::vector<SecondOrderForm> pieces;  ///< without B
  SecondOrderForm interface;
  std::vector<int> shared;  ///< the vertices that several pieces hold, ascending
};

/// Shares for pieces that meet in many coordinates: of A a piece with interior I and shared coordinates S
/// takes the least that makes it semidefinite,
///   [A_II A_IS; A_SI A_SI A_II⁺ A_IS],
/// the interface all that is left of A_SS. It is a Schur complement of A, and what nested dissection would
/// eliminate last. Of the interface's mass an even part goes to the pieces.
/// Cost     one Cholesky factorisation of the interior of each piece, for K, for M where it is not
///          diagonal, and for D where it is not aM + bK.
/// Precondition  the form has passed `validate`; D is symmetric.
CondensedShares condensed_shares(const SecondOrderForm& form,
                                 const std::optional<ProportionalDamping>& damping,
                                 const Tearing& tearing);

}  // namespace portwave
