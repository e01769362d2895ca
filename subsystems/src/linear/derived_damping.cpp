#include "linear/derived_damping.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <Eigen/Dense>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {

/// As it would be alone.
std::vector<DerivedDamping::Row> DerivedDamping::rows_of(const Part& part) const {
  std::vector<int> times(at(n_), 0);  // of a state: stages whose z are in the account
  std::set<int> known;
  for (const LinearEntry& e : part.sparsity->dissipation.at()) known.insert({e.row, e.column});
  for (const LinearEntry& e : part.sparsity->output.at()) known.insert(e.column);
  for (const int row : known) {
    if (row < stages_ * n_) ++times[at(row % n_)];
  }
  std::vector<Row> out(at(n_));
  std::vector<char> is_driven(at(n_), 0), has_own_slope(at(n_), 1);
  const auto each = [](const SparseMatrix& A, const auto& take) {
    for (int c = 0; c < A.outerSize(); ++c) {
      for (SparseMatrix::InnerIterator it(A, c); it; ++it) take(static_cast<int>(it.row()), c);
    }
  };
  const Structure& s = part.physics->structure();
  for (const SparseMatrix* A : {&s.J, &s.R}) {
    each(*A, [&](int row, int c) { out[at(row)].columns.insert(c); });
  }
  for (const SparseMatrix* A : {&s.G, &s.P})
    each(*A, [&](int row, int) { is_driven[at(row)] = 1; });
  each(part.physics->Q(), [&](int row, int c) {
    if (row != c) has_own_slope[at(row)] = 0;
  });
  for (int k = 0; k < n_; ++k) {
    Row& own = out[at(k)];
    const auto is_known = [&](int c) { return times[at(c)] == stages_; };
    const std::size_t terms = at(stages_) * own.columns.size();
    if (is_driven[at(k)] == 0 && terms > 0 && terms < at(n_ + ports_) &&
        std::ranges::all_of(own.columns, is_known)) {
      own.way = Way::by_rate;
    } else if (has_own_slope[at(k)] != 0 && is_known(k)) {
      own.way = Way::by_own;
      own.columns = {k};
    } else {
      own.columns.clear();
    }
  }
  return out;
}

void DerivedDamping::arrange(std::span<const LinearPortHamiltonian* const> parts,
                             std::span<const int> of_sparsity,
                             std::span<const LinearSparsity> sparsities, int stages, int width,
                             LinearShape& shape) {
  n_ = shape.n;
  ports_ = shape.p;
  stages_ = stages;
  is_mapped_.assign(at(n_), 0);
  entries_.clear();
  offsets_.clear();
  std::vector<std::set<int>> columns(at(n_));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::vector<Row> rows = rows_of({parts[i], &sparsities[at(of_sparsity[i])]});
    for (int k = 0; k < n_; ++k) {
      const Row& own = rows[at(k)];
      if (own.way == Way::mapped) is_mapped_[at(k)] = 1;
      columns[at(k)].insert(own.columns.begin(), own.columns.end());
    }
  }
  for (int k = 0; k < n_; ++k) {
    for (int j = 0; j < stages; ++j) {
      for (const int c : columns[at(k)]) entries_.push_back({k, j * n_ + c});
    }
  }
  for (const LinearEntry& e : entries_) {
    offsets_.push_back({static_cast<long>(e.row) * width, static_cast<long>(e.column) * width});
  }
  shape.has_damped_row = is_mapped_.data();
  shape.derived = offsets_.data();
  shape.derived_count = static_cast<int>(offsets_.size());
  shape.damped_count = static_cast<int>(std::ranges::count(is_mapped_, 1));
}

void DerivedDamping::append_rows(const Part& part, const Eigen::MatrixXd& w,
                                 std::vector<double>& out) const {
  const bool has_others = !entries_.empty();
  const std::vector<Row> rows = has_others ? rows_of(part) : std::vector<Row>();
  for (int k = 0; k < static_cast<int>(w.rows()); ++k) {
    if (has_others && is_mapped_[at(k)] == 0) continue;
    const double factor = !has_others || rows[at(k)].way == Way::mapped ? 1.0 : 0.0;
    for (Eigen::Index j = 0; j < w.cols(); ++j) out.push_back(factor * w(k, j));
  }
}

void DerivedDamping::append(const Part& part, const StageRule& rule, double step_s,
                            std::vector<double>& out) const {
  if (entries_.empty()) return;
  const std::vector<Row> rows = rows_of(part);
  const SparseMatrix rate = part.physics->structure().J - part.physics->structure().R;
  Eigen::MatrixXd A(stages_, stages_);
  Eigen::VectorXd root(stages_), d(stages_);
  for (int i = 0; i < stages_; ++i) {
    root[i] = std::sqrt(rule.b[at(i)]);
    d[i] = std::sqrt(2.0 * rule.damping) * rule.top[at(i)];
    for (int j = 0; j < stages_; ++j) A(i, j) = rule.A[at(i)][at(j)];
  }
  // Σᵢ cᵢ(X(cᵢ) − x) = w, where X(cᵢ) − x = Σⱼ aᵢⱼ δⱼ/√bⱼ
  const Eigen::VectorXd c = A.transpose().fullPivLu().solve(d.cwiseProduct(root));
  int last = -1;
  for (const LinearEntry& e : entries_) {
    const Row& own = rows[at(e.row)];
    const int stage = e.column / n_, of = e.column % n_;
    if (e.row != last) out.push_back(own.way == Way::by_own ? -c.sum() : 0.0);  // of x
    last = e.row;
    double factor = 0.0;
    if (own.columns.contains(of)) {
      const double slope = part.physics->Q().coeff(e.row, e.row);  // 0: nothing is taken
      if (own.way == Way::by_rate) factor = d[stage] * step_s * rate.coeff(e.row, of);
      if (own.way == Way::by_own && slope != 0.0) factor = c[stage] / (root[stage] * slope);
    }
    out.push_back(factor);
  }
}

}  // namespace portwave
