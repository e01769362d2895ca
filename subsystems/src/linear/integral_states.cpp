#include "linear/integral_states.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace portwave {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

void mark_rows(const SparseMatrix& m, std::vector<char>& marked) {
  for (int j = 0; j < m.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(m, j); it; ++it) {
      if (it.value() != 0.0) marked[at(static_cast<int>(it.row()))] = 1;
    }
  }
}

double diagonal_of(const SparseMatrix& Q, int j) { return Q.coeff(j, j); }

double coefficient(const LinearPortHamiltonian& part, int row, int column) {
  return part.structure().J.coeff(row, column) * diagonal_of(part.Q(), column);
}

/// Whether ∂H/∂xⱼ depends on xⱼ alone.
bool depends_on_itself_only(const SparseMatrix& Q, int j) {
  for (SparseMatrix::InnerIterator it(Q, j); it; ++it) {
    if (it.row() != j && it.value() != 0.0) return false;
  }
  return true;
}

}  // namespace

IntegralStates::IntegralStates(const LinearPortHamiltonian& part)
    : role_(at(part.structure().states())) {
  const Structure& s = part.structure();
  const int n = s.states();
  std::vector<char> has_more(at(n), 0);
  mark_rows(s.R, has_more);
  mark_rows(s.G, has_more);
  mark_rows(s.P, has_more);
  // J is skew: its column i is minus its row i.
  for (int i = 0; i < n; ++i) {
    if (has_more[at(i)] != 0 || role_[at(i)] != Role::none) continue;
    std::vector<Entry> row;
    bool is_integral = true;
    for (SparseMatrix::InnerIterator it(s.J, i); it && is_integral; ++it) {
      if (it.value() == 0.0) continue;
      const int j = static_cast<int>(it.row());
      is_integral = j != i && role_[at(j)] != Role::integral && depends_on_itself_only(part.Q(), j);
      row.push_back({i, j, coefficient(part, i, j)});
    }
    if (!is_integral || row.empty()) continue;
    role_[at(i)] = Role::integral;
    for (const Entry& entry : row) role_[at(entry.column)] = Role::integrand;
    entries_.insert(entries_.end(), row.begin(), row.end());
  }
}

void IntegralStates::take_values_of(const LinearPortHamiltonian& part) {
  for (Entry& entry : entries_) entry.k = coefficient(part, entry.row, entry.column);
}

bool IntegralStates::are_stiff(const LinearPortHamiltonian& part, double step_s) const {
  // √Q_ii xᵢ is the root of an energy: what xⱼ brings to it there, for each unit of its own.
  return std::ranges::any_of(entries_, [&](const Entry& e) {
    const double of_integral = diagonal_of(part.Q(), e.row);
    const double of_integrand = diagonal_of(part.Q(), e.column);
    return !(0.25 * step_s * step_s * e.k * e.k * of_integral <= of_integrand);
  });
}

}  // namespace portwave
