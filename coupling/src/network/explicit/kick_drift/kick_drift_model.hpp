#pragma once

#include <cstddef>
#include <vector>

#include "network/explicit/explicit_island.hpp"
#include "network/explicit/kick_drift/separable.hpp"
#include "network/explicit/kick_drift/stroke_map.hpp"
#include "portwave/subsystems/base/aligned.hpp"

namespace portwave {

/// An entry of a column of B, or of BᵀW, for the momentum or the position `row`.
struct InputEntry {
  int input = 0;  ///< among those of the island
  int row = 0;
  double value = 0.0;
};

/// A part that gives ∂H/∂x of some of its states itself.
struct CallbackPart {
  const Subsystem* part = nullptr;
  std::vector<double> rest;  ///< its state where those are not
  std::vector<int> state;    ///< of the part
  std::vector<int> bent;     ///< the same in the order of bent positions
};

/// The matrices of an island, and the order of its states.
struct KickDriftModel {
  /// `row_numbers`: by state of the network, written for the island's own.
  KickDriftModel(const SeparableNetwork& network, const std::vector<int>& states, int order,
                 double step_s, std::vector<int>& row_numbers);

  int momenta() const { return static_cast<int>(momentum.size()); }
  int strokes() const { return momenta() + static_cast<int>(flows.size()); }
  int positions() const { return static_cast<int>(position.size()); }
  int decays() const { return static_cast<int>(decaying.size()); }
  std::size_t bytes() const;  ///< of the maps and the arrays beside them

  const SeparableNetwork& network;
  /// States of the network, in the island's order. Of momenta kGap: none. Gaps make long runs of rows begin at
  /// whole groups of lanes; there u is 0, nothing acts on it, and it acts on nothing.
  static constexpr int kGap = -1;
  std::vector<int> momentum, position, decaying;
  DeadStates dead;
  std::vector<char> is_real;  ///< by momentum: no gap
  bool has_gaps = false;      ///< then the last eight momenta at least are gaps
  std::vector<int> inputs;    ///< of the network

  AlignedVector mass;  ///< diagonal of W
  bool has_diagonal_mass = true;
  RowMatrix W;
  RowMatrix damping;                 ///< 𝒟 = R W
  std::vector<char> shared;          ///< by momentum: 𝒟 ties it to others
  std::vector<double> own_damping;   ///< 𝒟 of the others
  std::vector<int> blocks;           ///< rows of momenta at which blocks of them begin
  int reach = 1;                     ///< a block acts on those no farther away
  std::vector<int> position_blocks;  ///< likewise of positions
  bool has_shared = false, has_own = false;
  int degree = 0;
  bool lumped = false;  ///< degree 1, with all terms of second order in the middle drift

  RowMatrix K;             ///< positions × strokes
  StrokeMap force;         ///< S, 𝒟 where it is shared and lumped, κ: for kicks
  StrokeMap mixed;         ///< 𝒟, r and κ where S = ρ𝒟 + r, r being diagonal; else empty
  double mix_per_s = 0.0;  ///< ρ
  StrokeMap of_positions;  ///< c from positions
  StrokeMap of_decaying;   ///< c from decaying ones
  AlignedVector constant_force;
  StrokeMap base;       ///< y₀ from positions
  AlignedVector cubic;  ///< κ by momentum
  bool has_cubic = false;
  StrokeMap positions_of_strokes;  ///< K
  AlignedVector stiffness, constant, position_cubic;
  bool has_constant = false, has_position_cubic = false;
  bool has_diagonal_stiffness = true;
  RowMatrix V;               ///< ∇²V of positions, of what is quadratic
  StrokeMap tied_stiffness;  ///< V without its diagonal

  // Bent positions whose forces are no matter of one momentum.
  std::vector<int> bent;  ///< positions
  std::vector<double> bent_cubic;
  std::vector<CallbackPart> callbacks;
  std::vector<char> has_callback;  ///< by bent position
  StrokeMap bent_of_strokes, force_of_bent;

  StrokeMap damping_map;                            ///< 𝒟 of shared rows
  RowMatrix decay_of_momenta;                       ///< A W, decaying × momenta
  std::vector<double> decay_stiffness, decay_rate;  ///< V, ρ
  std::vector<double>
      decay_shift;  ///< constant force over V: what to add to q so that it decays to 0

  std::vector<InputEntry> effort_kicks, effort_power;
  std::vector<int> flows;  ///< of the island's inputs, those that move undamped positions
  std::vector<InputEntry> flow_power;   ///< on undamped positions
  std::vector<InputEntry> decay_flows;  ///< on decaying ones

  double highest_frequency = 0.0, fastest_damping = 0.0;
  int fastest_state = -1;  ///< of the network, the one that is damped fastest; -1: none is damped
  int island = 0;          ///< of the system

 private:
  RowMatrix picked(const SparseMatrix& m, SeparableKind kind, std::size_t rows,
                   const std::vector<int>& columns) const;
  bool is_own(int state) const;
  void order_states(const std::vector<int>& states);
  void number_rows();
  void leave_gaps();
  void fill_gaps();
  void find_blocks(const RowMatrix& S);
  void find_mixed(const RowMatrix& S);
  void find_damping(int order, double step_s);
  void find_bent(const RowMatrix& force_of_position);
  void find_inputs();
  void find_rates(const RowMatrix& force_of_position);

  std::vector<int>* row_of;  ///< by state, its number in the list of its kind
};

}  // namespace portwave
