#include "study/matrix_exponential.hpp"

#include <unsupported/Eigen/MatrixFunctions>

#include <Eigen/Dense>

namespace portwave {

Eigen::VectorXd exponential_times(const Eigen::MatrixXd& A, const Eigen::VectorXd& x) {
  const Eigen::MatrixXd exponential = A.exp();
  return exponential * x;
}

}  // namespace portwave
