#include "portwave/subsystems/matrices/structure.hpp"

#include <string_view>

#include <fmt/format.h>

#include "matrices/matrix_check.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"

namespace portwave {

Structure Structure::zero(int states, int inputs) {
  return {SparseMatrix(states, states), SparseMatrix(states, states), SparseMatrix(states, inputs),
          SparseMatrix(states, inputs), SparseMatrix(inputs, inputs), SparseMatrix(inputs, inputs)};
}

SparseMatrix dissipation_matrix(const Structure& structure) {
  const int n = structure.states();
  const int m = structure.inputs();
  SparseEntries entries;
  append_block(structure.R, 0, 0, entries);
  append_block(structure.P, 0, n, entries);
  append_block(SparseMatrix(structure.P.transpose()), n, 0, entries);
  append_block(structure.S, n, n, entries);
  return sparse_matrix(n + m, n + m, entries);
}

bool is_positive_semidefinite(const SparseMatrix& M, double relative_tolerance) {
  return !find_negative_block(M, relative_tolerance).has_value();
}

Issues validate(const Structure& structure, int states, int inputs, const StructureRules& rules) {
  Issues issues;
  const auto check = [&issues](std::string_view name, const SparseMatrix& matrix) {
    return MatrixCheck(issues, name, matrix);
  };
  const auto usable = [](MatrixCheck matrix, int rows, int columns) {
    return matrix.has_shape(rows, columns) && matrix.is_finite();
  };
  MatrixCheck J = check("J", structure.J);
  MatrixCheck R = check("R", structure.R);
  MatrixCheck S = check("S", structure.S);
  MatrixCheck N = check("N", structure.N);
  if (usable(J, states, states)) J.is_skew();
  const bool R_is_sound = usable(R, states, states) && R.is_symmetric();
  usable(check("G", structure.G), states, inputs);
  const bool P_is_sound = usable(check("P", structure.P), states, inputs);
  const bool S_is_sound = usable(S, inputs, inputs) && S.is_symmetric();
  if (usable(N, inputs, inputs)) N.is_skew();
  if (rules.allow_active || !R_is_sound || !P_is_sound || !S_is_sound) return issues;

  // Without P the blocks are judged by themselves; only what is wrong is to be named in the whole.
  if (structure.P.nonZeros() == 0 && is_positive_semidefinite(structure.R, rules.tolerance) &&
      is_positive_semidefinite(structure.S, rules.tolerance)) {
    return issues;
  }
  if (const auto found = find_negative_block(dissipation_matrix(structure), rules.tolerance)) {
    issues.push_back({"/R", fmt::format("[R P; P^T S] is not positive semidefinite: {}; a part "
                                        "that may create energy must say allow_active",
                                        describe(*found, states, rules.names))});
  }
  return issues;
}

Issues validate_storage(const SparseMatrix& Q, int states, const std::vector<std::string>& names,
                        double tolerance) {
  Issues issues;
  MatrixCheck check(issues, "Q", Q);
  if (!check.has_shape(states, states) || !check.is_finite() || !check.is_symmetric()) {
    return issues;
  }
  check.is_semidefinite(states, names, {}, tolerance);
  return issues;
}

}  // namespace portwave
