#include "kernels/small_lu_kernels.hpp"

#include "portwave/subsystems/base/lane_group.hpp"
#include "portwave/subsystems/kernels/simd.hpp"

namespace portwave::PORTWAVE_ISA {
namespace {

/// As the header of the kernels says.
struct SmallFactors {
  using V = Vec<kLaneGroup>;

  /// Where the lane group begins that a row is in.
  static int group_of(int row) { return row / kLaneGroup * kLaneGroup; }

  template <class T>
  static void swap(T& a, T& b) {
    const T kept = a;
    a = b;
    b = kept;
  }

  /// y −= a x of the rows from `first` on to `last`, where lane groups begin or end.
  static void subtract(double a, const double* x, double* y, int first, int last) {
    const V factor = V::all(a);
    for (int i = first; i < last; i += kLaneGroup) {
      (V::load(y + i) - factor * V::load(x + i)).store(y + i);
    }
  }

  /// The same of complex numbers.
  static void subtract(double a, double a_imaginary, const double* x, const double* x_imaginary,
                       double* y, double* y_imaginary, int first, int last) {
    const V re = V::all(a), im = V::all(a_imaginary);
    for (int i = first; i < last; i += kLaneGroup) {
      const V u = V::load(x + i), v = V::load(x_imaginary + i);
      (V::load(y + i) - (re * u - im * v)).store(y + i);
      (V::load(y_imaginary + i) - (re * v + im * u)).store(y_imaginary + i);
    }
  }

  /// The row, from k on, of the largest entry in a column.
  template <class Size>
  static int pivot_of(int k, int n, const Size& size) {
    int pivot = k;
    double largest = size(k);
    for (int i = k + 1; i < n; ++i) {
      const double own = size(i);
      if (own > largest) {
        largest = own;
        pivot = i;
      }
    }
    return pivot;
  }

  /// Rows k and pivot of the matrix from column k on, and of L before it.
  static void exchange(int k, int pivot, int n, int stride, double* A, double* L) {
    for (int j = 0; j < k; ++j) swap(L[j * stride + k], L[j * stride + pivot]);
    for (int j = k; j < n; ++j) swap(A[j * stride + k], A[j * stride + pivot]);
  }

  static void clear(double* a, int count) {
    for (int i = 0; i < count; ++i) a[i] = 0.0;
  }

  /// What stands above the diagonal.
  static void take_upper(const double* A, int n, int stride, double* U) {
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < j; ++i) U[j * stride + i] = A[j * stride + i];
    }
  }

  static void factorise(const small_lu::Real& lu) {
    const int n = lu.n, stride = lu.stride;
    clear(lu.L, n * stride);
    clear(lu.U, n * stride);
    for (int k = 0; k < n; ++k) lu.order[k] = k;
    for (int k = 0; k < n; ++k) {
      double* const own = lu.A + k * stride;
      const int pivot = pivot_of(k, n, [&](int i) { return __builtin_fabs(own[i]); });
      if (pivot != k) {
        exchange(k, pivot, n, stride, lu.A, lu.L);
        swap(lu.order[k], lu.order[pivot]);
      }
      lu.diagonal[k] = own[k];
      const double inverse = 1.0 / own[k];
      double* const multipliers = lu.L + k * stride;
      for (int i = k + 1; i < n; ++i) multipliers[i] = own[i] * inverse;
      for (int j = k + 1; j < n; ++j) {
        const double entry = lu.A[j * stride + k];
        if (entry != 0.0) subtract(entry, multipliers, lu.A + j * stride, group_of(k + 1), stride);
      }
    }
    take_upper(lu.A, n, stride, lu.U);
  }

  static void solve(const small_lu::Real& lu, double* b) {
    const int n = lu.n, stride = lu.stride;
    for (int k = 0; k + 1 < n; ++k) subtract(b[k], lu.L + k * stride, b, group_of(k + 1), stride);
    for (int k = n - 1; k >= 0; --k) {
      b[k] = b[k] / lu.diagonal[k];
      subtract(b[k], lu.U + k * stride, b, 0, group_of(k + kLaneGroup - 1));
    }
  }

  using Number = __complex__ double;

  static Number number(double re, double im) {
    Number out;
    __real__ out = re;
    __imag__ out = im;
    return out;
  }

  static void factorise_complex(const small_lu::Complex& lu) {
    const int n = lu.n, stride = lu.stride;
    for (double* const own : {lu.L, lu.L_imaginary, lu.U, lu.U_imaginary}) clear(own, n * stride);
    for (int k = 0; k < n; ++k) lu.order[k] = k;
    for (int k = 0; k < n; ++k) {
      double *const re = lu.A + k * stride, *const im = lu.A_imaginary + k * stride;
      const int pivot =
          pivot_of(k, n, [&](int i) { return __builtin_fabs(re[i]) + __builtin_fabs(im[i]); });
      if (pivot != k) {
        exchange(k, pivot, n, stride, lu.A, lu.L);
        exchange(k, pivot, n, stride, lu.A_imaginary, lu.L_imaginary);
        swap(lu.order[k], lu.order[pivot]);
      }
      lu.diagonal[k] = re[k];
      lu.diagonal_imaginary[k] = im[k];
      const Number inverse = number(1.0, 0.0) / number(re[k], im[k]);
      const double a = __real__ inverse, b = __imag__ inverse;
      double *const L = lu.L + k * stride, *const L_imaginary = lu.L_imaginary + k * stride;
      for (int i = k + 1; i < n; ++i) {
        L[i] = re[i] * a - im[i] * b;
        L_imaginary[i] = re[i] * b + im[i] * a;
      }
      for (int j = k + 1; j < n; ++j) {
        double *const to = lu.A + j * stride, *const to_imaginary = lu.A_imaginary + j * stride;
        if (to[k] == 0.0 && to_imaginary[k] == 0.0) continue;
        subtract(to[k], to_imaginary[k], L, L_imaginary, to, to_imaginary, group_of(k + 1), stride);
      }
    }
    take_upper(lu.A, n, stride, lu.U);
    take_upper(lu.A_imaginary, n, stride, lu.U_imaginary);
  }

  static void solve_complex(const small_lu::Complex& lu, double* b, double* b_imaginary) {
    const int n = lu.n, stride = lu.stride;
    for (int k = 0; k + 1 < n; ++k) {
      subtract(b[k], b_imaginary[k], lu.L + k * stride, lu.L_imaginary + k * stride, b, b_imaginary,
               group_of(k + 1), stride);
    }
    for (int k = n - 1; k >= 0; --k) {
      const Number own =
          number(b[k], b_imaginary[k]) / number(lu.diagonal[k], lu.diagonal_imaginary[k]);
      b[k] = __real__ own;
      b_imaginary[k] = __imag__ own;
      subtract(b[k], b_imaginary[k], lu.U + k * stride, lu.U_imaginary + k * stride, b, b_imaginary,
               0, group_of(k + kLaneGroup - 1));
    }
  }
};

}  // namespace

const small_lu::Kernels kSmallLu = {SmallFactors::factorise, SmallFactors::solve,
                                    SmallFactors::factorise_complex, SmallFactors::solve_complex};

}  // namespace portwave::PORTWAVE_ISA
