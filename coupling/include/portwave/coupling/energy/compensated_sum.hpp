#pragma once

namespace portwave {

/// A running sum whose error does not grow with the number of terms: what every addition loses is
/// kept (Knuth's two-sum, without a branch).
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

  /// A sum that goes on where another one, `lost` being what its additions have lost, has ended.
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
