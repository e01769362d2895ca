#include "study/travel.hpp"

#include <algorithm>
#include <vector>

#include <Eigen/SparseCore>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {
namespace {

/// By state: r²/(2E) for the least energy E at which it moves at a rate r; 0 for states that store something.
std::vector<double> mobilities(const Subsystem& part, std::span<const double> x) {
  using Rows = Eigen::SparseMatrix<double, Eigen::RowMajor>;
  std::vector<double> out(x.size(), 0.0);
  std::vector<Eigen::Triplet<double>> entries;
  // ∂∇̄H/∂x⁺ is half of it where both ends meet, for parts that do not give it.
  const bool is_given = part.hessian(x.data(), entries);
  if (!is_given) part.discrete_gradient_jacobian(x.data(), x.data(), entries);
  Rows Q(std::ssize(x), std::ssize(x));
  Q.setFromTriplets(entries.begin(), entries.end());
  if (!is_given) Q *= 2.0;
  Structure structure = part.structure();
  if (!part.constant_structure()) part.structure_at(x.data(), structure);
  const Rows M = structure.J - structure.R, MQ = M * Q;
  std::vector<char> stores(x.size(), 0);
  for (const Eigen::Triplet<double>& entry : entries) {
    if (entry.value() != 0.0) stores[at(entry.row())] = 1;
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (stores[i] == 0) out[i] = MQ.row(static_cast<int>(i)).dot(M.row(static_cast<int>(i)));
  }
  return out;
}

}  // namespace

std::vector<double> travel_J(const Subsystem& part, std::span<const double> start, double start_s,
                             const StateRows& rows) {
  const std::vector<double> mobility = mobilities(part, start);
  std::vector<double> out(start.size(), 0.0);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!(mobility[i] > 0.0)) continue;
    double before = start[i], before_s = start_s;
    for (std::size_t row = 0; row < rows.times_s.size(); ++row) {
      const double now = rows.values[row * rows.stride + i];
      const double rate = (now - before) / (rows.times_s[row] - before_s);
      out[i] = std::max(out[i], 0.5 * rate * rate / mobility[i]);
      before = now;
      before_s = rows.times_s[row];
    }
  }
  return out;
}

}  // namespace portwave
