#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/descriptor/descriptor_part.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Matrices of M q'' + D q' + K q = B u, y = Bᵀq': n×n, and B n×m, m inputs being first the scalar
/// ports in port order, then the external inputs.
struct SecondOrderForm {
  SparseMatrix M;  ///< symmetric, positive definite
  SparseMatrix D;  ///< its symmetric part positive semidefinite; the skew part is gyroscopic
  SparseMatrix K;  ///< symmetric, positive semidefinite; may be singular: pieces that float
  SparseMatrix B;
};

/// The matrices of a form, which is left empty: Eigen moves a sparse matrix by copying it.
inline SecondOrderForm taken(SecondOrderForm& from) {
  SecondOrderForm out;
  out.M.swap(from.M);
  out.D.swap(from.D);
  out.K.swap(from.K);
  out.B.swap(from.B);
  return out;
}

/// Checks shapes, finiteness, M symmetric and ≻ 0, K symmetric and ⪰ 0, D + Dᵀ ⪰ 0 (unless
/// rules.allow_active); every defect is reported, `where` being "/M", "/D", … `rules.names` are
/// those of the n coordinates.
Issues validate(const SecondOrderForm& form, int coordinates, int inputs,
                const StructureRules& rules = {});

/// D = of_mass · M + of_stiffness · K, both factors ≥ 0 (Rayleigh's damping).
struct ProportionalDamping {
  double of_mass = 0.0;       ///< [1/s]
  double of_stiffness = 0.0;  ///< [s]
};
/// The factors, where D is such a sum to the rounding of its entries. D is then symmetric and ⪰ 0 as M and
/// K are.
std::optional<ProportionalDamping> proportional_damping(const SecondOrderForm& form);

/// The same as first-order equations with x = (q, v), H = ½vᵀMv + ½qᵀKq:
///   d/dt [I 0; 0 M] x = [0 I; −I −D] Q x + [0; B] u,   Q = [K 0; 0 I],   y = [0 Bᵀ] Q x.
/// No square roots and no inverses: whatever M, D and K are, E is regular and Q need not be.
DescriptorForm descriptor_form(const SecondOrderForm& form);

inline constexpr int kFactoredForm = 500;
/// A part of these matrices, which have passed `validate`: they are not examined again, and the implicit
/// step is that of DescriptorPortHamiltonian. From kFactoredForm coordinates on, where D is symmetric and all ports take
/// efforts, it is made by one Cholesky factorisation with the coordinates of the ports last (`factored`). `may_condense`:
/// these are many, and the part is coupled through what that leaves for them (`condensed`), whatever its size.
/// `damping`: proportional_damping(form), where it is known.
/// Errors   ConfigError: a default state of another size.
std::unique_ptr<DescriptorPortHamiltonian> make_second_order_part(
    Signature signature, SecondOrderForm form, DescriptorPortHamiltonian::Options options = {},
    bool may_condense = false, std::optional<ProportionalDamping> damping = std::nullopt);

/// States (q, q') for coordinates of these names and units: "w1" in m gives "w1" and "w1_rate" in
/// m/s.
std::vector<StateVariable> second_order_states(const std::vector<StateVariable>& coordinates);

}  // namespace portwave
