#pragma once

#include <memory>
#include <span>
#include <vector>

namespace portwave::bench {

/// A sparse matrix by columns, as plain arrays.
struct ColumnsOf {
  int size = 0;
  std::span<const int> begin, row;
  std::span<const double> value;
};

/// M q'' + D q' + K q = B u, whole, by the implicit midpoint rule with Eigen: the velocity in the middle
/// of the step out of M + h/2 D + h²/4 K, factorised once.
class SecondOrderPeer {
 public:
  virtual ~SecondOrderPeer() = default;
  /// Orders and factorises anew, as at the start.
  virtual void factorise() = 0;
  /// `force`: B u at the middle of the step.
  virtual void step(std::span<const double> force) = 0;
  virtual std::span<double> positions() = 0;
  virtual std::span<double> velocities() = 0;
  /// Of the Cholesky factor.
  virtual double factor_entries() const = 0;
};

/// SimplicialLLT in the order of AMD.
[[gnu::visibility("default")]] std::unique_ptr<SecondOrderPeer> eigen_second_order(
    const ColumnsOf& M, const ColumnsOf& D, const ColumnsOf& K, double step_s);

}  // namespace portwave::bench
