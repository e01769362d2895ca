#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/stroke_kernels.hpp"
#include "network/explicit/explicit_island.hpp"
#include "network/explicit/gauss_interpolation.hpp"
#include "network/explicit/kick_drift/stroke_map.hpp"
#include "network/explicit/network_form.hpp"
#include "network/explicit/row_exchange.hpp"
#include "network/explicit/shared_rows.hpp"
#include "portwave/coupling/energy/compensated_sum.hpp"
#include "portwave/subsystems/base/aligned.hpp"

namespace portwave {

/// Terms of a Taylor series until the power `order`, inputs being polynomials.
struct TaylorScheme {
  int order = 16;  ///< M, even
  GaussInterpolation inputs;

  explicit TaylorScheme(int order_) : order(order_), inputs(order_ / 2 + 2) {}
  /// h times the rate of a motion of which a step leaves out such a share.
  double longest_angle(double left_out = 1e-9) const;
};

/// A network whose parts are linear: ∂H/∂x = Qx + c, Q being `hessian` and c `constant`.
/// Errors: ConfigError with every reason why a system is none.
class LinearNetwork : public NetworkForm {
 public:
  explicit LinearNetwork(const System& system);

  SparseMatrix output;  ///< Q Seen
};

/// The largest |eigenvalue| of a matrix whose fastest motion is an oscillation or a decay, from a fixed start: over
/// two products an oscillation comes back to its direction.
double fastest_rate_of(const RowMatrix& m);

/// The coefficients of an input's polynomial over a step of length h from `start_s` on. Whether the input changes suddenly
/// within it. Throws InputFault.
bool sample_powers(const NetworkForm& network, int input, const GaussInterpolation& interpolation,
                   double start_s, double h, double* powers);

/// Steps one island of a linear network, ẋ = A z + B s with z = ∂H/∂x = Qx + c, by its Taylor series:
///   w₀ = x,   wₖ₊₁ = h/(k+1)·(A zₖ + B sₖ),   x̃ = Σ_{k≤M} wₖ,   x⁺ = x̃ + λ w_{M+1}.
/// x(θ) = Σ wₖθᵏ solves the equation but for a residual. With that the path's own dissipation is, exactly,
///   ΔD = H − H(x̃) + ΔS − (M+1) w_{M+1}ᵀ Σ_{k≤M} zₖ/(k+M+1),
/// ΔS being the supply along the path; λ, near 1, makes H(x⁺) = H + ΔS − ΔD.
class TaylorIsland final : public ExplicitIsland {
 public:
  /// `states`: those of the island, increasing. `row_numbers`: scratch, −1 for every state of the network. The
  /// network and the scheme must outlive it.
  TaylorIsland(const LinearNetwork& network, const std::vector<int>& states,
               const TaylorScheme& scheme, double step_s, std::vector<int>& row_numbers);

  bool has_inputs() const override { return !inputs_.empty(); }
  int tasks() const override { return rows_.count(); }
  void share_with(const ForEach* each) override { rows_.share_with(each); }
  /// A storage with ties between states is summed by one rank.
  bool can_share_rows() const override { return rows_.count() > 1 && has_diagonal_; }
  void share_among(NetworkPeers& peers) override;
  void complete(IslandState& state) override { exchange_->complete(state.position.data()); }
  void set_step(double step_s) override;
  void load(const double* x, IslandState& state) const override;
  void store(const IslandState& state, double* x) const override;
  void sample(double start_s, int depth) override;
  bool attempt(const IslandState& from, IslandState& to, int depth,
               IslandEnergies& energies) override;
  /// What a step leaves out of its series: w_{M+2}, and what the move has too much or too little of w_{M+1}; and what
  /// the inputs' polynomials leave out.
  bool tells_error() const override { return true; }
  void error(double* x) override;
  /// Where a damper leaves out more than a thousandth of what it damps, which may have next to no energy.
  bool is_too_long(double h) const override;
  std::string advice() const override;
  double cost_ns() const override;
  std::size_t bytes() const override;

  int states() const { return static_cast<int>(states_.size() + dead_.states.size()); }
  double fastest_rate() const { return fastest_rate_; }  ///< the largest |eigenvalue| of AQ [1/s]

 private:
  /// An entry for the input `input` of the island and its row `row`.
  struct Entry {
    int input = 0;
    int row = 0;
    double value = 0.0;
  };
  using Array = AlignedVector;

  void find_inputs(const std::vector<int>& row_of);
  RowMatrix own(const SparseMatrix& m, const std::vector<int>& row_of) const;
  double power(int input, int k) const { return powers_[at_power(input, k)]; }
  std::size_t at_power(int input, int k) const;
  void add_term(const double* w, double* next, int k, double h);
  void multiply_by_hessian(const Array& x, Array& product);
  /// The power of inputs along the path, from the states that it depends on, which terms have left in `seen_`.
  void note_seen(const double* w, int k);
  void add_supply();
  SeriesSums sums(const IslandState& from, const Array& direction);
  bool settle(const IslandState& from, IslandState& to, int depth, double supply,
              IslandEnergies& energies);
  const Array& dead_kept(int depth);
  double left_out_of_input(int input) const;
  /// x⁺ = x + Σ + λ·direction. Returns H(x⁺) − H(x).
  double end(const IslandState& from, IslandState& to, const Array& direction, double lambda,
             double* size);

  const LinearNetwork& network_;
  const TaylorScheme& scheme_;
  const StrokeKernels& kernels_;
  double step_s_;
  std::vector<int> states_;  ///< of the network, in the island's order
  SharedRows rows_;
  std::optional<RowExchange> exchange_;  ///< if ranks share rows
  DeadStates dead_;
  std::array<Array, kMostHalvings + 1> dead_kept_;  ///< what a step of h/2^depth leaves of them
  std::vector<int> inputs_;                         ///< of the network
  StrokeMap rate_;                                  ///< AQ
  StrokeMap hessian_;                               ///< Q, where it is not diagonal
  Array stiffness_;                                 ///< the diagonal of Q
  Array constant_;                                  ///< c; empty: 0
  bool has_diagonal_ = true;
  bool is_lossless_ = true;                       ///< nothing damps: there is no ΔD to be known
  std::vector<std::pair<int, double>> offsets_;   ///< A c, by row
  std::vector<Entry> driven_;                     ///< B
  std::vector<Entry> power_;                      ///< Q Seen
  std::vector<std::vector<int>> power_of_block_;  ///< entries of `power_`, by block of their rows
  Array seen_;                                    ///< states by entry of `power_` and term
  Array steady_power_;                            ///< Seenᵀc, by input
  std::vector<Entry> through_;                    ///< of two inputs
  double fastest_rate_ = 0.0, fastest_damping_ = 0.0;

  Array powers_;  ///< of inputs, sampled
  Array first_, second_, other_, last_, sum_, weighted_;
  Array pull_, middle_pull_;  ///< Q times the direction, and the state in the middle
  Array middle_;
  Array output_;  ///< by input
  CompensatedSum supplied_;
  double along_last_ = 1.0,
         along_second_ = 0.0;  ///< how far the last step was moved along w_{M+1}, and w₂
};

}  // namespace portwave
