#pragma once

#include <vector>

#include "portwave/coupling/wave_discretisation.hpp"

namespace portwave {

/// The interface residual |P b̂ − u| / max(|u|, |b̂|) of an inner iteration, per island and per part.
/// Sums run in part order; nothing is allocated after construction.
class InterfaceResidual {
 public:
  explicit InterfaceResidual(const WaveDiscretisation& waves);

  /// The largest island residual; with `per_part` the largest over islands and parts. `exchanged` is
  /// P b̂. A group of waves that are all zero counts as converged. NaN when a wave is NaN.
  double largest(const double* u, const double* b, const double* exchanged, bool per_part);

 private:
  struct Norms {
    double gap = 0.0, incident = 0.0, outgoing = 0.0;
    void add(const Norms& other);
    double residual() const;
  };
  struct PartWaves {
    int first, last, island;
  };
  std::vector<PartWaves> parts_;
  std::vector<Norms> islands_;
};

}  // namespace portwave
