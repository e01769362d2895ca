#pragma once

// Matrices of parts with two scalar ports, of which large systems have many: bit by bit what Eigen makes
// of them, without memory from the heap.

#include <cmath>
#include <cstddef>
#include <span>

#include <Eigen/Core>

#include "impedance/response_tools.hpp"

namespace portwave {

struct TwoByTwo {
  double a00, a01, a10, a11;

  static TwoByTwo of(const Eigen::MatrixXd& M) { return {M(0, 0), M(0, 1), M(1, 0), M(1, 1)}; }
  /// Frobenius.
  double norm() const { return std::sqrt((a00 * a00 + a01 * a01) + (a10 * a10 + a11 * a11)); }
};

/// LU with partial pivoting, as Eigen::PartialPivLU.
class TwoByTwoLu {
 public:
  explicit TwoByTwoLu(const TwoByTwo& A) : swapped_(std::abs(A.a10) > std::abs(A.a00)) {
    upper00_ = swapped_ ? A.a10 : A.a00;
    upper01_ = swapped_ ? A.a11 : A.a01;
    const double below = swapped_ ? A.a00 : A.a10;
    lower_ = upper00_ != 0.0 ? below / upper00_ : below;
    upper11_ = (swapped_ ? A.a01 : A.a11) - lower_ * upper01_;
  }

  /// A⁻¹B. Not finite where A is singular.
  TwoByTwo solve(const TwoByTwo& B) const {
    TwoByTwo out = {};
    solve(B.a00, B.a10, out.a00, out.a10);
    solve(B.a01, B.a11, out.a01, out.a11);
    return out;
  }
  TwoByTwo inverse() const { return solve({1.0, 0.0, 0.0, 1.0}); }

 private:
  void solve(double b0, double b1, double& x0, double& x1) const {
    const double first = swapped_ ? b1 : b0;
    const double second = (swapped_ ? b0 : b1) - first * lower_;
    x1 = second * (1.0 / upper11_);
    x0 = (first - x1 * upper01_) * (1.0 / upper00_);
  }

  bool swapped_;
  double upper00_, upper01_, upper11_, lower_;
};

/// scaled_response by the scales of the ports.
inline TwoByTwo scaled(const Eigen::MatrixXd& M, double scale0, double scale1) {
  return {scale0 * M(0, 0) * scale0, scale0 * M(0, 1) * scale1, scale1 * M(1, 0) * scale0,
          scale1 * M(1, 1) * scale1};
}

/// scaled_response of a part with two scalar ports.
inline TwoByTwo scaled_two_ports(const Eigen::MatrixXd& M, const Signature& signature,
                                 std::span<const double> impedance) {
  double scale[2];
  for_scalar_ports(signature, [&](int j, Causality causality) {
    scale[j] = scale_of(impedance[static_cast<std::size_t>(j)], causality);
  });
  return scaled(M, scale[0], scale[1]);
}

}  // namespace portwave
