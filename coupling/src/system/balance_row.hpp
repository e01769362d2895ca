#pragma once

#include <array>
#include <optional>

#include <Eigen/Core>

namespace portwave {

/// The only non-zero row of `balance` when `rest` is zero there and `balance` is zero elsewhere:
/// with F and E of a Dirac structure the weights w of Σ wf = 0 where the other rows bind efforts
/// only, so that e = w·(a number); with E and F the same with e and f exchanged.
inline std::optional<Eigen::VectorXd> balance_row(const Eigen::MatrixXd& balance,
                                                  const Eigen::MatrixXd& rest) {
  Eigen::Index found = -1;
  for (Eigen::Index i = 0; i < balance.rows(); ++i) {
    if (balance.row(i).isZero(0.0)) continue;
    if (found >= 0) return std::nullopt;
    found = i;
  }
  if (found < 0 || !rest.row(found).isZero(0.0)) return std::nullopt;
  return Eigen::VectorXd(balance.row(found).transpose());
}

/// The same of two ports, without memory from the heap.
inline std::optional<std::array<double, 2>> balance_of_two(const Eigen::MatrixXd& balance,
                                                           const Eigen::MatrixXd& rest) {
  const auto is_zero = [](const Eigen::MatrixXd& M, int row) {
    return M(row, 0) == 0.0 && M(row, 1) == 0.0;
  };
  const int row = is_zero(balance, 0) ? 1 : 0;
  if (is_zero(balance, row) || !is_zero(balance, 1 - row) || !is_zero(rest, row)) {
    return std::nullopt;
  }
  return std::array{balance(row, 0), balance(row, 1)};
}

}  // namespace portwave
