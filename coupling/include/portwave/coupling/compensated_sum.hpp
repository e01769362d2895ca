#pragma once

#include <cmath>

namespace portwave {

/// A running sum whose error does not grow with the number of terms (Neumaier's summation).
class CompensatedSum {
 public:
  explicit CompensatedSum(double start = 0.0) : sum_(start) {}

  void add(double term) {
    const double next = sum_ + term;
    lost_ += std::abs(sum_) >= std::abs(term) ? (sum_ - next) + term : (term - next) + sum_;
    sum_ = next;
  }
  double value() const { return sum_ + lost_; }

 private:
  double sum_;
  double lost_ = 0.0;
};

}  // namespace portwave
