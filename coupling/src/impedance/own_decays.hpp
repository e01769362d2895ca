#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "portwave/coupling/system/system.hpp"

namespace portwave {

/// The states of a part that a resistance of their own brings to rest, far faster than a step resolves.
struct OwnDecays {
  double h_lambda = 0.0;        ///< of the fastest, times the step
  int state = -1;               ///< the fastest; −1: there is none
  std::uint64_t conserved = 0;  ///< the others that store energy (StageRule::conserved)
};

/// By part. A resistance is a state's own if it sees nothing but the state's z = ∂H/∂x: Rᵢᵢ without other entries in
/// its row, and at ports that show this state alone, what takes the same effort or flow there and leads nowhere else,
/// such as a resistor or damper with one port; if `of_junctions`, in junctions of other kinds Re of what the port meets at
/// ω = 1/h. λᵢ = ∂²H/∂xᵢ² (Rᵢᵢ + Σⱼ Gᵢⱼ² rⱼ), the smaller of that at the start and
/// at the typical state; states count from h·λ > `least`. Whatever such a state is coupled to, damping it takes from
/// slow motion of angular frequency ω at most (hω)²/(2hλ) of what its own resistance takes: the step loses
/// ½h² ∂²H/∂x² ẋ² = ½h² ż²/(∂²H/∂x²), the resistance h λ z²/(∂²H/∂x²).
/// Only of parts that can damp single states (can_damp_single_states), with a constant structure.
/// `exchanged`: by part, whether its resistances do not count; empty: all count.
std::vector<OwnDecays> own_decays(const System& system, double step_s, double least,
                                  std::span<const char> exchanged, bool of_junctions);

}  // namespace portwave
