#pragma once

#include <span>
#include <vector>

#include "portwave/coupling/energy/guarded_accounts.hpp"
#include "portwave/coupling/energy/ledger.hpp"
#include "portwave/coupling/waves/chunk_loop.hpp"
#include "portwave/coupling/waves/extended_sums.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/subsystems/base/aligned.hpp"

namespace portwave {

class StateArchive;

/// The largest α ∈ [0, 1] with T + ½|b⁰ + αDâ|² − ½α²|â|² ≥ 0, for T + ½|b⁰|² ≥ 0 and a negative
/// value at α = 1; 0 when T + ½|b⁰|² < 0. The arguments are the coefficients of that quadratic in α,
/// evaluated without cancellation.
double largest_feasible_scaling(double A0, double A1, double A2);

/// The passivity guard: ensures that no commit takes more from an island's tank than is in it, and that
/// none has waves that no energy can pay for.
///
/// It checks a step that is committed to the next record but not yet recorded in the ledger. If the inner
/// iteration of an island met its tolerance, a deficit of the tank is due to that tolerance: the waves are
/// changed by no more than the iteration's own gap, and the remaining deficit is *tolerated*, an entry of its
/// own in the account (`tolerated`). Any other island whose tank would fall below zero, or whose waves are
/// too loud (GuardedAccounts::is_too_loud), is committed again with other incident waves a in place of â:
///   all parts linear    those nearest to â that the tank can pay for, along the gradient of
///                       m(a) = ½|S(a)|² − ½|a|² if that reaches far enough, else by its exact projection.
///                       The exact solution u† of the interface has m = 0, so |a − â| ≤ 2|u† − â|;
///   otherwise           where the commit is nearly balanced, |P b − â| ≤ 1e-3 |â|, those towards which the
///                       iteration moves, â + s(P b − â), s ≤ 4;
///   where that fails    αâ with the largest feasible α in [0, 1] (within about 2 per cent of 1 − α where
///                       parts are nonlinear): in closed form, or by a safeguarded secant of
///                       √(|S(αâ)|² + 2T) − α|â|, which does not increase with α where S is nonexpansive; at
///                       most 12 trial commits, and then one more with the best of them or, if none is
///                       feasible, α = min(1, √(2T)/|â|), which is.
/// Waves that are too loud are scaled at once to the energy available.
/// A step in which no island overdraws costs nothing but the sums that the ledger takes anyway.
/// Proof: docs/concepts/energy-safety.md. Allocates at construction only, except for linear parts with
/// more than two ports whose tanks the gradient does not fill, and those with more than eight.
///
///   if (guard.begin(ledger, record, step, gap_J)) do { guard.propose(a); commit and tally again the islands
///   of guard.searching(); } while (!guard.review(ledger, step));
class PassivityGuard {
 public:
  static constexpr int kMaxTrials = 12;
  /// The longest way towards P b, in units of P b − â.
  static constexpr double kFarthest = 4.0;

  /// `slices`: if `waves` are of a slice, the object that finds sums of the whole. All ranks then make the
  /// same calls and the same decisions.
  explicit PassivityGuard(const WaveDiscretisation& waves, SlicesTogether* slices = nullptr);

  const WaveDiscretisation& waves() const { return waves_; }
  /// Sets helpers for islands with many parts, as ChunkLoop does. No result depends on them.
  void share_with(const ForEach* for_each, int threads) {
    sums_.share_with(for_each, threads);
    loop_.share_with(for_each, threads);
  }
  /// The island of a part whose commit failed; with slices, the part is numbered as in the whole.
  int island_of(int part) const;
  /// `gap_J` of an island whose inner iteration did not meet its tolerance, or that has no tolerance.
  static constexpr double kMissed = -1.0, kNotJudged = -2.0;

  /// Called after a tally. Returns whether some island is to be committed again. `record`: the record at
  /// which the step was frozen. `gap_J`, by island: ½|P b̂ − u|² of an inner iteration that met its
  /// tolerance, or one of the two constants above; empty: kNotJudged for all islands.
  bool begin(const GuardedAccounts& ledger, const double* record, const CommittedStep& step,
             std::span<const double> gap_J = {});
  /// Changes `a` on the islands that are searched.
  void propose(double* a);
  /// Resets the results to those for a step without defects.
  void forget();
  /// By island: whether it is to be committed again.
  std::span<const char> searching() const { return searching_; }
  /// Called after the next tally. Returns true when every island is settled.
  bool review(const GuardedAccounts& ledger, const CommittedStep& step);

  /// Replaces a review when a trial commit has failed on an island: the trial counts as infeasible.
  /// False if there is no other trial.
  bool reject(int island);

  /// Time is short, until the step is settled: the first commit that is feasible stands, those that are not are
  /// followed by at most kHurriedTrials others, each twice as far from â, and then by the one that needs no trial.
  static constexpr int kHurriedTrials = 2;
  void hurry() { is_hurried_ = true; }

