#pragma once

#include "kernels/linear_kernels.hpp"
#include "portwave/subsystems/kernels/simd.hpp"

// Lane groups on their way through a step, and the energies of the step.

namespace portwave::PORTWAVE_ISA {
namespace {

/// Distance between the coefficients of a group.
template <int W, bool kShared>
constexpr int kStep = kShared ? 1 : W;  // NOLINT(bugprone-branch-clone): W may be 1

/// The group's arrays.
struct GroupArrays {
  const double* x;
  const double* input;
  double* next;
  const double* a;
  const double* b;
  bool driven;  ///< some ū of the group is not zero
};

/// Groups [first, last) that go through a step phase by phase: short loops that wait for nothing. All of
/// them have coefficients of their own, or none.
struct Tile {
  static constexpr int kGroups = 4;
  long first, last;
  bool driven[kGroups];
};

template <int W>
GroupArrays arrays_of(const LinearTask& t, const Tile& tile, long g) {
  const LinearShape& s = *t.shape;
  const long states = t.states + g * (s.n + s.q) * W;
  const double* x = t.record + states;
  return {x, x + s.n * W, t.next + states, t.a + g * W, t.b + g * W, tile.driven[g - tile.first]};
}

/// Coefficients of a group's ledger, one kind after another (LinearGroup::energy).
template <int W, bool kShared>
struct EnergyCoefficients {
  static constexpr int S = kStep<W, kShared>;
  const LinearShape& s;
  const double* first;

