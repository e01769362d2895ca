#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "portwave/coupling/energy/ledger.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

enum class CertificateStatus {
  holds,
  /// Every part is passive, but with reservations: energy came from the coupling (`growth`, without
  /// the guard, or the error of a dynamic iteration beyond what its tolerance allows); the account
  /// of an island is not known well enough (`uncomputable_islands`); parts that do not know their energy
  /// cannot be judged (`unjudged_parts`); or a sampled margin is negative, so that the premise of
  /// Theorem 1 and of Fejér decrease fails.
  conditional,
  violated,  ///< a part created energy beyond round-off, or a `broken_law`
};

std::string_view to_string(CertificateStatus status);

/// The first failure of a law of the passivity guard, or of the form of energies that explicit methods step.
struct BrokenLaw {
  enum class Law {
    tank,     ///< T ≥ 0
    balance,  ///< H + T ≤ H₀ + T₀ + supply
    form,  ///< H of a part, `worst_passivity_part`, is what is stepped (ExplicitMethod::part_astray)
  };
  Law law;
  int island;
  std::int64_t step;  ///< `form`: by which it was seen
};

/// Steps that ended without meeting the tolerance, and the worst of them.
struct MissedTolerance {
  std::int64_t steps = 0;
  double residual = 0.0;  ///< the largest of an island
  double gap_J = 0.0;     ///< ½|P b̂ − u|² of that step, all islands
  std::int64_t step = -1;
  int part = -1;            ///< the part with the largest share of gap_J
  double part_gap_J = 0.0;  ///< its own share
};

/// The evidence that a run has gathered so far.
struct Certificate {
  CertificateStatus status = CertificateStatus::holds;
  /// max r_i over parts and steps; −∞ before the first step. For methods without waves, the largest
  /// r = ΔH − supply of the whole system.
  double max_passivity_residual_J = 0.0;
  /// Whether some r was larger than rounding explains.
  bool is_part_active = false;
  /// The part with the largest r in relation to its tolerance; −1: the whole system.
  int worst_passivity_part = -1;
  std::int64_t worst_passivity_step = -1;
  std::optional<BrokenLaw> broken_law;  ///< a reason why the status is `violated`
  /// H of an island exceeded the initial and supplied energy, beyond rounding. Impossible with the guard,
  /// unless a part creates energy itself.
  std::optional<EnergyGrowth> growth;
  /// Number of islands whose laws are not judged, because rounding in their accounts may exceed a millionth
  /// of all energy there. The certificate is then conditional.
  int uncomputable_islands = 0;
  MissedTolerance missed;  ///< of wave coupling with a tolerance
  /// Parts whose passivity is not judged, because they do not know their energy. The certificate is then
  /// conditional.
  std::vector<int> unjudged_parts = {};
  /// With Certify::full: parts whose steps do not repeat. They have no margins; a system with such a part has
  /// no check of a fixed point or of a repeated iteration either.
  std::vector<int> unrepeatable_parts = {};
  /// Theorem 1: max over steps of ΔH + ½|u^K − u†|² − ½|u⁰ − u†|² − ½(|â|² − |b|²) − supply.
  std::optional<double> max_augmented_residual_J;
  /// Fejér decrease: max over steps and k of
  /// ½|uᵏ⁺¹ − u†|² − ½|uᵏ − u†|² + (c/2)|uᵏ⁺¹ − uᵏ|², c = UpdateRule::fejer_gain. Accelerated
  /// iterations promise neither this nor Theorem 1.
  std::optional<double> max_fejer_residual_J;
  /// Smallest sampled ⟨Sα − Sβ, α − β⟩ − |Sα − Sβ|², for rules that require it (Douglas–Rachford).
  std::optional<double> min_fne_margin;
  /// Smallest sampled |α − β|² − |Sα − Sβ|², for rules that require it (Peaceman–Rachford).
  std::optional<double> min_nonexpansiveness_margin;
  std::int64_t steps_with_excess = 0;          ///< dynamic iteration: r was beyond its tolerance
  std::int64_t steps_without_fixed_point = 0;  ///< full: steps whose u† or iterates were not found
  std::int64_t steps_without_margin = 0;       ///< full: steps where a sampled port solve failed
};

}  // namespace portwave
