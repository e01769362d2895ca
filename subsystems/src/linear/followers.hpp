#pragma once

#include <vector>

#include "portwave/subsystems/linear/linear_part.hpp"

namespace portwave {

/// States of a linear part that follow others: ẋᵢ = Σⱼ kⱼ xⱼ with neither dissipation nor ports nor
/// inputs, as a position follows a velocity, and a charge a current. Given the others' midpoint step
/// theirs is xᵢ⁺ = xᵢ + Σⱼ ½h kⱼ(xⱼ + xⱼ⁺). Which states these are depends on the part's equations
/// alone, so that results do not depend on the parts that are stepped beside it. Of two that follow each
/// other it is the one with the lower number.
class Followers {
 public:
  struct Entry {
    int row;     ///< the follower
    int column;  ///< no follower
    double k;
  };

  explicit Followers(const LinearPortHamiltonian& part);

  /// The same states of a part whose matrices have entries at the same places: takes its values.
  void take_values_of(const LinearPortHamiltonian& part);

  /// By rows, columns ascending.
  const std::vector<Entry>& entries() const { return entries_; }
  bool is_follower(int state) const {
    return role_[static_cast<std::size_t>(state)] == Role::follows;
  }

  /// Whether the rounding of xⱼ⁺ would be felt in xᵢ⁺ more than xᵢ⁺'s own. Then it is to be advanced as
  /// all other states are.
  bool are_stiff(const LinearPortHamiltonian& part, double step_s) const;

 private:
  enum class Role : char { none, follows, is_followed };

  std::vector<Entry> entries_;
  std::vector<Role> role_;
};

}  // namespace portwave
