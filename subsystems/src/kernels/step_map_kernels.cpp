#include "kernels/step_map_kernels.hpp"

#include "portwave/subsystems/kernels/simd.hpp"

namespace portwave::PORTWAVE_ISA {
namespace {

/// A number of twice the digits of a double: the sum of two, the second no more than a rounding of the
/// first.
template <int W>
struct Twofold {
  Vec<W> high, low;
};

/// a + b and what it is rounded by.
template <int W>
[[gnu::always_inline]] static inline Twofold<W> exact_sum(Vec<W> a, Vec<W> b) {
  const Vec<W> sum = a + b;
  const Vec<W> of_b = sum - a;
  return {sum, (a - (sum - of_b)) + (b - of_b)};
}

/// The same where a is the larger.
template <int W>
[[gnu::always_inline]] static inline Twofold<W> normalised(Vec<W> a, Vec<W> b) {
  const Vec<W> sum = a + b;
  return {sum, b - (sum - a)};
}

template <int W>
[[gnu::always_inline]] static inline Twofold<W> exact_product(Vec<W> a, Vec<W> b) {
  const Vec<W> product = a * b;
  return {product, fma(a, b, negate(product))};
}

/// A sum of products; what its terms and its steps are rounded by is summed apart.
template <int W>
struct Sum {
  Vec<W> high, low;

  static Sum zero() { return {Vec<W>::all(0.0), Vec<W>::all(0.0)}; }
  [[gnu::always_inline]] void add(Vec<W> value) {
    const Twofold<W> next = exact_sum(high, value);
    high = next.high;
    low = low + next.low;
  }
  [[gnu::always_inline]] void add(Vec<W> factor, const Twofold<W>& value) {
    const Twofold<W> product = exact_product(factor, value.high);
    add(product.high);
    low = fma(factor, value.low, low + product.low);
  }
  Twofold<W> value() const { return normalised(high, low); }
};

template <int W>
[[gnu::always_inline]] static inline Twofold<W> quotient(Vec<W> a, Vec<W> b) {
  const Vec<W> first = a / b;
  return normalised(first, fma(negate(first), b, a) / b);
}

/// One task's arrays.
template <int W>
class Solver {
  using V = Vec<W>;

 public:
  explicit Solver(const StepMapTask& t)
      : t_(t), size_(t.n + t.p), two_over_h_(quotient(V::all(2.0), V::all(t.step_s))) {
    double* at = t.work;
    const auto take = [&at](int count) {
      double* own = at;
      at += static_cast<long>(count) * W;
      return own;
    };
    lu_ = take(size_ * size_);
    of_states_ = take(size_ * t.n);
    unscale_ = take(size_);
    x_ = take(2 * size_);
    mid_ = take(2 * t.n);
    z_ = take(2 * t.n);
    y_ = take(2 * t.p);
    rhs_ = take(size_);
    efforts_ = take(t.p * (size_ + t.q));
  }

  void solve_all() {
    factorise();
    V inexact = V::all(0.0);
    const int columns = t_.n + t_.p + t_.q;
    for (int c = 0; c < columns; ++c) {
      for (int i = 0; i < 2 * size_; ++i) V::all(0.0).store(x_ + i * W);
      start(c);
      const V size = correct();
      residual(c);
      const V moved = correct();
      inexact = where_at_most(moved, V::all(kSmall) * size, inexact, V::all(1.0));
      write(c);
    }
    inexact.store(t_.inexact);
    choose(columns);
  }

  static long work(int n, int p, int q) {
    const long size = n + p;
    return W * (size * size + size * n + 4 * size + 4 * n + 2 * p + p * (size + q));
  }

 private:
  /// What a correction may be beside the solution: then what is still wrong is its square.
  static constexpr double kSmall = 1e-13;

