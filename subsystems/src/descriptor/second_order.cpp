#include "portwave/subsystems/descriptor/second_order.hpp"

#include <cstddef>

#include <fmt/format.h>

#include "matrices/matrix_check.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"
#include "portwave/subsystems/matrices/sparse_rank.hpp"

namespace portwave {
namespace {

void append_identity(int n, double factor, int row, int column, SparseEntries& entries) {
  for (int i = 0; i < n; ++i) entries.emplace_back(row + i, column + i, factor);
}

SparseMatrix symmetric_part(const SparseMatrix& M) {
  return 0.5 * (M + SparseMatrix(M.transpose()));
}

/// A semidefinite M that is not definite: masses are missing.
void check_regular(const SparseMatrix& M, int n, const std::vector<std::string>& names,
                   Issues& issues) {
  const SparseRank rank(M);
  if (rank.is_regular()) return;
  std::vector<int> rows;
  for (SparseMatrix::InnerIterator it(rank.right_kernel(), 0); it; ++it) {
    rows.push_back(static_cast<int>(it.row()));
  }
  issues.push_back(
      {"/M", fmt::format("M must be positive definite; it is singular (rank {} of {}): a motion of "
                         "{} has no mass.\nEquations without mass are for "
                         "descriptor_port_hamiltonian",
                         rank.rank(), n, list_names(rows, n, names))});
}

}  // namespace

Issues validate(const SecondOrderForm& form, int coordinates, int inputs,
                const StructureRules& rules) {
  const int n = coordinates;
  if (n == 0) return {{"/coordinates", "must name at least one coordinate"}};
  Issues issues;
  const auto is_usable = [&](std::string_view name, const SparseMatrix& M, int columns) {
    MatrixCheck check(issues, name, M);
    return check.has_shape(n, columns) && check.is_finite();
  };
  if (is_usable("M", form.M, n)) {
    MatrixCheck check(issues, "M", form.M);
    if (check.is_symmetric() && check.is_semidefinite(n, rules.names)) {
      check_regular(form.M, n, rules.names, issues);
    }
  }
  if (is_usable("D", form.D, n) && !rules.allow_active) {
    const SparseMatrix symmetric = symmetric_part(form.D);
    MatrixCheck(issues, "(D + D^T)/2", symmetric, "/D")
        .is_semidefinite(n, rules.names, "; a part that may create energy must say allow_active");
  }
  if (is_usable("K", form.K, n)) {
    MatrixCheck check(issues, "K", form.K);
    if (check.is_symmetric()) check.is_semidefinite(n, rules.names);
  }
  is_usable("B", form.B, inputs);
  return issues;
}

DescriptorForm descriptor_form(const SecondOrderForm& form) {
  const int n = static_cast<int>(form.M.rows());
  const SparseMatrix symmetric = symmetric_part(form.D);
  const SparseMatrix skew = 0.5 * (form.D - SparseMatrix(form.D.transpose()));
  SparseEntries E, J, R, Q, B;
  append_identity(n, 1.0, 0, 0, E);
  append_block(form.M, n, n, E);
  append_identity(n, 1.0, 0, n, J);
  append_identity(n, -1.0, n, 0, J);
  append_block(skew, n, n, J, -1.0);
  append_block(symmetric, n, n, R);
  append_block(form.K, 0, 0, Q);
  append_identity(n, 1.0, n, n, Q);
  append_block(form.B, n, 0, B);
  return {.E = sparse_matrix(2 * n, 2 * n, E),
          .J = sparse_matrix(2 * n, 2 * n, J),
          .R = sparse_matrix(2 * n, 2 * n, R),
          .Q = sparse_matrix(2 * n, 2 * n, Q),
          .B = sparse_matrix(2 * n, form.B.cols(), B)};
}

std::vector<StateVariable> second_order_states(const std::vector<StateVariable>& coordinates) {
  std::vector<StateVariable> states = coordinates;
  states.reserve(2 * coordinates.size());
  for (const StateVariable& coordinate : coordinates) {
    states.push_back(
        {coordinate.name + "_rate", coordinate.unit.empty() ? "1/s" : coordinate.unit + "/s"});
  }
  return states;
}

}  // namespace portwave
