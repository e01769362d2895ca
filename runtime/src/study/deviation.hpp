#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "portwave/runtime/output/recorder.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/runtime/study/study.hpp"

namespace portwave {

/// Euclidean distances ‖Δ_n‖ to the reference, sample by sample.
class Deviation {
 public:
  explicit Deviation(const std::vector<Quantity>& quantities, const Samples& reference)
      : quantities_(quantities), reference_(reference) {}

  void compare(const Stepper& stepper) {
    const double* const row =
        reference_.data() + static_cast<std::size_t>(samples_) * quantities_.size();
    double sum = 0.0;
    for (std::size_t i = 0; i < quantities_.size(); ++i) {
      const double difference = observe(stepper, quantities_[i]) - row[i];
      sum += difference * difference;
    }
    sum_of_squares_ += sum;
    last_ = std::sqrt(sum);
    max_ = std::max(max_, last_);
    ++samples_;
  }

  double rms() const { return std::sqrt(sum_of_squares_ / static_cast<double>(samples_)); }
  double max() const { return max_; }
  double last() const { return last_; }

 private:
  std::span<const Quantity> quantities_;
  const Samples& reference_;
  std::int64_t samples_ = 0;
  double sum_of_squares_ = 0.0;
  double max_ = 0.0;
  double last_ = 0.0;
};

}  // namespace portwave
