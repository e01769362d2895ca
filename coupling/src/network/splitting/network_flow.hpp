#pragma once

#include <span>
#include <vector>

#include "network/block_groups.hpp"
#include "network/linear_solver.hpp"
#include "portwave/coupling/network/condensed.hpp"
#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/base/for_each.hpp"

namespace portwave {

/// Which terms of (J − R)Q a flow of a block takes.
enum class FlowTerms { all, conservative, dissipative };

/// The implicit midpoint flow of one block by itself over τ: E(x⁺ − x) = τ A (x + x⁺)/2. It is
/// computed as
///   x⁺ = x + 2d,   (2/τ E − A) d = A x + r,
/// r being what else acts on it.
class BlockFlow {
 public:
  /// `alone`: no other block is equal, so that lanes will not be asked for. Then a small block
  /// keeps the dense map x ↦ d, a chain of sums for every state in place of one through all of
  /// them.
  /// Errors: ConfigError when the implicit step is singular.
  BlockFlow(const CondensedBlock& block, double tau, FlowTerms terms, bool alone = false);

  int scratch_size() const { return 2 * solver_.size(); }
  /// d for the state x; `extra` is r or null.
  void increment(const double* x, const double* extra, double* d, double* scratch) const;
  /// τ z_midᵀ R z_mid of the flow from x with increment d; z is scratch, n doubles.
  double dissipated(const double* x, const double* d, double* z) const;
  /// The same for kLaneGroup blocks of one class, all arrays [state][lane]; after `prepare_lanes`.
  void prepare_lanes();
  void increment_lanes(const double* x, double* d, double* scratch) const;
  void dissipated_lanes(const double* x, const double* d, double* z, double* sum) const;
  /// (2/τ E − A)⁻¹ applied to columns.
  Eigen::MatrixXd response(const SparseMatrix& columns) const { return solver_.solve(columns); }
  double operations() const { return solver_.operations() + static_cast<double>(A_.nonZeros()); }

 private:
  const CondensedBlock* block_;
  double tau_;
  bool dissipates_;
  SparseMatrix A_;
  LinearSolver solver_;
  AlignedVector map_;  ///< (2/τ E − A)⁻¹A by columns of stride_ doubles; empty: not kept
  int stride_ = 0;
  struct Lanes {
    LaneMatrix A, Q, R;
  };
  std::optional<Lanes> lanes_;
};

/// The implicit midpoint flow over τ of the coupling, the external inputs and, where `active`, the
/// blocks themselves: E(x⁺ − x) = τ[(A_active + J_oQ)(x + x⁺)/2 + Bu]. The couplings are eliminated
/// to one sparse system in their channels: with w = OutᵀQ x_mid,
///   w = w⁰ + S C w,   S = OutᵀQ L⁻¹Into by blocks,   d = d⁰ + L⁻¹Into C w.
class CoupledFlow {
 public:
  /// Errors: ConfigError when E or an implicit step is singular.
  CoupledFlow(const CondensedSystem& system, const BlockClasses& classes, double tau,
              const std::vector<bool>& active);

  /// x in place. `u`: the inputs, null when none is driven. `supplied_J`: increased by τ uᵀBᵀz_mid;
  /// `dissipated_J` by block, null if nobody asks.
  void apply(const ForEach& each, double* x, const double* u, double& supplied_J,
             double* dissipated_J);
  double operations() const;
  /// What threads share of it.
  double shared_cost_ns() const;

 private:
  struct Member {
    const CondensedBlock* block = nullptr;
    bool active = false;  ///< otherwise at rest but for the coupling
    ColumnList into;      ///< L⁻¹Into
    ColumnList seen;      ///< QᵀOut
    ColumnList inputs;    ///< L⁻¹B
    ColumnList supply;    ///< QᵀB
    bool driven = false;
  };
  /// Active blocks that are solved together.
  struct LaneGroup {
    BlockGroup of;
    int size = 0;
    CouplingColumns columns;
    std::size_t work = 0;  ///< its place in work_: x, d, scratch, and two by column
  };
  void make_groups(const BlockClasses& classes, std::span<const int> blocks);
  void see_at_rest(const Member& member, const double* x, const double* u);
  template <class Algebra>
  void solve_group(const LaneGroup& lane_group, const double* x, const double* u);
  template <class Algebra>
  void finish_group(const LaneGroup& lane_group, double* x, double* dissipated_J);
  template <class Body>
  void for_groups(const ForEach& each, const Body& body);
  const BlockFlow& flow_of(const BlockGroup& lane_group) const {
    return *flows_[static_cast<std::size_t>(lane_group.block_class)];
  }

  const CondensedSystem& system_;
  double tau_;
  std::vector<Member> members_;                  ///< by block
  std::vector<std::optional<BlockFlow>> flows_;  ///< by class
  std::vector<LaneGroup> lane_groups_;
  std::vector<int> tasks_;
  LinearSolver channels_;  ///< I − S C
  ColumnList C_;           ///< by rows
  std::vector<double> w0_, w_, f_, scratch_;
  AlignedVector work_;
};

/// The exact midpoint maps of disjoint scalar couplings over τ, and the external inputs:
///   x ← Cayley(x + g/2) + g/2,   g = τ E⁻¹Bu.
class ScalarFlow {
 public:
  ScalarFlow(const CondensedSystem& system, double tau, std::span<const ScalarCoupling> couplings);

  void apply(double* x, const double* u, double& supplied_J) const;
  double operations() const { return 4.0 * static_cast<double>(pairs_.size()); }

  struct Pair {
    int row, column;
    double same, forward, backward;  ///< (1+s)/(1−s), 2j₂/(1−s), 2j₁/(1−s)

    /// The two states afterwards, from those before.
    void map(double a, double b, double& row_after, double& column_after) const {
      row_after = same * a + forward * b;
      column_after = backward * a + same * b;
    }
  };
  std::span<const Pair> pairs() const { return pairs_; }

 private:
  double power(const double* x, const double* u) const;

  double tau_;
  std::vector<Pair> pairs_;
  ColumnList inputs_;  ///< E⁻¹B of the whole
  ColumnList supply_;  ///< QᵀB
};

}  // namespace portwave