  /// The uses in the step just settled; the smallest alpha, and the total withheld.
  std::span<const GuardUse> uses() const { return uses_; }
  double alpha() const { return alpha_; }
  double withheld_J() const { return withheld_J_; }
  /// The deficits that the ledger is to tolerate.
  std::span<const ToleratedDeficit> tolerated() const { return tolerated_; }
  /// Counts the settled step, once it is closed, as number `step`.
  void count(std::int64_t step);
  const GuardStatistics& statistics() const { return statistics_; }

  std::size_t bytes() const;
  /// The state of the guard between two steps.
  void archive(StateArchive& archive);

 private:
  /// Largest excess of withholding over the necessary amount, as a share of 1 − α.
  static constexpr double kExcess = 0.02;

  enum class Path {
    none,     ///< not chosen yet
    stays,    ///< â, its deficit being tolerated
    nearest,  ///< â + s·direction, the nearest feasible point of linear parts
    onward,   ///< the same towards P b
    scaling,  ///< αâ
  };
  struct Search {
    int island = 0;
    Path path = Path::none;
    double tank = 0.0;        // T; round-off may have left it a little below zero
    double mismatch = 0.0;    // m(â)
    double incident = 0.0;    // |â|
    double most = 1.0;        // largest α whose waves are not too loud
    double gap = kNotJudged;  // size of the gap if the tolerance was met; else one of the constants
    double deficit = 0.0;     // −(T + m) at the last commit, T ≥ 0
    double paid = 0.0;        // energy available
    double length = 0.0;      // of the direction
    double reach = 1.0;       // s
    int attempts = 0;         // commits on the present path
    // Scaling.
    double psi_full = 0.0;    // ψ(1)
    double square = 0.0;      // |S(αâ)|² of the last commit
    double alpha = 1.0;       // of the last or next commit
    double infeasible = 1.0;  // smallest α found infeasible
    double bound = 1.0;       // no feasible α lies above
    double best = -1.0;       // largest feasible α tried
    double previous = 1.0;    // another point of the secant
    double psi_previous = 0.0;
    double slope = 0.0;  // of ψ, last estimate
    int trials = 0;
    int hurried = 0;  // trials since time is short
    bool closed_form = false;
    bool last = false;  // the next commit is final

    bool is_met() const { return gap >= 0.0; }
    /// Largest deficit that a met tolerance explains: |m| ≤ |â||P b − â| + ½|P b − â|², with a margin for the
    /// difference between the responses to â and to u, and for the error of port solvers.
    double explained() const {
      return 10.0 * gap * (incident + 0.5 * gap) + 1e-12 * incident * incident;
    }
    /// The distance by which waves may be moved that have met their tolerance.
    double leeway() const { return kFarthest * gap; }
  };

  bool is_affine(const Search& search) const {
    return affine_[static_cast<std::size_t>(search.island)] != 0;
  }
  void find_affine();
  template <class Visit>
  void for_waves(int island, const Visit& visit);
  void begin_searches(const CommittedStep& step, const GuardedAccounts& ledger);
  void find_gaps(const CommittedStep& step);
  void choose_paths(const CommittedStep& step, const GuardedAccounts& ledger);
  bool may_go(const Search& search, double way, double most) const;
  bool tolerate(const GuardedAccounts& ledger, const CommittedStep& step, const Search& search);
  void exchange(const double* b);
  template <class Wanted, class Add>
  void find_sums(const Wanted& wanted, const Add& add);
  template <class Wanted>
  void ask_for(const Wanted& wanted);
  void add_gradients(ExtendedSums::Terms& squares, std::span<const int> parts, const double* b);
  void find_gradients(const double* b);
  bool leads_far_enough(Search& search, long double square, long double image) const;
  bool find_projection(Search& search, const double* b);
  void find_onward(const double* b);
  void begin_scaling(Search& search);
  double linear_scaling(const Search& search);
  void add_squares(long double& sum, int part, const double* waves) const;
  double psi(const Search& search, double square) const;
  void choose_next(Search& search, double value) const;
  void choose_last(Search& search) const;
  bool try_further(Search& search, double deficit_before, const GuardedAccounts& ledger,
                   const CommittedStep& step);
  bool settle_scaling(Search& search, bool feasible, double value);
  void shorten(Search& search, double last_alpha);
  void note_use(const GuardedAccounts& ledger, const Search& search);

  const WaveDiscretisation& waves_;
  const PartOrderReduction& parts_;
  SlicesTogether* slices_;
  ExtendedSums sums_;
  ChunkLoop loop_;
  std::vector<int> asked_;    // islands
  std::vector<char> affine_;  // by island
  std::vector<char> searching_;
  std::vector<Search> searches_;
  AlignedVector full_;       // â
  AlignedVector direction_;  // a − â for s = 1
  AlignedVector exchanged_;  // P b
  bool has_exchanged_ = false;
  bool is_hurried_ = false;
  const double* record_ = nullptr;
  std::vector<double> matrix_;               // D of one
  std::vector<double> weight_, reflection_;  // of the projection, by wave of an island
  double alpha_ = 1.0;
  double withheld_J_ = 0.0;
  std::vector<GuardUse> uses_;
  std::vector<ToleratedDeficit> tolerated_;
  std::int64_t trials_ = 0;
  GuardStatistics statistics_;
};

}  // namespace portwave
