#pragma once

#include <span>
#include <vector>

#include "portwave/coupling/energy/energy_ledger.hpp"
#include "portwave/coupling/method/method.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"

namespace portwave {

// The start of a run with waves, and its checks.

/// b⁰ in the order of `waves`: WaveCoupling::initial_waves, or zeros.
AlignedVector initial_waves(const WaveDiscretisation& waves, const WaveCoupling& method);

/// Errors: ConfigError where the energies of states, tanks or waves are not finite.
void refuse_non_finite_start(const WaveDiscretisation& waves, const EnergyLedger& ledger,
                             std::span<const double> b, const TankOptions& tank);

/// The waves a and b for the impedances and the step size of `waves`, in place of `old` ones:
/// effort and flow stay.
void rescatter(const WaveDiscretisation& waves, std::span<const double> old, double old_step_s,
               std::span<double> a, std::span<double> b);

/// ½|wave|².
double half_square(const WaveDiscretisation& waves, std::span<const double> wave);

}  // namespace portwave
