#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "portwave/coupling/energy/ledger.hpp"
#include "portwave/coupling/method/method.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/coupling/waves/wave_iteration.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

enum class CertificateStatus {
  holds,
  /// Every part is passive, but not all is well: energy came from the coupling (`growth`, without
  /// the guard, or the error of a dynamic iteration beyond what its tolerance allows); the account
  /// of an island is not known well enough (`uncomputable_islands`); parts that do not know their energy
  /// cannot be judged (`unjudged_parts`); or a sampled margin is negative, so that the premise of
  /// Theorem 1 and of Fejér decrease fails.
  conditional,
  violated,  ///< a part created energy beyond round-off, or a law of the guard does not hold
};

std::string_view to_string(CertificateStatus status);

/// Where a law of the passivity guard did not hold for the first time.
struct BrokenLaw {
  enum class Law {
    tank,     ///< T ≥ 0
    balance,  ///< H + T ≤ H₀ + T₀ + supply
  };
  Law law;
  int island;
  std::int64_t step;
};

/// Steps that ended without meeting the tolerance, and the worst of them.
struct MissedTolerance {
  std::int64_t steps = 0;
  double residual = 0.0;  ///< the largest of an island
  double gap_J = 0.0;     ///< ½|P b̂ − u|² of that step, all islands
  std::int64_t step = -1;
  int part = -1;            ///< which has most of it
  double part_gap_J = 0.0;  ///< its own share
};

/// What a run can say for itself so far.
struct Certificate {
  CertificateStatus status = CertificateStatus::holds;
  /// max r_i over parts and steps; −∞ before the first step. Methods without waves: of the whole
  /// system, r = ΔH − supply.
  double max_passivity_residual_J = 0.0;
  /// Some r was larger than rounding explains.
  bool is_part_active = false;
  /// Where r was largest in relation to its tolerance; −1: the whole system.
  int worst_passivity_part = -1;
  std::int64_t worst_passivity_step = -1;
  std::optional<BrokenLaw> broken_law;  ///< with the guard: `violated` for this reason
  /// H of an island exceeded what was there and supplied, beyond rounding. Cannot be with the
  /// guard, unless a part creates energy itself.
  std::optional<EnergyGrowth> growth;
  /// Islands in whose accounts rounding may have left more than a millionth of all energy there: whether
  /// the laws hold is not judged, and the certificate is conditional on it.
  int uncomputable_islands = 0;
  MissedTolerance missed;  ///< of wave coupling with a tolerance
  /// Parts that do not know their energy: whether they are passive is not judged, and the
  /// certificate is conditional on it.
  std::vector<int> unjudged_parts = {};
  /// full: parts whose steps do not repeat. They have no margins, and with one of them in the
  /// system there is neither a fixed point to look for nor an iteration to repeat.
  std::vector<int> unrepeatable_parts = {};
  /// Theorem 1: max over steps of ΔH + ½|u^K − u†|² − ½|u⁰ − u†|² − ½(|â|² − |b|²) − supply.
  std::optional<double> max_augmented_residual_J;
  /// Fejér decrease: max over steps and k of
  /// ½|uᵏ⁺¹ − u†|² − ½|uᵏ − u†|² + (c/2)|uᵏ⁺¹ − uᵏ|², c = UpdateRule::fejer_gain. Accelerated
  /// iterations promise neither this nor Theorem 1.
  std::optional<double> max_fejer_residual_J;
  /// Smallest sampled ⟨Sα − Sβ, α − β⟩ − |Sα − Sβ|², of rules that want it (Douglas–Rachford).
  std::optional<double> min_fne_margin;
  /// Smallest sampled |α − β|² − |Sα − Sβ|², of rules that want it (Peaceman–Rachford).
  std::optional<double> min_nonexpansiveness_margin;
  std::int64_t steps_with_excess = 0;  ///< dynamic iteration: in which r was beyond its tolerance
  std::int64_t steps_without_fixed_point = 0;  ///< full: steps whose u† or iterates were not found
  std::int64_t steps_without_margin = 0;       ///< full: steps where a sampled port solve failed
};

