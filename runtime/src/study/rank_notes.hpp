#pragma once

#include "portwave/runtime/study/rank_model.hpp"

namespace portwave {

/// What a rank tells all others of how its inputs were sampled [B].
inline constexpr double kStatusBytes = 16.0;

/// ⌈log₂ ranks⌉.
int rounds_of(int ranks);
/// Errors: std::invalid_argument where a message goes to no rank or to its own.
void check_messages(const RankStepModel& model);

}  // namespace portwave
