#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "portwave/coupling/energy/certificate.hpp"
#include "portwave/coupling/method/method.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/coupling/waves/wave_iteration.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Tolerance of a part's passivity residual: 1e-12 of the terms whose difference it is.
/// `magnitude_J` is the sum of their sizes: the stored energy before and after the step, ½|a|²,
/// ½|b|² and the external supply. See
/// docs/decisions/0010-passivity-tolerance.md.
inline double passivity_tolerance(double magnitude_J) { return 1e-12 * magnitude_J; }

/// Samples the margin by which every frozen part map meets the condition that the update rule imposes on
/// parts (UpdateRule::part_condition): at 32 pairs of N(0,1) incident waves, drawn from a fixed seed and the
/// step number. The record must be frozen, and stays so. Parts whose steps do not repeat are left out.
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

/// Finds the fixed point u† = P S(u†) of the frozen macro-step to round-off: first by the plain iteration
/// and, if that is slow, by Newton with the sparse matrix I − P D, D being S linearised part by part (exact
/// for linear parts, central differences else). For certificates and tests: it allocates.
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

/// The checks of Certify::full in every macro-step, kept apart from the stepping itself: sampled
/// margins, the Theorem 1 residual and the Fejér decrease towards u†. Leaves states and waves as they
/// are.
class StepCertifier {
 public:
  StepCertifier(const WaveDiscretisation& waves, const InnerUpdate& update);

  /// The data of a step that the checks need.
  struct Step {
    std::int64_t index = 0;
    /// Evaluations of S by island; each island stops on its own.
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