  [[gnu::always_inline]] V closure(StepMapTask::Closure which, int port) const {
    return V::load(t_.closures + (which * t_.p + port) * W);
  }
  [[gnu::always_inline]] V value(const StepMapTask::Entries& of, int k) const {
    return V::load(of.values + k * W);
  }
  [[gnu::always_inline]] Twofold<W> twofold(const double* of, int i) const {
    return {V::load(of + 2 * i * W), V::load(of + (2 * i + 1) * W)};
  }
  [[gnu::always_inline]] void store(const Twofold<W>& value, double* to, int i) const {
    value.high.store(to + 2 * i * W);
    value.low.store(to + (2 * i + 1) * W);
  }
  [[gnu::always_inline]] V lu(int i, int j) const { return V::load(lu_ + (i * size_ + j) * W); }
  [[gnu::always_inline]] void add_to(int i, int j, V value) {
    double* const at = lu_ + (i * size_ + j) * W;
    (V::load(at) + value).store(at);
  }
  [[gnu::always_inline]] V scale(int i) const { return V::load(t_.scale + i * W); }
  /// What a scaled δ or u is multiplied by.
  [[gnu::always_inline]] V unscale(int i) const { return V::load(unscale_ + i * W); }

  /// Rows and columns of the states, then of the ports: energies before impedances.
  ///   [2/h − ÂQ̂, −B̂; βĈQ̂, α + βD]
  void factorise() {
    for (int i = 0; i < size_ * size_; ++i) V::all(0.0).store(lu_ + i * W);
    for (int i = 0; i < size_; ++i) {
      const V inverse = V::all(1.0) / scale(i);
      (i < t_.n ? inverse : scale(i)).store(unscale_ + i * W);
    }
    for (int k = 0; k < t_.JR.count; ++k) {
      const LinearEntry& left = t_.JR.at[k];
      for (int l = t_.Q_rows[left.column]; l < t_.Q_rows[left.column + 1]; ++l) {
        const LinearEntry& right = t_.Q.at[l];
        const V own = value(t_.JR, k) * value(t_.Q, l);
        add_to(left.row, right.column, negate(own * scale(left.row) * unscale(right.column)));
      }
    }
    for (int k = 0; k < t_.B.count; ++k) {
      const LinearEntry& e = t_.B.at[k];
      if (e.column >= t_.p) continue;
      const V own = value(t_.B, k) * scale(e.row) * scale(t_.n + e.column);
      add_to(e.row, t_.n + e.column, negate(own));
    }
    for (int k = 0; k < t_.C.count; ++k) {
      const LinearEntry& left = t_.C.at[k];
      for (int l = t_.Q_rows[left.column]; l < t_.Q_rows[left.column + 1]; ++l) {
        const LinearEntry& right = t_.Q.at[l];
        const V own = closure(StepMapTask::kBeta, left.row) * value(t_.C, k) * value(t_.Q, l);
        add_to(t_.n + left.row, right.column, own * unscale(right.column));
      }
    }
    for (int k = 0; k < t_.D.count; ++k) {
      const LinearEntry& e = t_.D.at[k];
      if (e.column >= t_.p) continue;
      const V own = closure(StepMapTask::kBeta, e.row) * value(t_.D, k);
      add_to(t_.n + e.row, t_.n + e.column, own * scale(t_.n + e.column));
    }
    for (int j = 0; j < t_.p; ++j) {
      add_to(t_.n + j, t_.n + j, closure(StepMapTask::kAlpha, j) * scale(t_.n + j));
    }
    for (int i = 0; i < size_; ++i) {
      for (int j = 0; j < t_.n; ++j) {
        negate(lu(i, j) * scale(j)).store(of_states_ + (j * size_ + i) * W);
      }
    }
    for (int i = 0; i < t_.n; ++i) add_to(i, i, two_over_h_.high);
    eliminate();
  }

  /// Pivots are kept inverted.
  void eliminate() {
    const int size = size_;
    for (int k = 0; k < size; ++k) {
      double* const upper = lu_ + k * size * W;
      const V pivot = V::all(1.0) / V::load(upper + k * W);
      pivot.store(upper + k * W);
      for (int i = k + 1; i < size; ++i) {
        double* const row = lu_ + i * size * W;
        const V factor = V::load(row + k * W) * pivot;
        factor.store(row + k * W);
        const V back = negate(factor);
        for (int j = k + 1; j < size; ++j) {
          fma(V::load(upper + j * W), back, V::load(row + j * W)).store(row + j * W);
        }
      }
    }
  }

