#pragma once

#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"

namespace PORTWAVE_EXPORT portwave {

class UpdateRule;

/// How the inner iteration of wave coupling moves the waves u. With K = 0 iterations all kinds are
/// the explicit wave interface â = P bⁿ. All inner iterations commit the shadow â = P S(u) of the
/// last evaluation.
enum class WaveUpdate {
  douglas_rachford,   ///< u ← u + λ((2I − P)⁻¹(2S(u) − u) − S(u))
  peaceman_rachford,  ///< u ← u + θ(P S(u) − u); for θ < 1 the averaged wave iteration
  interface,  ///< u ← u + (I − P D)⁻¹(P S(u) − u), D = S′: exact at once where S is affine
  automatic,  ///< one of these, the impedances and the acceleration, from structure and rates
};

std::string_view to_string(WaveUpdate kind);

/// Source of the impedances. All but `given` are computed from the parts' one-step responses
/// at the given step size, linearised at the frozen state (see tuning.hpp).
enum class ImpedanceKind {
  given,      ///< WaveCoupling::impedance
  fne,        ///< the largest scaling of the matched ones that keeps every part firmly nonexpansive
  matched,    ///< each port without reflection into its own part, the part's other ports at rest
  leaf,       ///< both ports of a connection matched to the side whose ports interact less
  adapted,    ///< from the leaves of a tree to its root, each subtree seen without reflection
  across,     ///< as `matched`, nonlinear parts to what they see across their junctions
  automatic,  ///< the one of these that serves best, by predicted rate
};

std::string_view to_string(ImpedanceKind kind);

/// Those that are computed, in the order of the documentation.
inline constexpr std::array kTunedImpedances = {ImpedanceKind::fne,    ImpedanceKind::matched,
                                                ImpedanceKind::leaf,   ImpedanceKind::adapted,
                                                ImpedanceKind::across, ImpedanceKind::automatic};

/// The energy tank of the passivity guard, of each island.
struct TankOptions {
  std::optional<double> initial_J = {};  ///< T₀ ≥ 0 [J]; empty: ½|b⁰|² of the island
  double initial_fraction = 0.0;         ///< added to T₀: this share ≥ 0 of the island's H₀
  double cap_J = std::numeric_limits<double>::infinity();  ///< what exceeds it is given up; ≥ 0
};

/// Start of the inner iteration of a step. It does not change the limit.
enum class InnerStart {
  last,          ///< u⁰ = P bⁿ
  extrapolated,  ///< u⁰ of effort and flow continued from the last step, or steps
  automatic,     ///< the latter in steps of several stages of nonlinear parts, to a tolerance
};

std::string_view to_string(InnerStart start);

/// How a rank receives the waves of others. Within one process they are never late.
enum class ExchangeKind {
  synchronous,  ///< an evaluation waits for the waves of the one before it
  asynchronous,  ///< experimental: it takes the newest waves that have arrived (docs/guides/cluster.md)
};

std::string_view to_string(ExchangeKind kind);

struct ExchangeOptions {
  ExchangeKind kind = ExchangeKind::synchronous;
  /// Asynchronous only: number of evaluations by which waves may be older than synchronous ones, 1 to
  /// kMostDelay. The waves that the last step committed count as those before the first.
  int max_delay = 1;

