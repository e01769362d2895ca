#pragma once

namespace portwave {

/// A running sum whose error does not grow with the number of terms: it keeps the rounding error of every
/// addition (Knuth's two-sum, without a branch). Kernels compile it for every instruction set; therefore
/// every function is inlined.
class CompensatedSum {
 public:
  [[gnu::always_inline]] explicit CompensatedSum(double start = 0.0) : sum_(start) {}

  [[gnu::always_inline]] void add(double term) {
    const double next = sum_ + term;
    const double taken = next - sum_;
    lost_ += (sum_ - (next - taken)) + (term - taken);
    sum_ = next;
  }
  [[gnu::always_inline]] double value() const { return sum_ + lost_; }

  /// Continues another sum at its end; `lost` is the rounding error that it has kept.
  [[gnu::always_inline]] static CompensatedSum resumed(double sum, double lost) {
    CompensatedSum out(sum);
    out.lost_ = lost;
    return out;
  }
  [[gnu::always_inline]] double sum() const { return sum_; }
  [[gnu::always_inline]] double lost() const { return lost_; }

 private:
  double sum_;
  double lost_ = 0.0;
};

}  // namespace portwave
