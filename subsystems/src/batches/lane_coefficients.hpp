#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "portwave/subsystems/base/aligned.hpp"

namespace portwave {

/// Coefficients of the lanes of a batch as the kernels read them: W lanes side by side per
/// coefficient, or once where all lanes of a group have the same. Groups with the same coefficients
/// share one copy.
class LaneCoefficients {
 public:
  /// `distinct` sets of equal length, `of_lane` the set of each lane. Padding repeats the last
  /// lane.
  void build(std::span<const std::vector<double>> distinct, std::span<const int> of_lane,
             int width);

  const double* group(int g) const { return values_.data() + begin_[static_cast<std::size_t>(g)]; }
  bool shared(int g) const { return shared_[static_cast<std::size_t>(g)]; }

 private:
  AlignedVector values_;
  std::vector<std::size_t> begin_;
  std::vector<bool> shared_;
};

}  // namespace portwave
