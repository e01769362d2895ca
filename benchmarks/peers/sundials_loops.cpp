#include "sundials_loops.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <nvector/nvector_serial.h>
#include <sunlinsol/sunlinsol_band.h>
#include <sunmatrix/sunmatrix_band.h>
#include <utility>

namespace portwave::bench {
namespace {

std::size_t size_of(N_Vector x) { return static_cast<std::size_t>(NV_LENGTH_S(x)); }

/// z[i] = value(i); z may be one of the operands, since no value looks at another place.
template <class Value>
void fill(N_Vector z_vector, Value value) {
  double* z = NV_DATA_S(z_vector);
  const std::size_t n = size_of(z_vector);
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) z[i] = value(i);
}

void linear_sum(double a, N_Vector x_vector, double b, N_Vector y_vector, N_Vector z) {
  const double *x = NV_DATA_S(x_vector), *y = NV_DATA_S(y_vector);
  if (a == 1.0) {
    fill(z, [=](std::size_t i) { return x[i] + b * y[i]; });
  } else {
    fill(z, [=](std::size_t i) { return a * x[i] + b * y[i]; });
  }
}
void constant(double c, N_Vector z) {
  fill(z, [c](std::size_t) { return c; });
}
void product(N_Vector x_vector, N_Vector y_vector, N_Vector z) {
  const double *x = NV_DATA_S(x_vector), *y = NV_DATA_S(y_vector);
  fill(z, [=](std::size_t i) { return x[i] * y[i]; });
}
void scale(double c, N_Vector x_vector, N_Vector z) {
  const double* x = NV_DATA_S(x_vector);
  if (c == 1.0 && x_vector == z) return;
  fill(z, [=](std::size_t i) { return c * x[i]; });
}
void absolute(N_Vector x_vector, N_Vector z) {
  const double* x = NV_DATA_S(x_vector);
  fill(z, [=](std::size_t i) { return std::abs(x[i]); });
}
void inverse(N_Vector x_vector, N_Vector z) {
  const double* x = NV_DATA_S(x_vector);
  fill(z, [=](std::size_t i) { return 1.0 / x[i]; });
}
void add_constant(N_Vector x_vector, double b, N_Vector z) {
  const double* x = NV_DATA_S(x_vector);
  fill(z, [=](std::size_t i) { return x[i] + b; });
}

constexpr std::size_t kLanes = 16;

/// Folds value(i) into lanes, which the compiler may keep in vector registers.
template <class Value, class Fold>
double reduced(std::size_t n, double first, Value value, Fold fold) {
  std::array<double, kLanes> lanes;
  lanes.fill(first);
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) lanes[l] = fold(lanes[l], value(i + l));
  }
  double result = first;
  for (; i < n; ++i) result = fold(result, value(i));
  for (const double lane : lanes) result = fold(result, lane);
  return result;
}
double sum(double a, double b) { return a + b; }

double wrms_norm(N_Vector x_vector, N_Vector w_vector) {
  const double *x = NV_DATA_S(x_vector), *w = NV_DATA_S(w_vector);
  const std::size_t n = size_of(x_vector);
  const double squares = reduced(
      n, 0.0, [=](std::size_t i) { return x[i] * w[i] * (x[i] * w[i]); }, sum);
  return std::sqrt(squares / static_cast<double>(n));
}
double dot_product(N_Vector x_vector, N_Vector y_vector) {
  const double *x = NV_DATA_S(x_vector), *y = NV_DATA_S(y_vector);
  return reduced(
      size_of(x_vector), 0.0, [=](std::size_t i) { return x[i] * y[i]; }, sum);
}
double max_norm(N_Vector x_vector) {
  const double* x = NV_DATA_S(x_vector);
  return reduced(
      size_of(x_vector), 0.0, [=](std::size_t i) { return std::abs(x[i]); },
      [](double a, double b) { return a > b ? a : b; });
}
double minimum(N_Vector x_vector) {
  const double* x = NV_DATA_S(x_vector);
  return reduced(
      size_of(x_vector), x[0], [=](std::size_t i) { return x[i]; },
      [](double a, double b) { return a < b ? a : b; });
}

/// z = Σ cₖ xₖ piece by piece, so that sums stay in the nearest cache; four vectors at a time.
int linear_combination(int count, double* c, N_Vector* x, N_Vector z_vector) {
  constexpr std::size_t kPiece = 512;
  std::array<double, kPiece> sums;
  const std::size_t n = size_of(z_vector);
  for (std::size_t begin = 0; begin < n; begin += kPiece) {
    const std::size_t size = std::min(kPiece, n - begin);
    const auto data = [&](int k) { return NV_DATA_S(x[k]) + begin; };
    double* const z = NV_DATA_S(z_vector) + begin;
    for (std::size_t i = 0; i < size; ++i) sums[i] = c[0] * data(0)[i];
    int k = 1;
    for (; k + 4 <= count; k += 4) {
      const double *p = data(k), *q = data(k + 1), *r = data(k + 2), *s = data(k + 3);
      const double a = c[k], b = c[k + 1], d = c[k + 2], e = c[k + 3];
      for (std::size_t i = 0; i < size; ++i) {
        sums[i] += a * p[i] + b * q[i] + (d * r[i] + e * s[i]);
      }
    }
    for (; k < count; ++k) {
      const double* p = data(k);
      const double a = c[k];
      for (std::size_t i = 0; i < size; ++i) sums[i] += a * p[i];
    }
    std::copy_n(sums.data(), size, z);
  }
  return 0;
}
int scale_add_multi(int count, double* a, N_Vector x, N_Vector* y, N_Vector* z) {
  for (int k = 0; k < count; ++k) linear_sum(1.0, y[k], a[k], x, z[k]);
  return 0;
}