  const double* diagonal() const { return first; }
  const double* storage() const { return first + s.n * S; }
  const double* gradient() const { return storage() + s.storage_count * S; }
  const double* dissipation() const { return gradient() + s.gradient_count * S; }
  const double* output() const { return dissipation() + s.dissipation_count * S; }
  const double* factor() const { return output() + s.output_count * S; }
  const double* derived() const { return factor() + s.p * S; }
};

/// Row m of a map of (x, a, ū).
template <int W, bool kShared>
Vec<W> mapped_row(const LinearTask& t, const double* map, const GroupArrays& at, int m) {
  const LinearShape& s = *t.shape;
  const int columns = s.n + s.p + s.q;
  Vec<W> sum = Vec<W>::all(0.0);
  for (int j = 0; j < s.n; ++j) {
    sum = fma(coefficient<W, kShared>(map, m * columns + j), Vec<W>::load(at.x + j * W), sum);
  }
  for (int j = 0; j < s.p; ++j) {
    sum = fma(coefficient<W, kShared>(map, m * columns + s.n + j),
              Vec<W>::load(at.a + j * t.stride), sum);
  }
  for (int j = 0; at.driven && j < s.q; ++j) {
    sum = fma(coefficient<W, kShared>(map, m * columns + s.n + s.p + j),
              Vec<W>::load(at.input + j * W), sum);
  }
  return sum;
}

/// One row of z by its map.
template <int W, bool kShared>
void map_row(const LinearTask& t, const LinearGroup& group, const GroupArrays& at, int m,
             double* work) {
  mapped_row<W, kShared>(t, group.mapped, at, m).store(work + t.shape->mapped[m] * W);
}

/// Of lane group g: θ of steps with one stage.
template <int W>
[[gnu::always_inline]] inline Vec<W> theta_of(const LinearTask& t, long g) {
  const Vec<W> root = Vec<W>::load(t.shape->lane_damping + g * W);
  return root * root;
}

/// Twice the state that one stage sees: x + x⁺, and with damping θ(x⁺ − x) more.
template <int W>
[[gnu::always_inline]] inline Vec<W> twice_the_stage(const LinearTask& t, long g, Vec<W> x,
                                                     Vec<W> next) {
  if (!(t.shape->damping > 0.0)) return x + next;
  return fma(theta_of<W>(t, g), next - x, x + next);
}

/// Adds to w what are sums of x and of rows of z in `work`.
template <int W, bool kShared>
[[gnu::always_inline]] inline void derive_damping(const LinearShape& s, const double* factors,
                                                  const GroupArrays& at, const double* work,
                                                  double* w) {
  for (int e = 0, k = 0; e < s.derived_count;) {
    const long row = s.derived[e].row;
    Vec<W> sum =
        fma(coefficient<W, kShared>(factors, k++), Vec<W>::load(at.x + row), Vec<W>::load(w + row));
    for (; e < s.derived_count && s.derived[e].row == row; ++e) {
      sum =
          fma(coefficient<W, kShared>(factors, k++), Vec<W>::load(work + s.derived[e].column), sum);
    }
    sum.store(w + row);
  }
}

/// H(w) of damped stages whose w has rows. `work`: with rows that are derived, z, and room for w behind it; else only
/// the latter.
template <int W, bool kShared>
Vec<W> numerical_dissipation(const LinearTask& t, const LinearGroup& group, const GroupArrays& at,
                             double* work) {
  const LinearShape& s = *t.shape;
  const EnergyCoefficients<W, kShared> value{s, group.energy};
  const double* storage = value.storage();
  const bool is_derived = s.derived_count > 0;
  double* const w = is_derived ? work + (s.z + s.p + s.q) * W : work;
  Vec<W> sum = Vec<W>::all(0.0);
  int row = 0;
  do {
    for (int i = 0; i < s.n; ++i) {
      const bool has_row = !is_derived || s.has_damped_row[i] != 0;
      (has_row ? mapped_row<W, kShared>(t, group.damped, at, row++) : Vec<W>::all(0.0))
          .store(w + i * W);
    }
    if (is_derived) derive_damping<W, kShared>(s, value.derived(), at, work, w);
    for (int i = 0; i < s.n; ++i) {
      const Vec<W> own = Vec<W>::load(w + i * W);
      sum = fma(coefficient<W, kShared>(value.diagonal(), i) * own, own, sum);
    }
    for (int e = 0; e < s.storage_count; ++e) {
      const Vec<W> product =
          coefficient<W, kShared>(storage, e) * Vec<W>::load(w + s.storage[e].row);
      sum = fma(product, Vec<W>::load(w + s.storage[e].column), sum);
    }
  } while (row < s.damped_count);
  return sum;
}

/// z = [∇̄H; u], as far as it is needed, into `work`; what its diagonal makes is there already.
/// Entries of a row follow one another.
template <int W, bool kShared>
[[gnu::always_inline]] inline void form_gradient(const LinearTask& t, const LinearGroup& group,
                                                 const EnergyCoefficients<W, kShared>& value,
                                                 const GroupArrays& at, long g, double* work) {
  const LinearShape& s = *t.shape;
  const double* gradient = value.gradient();
  for (int e = 0; e < s.gradient_count;) {
    const long row = s.gradient[e].row;
    Vec<W> sum = Vec<W>::all(0.0);
    for (; e < s.gradient_count && s.gradient[e].row == row; ++e) {
      const long column = s.gradient[e].column;
      const Vec<W> twice =
          twice_the_stage<W>(t, g, Vec<W>::load(at.x + column), Vec<W>::load(at.next + column));
      sum = fma(coefficient<W, kShared>(gradient, e), twice, sum);
    }
    sum.store(work + row);
  }
  for (int m = 0; m < s.mapped_count; ++m) map_row<W, kShared>(t, group, at, m, work);
  if (!s.ports_dissipate) return;
  const double* factor = value.factor();
  for (int j = 0; j < s.p; ++j) {
    const Vec<W> sign = Vec<W>::all(s.input_sign[j]);
    const Vec<W> waves =
        fma(sign, Vec<W>::load(at.b + j * t.stride), Vec<W>::load(at.a + j * t.stride));
    (coefficient<W, kShared>(factor, j) * waves).store(work + (s.z + j) * W);
  }
  for (int j = 0; j < s.q; ++j) {
    Vec<W>::load(at.input + j * W).store(work + (s.z + s.p + j) * W);
  }
}

/// What is dissipated and supplied; z is formed in `work`.
template <int W, bool kShared>
[[gnu::always_inline]] inline void find_powers(const LinearTask& t, const LinearGroup& group,
                                               const GroupArrays& at, long g, double* work,
                                               Vec<W>& dissipated, Vec<W>& supply) {
  const LinearShape& s = *t.shape;
  const EnergyCoefficients<W, kShared> value{s, group.energy};
  form_gradient(t, group, value, at, g, work);
  const double* dissipation = value.dissipation();
  for (int e = 0; e < s.dissipation_count; ++e) {
    const Vec<W> product =
        coefficient<W, kShared>(dissipation, e) * Vec<W>::load(work + s.dissipation[e].row);
    dissipated = fma(product, Vec<W>::load(work + s.dissipation[e].column), dissipated);
  }
  if (!at.driven) return;
  const double* output = value.output();
  for (int e = 0; e < s.output_count; ++e) {
    const Vec<W> product =
        coefficient<W, kShared>(output, e) * Vec<W>::load(at.input + s.output[e].row);
    supply = fma(product, Vec<W>::load(work + s.output[e].column), supply);
  }
}

/// H⁺ − H = ½(x⁺ + x)ᵀQ(x⁺ − x), one term after another: several sums that are added in the end were no
/// faster, and rounded ten times as much where a part is far from its origin. Where `work` is given, what
/// Qx̄ has on the diagonal goes there. N states, or any number of them for N = 0.
template <int W, bool kShared, int N = 0>
[[gnu::always_inline]] inline Vec<W> stored_change(const LinearShape& s, const LinearGroup& group,
                                                   const GroupArrays& at, double* work) {
  const EnergyCoefficients<W, kShared> value{s, group.energy};
  Vec<W> change = Vec<W>::all(0.0);
  const int n = N > 0 ? N : s.n;
  for (int i = 0; i < n; ++i) {
    const Vec<W> x = Vec<W>::load(at.x + i * W), next = Vec<W>::load(at.next + i * W);
    const Vec<W> slope = coefficient<W, kShared>(value.diagonal(), i) * (next + x);
    change = fma(slope, next - x, change);
    if (work != nullptr && s.diagonal_gradient[i] != 0) slope.store(work + i * W);
  }
  const double* storage = value.storage();
  for (int e = 0; e < s.storage_count; ++e) {
    const long row = s.storage[e].row, column = s.storage[e].column;
    const Vec<W> xi = Vec<W>::load(at.x + row), ni = Vec<W>::load(at.next + row);
    const Vec<W> xj = Vec<W>::load(at.x + column), nj = Vec<W>::load(at.next + column);
    const Vec<W> both = fma(xi, nj - xj, (ni - xi) * nj);  // nᵢnⱼ − xᵢxⱼ
    change = fma(coefficient<W, kShared>(storage, e), both, change);
  }
  return change;
}

/// The same of steps with one damped stage, whose gradient is that of what the stage sees. `taken`: H(√θ(x⁺ − x)), what
/// they take.
template <int W, bool kShared>
[[gnu::always_inline]] inline Vec<W> damped_change(const LinearTask& t, const LinearGroup& group,
                                                   const GroupArrays& at, long g, double* work,
                                                   Vec<W>& taken) {
  const LinearShape& s = *t.shape;
  const EnergyCoefficients<W, kShared> value{s, group.energy};
  const Vec<W> theta = theta_of<W>(t, g);
  Vec<W> change = Vec<W>::all(0.0), squares = Vec<W>::all(0.0);
  for (int i = 0; i < s.n; ++i) {
    const Vec<W> x = Vec<W>::load(at.x + i * W), next = Vec<W>::load(at.next + i * W);
    const Vec<W> both = next + x, moved = next - x;
    const Vec<W> half = coefficient<W, kShared>(value.diagonal(), i);
    change = fma(half * both, moved, change);
    squares = fma(half * moved, moved, squares);
    if (work != nullptr && s.diagonal_gradient[i] != 0) {
      (half * fma(theta, moved, both)).store(work + i * W);
    }
  }
  const double* storage = value.storage();
  for (int e = 0; e < s.storage_count; ++e) {
    const long row = s.storage[e].row, column = s.storage[e].column;
    const Vec<W> xi = Vec<W>::load(at.x + row), ni = Vec<W>::load(at.next + row);
    const Vec<W> xj = Vec<W>::load(at.x + column), nj = Vec<W>::load(at.next + column);
    const Vec<W> both = fma(xi, nj - xj, (ni - xi) * nj);  // nᵢnⱼ − xᵢxⱼ
    const Vec<W> Q = coefficient<W, kShared>(storage, e);
    change = fma(Q, both, change);
    squares = fma(Q * (ni - xi), nj - xj, squares);
  }
  taken = theta * squares;
  return change;
}

template <int W, bool kShared>
[[gnu::always_inline]] inline void account_group(const LinearTask& t, const LinearGroup& group,
                                                 const GroupArrays& at, long g, double* work) {
  const LinearShape& s = *t.shape;
  Vec<W> dissipated = Vec<W>::all(0.0), supply = Vec<W>::all(0.0);
  const bool needs_gradient = s.dissipation_count > 0 || at.driven || s.derived_count > 0;
  const bool has_rows = s.damped_count > 0 || s.derived_count > 0;
  Vec<W> numerical = Vec<W>::all(0.0);
  double* const slopes = needs_gradient ? work : nullptr;
  const Vec<W> change = s.damping > 0.0 && !has_rows
                            ? damped_change<W, kShared>(t, group, at, g, slopes, numerical)
                            : stored_change<W, kShared>(s, group, at, slopes);
  if (needs_gradient) find_powers<W, kShared>(t, group, at, g, work, dissipated, supply);
  if (s.damping > 0.0) {
    if (has_rows) numerical = numerical_dissipation<W, kShared>(t, group, at, work);
    dissipated = dissipated + numerical;
    if (t.energy.numerical_dissipation_J != nullptr) {
      numerical.store(t.energy.numerical_dissipation_J + g * W);
    }
  }
  change.store(t.energy.change_J + g * W);
  dissipated.store(t.energy.dissipated_J + g * W);
  supply.store(t.energy.external_supply_J + g * W);
}

template <int W, bool kShared>
void account_tile(const LinearTask& t, const Tile& tile) {
  const int sizes = t.shape->work_size();
  alignas(64) double work[LinearTask::kOnStack * W];
  for (long g = tile.first; g < tile.last; ++g) {
    double* const own = sizes <= LinearTask::kOnStack ? work : t.work + g * sizes * W;
    account_group<W, kShared>(t, t.groups[g], arrays_of<W>(t, tile, g), g, own);
  }
}

}  // namespace
}  // namespace portwave::PORTWAVE_ISA
