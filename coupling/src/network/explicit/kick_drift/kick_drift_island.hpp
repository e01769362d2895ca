#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/stroke_kernels.hpp"
#include "network/explicit/explicit_island.hpp"
#include "network/explicit/kick_drift/kick_drift_model.hpp"
#include "network/explicit/kick_drift/separable.hpp"
#include "network/explicit/kick_drift/stroke_map.hpp"
#include "network/explicit/row_exchange.hpp"
#include "network/explicit/shared_rows.hpp"
#include "portwave/coupling/energy/compensated_sum.hpp"
#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/base/index.hpp"

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

namespace kick_drift {

constexpr double kGaussPlace[3] = {0.11270166537925831, 0.5, 0.88729833462074169};

using Array = AlignedVector;

/// Behind the last stroke: kernels read whole groups of lanes.
constexpr std::size_t kRoom = 8;

/// What a drift does to decaying positions until a time in it.
struct DecayMaps {
  std::vector<StrokeMap> of_terms;           ///< of u, 𝒟u, 𝒟²u, …
  Array kept;                                ///< e^{−ρt}
  std::vector<std::array<double, 3>> flows;  ///< by decay_flows, from values at the Gauss points
};

/// A drift of one length.
struct Drift {
  double tau = 0.0;
  Array psi, factor, lost;  ///< of momenta on dampers of their own
  DecayMaps end;
  DecayMaps within[2];                    ///< at Lobatto's points, of uneven rows
  Array energy_00, energy_01, energy_11;  ///< of even rows: ∫ρVq² from q at both ends
};

}  // namespace kick_drift

/// Steps one island of a separable network by kicks and drifts.
///
/// Positions are followed by *strokes*: Y = ∫u dt since the start of the step for every momentum and the
/// integral of every flow that an input gives, so that q = qⁿ + K Y, and forces of linear springs are c + S Y,
/// with S = −Nᵀ∇²V K. Elongations far from the origin lose no digits.
///
/// A step is in kick_drift_island.cpp, and in blocks in kick_drift_sweep.cpp; its drifts are in
/// kick_drift_drifts.cpp, its balance of energy in kick_drift_balance.cpp.
struct KickDriftIsland final : ExplicitIsland {
  using Array = kick_drift::Array;
  using DecayMaps = kick_drift::DecayMaps;
  using Drift = kick_drift::Drift;

  /// `states`: those of the island, increasing. The network must outlive it. `row_numbers`: scratch, one entry
  /// by state of the network.
  KickDriftIsland(const SeparableNetwork& network_, const std::vector<int>& states,
                  const KickDriftScheme& scheme_, double step_s_, std::vector<int>& row_numbers);

  bool has_inputs() const override;
  int tasks() const override;
  void share_with(const ForEach* each) override;
  bool can_share_rows() const override;
  void share_among(NetworkPeers& peers) override;
  void complete(IslandState& state) override;
  /// How drifts take dampers was chosen for the first size.
  void set_step(double size_s) override;
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
  int fastest_part() const;  ///< whose damping is the fastest; -1: none

  /// Rows of decaying positions that only momenta of one damping act on, and no input.
  void find_even_rows();
  void find_ranges();
  void find_ranges_within(int begin, int end_row);

  /// Momenta that share no damper.
  struct MomentumRange {
    int first = 0, last = 0;
    bool is_uniform = false;  ///< of one damper and one mass
  };
  /// What is done to a block of momenta at once, of a step that is swept.
  struct Pass {
    enum class Kind : char { kick, drift, damp, damp_twice };
    Kind kind;
    int stage;
  };
  struct Level {
    double h = 0.0;
    std::vector<Drift> drifts;
    Array dead_kept;  ///< what a step leaves of dead states
  };

  const Level& level(int depth);
  Drift drift_of(double tau) const;
  DecayMaps decay_maps(double tau, double t, const std::vector<char>& rows) const;
  /// q(t) = α(t) q(0) + β(t) q(τ) where all momenta that act on it decay alike.
  void even_energy(int i, double tau, Drift& drift) const;

  // Sampling.

