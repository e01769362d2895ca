#pragma once

#include <vector>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/core/component.hpp"

namespace portwave {

/// An entry of a matrix that is written as a number.
struct PlainEntry {
  int row = 0, column = 0;
  double value = 0.0;
};

/// Units of states and inputs that are not known, each with the nearest one that is. "-" is a plain number.
Issues check_unit_names(const Signature& signature);

/// Entries of J and G that are 1 or −1 where the units of states, ports and inputs ask for a unit, or for another
/// number:
///   xᵢ' = Jᵢⱼ ∂H/∂xⱼ:  Jᵢⱼ in xᵢxⱼ/(J s);   xᵢ' = Gᵢⱼ uⱼ:  Gᵢⱼ in xᵢ/(s uⱼ).
/// Not judged: other numbers, which may have any unit, such as lengths of levers; what meets a state, port or input
/// without a unit, or with an unknown one; and R, P, S and N, whose entries are values of resistances.
Issues check_matrix_units(const Signature& signature, const std::vector<PlainEntry>& J,
                          const std::vector<PlainEntry>& G);

}  // namespace portwave