  [[gnu::always_inline]] Twofold<W> input(int column, int k) const {
    if (k < t_.p) return twofold(x_, t_.n + k);
    return {V::all(column == t_.n + k ? 1.0 : 0.0), V::all(0.0)};
  }

  /// Adds the entries of a row to a sum, from entry k on; `of` gives what a column is multiplied by.
  template <class Of>
  [[gnu::always_inline]] void add_row(Sum<W>& sum, const StepMapTask::Entries& entries, int row,
                                      int& k, const Of& of) const {
    for (; k < entries.count && entries.at[k].row == row; ++k) {
      sum.add(value(entries, k), of(entries.at[k].column));
    }
  }

  /// What the equations of a column lack where δ and u are zero, into rhs_, scaled.
  void start(int column) {
    if (column >= size_) return residual(column);
    for (int i = 0; i < size_; ++i) {
      const V of_state =
          column < t_.n ? V::load(of_states_ + (column * size_ + i) * W) : V::all(0.0);
      of_state.store(rhs_ + i * W);
    }
    if (column >= t_.n) closure(StepMapTask::kRoot, column - t_.n).store(rhs_ + column * W);
  }

  /// z and y of a column; of z what y needs, or all of it.
  template <bool kAll>
  void evaluate(int column) {
    for (int i = 0; i < t_.n; ++i) {
      const Twofold<W> delta = twofold(x_, i);
      const Twofold<W> moved = exact_sum(V::all(i == column ? 1.0 : 0.0), delta.high);
      store(normalised(moved.high, moved.low + delta.low), mid_, i);
    }
    const auto mid = [&](int j) { return twofold(mid_, j); };
    const auto co_energy = [&](int j) { return twofold(z_, j); };
    const auto in = [&](int j) { return input(column, j); };
    for (int i = 0; i < t_.n; ++i) {
      if (!kAll && t_.at_ports[i] == 0) continue;
      Sum<W> sum = Sum<W>::zero();
      int k = t_.Q_rows[i];
      add_row(sum, t_.Q, i, k, mid);
      store(sum.value(), z_, i);
    }
    for (int j = 0, k = 0, l = 0; j < t_.p; ++j) {
      Sum<W> sum = Sum<W>::zero();
      add_row(sum, t_.C, j, k, co_energy);
      add_row(sum, t_.D, j, l, in);
      store(sum.value(), y_, j);
    }
  }

  /// What the equations of a column lack, into rhs_, scaled.
  void residual(int column) {
    evaluate<true>(column);
    const auto co_energy = [&](int j) { return twofold(z_, j); };
    const auto in = [&](int j) { return input(column, j); };
    const V slope = negate(two_over_h_.high), of_slope = negate(two_over_h_.low);
    for (int i = 0, k = 0, l = 0; i < t_.n; ++i) {
      const Twofold<W> delta = twofold(x_, i);
      Sum<W> sum = Sum<W>::zero();
      sum.add(slope, delta);
      sum.low = fma(of_slope, delta.high, sum.low);
      add_row(sum, t_.JR, i, k, co_energy);
      add_row(sum, t_.B, i, l, in);
      ((sum.high + sum.low) * scale(i)).store(rhs_ + i * W);
    }
    for (int j = 0; j < t_.p; ++j) {
      Sum<W> sum = Sum<W>::zero();
      if (column == t_.n + j) sum.high = closure(StepMapTask::kRoot, j);
      sum.add(negate(closure(StepMapTask::kAlpha, j)), twofold(x_, t_.n + j));
      sum.add(negate(closure(StepMapTask::kBeta, j)), twofold(y_, j));
      (sum.high + sum.low).store(rhs_ + (t_.n + j) * W);
    }
  }

