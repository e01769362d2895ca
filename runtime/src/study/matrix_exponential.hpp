#pragma once

#include <Eigen/Core>

namespace portwave {

/// exp(A) x, dense. Apart, since the header behind it takes long to compile.
Eigen::VectorXd exponential_times(const Eigen::MatrixXd& A, const Eigen::VectorXd& x);

}  // namespace portwave
