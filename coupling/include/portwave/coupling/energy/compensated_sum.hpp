#pragma once

namespace portwave {

/// A running sum whose error does not grow with the number of terms: it keeps the rounding error of every
/// addition (Knuth's two-sum, without a branch).
class CompensatedSum {
 public:
  explicit CompensatedSum(double start = 0.0) : sum_(start) {}

  void add(double term) {
    const double next = sum_ + term;
    const double taken = next - sum_;
    lost_ += (sum_ - (next - taken)) + (term - taken);
    sum_ = next;
  }
  double value() const { return sum_ + lost_; }

  /// Continues another sum at its end; `lost` is the rounding error that it has kept.
  static CompensatedSum resumed(double sum, double lost) {
    CompensatedSum out(sum);
    out.lost_ = lost;
    return out;
  }
  double sum() const { return sum_; }
  double lost() const { return lost_; }

 private:
  double sum_;
  double lost_ = 0.0;
};

}  // namespace portwave
