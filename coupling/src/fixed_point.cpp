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

/// Ports of the system by place of the wave vector: matrices are numbered by port, so that they do
/// not depend on the layout. −1 at padding.
std::vector<int> ports_by_place(const WaveDiscretisation& waves) {
  std::vector<int> port(at(waves.wave_size()), -1);
  for (int i = 0; i < static_cast<int>(waves.system().scalar_ports().size()); ++i) {
    port[at(waves.wave_of_port(i))] = i;
  }
  return port;
}

/// P as a sparse matrix. One exchange probes the j-th column of every junction at once.
Sparse coupling_matrix(const WaveDiscretisation& waves) {
  const Interconnection& coupling = waves.interconnection();
  const std::vector<int> port = ports_by_place(waves);
  std::size_t widest = 0;
  for (int i = 0; i < coupling.size(); ++i) widest = std::max(widest, coupling.waves(i).size());
  AlignedVector b(at(waves.wave_size())), a(b.size());
  Triplets entries;
  for (std::size_t j = 0; j < widest; ++j) {
    std::fill(b.begin(), b.end(), 0.0);
    for (int i = 0; i < coupling.size(); ++i) {
      if (j < coupling.waves(i).size()) b[at(coupling.waves(i)[j])] = 1.0;
    }
    coupling.exchange(b.data(), a.data());
    for (int i = 0; i < coupling.size(); ++i) {
      const auto places = coupling.waves(i);
      if (j >= places.size()) continue;
      for (const int row : places) {
        if (a[at(row)] != 0.0) entries.emplace_back(port[at(row)], port[at(places[j])], a[at(row)]);
      }
    }
  }
  const int size = static_cast<int>(waves.system().scalar_ports().size());
  Sparse P(size, size);
  P.setFromTriplets(entries.begin(), entries.end());
  return P;
}

bool is_affine(const WaveDiscretisation& waves, int part, std::vector<double>& D) {
  const PartPlace& place = waves.place(part);
  const StepBatch& batch = *waves.batch(place.batch).batch;
  D.resize(at(batch.wave_size()) * at(batch.wave_size()));
  return batch.affine_matrix(place.lane, D.data());
}

/// Largest of a part's waves; the largest of all where those are zero, and 1 where there are none.
double wave_size_of(const WaveDiscretisation& waves, const AlignedVector& u, int part) {
  const PartPlace& place = waves.place(part);
  double size = 0.0;
  for (int j = 0; j < waves.batch(place.batch).batch->wave_size(); ++j) {
    size = std::max(size, std::abs(u[at(place.wave + j * place.stride)]));
  }
  if (size > 0.0) return size;
  for (const double wave : u) size = std::max(size, std::abs(wave));
  return size > 0.0 ? size : 1.0;
}

/// Probes the j-th port of every part at once: b⁺ − b⁻ over the step, where S is not affine.
bool add_differences(const WaveDiscretisation& waves, double* record, const AlignedVector& u, int j,
                     Triplets& entries) {
  AlignedVector moved[2] = {u, u}, image[2] = {u, u};
  const int parts = static_cast<int>(waves.places().size());
  const auto width_of = [&](int part) {
    return waves.batch(waves.place(part).batch).batch->wave_size();
  };
  for (int part = 0; part < parts; ++part) {
    if (j >= width_of(part)) continue;
    const PartPlace& place = waves.place(part);
    const std::size_t w = at(place.wave + j * place.stride);
    const double step = 1e-6 * wave_size_of(waves, u, part);
    moved[0][w] += step;
    moved[1][w] -= step;
  }
  for (const int side : {0, 1}) {
    if (!waves.scatter_all(record, moved[side].data(), image[side].data()).ok()) return false;
  }
  std::vector<double> D;
  for (int part = 0; part < parts; ++part) {
    const int width = width_of(part);
    if (j >= width || is_affine(waves, part, D)) continue;
    const PartPlace& place = waves.place(part);
    const std::size_t w = at(place.wave + j * place.stride);
    const int first = waves.system().first_scalar_port(part);
    for (int i = 0; i < width; ++i) {
      const std::size_t v = at(place.wave + i * place.stride);
      entries.emplace_back(first + i, first + j,
                           (image[0][v] - image[1][v]) / (moved[0][w] - moved[1][w]));
    }
  }
  return true;
}