  double kick_value(int input, int stage) const;
  double gauss_value(int input, int stage, int g) const;
  /// Whether an input changes suddenly. `is_resolved`: it is a ramp then.
  bool sample_inputs(double start_s, double h, bool jumps_are_ramps, bool is_resolved);
  /// The input rises at a constant rate: where it is not known when it does, its work in kicks and in drifts would differ by
  /// more than any balance meets.
  void ramp(int input);

  // The step.

  /// The linear force and what else stays within a step, and the momenta of its start.
  void freeze(const IslandState& from, IslandState& to);
  /// c, and the forces of bent positions that are no matter of one momentum.
  const double* force_offset(const IslandState& from);
  KickTask kick_task(IslandState& to, int stage, double h);
  StrokeTask stroke_task(IslandState& to, const Drift& d);
  void kick(const IslandState& from, IslandState& to, int stage, double h);
  double moved_by_strokes(int row) const;
  /// ∂H/∂q of an undamped position now; after `force_offset`.
  double slope_of_position(const IslandState& from, int row) const;
  /// ∫ s (−t)ᵏ/k! e^{−dt} dt over a drift.
  double moment(int input, int stage, double tau, int k, double damping) const;
  /// The power of efforts, of the term (−t)ᵏ/k! 𝒟ᵏu.
  void supply_efforts(int stage, double tau, int k, const double* u);
  void drift(IslandState& to, const IslandState& from, int stage, const Level& own);
  /// Degree 1, where 𝒟u or 𝒟²u is asked for besides the stroke.
  void lumped_drift(IslandState& to, int stage, const Drift& d, bool is_middle, double h);
  /// w = Σ (−1)ᵏ τᵏ⁺¹/(k+1)! 𝒟ᵏu, u ← u − 𝒟w; what that takes of ½uᵀWu is dissipated exactly.
  void drift_by_series(IslandState& to, int stage, const Drift& d);
  template <class Body>
  void for_shared(const Body& body) const {
    for (const auto& [first, last] : shared_ranges) {
      for (int i = first; i < last; ++i) body(i);
    }
  }
  void begin_decays(const IslandState& from, const IslandState& to, int stage, const Drift& d);
  void add_decay_terms(const Drift& d, int k, const double* term_k);
  void end_decays(const Drift& d);

  // The same in blocks.

  /// Whether kicks and drifts of momenta ask for nothing but momenta nearby.
  bool is_local() const;
  void find_passes();
  /// Inputs by the blocks that they act on, where a step is swept.
  void find_block_inputs();
  bool is_mixed(int stage) const;
  /// All kicks and drifts. A few passes at a time follow one another over the blocks, so that what one leaves
  /// in the cache serves the next; each keeps `reach` blocks behind the one before it. Threads have a range of
  /// blocks each, of which every pass leaves `reach` more at both ends to be done when all ranges are.
  void sweep(IslandState& to, const Level& own);
  void find_sweep_ranges();
  /// The same of one block: small islands take as long for what passes over blocks need as for their rows.
  void sweep_block(IslandState& to, const Level& own);
  MixedKickTask mixed_kick_task(IslandState& to);
  /// The same on ranks: after each pass neighbours get what they read of it, while other blocks are done.
  void sweep_on_ranks(IslandState& to, const Level& own);
  template <class Exchange>
  void exchange_after(const Pass& pass, IslandState& to, const Exchange& exchange);
  /// Sums of what passes have dissipated, and of what inputs have supplied.
  void add_passes(const Level& own);
  /// Notes what the power of efforts in a drift needs: u of their rows, and where dampers are shared 𝒟u and 𝒟²u.
  void kick_by_inputs(IslandState& to, int stage, double h, int block);
  void note_power(const Pass& pass, int block, const IslandState& to);
  double& power_row(int stage, int term_, std::size_t entry) {
    return power_rows[(entry * at(scheme.stages()) + at(stage)) * 3 + at(term_)];
  }
  /// The energy dissipated.
  double do_pass(const Pass& pass, int block, IslandState& to, const Level& own);
  double& lost_in(std::size_t pass, int block) {
    return lost_in_pass[at(block) * passes.size() + pass];
  }
  std::span<const MomentumRange> ranges_alone(int block) const {
    const int first = first_other[at(block)];
    return std::span(other_ranges).subspan(at(first), at(first_other[at(block) + 1] - first));
  }
  /// Momenta that share no damper.
  void drift_alone(IslandState& to, const Drift& d, std::span<const MomentumRange> ranges,
                   CompensatedSum& lost);
  void lump(IslandState& to, const Drift& d, double cubes_s3, int first, int last, double mix,
            CompensatedSum& lost);

