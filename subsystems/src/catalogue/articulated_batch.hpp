#pragma once

#include <memory>
#include <span>

#include "portwave/subsystems/core/component.hpp"
#include "portwave/subsystems/nonlinear/newton_batch.hpp"

namespace portwave::articulated {

/// Steps of one stage of ArticulatedParts. In v⁺, with q⁺ from v̄ = ½(v + v⁺), the step is
///   F(v⁺) = M(q⁺)v⁺ − p − h(T − D v̄ − ∂̄_qH) = 0,  D: dampers and impedances of the ports,
/// with p̄ × ω̄ and quaternions where joints have them, and ∂F/∂v⁺ = M(q) + ½hD + O(h). Simplified Newton steps
/// with that matrix cost O(n) each; where they do not gain a digit each time, LaneSolver solves the step with all
/// derivatives.
/// Cost     one mass matrix, two Cholesky factors, and O(n) for each of some five iterations.
std::unique_ptr<StepBatch> make_articulated_batch(std::span<const Component* const> parts,
                                                  NewtonOptions options);

}  // namespace portwave::articulated