/// Tolerance of a part's passivity residual: 1e-12 of the terms that it is the difference of.
/// `magnitude_J` is the sum of their sizes: the stored energy before and after the step, ½|a|²,
/// ½|b|² and the external supply. See
/// docs/decisions/0010-passivity-tolerance.md.
inline double passivity_tolerance(double magnitude_J) { return 1e-12 * magnitude_J; }

/// Margins of every frozen part map, sampled at 32 pairs of N(0,1) incident waves drawn from a
/// fixed seed and the step number: of what the update rule asks of parts
/// (UpdateRule::part_condition). Needs a frozen record; leaves it so. Parts whose steps do not
/// repeat are left out.
class MarginSampler {
 public:
  static constexpr int kPairs = 32;

  struct Result {
    double min_margin = 0.0;
    bool negative_beyond_tolerance = false;  ///< some margin < −1e-12 |α − β|²
  };

  MarginSampler(const WaveDiscretisation& waves, const UpdateRule& rule,
                std::uint64_t seed = 20260316);
  /// Empty when a part's port solve fails at a sampled wave.
  std::optional<Result> sample(const WaveDiscretisation& waves, double* record, std::int64_t step);

 private:
  void take_margin(const WaveDiscretisation& waves, std::size_t part, Result& result) const;

  PartCondition condition_;
  std::uint64_t seed_;
  AlignedVector alpha_, beta_, s_alpha_, s_beta_;
};

/// Finds the fixed point u† = P S(u†) of the frozen macro-step to round-off: the plain iteration
/// first, and where that is slow Newton with the sparse matrix I − P D, D being S linearised part
/// by part (exact for linear parts, central differences else). For certificates and tests: it
/// allocates.
class FixedPointSolver {
 public:
  FixedPointSolver(const WaveDiscretisation& waves, const InnerUpdate& update,
                   int plain_iterations = 300);
  /// Starts from `start`; the result is empty when no fixed point was found.
  std::span<const double> solve(double* record, std::span<const double> start);

 private:
  double evaluate(double* record);
  bool iterate_plainly(double* record);
  bool iterate_newton(double* record);

  WaveIteration iteration_;
  int plain_iterations_;
  std::span<const double> exchanged_;  // P b̂
};

/// The parts whose steps do not repeat.
std::vector<int> unrepeatable_parts(const WaveDiscretisation& waves);

/// What Certify::full looks at in every macro-step, kept apart from the stepping itself: sampled
/// margins, the Theorem 1 residual and the Fejér decrease towards u†. Leaves states
/// and waves as they are.
class StepCertifier {
 public:
  StepCertifier(const WaveDiscretisation& waves, const InnerUpdate& update);

  /// The step's evidence beside its waves.
  struct Step {
    std::int64_t index = 0;
    /// Evaluations of S, by island: they stop on their own.
    std::span<const int> iterations;
    std::span<const double> u_start;  ///< u⁰
    double stored_change_J = 0.0;
    double mismatch_J = 0.0;  ///< ½(|bⁿ⁺¹|² − |â|²)
    double supplied_J = 0.0;
    bool accelerated = false;  ///< the iterates were not those of the plain iteration
  };
  /// Needs the record still frozen at xⁿ. Updates the optional entries of `certificate`, and its
  /// status from `holds` to `conditional` when a margin is negative.
  void examine(double* record, const Step& step, Certificate& certificate);

 private:
  void examine_margins(double* record, std::int64_t index, Certificate& certificate);
  void examine_iterates(double* record, const Step& step, std::span<const double> fixed_point,
                        Certificate& certificate);
  void hold_stopped_islands(std::span<const int> iterations, int k);

  const WaveDiscretisation& waves_;
  bool is_repeatable_;  // every part is
  InnerUpdate update_;
  MarginSampler sampler_;
  FixedPointSolver fixed_point_;
  WaveIteration iteration_;
  AlignedVector before_;  // uᵏ, once u is uᵏ⁺¹
};

}  // namespace portwave
