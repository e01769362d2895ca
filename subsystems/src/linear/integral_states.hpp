#pragma once

#include <vector>

#include "portwave/subsystems/linear/linear_part.hpp"

namespace portwave {

/// States of a linear part that are integrals of others: ẋᵢ = Σⱼ kⱼ xⱼ without dissipation, ports and inputs,
/// as a position is the integral of a velocity, and a charge that of a current. Once the midpoint step of the
/// others is known, xᵢ⁺ = xᵢ + Σⱼ ½h kⱼ(xⱼ + xⱼ⁺). The choice of these states depends on the part's equations
/// alone, so that results do not depend on the parts that are stepped beside it. Of two states that are the
/// integral of each other, the one with the lower number is chosen.
class IntegralStates {
 public:
  struct Entry {
    int row;     ///< the integral xᵢ
    int column;  ///< the integrand xⱼ, which is no integral
    double k;
  };

  explicit IntegralStates(const LinearPortHamiltonian& part);

  /// The same states of a part whose matrices have entries at the same places: takes its values.
  void take_values_of(const LinearPortHamiltonian& part);

  /// By rows, columns ascending.
  const std::vector<Entry>& entries() const { return entries_; }
  bool is_integral(int state) const {
    return role_[static_cast<std::size_t>(state)] == Role::integral;
  }

  /// Whether the rounding of some xⱼ⁺ weighs more in xᵢ⁺ than the rounding of xᵢ⁺ itself. Such a part is
  /// advanced by rows of the step map alone.
  bool are_stiff(const LinearPortHamiltonian& part, double step_s) const;

 private:
  enum class Role : char { none, integral, integrand };

  std::vector<Entry> entries_;
  std::vector<Role> role_;
};

}  // namespace portwave
