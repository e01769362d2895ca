#pragma once

#include <vector>

#include <Eigen/Core>

#include "core/affine_batch.hpp"
#include "core/port_closure.hpp"
#include "core/stage_layout.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/core/subsystem.hpp"
#include "portwave/subsystems/matrices/sparse_rank.hpp"

namespace portwave {

/// The stages of a linear part, d/dt(Ex) = (J − R)Qx + (G − P)u, in the unknowns X(cᵢ), which also
/// exist where E is singular:
///   E Xᵢ = E x + h Σⱼ aᵢⱼ Kⱼ,   Kᵢ = (J − R)QXᵢ + (G − P)uᵢ,   E x⁺ = E x + h Σᵢ bᵢKᵢ.
/// With Ω = A⁻¹, Dᵢ = √bᵢ(Xᵢ − x) and inputs times √bᵢ that is
///   Σⱼ ω̃ᵢⱼ E Dⱼ/h = (J − R)zᵢ + (G − P)uᵢ,   zᵢ = Q(√bᵢ x + Dᵢ),   E x⁺ = E x + Σⱼ d̃ⱼ E Dⱼ,
/// ω̃ᵢⱼ = √bᵢ ωᵢⱼ/√bⱼ, d̃ = Ω̃ᵀ(√b₁, …). Since Ω̃ + Ω̃ᵀ = d̃d̃ᵀ, H⁺ − H = Σᵢⱼ zᵢᵀ ω̃ᵢⱼ E Dⱼ exactly; damped
/// stages have the A of their StageRule, and then Ω̃ + Ω̃ᵀ = d̃d̃ᵀ + t̃t̃ᵀ with t̃ = √(2δθ) Ω̃ᵀ(√b₁P̂(c₁), …). What E
/// does not see of x plays no part; of x⁺ it is that of the polynomial through the stages at the end
/// of the step, Σⱼ lⱼ(1)Xⱼ.
struct StageEquations {
  StageEquations(const Subsystem& part, const StageRule& stages);

  const Subsystem* part;
  StageLayout layout;
  const SparseMatrix* E;  ///< null: I
  const SparseMatrix* Q;
  const SparseMatrix* kernel;  ///< an orthonormal basis of ker E; null: E is regular
  Eigen::MatrixXd omega;       ///< Ω̃
  std::vector<double> weight;  ///< √bᵢ
  Eigen::VectorXd to_end;      ///< d̃
  Eigen::VectorXd to_last;     ///< lⱼ(1)/√bⱼ
  Eigen::VectorXd damped;  ///< t̃, so that ½|Σⱼ t̃ⱼDⱼ|² in the metric EᵀQ is dissipated numerically
  SparseMatrix rate;  ///< (J − R)Q

  /// (Ω̃ ⊗ E)·factor.
  SparseMatrix inertia(double factor) const;
  /// I ⊗ M.
  SparseMatrix at_all_stages(const SparseMatrix& M) const;
  /// I ⊗ M for the columns of ports, or of external inputs, in the order of all stages.
  SparseMatrix of_ports(const SparseMatrix& M) const { return at_all_stages(M.leftCols(layout.p)); }
  SparseMatrix of_inputs(const SparseMatrix& M) const {
    return at_all_stages(M.rightCols(layout.q));
  }
};

/// A step of them with the ports closed by u = M⁻¹(s a − β y₀), y₀ = C_p QX + D_x ū:
///   (Ω̃ ⊗ E/h − W)D = W(√b ⊗ x) + B_a a + B_u ū,   W = I ⊗ (J − R)Q − B_p M⁻¹β C_p Q.
struct ClosedStages {
  ScaledFactors lhs;
  SparseMatrix W;    ///< sn×sn, of one block per stage
  SparseMatrix B_a;  ///< sn×sp
  SparseMatrix B_u;  ///< sn×sq
  /// D of (x, a, ū), sn×(n + s(p+q)); empty where the factors are used.
  Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> map;
  OutgoingWaves waves;

  /// Errors: ConfigError where the step is singular.
  ClosedStages(const StageEquations& equations, const std::vector<PortClosure>& closures,
               double step_s, bool dense);
};

}  // namespace portwave
