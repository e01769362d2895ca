#include "linear/step_rows.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <set>
#include <utility>

#include <Eigen/Core>

namespace portwave {

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
