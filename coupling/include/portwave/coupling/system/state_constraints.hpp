#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// States and inputs at one instant.
struct StateInstant {
  std::function<std::span<const double>(int part)> state;
  /// A driven external input.
  std::function<double(int part, int input)> input;
};

/// The constraints that the joints of a network put on states and prescribed inputs: rigidly joined inertias
/// turn alike, a capacitor on a source has its voltage, a held mass is at rest.
///
/// With the states given, the efforts and flows of all ports follow from linear equations M w = r: those of
/// the joints, those of the parts, y = (G + P)ᵀ∇H + (S + N)u, and the algebraic ones of descriptor parts.
/// If M is singular, every left null vector nᵀM = 0 gives a constraint nᵀr(x, u) = 0; states and inputs that
/// violate it are at odds. Every right null vector is an impulse that the ports may carry, and with those the
/// states jump to where all constraints hold: Δx = Σ(G − P) of it, as in a plastic impact.
///
/// Nothing is linearised: a nonlinear part enters by ∇H(x). A nonlinear resistance (Subsystem::port_law)
/// counts as one with a slope, an opaque part as one with a feedthrough: they tie nothing. An ideal switch
/// is open, f = 0, or shorted, e = 0, as its input says, and an ideal diode ties nothing either.
///
/// Cost     of the constructor: one pass over all ports, and no more if nothing is tied. Joints that
///          may tie something are solved with everything that depends on them algebraically, first by
///          singletons, then by a sparse rank-revealing factorisation.
///          `odds`: proportional to the parts that are tied.
/// Source   van der Schaft & Jeltsema (2014), chapter 2; Brogliato, Nonsmooth Mechanics (2016), chapter 4.
class StateConstraints {
 public:
  /// `state` of parts: for structures that depend on it. `input` of parts with ideal switches; empty: they tie
  /// nothing.
  StateConstraints(const System& system,
                   const std::function<std::span<const double>(int part)>& state,
                   const std::function<double(int part, int input)>& input = {});
  ~StateConstraints();
  StateConstraints(StateConstraints&&) noexcept;
  StateConstraints& operator=(StateConstraints&&) noexcept;

  bool empty() const { return size() == 0; }
  int size() const;
  /// Whether a part's states or inputs enter a constraint.
  bool ties(int part) const;
  /// Whether the direction in which it is tied depends on its state, as at the tip of an arm; `state`: one at which
  /// to look, beside another.
  bool turns(int part, std::span<const double> state) const;

  /// Whether no state enters it, so that no impulse can bring it about: sources on one another, or on what
  /// an ideal switch makes of them.
  bool is_prescribed(int constraint) const;

  /// A constraint at an instant: the sum of the terms of parts, which is 0 where it holds, and of their
  /// magnitudes.
  struct Residual {
    double value = 0.0;
    double size = 0.0;
  };
  Residual residual(int constraint, const StateInstant& at) const;

  /// A driven external input that enters a constraint.
  struct Source {
    int constraint;
    int part;
    int input;
    double weight;  ///< of its value in the constraint
  };
  /// By constraint.
  std::span<const Source> sources() const;

  /// Whether there are parts whose feedthrough depends on their state, or whose ports their inputs switch, so
  /// that constraints may change: an open switch ties the current to 0.
  bool may_change() const;
  /// Whether feedthrough has become 0 or nonzero there since these constraints were found.
  bool has_changed(const std::function<std::span<const double>(int part)>& state) const;
  /// The first ideal switch that has opened or closed since then, as "s opens"; empty: none has.
  std::string switched(const std::function<double(int part, int input)>& input) const;

  /// A state that an impulse changes.
  struct Jump {
    int part;
    int state;
    double before;
    double after;
  };
  /// A part in an impulse, and the energies there [J]: change = through its ports + supplied − impact.
  struct PartImpulse {
    int part;
    std::vector<double> state;  ///< all of its states after the impulse; empty: they stay
    double change_J = 0.0;      ///< H(x⁺) − H(x)
    double supplied_J = 0.0;    ///< through its external inputs
    double impact_J = 0.0;  ///< H(x) − H(x⁺) − ∇H(x⁺)ᵀ(x − x⁺): its share of impulse_J
  };
  /// States at odds: connected constraints, some of which are violated.
  struct Odds {
    std::vector<int> violated;       ///< constraints, those farthest off first
    std::vector<Jump> jumps;         ///< to where all hold
    std::vector<PartImpulse> parts;  ///< those that the impulse changes, or that supply it
    bool is_consistent = true;  ///< false: no states satisfy them, as where two sources disagree
    bool is_passive = true;  ///< false: the impulse would create energy, as where H is not convex
    /// H(x) − H(x⁺) − ∇H(x⁺)ᵀ(x − x⁺), of quadratic H ½Δxᵀ∇²H Δx: the loss of a plastic impact.
    double impulse_J = 0.0;
    double change_J = 0.0;  ///< H(x⁺) − H(x)
    double energy_J = 0.0;  ///< ½ Σ|∇Hᵢxᵢ| of the connected parts, before or after
  };
  /// The constraints whose residual is beyond √`share` of its terms, each with the constraints connected to
  /// it. `amplitude`: largest values of sources, by their index in `sources`; empty: present values.
  std::vector<Odds> odds(const StateInstant& at, double share,
                         std::span<const double> amplitude = {}) const;
  /// The same for constraints that are known to be violated, such as those in which a source jumps.
  Odds odds_of(std::span<const int> violated, const StateInstant& at) const;

  /// "common_flow of a.shaft, b.shaft": the joints that make the constraint.
  std::string joints(int constraint) const;
  /// "a.speed = 10 rad/s, b.speed = 2 rad/s": its terms.
  std::string values(int constraint, const StateInstant& at) const;
  /// A part that it ties: the first one with a state in it.
  int part(int constraint) const;
  /// All parts that it ties.
  std::vector<int> parts(int constraint) const;
  /// "a.speed 10 -> 4 rad/s"; the first few.
  std::string jumps(const Odds& odds) const;
  /// Whether no part whose states would jump gives its ports a physical domain. The meaning of an impulse is
  /// unknown there.
  bool is_without_domain(const Odds& odds) const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

/// Energy of an impulse, relative to that of the affected parts, above which states are at odds.
inline constexpr double kOddsShare = 1e-9;

}  // namespace portwave
