#include "linear/step_rows.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <set>
#include <utility>

#include <Eigen/Core>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

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

RowBlocks RowBlocks::balanced(int rows, int at_most) {
  RowBlocks out;
  const int blocks = (rows + at_most - 1) / at_most;
  for (int k = 0; k < blocks; ++k) out.add(rows / blocks + (k < rows % blocks ? 1 : 0));
  return out;
}

RowBlocks RowBlocks::of(int rows, int each) {
  RowBlocks out;
  for (; rows >= each; rows -= each) out.add(each);
  for (; rows > 0; --rows) out.add(1);
  return out;
}

void RowBlocks::add(int rows) {
  const auto begin = static_cast<int>(places_.size());
  sizes_.push_back(static_cast<unsigned char>(rows));
  places_.insert(places_.end(), static_cast<std::size_t>(rows), Place{begin, rows});
}

void RowBlocks::append(std::span<const int> rows, std::span<const Eigen::MatrixXd* const> matrices,
                       std::vector<double>& out) const {
  std::size_t begin = 0;
  for (const unsigned char size : sizes_) {
    for (const Eigen::MatrixXd* m : matrices) {
      for (Eigen::Index j = 0; j < m->cols(); ++j) {
        for (const int row : rows.subspan(begin, size)) out.push_back((*m)(row, j));
      }
    }
    begin += size;
  }
}

using Matrix = Eigen::MatrixXd;

void StepRows::arrange(std::span<const Lane> lanes, int width, LinearShape& shape) {
  n_ = shape.n;
  p_ = shape.p;
  q_ = shape.q;
  const auto is_as_first = [&](const Lane& lane) {
    return lane.are_used &&
           std::ranges::equal(
               lane.integrals.entries(), lanes[0].integrals.entries(),
               [](const auto& a, const auto& b) { return a.row == b.row && a.column == b.column; });
  };
  const bool are_equal = std::ranges::all_of(lanes, is_as_first);
  std::set<std::pair<int, int>> entries;
  for (const Lane& lane : lanes) {
    if (!lane.are_used) continue;
    for (const IntegralStates::Entry& e : lane.integrals.entries())
      entries.insert({e.row, e.column});
    if (are_equal) break;
  }
  integrals_.clear();
  for (const auto& [row, column] : entries) integrals_.push_back({row, column});
  states_.clear();
  for (int i = 0; i < n_; ++i) {
    if (!are_equal || !lanes[0].integrals.is_integral(i)) states_.push_back(i);
  }
  rows_ = RowBlocks::balanced(count(), kRowsAtOnce);
  ports_ = RowBlocks::of(p_, kPortsAtOnce);
  join(are_equal, width, shape);
  shape.row_count = count();
  shape.rows = linear_rows_.data();
  shape.block_rows = rows_.sizes().data();
  shape.block_count = static_cast<int>(rows_.sizes().size());
  shape.integrals_have_rows = !are_equal && !integrals_.empty();
}

/// Decides which integrals are advanced with the row of their integrand, if any may, and where the
/// coefficients of all integrals are.
void StepRows::join(bool may_join, int width, LinearShape& shape) {
  linear_rows_.clear();
  for (const int state : states_) linear_rows_.push_back({state * width, -1});
  std::vector<LinearEntry> others;
  places_.clear();
  for (std::size_t e = 0; e < integrals_.size(); ++e) {
    const auto [integral, state] = integrals_[e];
    const bool alone = (e == 0 || integrals_[e - 1].row != integral) &&
                       (e + 1 == integrals_.size() || integrals_[e + 1].row != integral);
    const auto row = static_cast<int>(std::ranges::find(states_, state) - states_.begin());
    LinearRow& own = linear_rows_[static_cast<std::size_t>(row)];
    if (may_join && alone && own.integral < 0) {
      own.integral = integral * width;
      const auto [first, each] = rows_.run(row, n_ + p_ + 1);
      places_.push_back(first + (n_ + p_) * each);
    } else {
      places_.push_back(end_of_rows() + static_cast<int>(others.size()));
      others.push_back(integrals_[e]);
    }
  }
  others_ = static_cast<int>(others.size());
  shape.integral_count = others_;
  shape.integrals = offsets_.of(others, width);
}

void StepRows::append(const Lane& lane, double step_s, StepMaps& maps, std::vector<double>& step,
                      std::vector<double>& input) const {
  const std::vector<IntegralStates::Entry>& own = lane.integrals.entries();
  Matrix joined = Matrix::Zero(n_, 1);
  std::vector<double> others;
  for (std::size_t e = 0; e < integrals_.size(); ++e) {
    const auto [row, column] = integrals_[e];
    const auto found = std::ranges::find_if(
        own, [&](const IntegralStates::Entry& o) { return o.row == row && o.column == column; });
    const double k = lane.are_used && found != own.end() ? 0.5 * step_s * found->k : 0.0;
    if (places_[e] < end_of_rows()) {
      joined(column) = k;
    } else {
      others.push_back(k);
    }
  }
  for (const IntegralStates::Entry& entry : own) {
    if (!lane.are_used) break;
    maps.Phi_minus_I.row(entry.row).setZero();
    maps.Psi.row(entry.row).setZero();
    maps.Psi_u.row(entry.row).setZero();
  }
  std::vector<int> ports(static_cast<std::size_t>(p_));
  std::iota(ports.begin(), ports.end(), 0);
  rows_.append(states_, std::array<const Matrix*, 3>{&maps.Phi_minus_I, &maps.Psi, &joined}, step);
  step.insert(step.end(), others.begin(), others.end());
  ports_.append(ports, std::array<const Matrix*, 1>{&maps.C}, step);
  rows_.append(states_, std::array<const Matrix*, 1>{&maps.Psi_u}, input);
  ports_.append(ports, std::array<const Matrix*, 1>{&maps.C_u}, input);
}

}  // namespace portwave
