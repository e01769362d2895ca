#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "network/explicit/explicit_island.hpp"
#include "network/explicit/separable.hpp"
#include "network/explicit/stroke_map.hpp"
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
  double backwards = 0.0;     ///< the longest way back in time, as a share of the step

  static KickDriftScheme of_order(int order);
  /// The largest h times a damping: what a kick gives to a momentum grows on the way back by e^{backwards·hd}, and where that
  /// is more than a few times, motion is off by percents, though the balance of energy holds.
  double longest_damping() const { return 1.5 / backwards; }
  int stages() const { return static_cast<int>(drifts.size()); }
  /// Equal drifts have equal numbers.
  int drift_kind(int stage) const {
    return stage < stages() - 1 - stage ? stage : stages() - 1 - stage;
  }
  int drift_kinds() const { return (stages() + 1) / 2; }
};

/// Steps one island of a separable network by kicks and drifts.
///
/// Positions are followed by *strokes*: Y = ∫u dt since the start of the step for every momentum and the
/// integral of every flow that an input gives, so that q = qⁿ + K Y, and forces of linear springs are c + S Y,
/// with S = −Nᵀ∇²V K. Elongations far from the origin lose no digits.
class KickDriftIsland final : public ExplicitIsland {
 public:
  /// `states`: those of the island, increasing. The network must outlive it. `row_numbers`: scratch, one entry
  /// by state of the network.
  KickDriftIsland(const SeparableNetwork& network, const std::vector<int>& states,
                  const KickDriftScheme& scheme, double step_s, std::vector<int>& row_numbers);
  ~KickDriftIsland() override;

  bool has_inputs() const override;
  int tasks() const override;
  void share_with(const ForEach* each) override;
  bool can_share_rows() const override;
  void share_among(NetworkPeers& peers) override;
  void complete(IslandState& state) override;
  /// How drifts take dampers was chosen for the first size.
  void set_step(double step_s) override;
  void load(const double* x, IslandState& state) const override;
  void store(const IslandState& state, double* x) const override;
  void clear_gaps(IslandState& state) const override;
  void sample(double start_s, int depth) override;
  bool attempt(const IslandState& from, IslandState& to, int depth,
               IslandEnergies& energies) override;
  bool is_too_long(double h) const override;
  std::string advice() const override;
  double cost_ns() const override;
  std::size_t bytes() const override;

  int momenta() const;
  int positions() const;
  int degree() const;                ///< of damping in drifts; 0: none is shared
  double highest_frequency() const;  ///< ω at the initial state [rad/s]
  double fastest_damping() const;    ///< ‖𝒟‖ [1/s]
  int fastest_part() const;          ///< that has it; -1: none

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace portwave