  // The balance.

  struct Balance {
    double change = 0.0, size = 0.0, kinetic = 0.0, slope = 0.0;
    double slope_of_momenta = 0.0;  ///< what momenta take of the slope
  };
  /// Whether one pass over the momenta gives the change of H.
  bool is_plain() const;
  Balance balance(const IslandState& from, IslandState& to);
  /// The kinetic energy, and what a step along p changes of H per unit, in all and of momenta, of a block; with what
  /// inputs change. Notes ũ − uⁿ in `moved`.
  std::array<double, 3> kinetic_and_slope(int block, const IslandState& from,
                                          const IslandState& to);
  double change_of_input(int input) const;
  /// H(x⁺) − H(xⁿ) from the states, which are written to `to` but for the momenta.
  double energy_change(const IslandState& from, IslandState& to, double* size);
  /// ½(q⁺ + q)ᵀV(q⁺ − q) beside the diagonal of V.
  double tied_change(const IslandState& from, const IslandState& to, double* size);
  /// With the other states of the part as they are not, which separable storages do not see.
  double callback_change(const CallbackPart& part, const IslandState& from, const IslandState& to);
  /// x ← x + λp, p = h(ẋ(x̃) − ẋ(xⁿ)) without damping; step = λh. After `balance`.
  void move(IslandState& to, double step);
  /// Whether the energy hardly changes along p, since what positions give momenta take: on the slow motions of
  /// overdamped parts, and under fast inputs. A move along p that makes up for an error is then far larger than it.
  bool bends_little(const Balance& first) const;
  /// How far along p/h the energy has changed by −missing, where `is_plain`: H is a polynomial of fourth degree there.
  double bent_step(double missing, const Balance& first);
  bool settle(const IslandState& from, IslandState& to, const Level& own, double supply,
              double lost, IslandEnergies& energies);

  const SeparableNetwork& network;
  KickDriftScheme scheme;
  double step_s;
  const StrokeKernels& kernels;
  KickDriftModel model;
  SharedRows momentum_rows, position_rows;
  std::optional<RowExchange> momentum_exchange, position_exchange;  ///< if ranks share rows
  std::vector<int> border_blocks,
      inner_blocks;  ///< of this rank: with rows that others read, and without
  std::vector<char> even;
  Array even_damping;
  bool all_even = true;
  std::vector<std::pair<int, int>> shared_ranges;  ///< of momenta
  std::vector<MomentumRange> other_ranges;
  std::vector<Pass> passes;
  Array lost_in_pass;  ///< by block and pass
  int passes_at_once = 1;
  int shared_passes_at_once = 1;
  std::vector<int>
      sweep_ranges;  ///< blocks at which the ranges of threads begin, and the number of blocks
  /// Of each block, where its shared and other ranges begin: no range reaches from one into another.
  std::vector<int> first_shared, first_other;
  /// Of each block: the entries of model.effort_kicks and model.effort_power in its rows.
  std::vector<std::vector<int>> kicks_of_block, power_of_block;
  Array power_rows;  ///< by entry of model.effort_power, drift and term, of a step that is swept
  Array strokes;     ///< Y, and the increments of decaying positions
  Array c, c_bent, base, w, force_before, force_after, moved, term, next_term, given;
  Array decay_before, decay_after, decay_within[2];
  Array bent_now, bent_force;
  Array tied_sum, tied_pull;  ///< of positions whose storages are tied
  std::size_t longest = 0;
  Array callback_from, callback_to, callback_gradient;
  Array kick_values, gauss_values;
  std::vector<int> in_time;  ///< kicks in order of their times
  CompensatedSum supplied, dissipated;
  std::vector<Level> levels;
};

}  // namespace portwave
