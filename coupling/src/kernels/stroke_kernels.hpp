#pragma once

#include "portwave/subsystems/base/instruction_set.hpp"

namespace portwave {

/// Rows row + i·stride, i < count, of a sparse matrix, whose entries lie on `terms` diagonals: term k of row i is in
/// column columns[first_column + k] + i·stride. Values are one per term, or one per term and row.
struct StrokeRun {
  static constexpr int kMostRows = 512;  ///< sums are compensated from run to run

  int row = 0;
  int count = 0;
  int stride = 1;  ///< more only where values do not vary
  int terms = 0;
  int first_column = 0;
  int first_value = 0;
  bool varies =
      false;  ///< value of term k and row i at first_value + k·count + i; else first_value + k
  bool is_damped = false;  ///< with a damper's values after those of the first matrix
  bool is_mixed = false;   ///< with r behind the values of the matrix (MixedKickTask)
  bool is_bent = false;    ///< with a cubic's value or values behind all others
  bool is_even = false;    ///< what else a kernel takes by row has one value (StrokeMap::mark_even)
  bool slides =
      false;  ///< of segments: the middle one of its terms is its own row, between its neighbours
  int first_segment = 0;
  int segments =
      0;  ///< more than 0: values are those of segments; whole groups of lanes, rows one after another
};

/// Groups of eight rows of a run that have the same eight values of each term, at first_value + 8·(term) + lane.
struct StrokeSegment {
  int groups = 0;
  int first_value = 0;
};

/// A sparse matrix as runs.
struct StrokeRuns {
  const StrokeRun* runs = nullptr;
  int count = 0;
  const int* columns = nullptr;
  const double* values = nullptr;
  const StrokeSegment* segments = nullptr;
};

/// A kick of all momenta, u ← u − 𝒟w + τ f, with f = c + S Y − κ(y₀ + Y)³ row by row. `w` null: without
/// dampers.
struct KickTask {
  StrokeRuns map;  ///< S, 𝒟 where runs are damped, κ where they are bent
  const double* c = nullptr;
  const double* strokes = nullptr;  ///< Y
  const double* base = nullptr;     ///< y₀
  const double* w = nullptr;
  double* u = nullptr;
  double* force = nullptr;  ///< f of every row goes here; null: nowhere
  double tau = 0.0;
  bool has_room = false;  ///< eight elements behind the last of each array may be read
};

/// The same where 𝒟 and S are alike beside their diagonals, S = ρ𝒟 + r: u ← u − 𝒟z + τ(c + rY − κ(y₀ + Y)³), with
/// z = w − τρY of the drift before.
struct MixedKickTask {
  StrokeRuns map;  ///< 𝒟, then r, then κ where runs are bent
  const double* c = nullptr;
  const double* strokes = nullptr;  ///< Y
  const double* base = nullptr;     ///< y₀
  const double* z = nullptr;
  double* u = nullptr;
  double tau = 0.0;
  bool has_room = false;  ///< eight elements behind the last of each array may be read
};

/// The strokes w = τu − ½τ²𝒟u of momenta that share dampers; Y ← Y + w, and then w ← w + mix·Y.
struct StrokeTask {
  StrokeRuns map;  ///< 𝒟
  const double* u = nullptr;
  double* w = nullptr;
  double* strokes = nullptr;
  const double* mass = nullptr;  ///< W
  double tau = 0.0, mix = 0.0;
  bool has_room = false;  ///< eight elements behind the last of each array may be read
};

/// u ← u + step·(f̃ − fⁿ), Y ← Y + step·(ũ − uⁿ).
struct MoveTask {
  int count = 0;
  double step = 0.0;
  const double *force_before = nullptr, *force = nullptr;
  const double* moved = nullptr;  ///< ũ − uⁿ
  double *u = nullptr, *strokes = nullptr;
};

/// What a step that has no other positions than undamped ones does to the energies, row by row of the momenta.
struct BalanceTask {
  int count = 0;
  const double* mass = nullptr;  ///< W
  const double* c = nullptr;     ///< linear force at its start
  const double *u_before = nullptr, *u = nullptr;
  const double *force_before = nullptr, *force = nullptr;
  const double* strokes = nullptr;
  const double* base = nullptr;
  const double* cubic = nullptr;  ///< κ; null: none
  double* moved = nullptr;        ///< ũ − uⁿ goes here
};
struct BalanceSums {
  double change = 0.0;      ///< H(x̃) − H(xⁿ)
  double size = 0.0;        ///< the terms that it was made of
  double kinetic = 0.0;     ///< ½ũᵀWũ
  double slope = 0.0;       ///< ∇H(x̃)·p/h
  double of_momenta = 0.0;  ///< of that what momenta take
};

/// The powers of s, above the first, in H where u ← u + s(f̃ − fⁿ) and Y ← Y + s(ũ − uⁿ), row by row.
struct BendTask {
  int count = 0;
  const double* mass = nullptr;
  const double *force_before = nullptr, *force = nullptr;
  const double* moved = nullptr;  ///< ũ − uⁿ
  const double* pull = nullptr;   ///< S(ũ − uⁿ)
  const double *strokes = nullptr, *base = nullptr;
  const double* cubic = nullptr;  ///< κ; null: none
};
struct BendSums {
  double second = 0.0, third = 0.0, fourth = 0.0;
};

/// q⁺ = q + K Y of undamped positions, and what they store more.
struct PositionTask {
  StrokeRuns map;  ///< K
  const double* strokes = nullptr;
  const double* before = nullptr;
  double* after = nullptr;
  const double* stiffness =
      nullptr;  ///< ∂²H/∂q² of each, H being apart from the rest ½·stiffness·q² …
  const double* constant = nullptr;  ///< + constant·q; null: none
  const double* cubic = nullptr;     ///< + ¼·cubic·q⁴; null: none
};

/// Momenta [first, last) on dampers of their own.
struct DecayTask {
  int first = 0, last = 0;
  bool is_uniform = false;  ///< psi, factor and lost are the same for all of them
  const double *psi = nullptr, *factor = nullptr, *lost = nullptr;
  double* u = nullptr;
  double* w = nullptr;  ///< null: nobody asks for w
  double* strokes = nullptr;
};

/// The strokes of momenta [first, last) that share dampers in a middle drift: w = τu − ½τ²𝒟u + lump/6 𝒟²u;
/// Y ← Y + w, and then w ← w + mix·Y.
struct LumpedTask {
  int first = 0, last = 0;
  double tau = 0.0, lump = 0.0, mix = 0.0;
  const double *mass = nullptr, *u = nullptr;
  const double *once = nullptr, *twice = nullptr;  ///< 𝒟u, 𝒟²u
  double *w = nullptr, *strokes = nullptr;
};

/// Decaying positions at the start of a drift, and at its end or a place within but for what momenta add.
struct RelaxTask {
  int count = 0;
  const double *start = nullptr, *increments = nullptr;  ///< q is their sum
  const double* kept = nullptr;                          ///< e^{−ρt}
  double *before = nullptr, *after = nullptr;
};

/// Increments of decaying positions over a drift, and what they dissipate by the values at both ends.
struct RelaxedTask {
  int count = 0;
  const double *before = nullptr, *after = nullptr;
  const double *energy_00 = nullptr, *energy_01 = nullptr, *energy_11 = nullptr;
  double* increments = nullptr;
};

/// A term of a Taylor series, wₖ₊₁ = factor·M wₖ. Where `sum` is given, both terms are added to it, and both with
/// their weights to `weighted`.
struct SeriesTask {
  StrokeRuns map;
  const double* w = nullptr;
  double* next = nullptr;
  double factor = 0.0;
  double* sum = nullptr;       ///< null: nothing is added
  double* weighted = nullptr;  ///< null: only `sum`
  double weight = 0.0, next_weight = 0.0;
  bool starts = false;  ///< the sums begin here
};

/// What a step from x along d, and then along e, does to H = ½xᵀQx + cᵀx, row by row. y = Σ_{k≥1} wₖ/(k+M+1).
struct SeriesBalanceTask {
  int count = 0;
  double order = 0.0;                                    ///< M
  const double* stiffness = nullptr;                     ///< the diagonal of Q; null: by products
  const double *pull = nullptr, *middle_pull = nullptr;  ///< products: Qe, Q(x + ½d)
  const double* constant = nullptr;                      ///< c; null: 0
  const double *x = nullptr, *d = nullptr, *e = nullptr;
  const double* y = nullptr;  ///< null: its sum is not asked for
};
struct SeriesSums {
  double change = 0.0;    ///< H(x + d) − H(x)
  double size = 0.0;      ///< the terms that it was made of
  double stored = 0.0;    ///< ½zᵀx in the middle, by size
  double slope = 0.0;     ///< ∇H(x + d)·e
  double square = 0.0;    ///< eᵀQe
  double residual = 0.0;  ///< eᵀ(Q(y + x/(M+1)) + c/(M+1))
};

/// x⁺ = x + (d + λe), and what it stores more than x where Q is diagonal.
struct SeriesEndTask {
  int count = 0;
  double lambda = 0.0;
  const double *x = nullptr, *d = nullptr, *e = nullptr;
  double* after = nullptr;
  const double* stiffness = nullptr;  ///< null: no energy
  const double* constant = nullptr;   ///< null: 0
};

struct StrokeKernels {
  void (*kick)(const KickTask&);
  void (*mixed_kick)(const MixedKickTask&);
  /// Returns Σ W((𝒟u)w − ½τ²(𝒟u)²).
  double (*stroke)(const StrokeTask&);
  BalanceSums (*balance)(const BalanceTask&);
  BendSums (*bend)(const BendTask&);
  /// Returns the energies' sum; `size`: that of its terms' sizes.
  double (*positions)(const PositionTask&, double* size);
  /// out = M x, row by row of the runs.
  void (*apply)(const StrokeRuns& M, const double* x, double* out);
  /// out += factor · M x.
  void (*add)(const StrokeRuns& M, const double* x, double factor, double* out);
  /// y[i] += factor · x[i].
  void (*axpy)(int count, double factor, const double* x, double* y);
  void (*move)(const MoveTask&);
  /// Σ m[i]·(b[i] − a[i])·(b[i] + a[i])/2, and the sizes of its terms.
  double (*kinetic)(int count, const double* m, const double* a, const double* b, double* size);
  /// w = psi·u, u ← factor·u, Y ← Y + w. Returns Σ lost·u².
  double (*decay)(const DecayTask&);
  /// Returns Σ W((𝒟u)w − ½τ²(𝒟u)² + ⅔ lump (𝒟u)(𝒟²u)), w being τu − ½τ²𝒟u.
  double (*lumped)(const LumpedTask&);
  void (*relax)(const RelaxTask&);
  /// Returns the energy dissipated.
  double (*relaxed)(const RelaxedTask&);
  void (*series)(const SeriesTask&);
  SeriesSums (*series_balance)(const SeriesBalanceTask&);
  /// Returns the energy; `size`: the sum of its terms' sizes.
  double (*series_end)(const SeriesEndTask&, double* size);
};

const StrokeKernels& stroke_kernels();

PORTWAVE_DECLARE_KERNELS(const StrokeKernels kStrokeKernels)

}  // namespace portwave
