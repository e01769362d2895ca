#pragma once

#include <functional>
#include <span>
#include <vector>

namespace portwave {

/// Interface waves that nothing determines: z with PDz = z, as of efforts that constraints share which are there
/// twice (the side forces in the hinges of a planar linkage). They move nothing. (I − PD + δI)⁻¹ makes of the rounding
/// of a gap, 1e-16 of the waves, a hundredth of them along z, again and again, until they drown all others.
class UndeterminedWaves {
 public:
  /// Below this pivot of I − PD + δI there may be some.
  static constexpr double kSmallPivot = 1e-10;

  /// change = (I − PD + δI)⁻¹ gap, both by offset.
  using Solve = std::function<void(const double* gap, double* change)>;

  /// By inverse iteration from a fixed start; `offsets`: of the island's waves. Allocates where there are more than
  /// ever before.
  void find(std::span<const int> offsets, const Solve& solve);
  void forget() { count_ = 0; }
  bool empty() const { return count_ == 0; }
  /// Takes what rounding makes of a gap out of a correction: components along z of no more than `most`. More is
  /// said by an equation without a solution. Returns |change|².
  double settle(std::span<const int> offsets, double most, double* change) const;

 private:
  void deflate(double* wave) const;

  std::vector<std::vector<double>> all_;  ///< of length 1, orthogonal to one another
  std::size_t count_ = 0;                 ///< of them that are
  std::vector<double> gap_, change_, wave_;
};

}  // namespace portwave
