#include "descriptor/closed_descriptor_step.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace portwave {

ClosedStepMaps closed_descriptor_step(const ClosedStep& step, const SparseMatrix& C_p,
                                      const ScaledFactors& lhs) {
  using Matrix = Eigen::MatrixXd;
  const Matrix B_p = Matrix(step.B.leftCols(step.p()));
  Eigen::VectorXd scratch(lhs.scratch_size());
  return solve_closed_step<Quadruple, Matrix>(
      step, 16, [&](const Matrix& r1, const Matrix& r2, Matrix& d, Matrix& v) {
        v = r2;
        for (Eigen::Index j = 0; j < step.p(); ++j) {
          v.row(j) /= step.closures[static_cast<std::size_t>(j)].alpha;
        }
        d = r1 + B_p * v;
        for (Eigen::Index c = 0; c < d.cols(); ++c) {
          lhs.solve(d.col(c).data(), d.col(c).data(), scratch.data());
        }
        const Matrix y = C_p * d;
        for (Eigen::Index j = 0; j < step.p(); ++j) {
          const PortClosure& port = step.closures[static_cast<std::size_t>(j)];
          v.row(j) -= port.beta / port.alpha * y.row(j);
        }
        const bool finite = d.allFinite() && v.allFinite();
        const double of_u = v.size() > 0 ? v.cwiseAbs().maxCoeff() : 0.0;
        return finite ? std::max(d.cwiseAbs().maxCoeff(), of_u)
                      : std::numeric_limits<double>::quiet_NaN();
      });
}

}  // namespace portwave
