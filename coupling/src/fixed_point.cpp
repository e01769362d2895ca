#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include <Eigen/SparseCore>
#include <Eigen/SparseLU>

#include "portwave/coupling/certificate.hpp"

namespace portwave {
namespace {

constexpr double kRoundOff = 4.0 * std::numeric_limits<double>::epsilon();
constexpr double kGoodEnough = 1e-12;  // a Newton that stalls below this has met round-off

using Sparse = Eigen::SparseMatrix<double>;
using Triplets = std::vector<Eigen::Triplet<double>>;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// P as a sparse matrix. One exchange probes the j-th column of every junction at once.
Sparse coupling_matrix(const Interconnection& coupling) {
  const int size = coupling.wave_size();
  std::size_t widest = 0;
  for (const Junction& junction : coupling.junctions()) {
    widest = std::max(widest, junction.waves.size());
  }
  std::vector<double> b(at(size)), a(at(size));
  Triplets entries;
  for (std::size_t j = 0; j < widest; ++j) {
    std::fill(b.begin(), b.end(), 0.0);
    for (const Junction& junction : coupling.junctions()) {
      if (j < junction.waves.size()) b[at(junction.waves[j])] = 1.0;
    }
    coupling.exchange(coupling.all(), b.data(), a.data());
    for (const Junction& junction : coupling.junctions()) {
      if (j >= junction.waves.size()) continue;
      for (const int row : junction.waves) {
        if (a[at(row)] != 0.0) entries.emplace_back(row, junction.waves[j], a[at(row)]);
      }
    }
  }
  Sparse P(size, size);
  P.setFromTriplets(entries.begin(), entries.end());
  return P;
}

/// Probes the j-th port of every part at once: b⁺ − b⁻ over the step, where S is not affine.
bool add_differences(WaveDiscretisation& waves, const std::vector<double>& u, int j,
                     Triplets& entries) {
  std::vector<double> moved[2] = {u, u}, image[2] = {u, u};
  std::vector<double> step(u.size(), 0.0);
  for (const BatchPlace& place : waves.batches()) {
    const int width = place.batch->wave_size();
    if (j >= width) continue;
    for (int lane = 0; lane < place.batch->lanes(); ++lane) {
      const std::size_t w = at(place.wave + lane * width + j);
      step[w] = 1e-6 * std::max(1.0, std::abs(u[w]));
      moved[0][w] += step[w];
      moved[1][w] -= step[w];
    }
  }
  for (const int side : {0, 1}) {
    if (!waves.scatter_all(moved[side].data(), image[side].data()).ok()) return false;
  }
  for (const BatchPlace& place : waves.batches()) {
    const int width = place.batch->wave_size();
    if (j >= width) continue;
    for (int lane = 0; lane < place.batch->lanes(); ++lane) {
      if (place.batch->affine_matrix(lane) != nullptr) continue;
      const int first = place.wave + lane * width;
      for (int i = 0; i < width; ++i) {
        const double slope = (image[0][at(first + i)] - image[1][at(first + i)]) /
                             (moved[0][at(first + j)] - moved[1][at(first + j)]);
        entries.emplace_back(first + i, first + j, slope);
      }
    }
  }
  return true;
}

/// D, S linearised at u; empty when a port solve fails.
std::optional<Sparse> linearised_parts(WaveDiscretisation& waves, const std::vector<double>& u) {
  Triplets entries;
  int widest_nonlinear = 0;
  for (const BatchPlace& place : waves.batches()) {
    const int width = place.batch->wave_size();
    for (int lane = 0; lane < place.batch->lanes(); ++lane) {
      const double* D = place.batch->affine_matrix(lane);
      if (D == nullptr) {
        widest_nonlinear = std::max(widest_nonlinear, width);
        continue;
      }
      const int first = place.wave + lane * width;
      for (int i = 0; i < width; ++i) {
        for (int j = 0; j < width; ++j)
          entries.emplace_back(first + i, first + j, D[i * width + j]);
      }
    }
  }
  for (int j = 0; j < widest_nonlinear; ++j) {
    if (!add_differences(waves, u, j, entries)) return std::nullopt;
  }
  Sparse D(waves.wave_size(), waves.wave_size());
  D.setFromTriplets(entries.begin(), entries.end());
  return D;
}

}  // namespace

FixedPointSolver::FixedPointSolver(const WaveDiscretisation& waves, double relaxation,
                                   int plain_iterations)
    : relaxation_(relaxation), plain_iterations_(plain_iterations) {
  for (auto* v : {&u_, &b_, &exchanged_}) v->resize(at(waves.wave_size()));
}

std::span<const double> FixedPointSolver::solve(WaveDiscretisation& waves,
                                                std::span<const double> start) {
  std::copy(start.begin(), start.end(), u_.begin());
  if (iterate_plainly(waves) || iterate_newton(waves)) return u_;
  return {};
}

/// |P S(u) − u| relative to the waves; NaN when a port solve fails.
double FixedPointSolver::evaluate(WaveDiscretisation& waves) {
  if (!waves.scatter_all(u_.data(), b_.data()).ok()) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const Interconnection& coupling = waves.interconnection();
  coupling.exchange(coupling.all(), b_.data(), exchanged_.data());
  double gap = 0.0, incident = 0.0, outgoing = 0.0;
  for (std::size_t j = 0; j < u_.size(); ++j) {
    const double difference = exchanged_[j] - u_[j];
    gap += difference * difference;
    incident += u_[j] * u_[j];
    outgoing += b_[j] * b_[j];
  }
  return gap == 0.0 ? 0.0 : std::sqrt(gap / std::max(incident, outgoing));
}

/// Only a fast iteration may stop here: with rate ρ the error is residual/(1 − ρ).
bool FixedPointSolver::iterate_plainly(WaveDiscretisation& waves) {
  const Interconnection& coupling = waves.interconnection();
  for (int k = 0; k < plain_iterations_; ++k) {
    const double residual = evaluate(waves);
    if (residual <= kRoundOff) return true;
    if (std::isnan(residual)) return false;
    coupling.douglas_rachford(coupling.all(), relaxation_, b_.data(), u_.data());
  }
  return false;
}

bool FixedPointSolver::iterate_newton(WaveDiscretisation& waves) {
  constexpr int kMaxSteps = 30;
  const Sparse P = coupling_matrix(waves.interconnection());
  Sparse identity(P.rows(), P.cols());
  identity.setIdentity();
  Eigen::SparseLU<Sparse> lu;
  double best = std::numeric_limits<double>::infinity();
  std::vector<double> best_u = u_;
  for (int k = 0; k < kMaxSteps; ++k) {
    const double residual = evaluate(waves);
    if (std::isnan(residual)) break;
    const bool stalled = residual >= 0.5 * best;
    if (residual < best) {
      best = residual;
      best_u = u_;
    }
    if (residual <= kRoundOff || (stalled && best <= kGoodEnough)) break;
    const auto D = linearised_parts(waves, u_);
    if (!D) break;
    Sparse jacobian = identity - Sparse(P * *D);
    jacobian.makeCompressed();
    lu.compute(jacobian);
    if (lu.info() != Eigen::Success) break;
    const Eigen::VectorXd gap = Eigen::Map<const Eigen::VectorXd>(exchanged_.data(), P.rows()) -
                                Eigen::Map<const Eigen::VectorXd>(u_.data(), P.rows());
    Eigen::Map<Eigen::VectorXd>(u_.data(), P.rows()) += lu.solve(gap);
  }
  u_ = best_u;
  return best <= kGoodEnough;
}

}  // namespace portwave