  static constexpr int kMostDelay = 64;
  int delay() const { return kind == ExchangeKind::asynchronous ? max_delay : 0; }
};

inline constexpr int kMaxAcceleration = 10;
/// Allowed range of WaveCoupling::retune_factor.
inline constexpr std::string_view kRetuneFactorRange = "0 or a number > 1";

/// Coupling by waves, with an inner iteration in every step. The table in
/// coupling/src/method/wave_coupling.cpp lists the options as scenario files have them.
struct WaveCoupling {
  WaveUpdate kind = WaveUpdate::douglas_rachford;
  /// An update rule in place of that of `kind`, which is then Douglas–Rachford or
  /// Peaceman–Rachford; must outlive whatever uses the method. Null: that of `kind`.
  const UpdateRule* own_rule = nullptr;
  /// Budget K ≥ 0: evaluations of S before the commit.
  int iterations = 20;
  /// Gauss stages of a step, 1 to kMostStages: its order is twice that. 0: as many as suit the tolerance of
  /// steps that choose their size, and 1 if a part allows no more. Above 1 every port has a wave and an
  /// impedance per stage: given ones by scalar port hold at all stages; computed ones are listed part by
  /// part, for each part stage by stage, and may be given so. Not for opaque parts, nor where an external
  /// input acts on a hidden constraint (index 2).
  int stages = 1;
  /// The stages of parts that do not say it themselves.
  StageKind integrator = StageKind::automatic;
  /// Relaxation: λ ∈ (0, 2) of Douglas–Rachford, θ ∈ (0, 1] of Peaceman–Rachford, as the update
  /// rule says. `automatic` chooses its own.
  double relaxation = 1.0;
  /// Stop an island when |P b̂ − u| ≤ tolerance · max(|u|, |b̂|) on it; 0: always use the budget.
  double tolerance = 0.0;
  /// Stop when ½|P b̂ − u|² ≤ this [J] on every island; 0: never for this reason. With a tolerance
  /// too, whichever is met first.
  double energy_tolerance_J = 0.0;
  /// Apply the tolerance to every part's waves too, so that a weak part does not hide behind a
  /// strong one.
  bool tolerance_per_part = false;
  /// `automatic` with 2 or 3 stages, or steps that choose their size: a network that Taylor series suit (suits_taylor),
  /// or kicks and drifts (suits_kick_drift), is stepped by them, unless something is asked for that only waves have:
  /// deadlines, parameters that signals drive, substeps, integrators of parts, several ranks.
  bool explicit_steps = false;
  /// `automatic` is the only one for WaveUpdate::automatic.
  ImpedanceKind impedance_kind = ImpedanceKind::given;
  /// ImpedanceKind::given only: one impedance γ > 0 per scalar port of the system, or a single one
  /// for all.
  std::vector<double> impedance = {1.0};
  /// Tuned impedances follow the state of nonlinear parts: they are set again between two steps when
  /// one of them is off by more than this factor > 1; 0: never.
  double retune_factor = 2.0;
  /// Memory of Anderson acceleration, 0 (none) to kMaxAcceleration earlier evaluations. `automatic`
  /// chooses its own; `interface` makes no use of it.
  int acceleration = 0;
  /// A choice of `automatic` beside the kind: islands that take the interface update instead…
  std::vector<int> interface_islands = {};
  /// …and the evaluations after which any other island that has not met its tolerance takes it for
  /// the rest of the step; 0: never.
  int rescue_after = 0;
  /// Not with a budget of 0, which commits its start.
  InnerStart start = InnerStart::automatic;
  /// Asynchronous: needs a fixed budget, and results depend on timing where there are several ranks.
  ExchangeOptions exchange = {};
  /// The passivity guard: no committed step takes more from an island's tank than is in it.
  bool guard = true;
  TankOptions tank = {};
  /// b⁰, one outgoing wave [√J] per scalar port; empty: zero.
  std::vector<double> initial_waves = {};
  /// Whether `impedance` and `initial_waves` are by port of the system as it is stepped, without idle ports and stage by
  /// stage: so in the methods that a stepper gives, which other steppers of the system take.
  bool by_stepped_port = false;

  /// Everything `automatic`, to this residual, with a budget that leaves room for hard problems.
  static WaveCoupling automatic(double to_tolerance = 1e-10);
  /// The method of a scenario file with kind "auto" and this number of stages, 0 to kMostStages: the error of
  /// a step falls by some powers of ten with each stage, and the tolerance with it, so that the error of the
  /// coupling stays below that of the step.
  static WaveCoupling automatic_with_stages(int stages);
  /// The method of a scenario file that gives the kind alone: `automatic` and `interface` compute
  /// their impedances and iterate to the tolerance of automatic().
  static WaveCoupling of_kind(WaveUpdate kind);
};

/// The word for its kind, or the name of its own rule.
std::string_view name_of(const WaveCoupling& method);

}  // namespace portwave
