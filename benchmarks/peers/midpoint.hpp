#pragma once

// Monolithic implicit midpoint for the chain, the matrix factorised once:
//   (q⁺ − q)/h = w,  M (v⁺ − v)/h = −K (q + h w/2) − R w,  w = (v + v⁺)/2.
// "Whole state" peers solve (1 − hA/2) x_mid = x for x = (q, v). "Velocity" peers eliminate the
// positions: (2M/h + R + hK/2) w = 2M v/h − K q, tridiagonal and positive definite.
// A step neither allocates nor copies beyond what the library underneath does itself.

#include <memory>
#include <span>

#include "chain.hpp"

namespace portwave::bench {

class MidpointPeer {
 public:
  virtual ~MidpointPeer() = default;
  virtual void step() = 0;
  /// Positions and velocities, mass by mass.
  virtual void read(std::span<double> q, std::span<double> v) const = 0;
};

using PeerFactory = std::unique_ptr<MidpointPeer>(const Chain& chain, double step_s);

/// Eigen SparseLU, whole state.
[[gnu::visibility("default")]] PeerFactory eigen_sparse_lu;
/// Eigen SimplicialLDLT, velocities.
[[gnu::visibility("default")]] PeerFactory eigen_ldlt;
/// LAPACK dgbtrf/dgbtrs, whole state.
[[gnu::visibility("default")]] PeerFactory lapack_banded_lu;
/// LAPACK dpbtrf/dpbtrs, velocities.
[[gnu::visibility("default")]] PeerFactory lapack_banded_cholesky;
/// LAPACK dpttrf/dpttrs, velocities.
[[gnu::visibility("default")]] PeerFactory lapack_tridiagonal;
/// Hand-written block LDLᵀ, velocities, vectorised over blocks.
[[gnu::visibility("default")]] PeerFactory block_tridiagonal;

}  // namespace portwave::bench
