#pragma once

#include <memory>
#include <string>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/component.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"

namespace PORTWAVE_EXPORT portwave {

/// A part whose step has s stages by the given rule, as a component with s times its ports: order 2s, or
/// 2s − 1 where it is damped. It is passive for every h > 0. The kind
/// of discrete gradient of a NonlinearPortHamiltonian has no effect with more than one stage.
///
/// Without damping: with X(τ) = x + h Σⱼ (∫₀^τ lⱼ) ẋⱼ and ∇̄ᵢH = (1/bᵢ) ∫₀¹ lᵢ(τ) ∇H(X(τ)) dτ, at stage i
///   ẋᵢ = (J − R)∇̄ᵢH + (G − P)uᵢ,   yᵢ = (G + P)ᵀ∇̄ᵢH + (S + N)uᵢ,   x⁺ = x + h Σᵢ bᵢẋᵢ,
/// a state-dependent structure being that at X(cᵢ). Then
///   H⁺ − H = h Σᵢ bᵢuᵢᵀyᵢ − h Σᵢ bᵢ[∇̄ᵢH; uᵢ]ᵀ[R P; Pᵀ S][∇̄ᵢH; uᵢ],
/// exactly: where quadrature of the integrals leaves more of it than rounding, the ∇̄ᵢH get a share of the increments,
/// with the one factor that closes it. With damping
/// zᵢ of StageRule takes the place of ∇̄ᵢH, and what it dissipates is in the ledger too
/// (StepEnergy::numerical_dissipation_J). With one damped stage ∇̄H is the part's own discrete gradient.
///
/// Where ∇²H jumps (Subsystem::is_smooth) all stages see the discrete gradient and the structure of the whole step: exact,
/// and of the order of one stage for what such a part does.
///
/// A descriptor part, d/dt(Ex) = …, has E X(cᵢ) = E x + h Σⱼ aᵢⱼ Kⱼ and E x⁺ = E x + h Σᵢ bᵢKᵢ with Kᵢ
/// the right-hand side at stage i. Ex is of order 2s. The components of x⁺ that E does not see are those of
/// the polynomial through the X(cᵢ) at the end of the step, of order s; no step depends on them.
///
/// The component's variables at stage i are √bᵢ times those of the part: efforts, flows, inputs and
/// outputs. So its step is coupled like a step of one stage: its waves are those of
/// e + γf = √(2γ/h) a, and h Σ e f of its ports is the work h Σᵢ bᵢeᵢfᵢ. Ports, and likewise
/// external inputs, come stage by stage, named "port@1", "port@2", ….
/// With m substeps the part takes m steps of h/m within the step of those it is coupled with, and
/// its energy balance is the sum of theirs, as exact as that of one. Its port inputs are the
/// polynomial through those of the step's stages, and its outputs the projection of its own on such
/// polynomials, yᵢ = 1/(m bᵢ) Σₖ Σⱼ bⱼ lᵢ((k + cⱼ)/m) yₖⱼ, so that h Σ bᵢuᵢᵀyᵢ is the work of the
/// substeps. External inputs are taken at the stages of the substeps: "input@substep.stage", √(bⱼ/m)
/// times what they are. The order is 2s in h; of the part's own motion in h/m.
/// Errors   ConfigError: substeps outside 1 to kMostPartSubsteps; or a part that cannot have such stages: it is
///          opaque, has stages already, a hidden constraint on which an external input acts (then
///          the order is 2 with two stages and 4 with three), or more than kMostStagedStates states
///          that are solved densely. Substeps are also refused to descriptor parts and to linear
///          ones with sparse step maps.
/// Cost     linear parts with dense step maps have maps as those of one stage, with s(p + q) for
///          p + q, and s·n rows more at the most for their energies; those with sparse ones, and
///          descriptor parts, one sparse LU of size s·n per choice of impedances; others, unless they
///          bring a solver of their own (Component::make_staged_batch), one dense LU of size (s + 1)n
///          per Newton step. m substeps of a linear part cost as much to evaluate as one,
///          while its maps have at most a million numbers; of others m LUs of size s·n per Newton step.
/// Source   Hairer, JNAIAM 5 (2010); Cohen & Hairer, BIT 51 (2011); with ports and substeps our own.
std::shared_ptr<const Component> staged_part(std::shared_ptr<const Component> part,
                                             const StageRule& rule, int substeps = 1);
/// With Gauss's stages. Errors: as above, and stages outside 1 to kMostStages.
std::shared_ptr<const Component> staged_part(std::shared_ptr<const Component> part, int stages,
                                             int substeps = 1);

/// Limit for nonlinear parts and for linear ones that ask for dense step maps: a part with more states is
/// better cut.
inline constexpr int kMostStagedStates = 400;

/// Why a part cannot have more than one stage; empty where it can.
std::string staging_defect(const Component& part);
/// Why its stages cannot be damped, if there are so many; empty where they can.
std::string damping_defect(const Component& part, int stages);
/// Whether some of its states may be damped and others not (StageRule::conserved), without substeps: not where
/// sparse factors solve its stages.
bool can_damp_single_states(const Component& part);
/// Why it cannot have more than one substep.
std::string substepping_defect(const Component& part);

}  // namespace portwave
