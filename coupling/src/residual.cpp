#include "portwave/coupling/residual.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace portwave {
namespace {

/// max that keeps a NaN.
double largest_or_nan(double a, double b) { return (a >= b || std::isnan(a)) ? a : b; }

}  // namespace

void InterfaceResidual::Norms::add(const Norms& other) {
  gap += other.gap;
  incident += other.incident;
  outgoing += other.outgoing;
}

double InterfaceResidual::Norms::residual() const {
  return gap == 0.0 ? 0.0 : std::sqrt(gap / std::max(incident, outgoing));
}

InterfaceResidual::InterfaceResidual(const WaveDiscretisation& waves)
    : islands_(static_cast<std::size_t>(waves.system().island_count())) {
  for (std::size_t i = 0; i < waves.places().size(); ++i) {
    const PartPlace& place = waves.places()[i];
    const int size = waves.batches()[static_cast<std::size_t>(place.batch)].batch->wave_size();
    parts_.push_back(
        {place.wave, place.wave + size, waves.system().island_of_part(static_cast<int>(i))});
  }
}

double InterfaceResidual::largest(const double* u, const double* b, const double* exchanged,
                                  bool per_part) {
  std::fill(islands_.begin(), islands_.end(), Norms{});
  double worst = 0.0;
  for (const PartWaves& part : parts_) {
    Norms norms;
    for (int j = part.first; j < part.last; ++j) {
      const double gap = exchanged[j] - u[j];
      norms.gap += gap * gap;
      norms.incident += u[j] * u[j];
      norms.outgoing += b[j] * b[j];
    }
    islands_[static_cast<std::size_t>(part.island)].add(norms);
    if (per_part) worst = largest_or_nan(worst, norms.residual());
  }
  for (const Norms& island : islands_) worst = largest_or_nan(worst, island.residual());
  return worst;
}

}  // namespace portwave
