#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "network/separable.hpp"
#include "network/stroke_map.hpp"
#include "portwave/subsystems/base/aligned.hpp"

namespace portwave {

/// Kicks b₀, a₀, b₁, … in turn with drifts, in shares of the step; both read the same backwards.
/// Source   Blanes & Moan, J. Comput. Appl. Math. 142 (2002): SRKN₆ᵇ of order 4 and SRKN₁₁ᵇ of order 6, for
///          [B,[B,[B,A]]] = 0.
struct KickDriftScheme {
  int order = 6;
  std::vector<double> kicks;  ///< one more than drifts
  std::vector<double> drifts;
  std::vector<double> times;  ///< of the kicks, as shares of the step: not monotone, within [0, 1]
  double cubes = 0.0;         ///< Σ a³

  static KickDriftScheme of_order(int order);
  int stages() const { return static_cast<int>(drifts.size()); }
  /// Equal drifts have equal numbers.
  int drift_kind(int stage) const {
    return stage < stages() - 1 - stage ? stage : stages() - 1 - stage;
  }
  int drift_kinds() const { return (stages() + 1) / 2; }
};

/// The state of an island between two steps.
struct KickDriftState {
  AlignedVector u;         ///< momenta, shifted; 0 in gaps
  AlignedVector position;  ///< undamped ones
  AlignedVector decaying;  ///< shifted so that they decay to 0
  AlignedVector dead;
  double tank_J = 0.0;    ///< T: H + T is what has been supplied, less what was dissipated
  double stored_J = 0.0;  ///< H: states are known to its rounding
};

/// Energies of a step of an island [J].
struct KickDriftEnergies {
  double changed_J = 0.0, supplied_J = 0.0, dissipated_J = 0.0;
  double size_J = 0.0;  ///< of the terms that these were made of
  int halvings = 0;
};

/// An input that could not be sampled.
struct KickDriftInputFault {
  int input = 0;  ///< of the network
  bool threw = false;
  std::string detail;
};

/// Steps one island of a separable network by kicks and drifts.
///
/// Positions are followed by *strokes*: Y = ∫u dt since the start of the step for every momentum and the
/// integral of every flow that an input gives, so that q = qⁿ + K Y, and forces of linear springs are c + S Y,
/// with S = −Nᵀ∇²V K. Elongations far from the origin lose no digits.
///
/// Memory is taken at construction, and by the first halving of each depth.
class KickDriftIsland {
 public:
  static constexpr int kMostHalvings = 10;

  /// `states`: those of the island, increasing. The network must outlive it. `row_numbers`: scratch, one entry
  /// by state of the network.
  KickDriftIsland(const SeparableNetwork& network, const std::vector<int>& states,
                  const KickDriftScheme& scheme, double step_s, std::vector<int>& row_numbers);
  ~KickDriftIsland();
  KickDriftIsland(KickDriftIsland&&) noexcept;

  bool has_inputs() const;
  /// Steps to come are of this size. How drifts take dampers was chosen for the first one.
  void set_step(double step_s);
  /// States of the whole system to and from the island.
  void load(const double* x, KickDriftState& state) const;
  void store(const KickDriftState& state, double* x) const;
  /// Momenta are kept with gaps: what stands there is nothing, and must be 0.
  void clear_gaps(KickDriftState& state) const;

  /// Samples the inputs for a step from `start_s` on. Throws KickDriftInputFault.
  void sample(double start_s);
  /// One step of full length with the inputs sampled. False where its balance is not met: `to` is then no
  /// state.
  bool attempt(const KickDriftState& from, KickDriftState& to, KickDriftEnergies& energies);
  /// The same as two halves, which are halved in turn where need be. False where that does not help either.
  /// Samples inputs by itself. Throws KickDriftInputFault.
  bool halve(const KickDriftState& from, KickDriftState& to, double start_s,
             KickDriftEnergies& energies);

  int momenta() const;
  int positions() const;
  int degree() const;                ///< of damping in drifts; 0: none is shared
  double highest_frequency() const;  ///< ω at the initial state [rad/s]
  double fastest_damping() const;    ///< ‖𝒟‖ [1/s]
  double cost_ns() const;
  std::size_t bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace portwave