/// D, S linearised at u; empty when a port solve fails.
std::optional<Sparse> linearised_parts(const WaveDiscretisation& waves, double* record,
                                       const AlignedVector& u) {
  Triplets entries;
  std::vector<double> D;
  int widest_nonlinear = 0;
  for (int part = 0; part < static_cast<int>(waves.places().size()); ++part) {
    const int width = waves.batch(waves.place(part).batch).batch->wave_size();
    if (!is_affine(waves, part, D)) {
      widest_nonlinear = std::max(widest_nonlinear, width);
      continue;
    }
    const int first = waves.system().first_scalar_port(part);
    for (int i = 0; i < width; ++i) {
      for (int j = 0; j < width; ++j)
        entries.emplace_back(first + i, first + j, D[at(i * width + j)]);
    }
  }
  for (int j = 0; j < widest_nonlinear; ++j) {
    if (!add_differences(waves, record, u, j, entries)) return std::nullopt;
  }
  const int size = static_cast<int>(waves.system().scalar_ports().size());
  Sparse matrix(size, size);
  matrix.setFromTriplets(entries.begin(), entries.end());
  return matrix;
}

}  // namespace

FixedPointSolver::FixedPointSolver(const WaveDiscretisation& waves, const InnerUpdate& update,
                                   int plain_iterations)
    : update_(update), plain_iterations_(plain_iterations) {
  for (auto* v : {&u_, &b_, &exchanged_}) v->resize(at(waves.wave_size()));
}

std::span<const double> FixedPointSolver::solve(const WaveDiscretisation& waves, double* record,
                                                std::span<const double> start) {
  std::copy(start.begin(), start.end(), u_.begin());
  if (iterate_plainly(waves, record) || iterate_newton(waves, record)) return u_;
  return {};
}

/// |P S(u) − u| relative to the waves; NaN when a port solve fails.
double FixedPointSolver::evaluate(const WaveDiscretisation& waves, double* record) {
  if (!waves.scatter_all(record, u_.data(), b_.data()).ok()) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  waves.interconnection().exchange(b_.data(), exchanged_.data());
  double gap = 0.0, incident = 0.0, outgoing = 0.0;
  for (int port = 0; port < static_cast<int>(waves.system().scalar_ports().size()); ++port) {
    const std::size_t j = at(waves.wave_of_port(port));
    const double difference = exchanged_[j] - u_[j];
    gap += difference * difference;
    incident += u_[j] * u_[j];
    outgoing += b_[j] * b_[j];
  }
  return gap == 0.0 ? 0.0 : std::sqrt(gap / std::max(incident, outgoing));
}

/// Only a fast iteration may stop here: with rate ρ the error is residual/(1 − ρ).
bool FixedPointSolver::iterate_plainly(const WaveDiscretisation& waves, double* record) {
  for (int k = 0; k < plain_iterations_; ++k) {
    const double residual = evaluate(waves, record);
    if (residual <= kRoundOff) return true;
    if (std::isnan(residual)) return false;
    waves.interconnection().update(update_, b_.data(), u_.data());
  }
  return false;
}

bool FixedPointSolver::iterate_newton(const WaveDiscretisation& waves, double* record) {
  constexpr int kMaxSteps = 30;
  const Sparse P = coupling_matrix(waves);
  Sparse identity(P.rows(), P.cols());
  identity.setIdentity();
  Eigen::SparseLU<Sparse> lu;
  double best = std::numeric_limits<double>::infinity();
  AlignedVector best_u = u_;
  for (int k = 0; k < kMaxSteps; ++k) {
    const double residual = evaluate(waves, record);
    if (std::isnan(residual)) break;
    const bool stalled = residual >= 0.5 * best;
    if (residual < best) {
      best = residual;
      best_u = u_;
    }
    if (residual <= kRoundOff || (stalled && best <= kGoodEnough)) break;
    const auto D = linearised_parts(waves, record, u_);
    if (!D) break;
    Sparse jacobian = identity - Sparse(P * *D);
    jacobian.makeCompressed();
    lu.compute(jacobian);
    if (lu.info() != Eigen::Success) break;
    Eigen::VectorXd gap(P.rows());
    for (int port = 0; port < static_cast<int>(P.rows()); ++port) {
      const std::size_t j = at(waves.wave_of_port(port));
      gap[port] = exchanged_[j] - u_[j];
    }
    const Eigen::VectorXd change = lu.solve(gap);
    for (int port = 0; port < static_cast<int>(P.rows()); ++port) {
      u_[at(waves.wave_of_port(port))] += change[port];
    }
  }
  u_ = best_u;
  return best <= kGoodEnough;
}

}  // namespace portwave