  /// Solves for what rhs_ lacks and adds it to δ and u. Returns the largest component, scaled; not a
  /// number where there is one in it.
  V correct() {
    const int size = size_;
    double* const rhs = rhs_;
    for (int i = 0; i < size; ++i) {
      const double* const row = lu_ + i * size * W;
      V sum = V::load(rhs + i * W);
      for (int j = 0; j < i; ++j) {
        sum = fma(negate(V::load(row + j * W)), V::load(rhs + j * W), sum);
      }
      sum.store(rhs + i * W);
    }
    V largest = V::all(0.0);
    for (int i = size - 1; i >= 0; --i) {
      const double* const row = lu_ + i * size * W;
      V sum = V::load(rhs + i * W);
      for (int j = i + 1; j < size; ++j) {
        sum = fma(negate(V::load(row + j * W)), V::load(rhs + j * W), sum);
      }
      const V own = sum * V::load(row + i * W);
      own.store(rhs + i * W);
      const V magnitude = abs(own);
      // Once it is not a number it stays so.
      largest = where_at_most(magnitude, largest, largest,
                              where_at_most(largest, magnitude, magnitude, magnitude + largest));
      const Twofold<W> before = twofold(x_, i);
      const Twofold<W> moved = exact_sum(before.high, own * unscale(i));
      store(normalised(moved.high, moved.low + before.low), x_, i);
    }
    return largest;
  }

  /// δ, and both −(2γ/s) f and (2/s) e.
  void write(int column) {
    evaluate<false>(column);
    for (int i = 0; i < t_.n; ++i) twofold(x_, i).high.store(t_.delta + (column * t_.n + i) * W);
    for (int j = 0; j < t_.p; ++j) {
      const Twofold<W> in = twofold(x_, t_.n + j), back = twofold(y_, j);
      const bool effort_in = t_.effort_in[j] != 0;
      const V s = closure(StepMapTask::kRoot, j), gamma = closure(StepMapTask::kImpedance, j);
      const V of_flow = product(quotient(V::all(-2.0) * gamma, s), effort_in ? back : in);
      const V of_effort = product(quotient(V::all(2.0), s), effort_in ? in : back);
      of_flow.store(t_.outgoing + (column * t_.p + j) * W);
      of_effort.store(efforts_ + (column * t_.p + j) * W);
    }
  }

  /// b = a − (2γ/s) f or b = −a + (2/s) e: the one whose own reflection is the smaller. See outgoing_row.
  void choose(int columns) {
    for (int j = 0; j < t_.p; ++j) {
      const int own = (t_.n + j) * t_.p + j;
      const V flow = abs(V::load(t_.outgoing + own * W)), effort = abs(V::load(efforts_ + own * W));
      where_at_most(flow, effort, V::all(1.0), V::all(-1.0)).store(t_.sigma + j * W);
      for (int c = 0; c < columns; ++c) {
        double* const of_flow = t_.outgoing + (c * t_.p + j) * W;
        const V of_effort = V::load(efforts_ + (c * t_.p + j) * W);
        where_at_most(flow, effort, V::load(of_flow), of_effort).store(of_flow);
      }
    }
  }
  [[gnu::always_inline]] static V product(const Twofold<W>& a, const Twofold<W>& b) {
    const Twofold<W> high = exact_product(a.high, b.high);
    return high.high + (high.low + fma(a.high, b.low, a.low * b.high));
  }

  const StepMapTask& t_;
  int size_;
  Twofold<W> two_over_h_;
  double *lu_, *of_states_, *unscale_, *x_, *mid_, *z_, *y_, *rhs_, *efforts_;
};

template <int W>
void solve(const StepMapTask& task) {
  Solver<W>(task).solve_all();
}

}  // namespace

const StepMapKernels kStepMapKernels = {
    [](int width, int n, int p, int q) {
      return width == 1 ? Solver<1>::work(n, p, q) : Solver<kLaneGroup>::work(n, p, q);
    },
    [](const StepMapTask& task) { task.width == 1 ? solve<1>(task) : solve<kLaneGroup>(task); },
};

}  // namespace portwave::PORTWAVE_ISA
