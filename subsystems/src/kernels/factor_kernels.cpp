#include "kernels/factor_kernels.hpp"

#include "portwave/subsystems/base/lane_group.hpp"
#include "portwave/subsystems/kernels/simd.hpp"

namespace portwave::PORTWAVE_ISA {
namespace {

/// Columns are taken kPanel at a time: what they act on is read once for all of them. Sums over rows have eight
/// partial sums, that of row i in number i modulo 8 from the end of the panel on.
struct FactorColumns {
  using V = Vec<kLaneGroup>;
  static constexpr int kPanel = 4;

  static double sum(const V& partial) {
    double p[kLaneGroup];
    partial.store(p);
    return ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]));
  }

  /// t −= Σ column_k value_k, over rows [first, last); `columns` at row 0.
  template <int count>
  static void subtract(const double* columns, long height, const double* value, double* t,
                       int first, int last) {
    V factor[count];
    for (int k = 0; k < count; ++k) factor[k] = V::all(value[k]);
    int i = first;
    for (; i + kLaneGroup <= last; i += kLaneGroup) {
      V own = V::load(t + i);
      for (int k = 0; k < count; ++k) own = own - factor[k] * V::load(columns + k * height + i);
      own.store(t + i);
    }
    for (; i < last; ++i) {
      double own = t[i];
      for (int k = 0; k < count; ++k) own = own - value[k] * columns[k * height + i];
      t[i] = own;
    }
  }

  /// out_k = Σ column_k t, over rows [first, last).
  template <int count>
  static void dot(const double* columns, long height, const double* t, int first, int last,
                  double* out) {
    V partial[count];
    for (int k = 0; k < count; ++k) partial[k] = V::all(0.0);
    int i = first;
    for (; i + kLaneGroup <= last; i += kLaneGroup) {
      const V own = V::load(t + i);
      for (int k = 0; k < count; ++k) {
        partial[k] = partial[k] + V::load(columns + k * height + i) * own;
      }
    }
    for (int k = 0; k < count; ++k) {
      double rest = 0.0;
      for (int j = i; j < last; ++j) rest = rest + columns[k * height + j] * t[j];
      out[k] = sum(partial[k]) + rest;
    }
  }

  template <int count>
  static void forward_panel(const double* columns, long height, const double* inverse, double* t,
                            int begin) {
    const double* const own = columns + begin * height;
    for (int k = 0; k < count; ++k) {
      double value = t[begin + k];
      for (int j = 0; j < k; ++j) value = value - own[j * height + begin + k] * t[begin + j];
      t[begin + k] = value * inverse[begin + k];
    }
    subtract<count>(own, height, t + begin, t, begin + count, static_cast<int>(height));
  }

  template <int count>
  static void backward_panel(const double* columns, long height, const double* inverse, double* t,
                             int begin) {
    const double* const own = columns + begin * height;
    double far[count];
    dot<count>(own, height, t, begin + count, static_cast<int>(height), far);
    for (int k = count - 1; k >= 0; --k) {
      double value = t[begin + k] - far[k];
      for (int j = k + 1; j < count; ++j)
        value = value - own[k * height + begin + j] * t[begin + j];
      t[begin + k] = value * inverse[begin + k];
    }
  }

  static void forward(const double* columns, int height, int width, const double* inverse,
                      double* t) {
    int k = 0;
    for (; k + kPanel <= width; k += kPanel) forward_panel<kPanel>(columns, height, inverse, t, k);
    for (; k < width; ++k) forward_panel<1>(columns, height, inverse, t, k);
  }

  static void backward(const double* columns, int height, int width, const double* inverse,
                       double* t) {
    const int whole = width / kPanel * kPanel;
    for (int k = width; k-- > whole;) backward_panel<1>(columns, height, inverse, t, k);
    for (int k = whole; k > 0; k -= kPanel) {
      backward_panel<kPanel>(columns, height, inverse, t, k - kPanel);
    }
  }

  static void reduce(const factor_columns::Factors& factors, double* w, double* scratch) {
    for (std::size_t s = 0; s < factors.count; ++s) {
      const FactorBlock& block = factors.blocks[s];
      const int width = block.last - block.first, below = block.below_count;
      const int* const rows = factors.rows + block.below;
      double* const own = w + block.first;
      for (int k = 0; k < width; ++k) scratch[k] = own[k];
      for (int i = 0; i < below; ++i) scratch[width + i] = 0.0;
      forward(factors.values + block.values, width + below, width, factors.inverse + block.first,
              scratch);
      for (int k = 0; k < width; ++k) own[k] = scratch[k];
      for (int i = 0; i < below; ++i) w[rows[i]] += scratch[width + i];
    }
  }

  static void expand(const factor_columns::Factors& factors, double* w, double* scratch) {
    for (std::size_t s = factors.count; s-- > 0;) {
      const FactorBlock& block = factors.blocks[s];
      const int width = block.last - block.first, below = block.below_count;
      const int* const rows = factors.rows + block.below;
      double* const own = w + block.first;
      for (int k = 0; k < width; ++k) scratch[k] = own[k];
      for (int i = 0; i < below; ++i) scratch[width + i] = w[rows[i]];
      backward(factors.values + block.values, width + below, width, factors.inverse + block.first,
               scratch);
      for (int k = 0; k < width; ++k) own[k] = scratch[k];
    }
  }

  static void solve(const factor_columns::Triangle& L, const double* inverse, double* x) {
    forward(L.values, L.size, L.size, inverse, x);
    backward(L.values, L.size, L.size, inverse, x);
  }

  /// kPanel columns: the triangle on the diagonal, and the rows below, which act both ways.
  static void multiply_panel(const double* columns, long n, const double* x, double* y, int begin) {
    const double* const own = columns + begin * n;
    V factor[kPanel], partial[kPanel];
    for (int k = 0; k < kPanel; ++k) {
      factor[k] = V::all(x[begin + k]);
      partial[k] = V::all(0.0);
    }
    const int end = begin + kPanel, last = static_cast<int>(n);
    int i = end;
    for (; i + kLaneGroup <= last; i += kLaneGroup) {
      const V at = V::load(x + i);
      V to = V::load(y + i);
      for (int k = 0; k < kPanel; ++k) {
        const V entry = V::load(own + k * n + i);
        to = to + factor[k] * entry;
        partial[k] = partial[k] + entry * at;
      }
      to.store(y + i);
    }
    double rest[kPanel] = {};
    for (; i < last; ++i) {
      double to = y[i];
      for (int k = 0; k < kPanel; ++k) {
        const double entry = own[k * n + i];
        to = to + x[begin + k] * entry;
        rest[k] = rest[k] + entry * x[i];
      }
      y[i] = to;
    }
    for (int k = 0; k < kPanel; ++k) {
      double value = y[begin + k] + (sum(partial[k]) + rest[k]);
      for (int j = 0; j < kPanel; ++j) {
        const int low = j < k ? j : k, high = j < k ? k : j;
        value = value + own[low * n + begin + high] * x[begin + j];
      }
      y[begin + k] = value;
    }
  }

  static void multiply(const double* columns, int width, int height, const double* x, double* y) {
    const long n = height;
    int k = 0;
    for (; k + kPanel <= width; k += kPanel) multiply_panel(columns, n, x, y, k);
    for (; k < width; ++k) {
      const double* const own = columns + k * n;
      double value = y[k] + own[k] * x[k];
      for (int i = k + 1; i < height; ++i) {
        y[i] = y[i] + own[i] * x[k];
        value = value + own[i] * x[i];
      }
      y[k] = value;
    }
  }

  // Factorisation. Every entry is its value less products, one after the other in the order of columns,
  // whatever the shape of the tiles. Columns are eliminated kOuter at a time before those after them
  // hear of it, and within these kInner at a time.
  static constexpr int kTile = kNative == kLaneGroup ? 2 : 1;  // vectors of rows
  static constexpr int kOuter = 32, kInner = 8;

  /// A tile of C −= A Bᵀ, 8·`high` rows by `wide` columns. `a` and `b`: its first rows in A and B, which
  /// have `depth` columns. Rows before `first` stay as they are.
  template <int high, int wide>
  static void subtract_tile(const double* a, const double* b, long stride, int depth, double* c,
                            long c_stride, int first) {
    V own[wide][high];
    for (int j = 0; j < wide; ++j) {
      for (int i = 0; i < high; ++i) own[j][i] = V::load(c + j * c_stride + i * kLaneGroup);
    }
    for (int k = 0; k < depth; ++k, a += stride, b += stride) {
      V rows[high];
      for (int i = 0; i < high; ++i) rows[i] = V::load(a + i * kLaneGroup);
      for (int j = 0; j < wide; ++j) {
        const V factor = V::all(b[j]);
        for (int i = 0; i < high; ++i) own[j][i] = own[j][i] - rows[i] * factor;
      }
    }
    for (int j = 0; j < wide; ++j) {
      if (first == 0) {
        for (int i = 0; i < high; ++i) own[j][i].store(c + j * c_stride + i * kLaneGroup);
        continue;
      }
      double values[kLaneGroup];
      own[j][0].store(values);
      for (int i = first; i < kLaneGroup; ++i) c[j * c_stride + i] = values[i];
    }
  }

  template <int high>
  static void subtract_rows(const double* a, const double* b, long stride, int depth, double* c,
                            long c_stride, int columns, int first) {
    int j = 0;
    for (; j + kPanel <= columns; j += kPanel) {
      subtract_tile<high, kPanel>(a, b + j, stride, depth, c + j * c_stride, c_stride, first);
    }
    for (; j < columns; ++j) {
      subtract_tile<high, 1>(a, b + j, stride, depth, c + j * c_stride, c_stride, first);
    }
  }

  /// C −= A A_topᵀ, of rows and columns of C on and below its diagonal; above it C may become anything.
  static void subtract_products(const double* A, long stride, int rows, int depth, double* C,
                                long c_stride, int columns) {
    for (int done = 0; done < depth; done += kOuter, A += kOuter * stride) {
      const int own = depth - done < kOuter ? depth - done : kOuter;
      constexpr int kHigh = kTile * kLaneGroup;
      int i = 0;
      const auto columns_to = [columns](int end) { return end < columns ? end : columns; };
      for (; i + kHigh <= rows; i += kHigh) {
        subtract_rows<kTile>(A + i, A, stride, own, C + i, c_stride, columns_to(i + kHigh), 0);
      }
      for (; i + kLaneGroup <= rows; i += kLaneGroup) {
        subtract_rows<1>(A + i, A, stride, own, C + i, c_stride, columns_to(i + kLaneGroup), 0);
      }
      if (i == rows) continue;
      if (rows >= kLaneGroup) {  // the last rows, beside some that are done
        const int begin = rows - kLaneGroup;
        subtract_rows<1>(A + begin, A, stride, own, C + begin, c_stride, columns_to(rows),
                         i - begin);
        continue;
      }
      for (int j = 0; j < columns_to(rows); ++j) {
        for (int r = j; r < rows; ++r) {
          double value = C[j * c_stride + r];
          for (int k = 0; k < own; ++k) value = value - A[k * stride + r] * A[k * stride + j];
          C[j * c_stride + r] = value;
        }
      }
    }
  }

  static double factorise(const factor_columns::Columns& columns, bool skips, double* inverse) {
    const long height = columns.height;
    const int rows = columns.height, width = columns.width;
    double smallest = __builtin_inf();
    const auto at = [&](int row, int column) { return columns.values + column * height + row; };
    for (int first = 0; first < width; first += kOuter) {
      const int last = width - first < kOuter ? width : first + kOuter;
      for (int begin = first; begin < last; begin += kInner) {
        const int end = last - begin < kInner ? last : begin + kInner;
        subtract_products(at(begin, first), height, rows - begin, begin - first, at(begin, begin),
                          height, end - begin);
        for (int k = begin; k < end; ++k) {
          double* const own = at(0, k);
          const double pivot = own[k];
          if (!(pivot >= smallest)) smallest = pivot;
          if (!(pivot > 0.0)) {
            if (!skips || pivot != pivot) return pivot;
            inverse[k] = 0.0;
            for (int i = k; i < rows; ++i) own[i] = 0.0;
            continue;
          }
          const double factor = 1.0 / __builtin_sqrt(pivot);
          inverse[k] = factor;
          for (int i = k; i < rows; ++i) own[i] = own[i] * factor;
          for (int j = k + 1; j < end; ++j) subtract<1>(own, height, own + j, at(0, j), j, rows);
        }
      }
      subtract_products(at(last, first), height, rows - last, last - first, at(last, last), height,
                        width - last);
    }
    return smallest;
  }

  static void subtract_square(const factor_columns::Columns& L, double* C) {
    const int rows = L.height - L.width;
    subtract_products(L.values + L.width, L.height, rows, L.width, C, rows, rows);
  }
};

}  // namespace

const factor_columns::Kernels kFactorColumns = {
    FactorColumns::reduce,   FactorColumns::expand,    FactorColumns::solve,
    FactorColumns::multiply, FactorColumns::factorise, FactorColumns::subtract_square};

}  // namespace portwave::PORTWAVE_ISA