sunindextype* pivots_of(SUNLinearSolver solver) {
  return static_cast<SUNLinearSolverContent_Band>(solver->content)->pivots;
}

/// Columns by their diagonal entry: column(j)[i − j] is entry (i, j).
struct Band {
  explicit Band(SUNMatrix matrix)
      : size(SM_COLUMNS_B(matrix)),
        lower(SM_LBAND_B(matrix)),
        upper(SM_SUBAND_B(matrix)),
        fill(SM_SUBAND_B(matrix) - SM_UBAND_B(matrix)),
        step(SM_LDIM_B(matrix)),
        first(SM_DATA_B(matrix) + upper) {}
  double* column(sunindextype j) const { return first + j * step; }

  sunindextype size, lower, upper, fill, step;  // upper: with the fill that pivoting makes
  double* first;
};

/// LU in place, multipliers below the diagonal. The number of the column without a pivot, or 0.
int factorise(SUNLinearSolver solver, SUNMatrix matrix) {
  const Band band(matrix);
  sunindextype* pivots = pivots_of(solver);
  for (sunindextype j = 0; j < band.size; ++j) {
    std::fill_n(band.column(j) - band.upper, band.fill, 0.0);
  }
  for (sunindextype k = 0; k < band.size; ++k) {
    double* const own = band.column(k);
    const sunindextype below = std::min(band.lower, band.size - 1 - k);
    sunindextype pivot = 0;
    for (sunindextype i = 1; i <= below; ++i) {
      if (std::abs(own[i]) > std::abs(own[pivot])) pivot = i;
    }
    pivots[k] = k + pivot;
    if (own[pivot] == 0.0) return static_cast<int>(k + 1);
    std::swap(own[0], own[pivot]);
    const double over = 1.0 / own[0];
    for (sunindextype i = 1; i <= below; ++i) own[i] *= over;
    const sunindextype right = std::min(band.upper, band.size - 1 - k);
    for (sunindextype r = 1; r <= right; ++r) {
      double* const other = band.column(k + r) - r;  // row k
      const double factor = other[pivot];
      if (pivot != 0) std::swap(other[0], other[pivot]);
      if (factor == 0.0) continue;
#pragma GCC ivdep
      for (sunindextype i = 1; i <= below; ++i) other[i] -= factor * own[i];
    }
  }
  return 0;
}

int solve(SUNLinearSolver solver, SUNMatrix matrix, N_Vector x_vector, N_Vector b, double) {
  const Band band(matrix);
  const sunindextype* pivots = pivots_of(solver);
  double* x = NV_DATA_S(x_vector);
  if (x_vector != b) std::copy_n(NV_DATA_S(b), band.size, x);
  for (sunindextype k = 0; k < band.size; ++k) {
    if (pivots[k] != k) std::swap(x[k], x[pivots[k]]);
    const double* own = band.column(k);
    const double value = x[k];
    const sunindextype below = std::min(band.lower, band.size - 1 - k);
    for (sunindextype i = 1; i <= below; ++i) x[k + i] -= own[i] * value;
  }
  for (sunindextype k = band.size; k-- > 0;) {
    const double* own = band.column(k);
    const double value = x[k] /= own[0];
    const sunindextype above = std::min(band.upper, k);
    for (sunindextype i = 1; i <= above; ++i) x[k - i] -= own[-i] * value;
  }
  return 0;
}

}  // namespace

void use_own_loops(SUNLinearSolver band) {
  band->ops->setup = factorise;
  band->ops->solve = solve;
}

void use_own_loops(N_Vector vector) {
  auto& loops = *vector->ops;
  loops.nvlinearsum = linear_sum;
  loops.nvconst = constant;
  loops.nvprod = product;
  loops.nvscale = scale;
  loops.nvabs = absolute;
  loops.nvinv = inverse;
  loops.nvaddconst = add_constant;
  loops.nvwrmsnorm = wrms_norm;
  loops.nvdotprod = dot_product;
  loops.nvmaxnorm = max_norm;
  loops.nvmin = minimum;
  loops.nvlinearcombination = linear_combination;
  loops.nvscaleaddmulti = scale_add_multi;
}

}  // namespace portwave::bench
