#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "portwave/coupling/waves/island_sums.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"

namespace portwave {

/// How far an island is from a common interface.
struct InterfaceGap {
  double residual = 0.0;  ///< |P b̂ − u| / max(|u|, |b̂|); 0 when all waves are zero
  double energy_J = 0.0;  ///< ½|P b̂ − u|²
  double size = 0.0;      ///< max(|u|, |b̂|)²

  /// The residual where the waves were |a|² = `before` at first: waves that have grown out of all proportion
  /// within a step do not make a gap small. Where they have not it is `residual`.
  double residual_since(double before) const;
};

/// The same, and what the interface equation is judged by.
struct MeasuredGap : InterfaceGap {
  double answer = 0.0;  ///< |b̂|², which is |P b̂|² but for rounding
};

/// Squared norms of some waves: of the gap P b̂ − u, of u and of b̂.
struct GapSquares {
  double gap = 0.0;
  double incident = 0.0;
  double outgoing = 0.0;

  void add(double u, double b, double exchanged) {
    gap += (exchanged - u) * (exchanged - u);
    incident += u * u;
    outgoing += b * b;
  }
  /// |P b̂ − u| / max(|u|, |b̂|); 0 where the gap is 0 but for denormal numbers, not finite where they are not.
  double residual() const {
    if (gap < std::numeric_limits<double>::min()) return 0.0;
    return std::isinf(size()) ? size() : std::sqrt(gap / size());
  }
  double size() const { return std::max(incident, outgoing); }
};

/// Measures the gap P b̂ − u of an inner iteration, per island and per part. Sums run in part
/// order; nothing is allocated after construction. Different lanes may be measured by different
/// threads, and then different islands judged by different threads.
///
/// With several processes each may measure some lanes; as IslandSums they receive the sums of the others.
class InterfaceResidual final : public IslandSums {
 public:
  explicit InterfaceResidual(const WaveDiscretisation& waves);
  explicit InterfaceResidual(const WaveDiscretisation&& waves) = delete;

  /// Also judges parts, each by its own waves: from now on `magnitudes` are to be written before `measure`. Allocates.
  void judge_parts();
  /// |P| |b̂| by wave (CompiledJunctions::magnitudes); empty where parts are not judged.
  std::span<double> magnitudes() { return magnitudes_; }
  /// Takes the norms of some lanes. `exchanged` is P b̂; arrays are the whole system's.
  void measure(int batch, LaneRange lanes, const double* u, const double* b,
               const double* exchanged);

  /// Sums up a chunk (PartOrderReduction) that is all measured, for the next `gap` of its island.
  void sum_chunk(int chunk);
  /// Discards what was measured and not judged.
  void forget() { std::ranges::fill(is_summed_, 0); }

  // As IslandSums.
  int sums() const override { return 3; }
  int maxima() const override { return 1; }
  std::span<const std::span<double>> terms() override { return terms_; }
  void form(int chunk, double* values) const override;
  void take(int island, const double* values) override;

  /// From norms that are all measured. `per_part`, where parts are judged: also the largest over the parts, so that
  /// a weak part does not hide behind a strong one. A gap that is rounding of the sums in P b̂ counts as none there:
  /// the waves of a part at rest between moving ones are rounding, and never agree. NaN when a wave is NaN.
  MeasuredGap gap(int island, bool per_part);
  /// Where parts are judged: whether what is left of the gap is rounding, though not that of sums in P b̂: 1e-14
  /// of all waves together, and twelve evaluations have not taken a tenth of the largest residual. A part whose
  /// waves are rounding of what it answers to larger ones would never meet a tolerance of its own. To be asked after
  /// each evaluation that stands, by number, from 1 in each step.
  bool is_rounding(int island, int evaluation, const InterfaceGap& gap);
  /// The part with most of the gap, and its ½|P b̂ − u|².
  struct Share {
    int part = -1;
    double energy_J = 0.0;

    /// The larger one; among equals that of the lower part. A failed trial has NaN, which counts as less than
    /// any number.
    void take(const Share& other) {
      if (other.part < 0) return;
      const double size = size_of(energy_J), other_size = size_of(other.energy_J);
      const bool is_first = other_size == size && other.part < part;
      if (part < 0 || other_size > size || is_first) *this = other;
    }

   private:
    static double size_of(double energy_J) { return std::isnan(energy_J) ? -1.0 : energy_J; }
  };
  Share largest_share(int island) const;
  /// Norms of some lanes.
  Share largest_share(int batch, LaneRange lanes) const;
  std::size_t bytes() const;

 private:
  Share share_of(int part) const;
  double residual_of(std::size_t entry) const;
  GapSquares sum_of_chunk(int chunk) const;
  GapSquares sum_of(int island);

  const WaveDiscretisation& waves_;
  AlignedVector gap_, incident_, outgoing_;  // squared norms by entry
  AlignedVector rounded_;             // Σ magnitudes² by entry; empty where parts are not judged
  AlignedVector magnitudes_;          // by wave; likewise
  std::vector<GapSquares> by_chunk_;  // where is_summed_
  std::vector<char> is_summed_;
  std::vector<std::span<double>> terms_;
  /// Norms of an island.
  struct Taken {
    GapSquares squares;
    double largest = 0.0;
    bool is_taken = false;
  };
  std::vector<Taken> taken_;  // empty where nothing ever was
  /// The smallest residual of an island in this step, and after which evaluation it was found.
  struct Lull {
    double residual = 0.0;
    int since = 0;
  };
  std::vector<Lull> lulls_;  // empty where parts are not judged
};

}  // namespace portwave
