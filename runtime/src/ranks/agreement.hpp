#pragma once

#include <cstdint>
#include <utility>

#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/runtime/ranks/ranks.hpp"
#include "ranks/rank_cut.hpp"

namespace portwave {

// Ranks that step different systems would wait for one another, or give wrong results. All ranks call each
// of the functions `expect_…`, which fail on all of them with the same RankError.

/// Checks that all ranks find the same digest `own` of `what`. The error names the ranks that differ from
/// rank 0.
void expect_same(Ranks& ranks, std::uint64_t own, const char* what);
/// Checks that all ranks run the same build of the same version.
void expect_same_program(Ranks& ranks);
/// Checks that all ranks have cut the system alike.
void expect_same_cut(const RankCut& cut, Ranks& ranks);
/// Checks the junctions at cuts between slices. The ranks on both sides scatter their waves, and must do so
/// alike: with the same impedances, and in the same order.
void expect_same_cut_junctions(const WaveDiscretisation& waves, Ranks& ranks);

/// A wave of a slice as all ranks know it: the number of its part in the whole system, and its place there.
using SliceWave = std::pair<std::int64_t, int>;
SliceWave wave_of_slice(const WaveDiscretisation& waves, int offset);

}  // namespace portwave
