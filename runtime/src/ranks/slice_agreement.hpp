#pragma once

#include <utility>

#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/runtime/ranks/ranks.hpp"

namespace portwave {

/// A wave as all ranks know it: the number of its part in the whole, and which of its waves.
using SliceWave = std::pair<std::int64_t, int>;
SliceWave wave_of_slice(const WaveDiscretisation& waves, int offset);

/// The ranks at both sides of a cut scatter the waves of its junctions, and have to do it alike: with the
/// same impedances, and in the same order. All ranks call it. Errors: RankError, on all of them.
void expect_same_cut_junctions(const WaveDiscretisation& waves, Ranks& ranks);

}  // namespace portwave
