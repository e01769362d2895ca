#pragma once

#include <span>
#include <vector>

#include "portwave/coupling/energy_book.hpp"
#include "portwave/coupling/ledger.hpp"
#include "portwave/coupling/part_list.hpp"
#include "portwave/coupling/wave_discretisation.hpp"
#include "portwave/subsystems/aligned.hpp"

namespace portwave {

/// The largest α ∈ [0, 1] with T + ½|b⁰ + αDâ|² − ½α²|â|² ≥ 0, for T + ½|b⁰|² ≥ 0 and a negative
/// value at α = 1; 0 when T + ½|b⁰|² < 0. Given the coefficients of that quadratic in α, evaluated
/// without cancellation.
double largest_feasible_scaling(double A0, double A1, double A2);

/// The passivity guard: sees to it that no commit takes more from an island's tank than is in it.
///
/// It looks at a step that is committed to the next record but not yet booked. An island whose tank
/// would fall below zero is committed again with αâ in place of â, α the largest feasible number in
/// [0, 1] (within about 2 per cent of 1 − α where parts are nonlinear):
///   all parts linear   in closed form from b⁰ and S(â);
///   otherwise          a safeguarded secant of √(|S(αâ)|² + 2T) − α|â|, which does not increase with
///                      α where S is nonexpansive; at most 12 trial commits, and then one more with
///                      the best of them or, if none is feasible, α = min(1, √(2T)/|â|), which is.
/// A step in which no island overdraws costs nothing but the sums that the ledger takes anyway.
/// Proof: docs/concepts/energy-safety.md. Allocates at construction only.
///
///   if (guard.begin(book, record, a, b)) do { guard.propose(a); commit and tally again the islands
///   of guard.searching(); } while (!guard.review(book, a, b));
class PassivityGuard {
 public:
  static constexpr int kMaxTrials = 12;

  explicit PassivityGuard(const WaveDiscretisation& waves);

  /// After a tally: whether some island overdraws. `record` is the one the step was frozen at.
  bool begin(const EnergyBook& book, const double* record, const double* a, const double* b);
  /// Scales `a` on the islands that are searched.
  void propose(double* a);
  /// By island: whether it is to be committed again.
  std::span<const char> searching() const { return searching_; }
  /// After the next tally. True when every island is settled.
  bool review(const EnergyBook& book, const double* a, const double* b);

  /// Instead of a review, when a trial commit has failed on an island: it is taken for infeasible.
  /// False where no other is left to try.
  bool reject(int island);

  /// Of the step just settled: every use; smallest α, and Σ ½(1 − α²)|â|².
  std::span<const GuardUse> uses() const { return uses_; }
  double alpha() const { return alpha_; }
  double withheld_J() const { return withheld_J_; }
  /// Counts the settled step, once it is booked.
  void count();
  const GuardStatistics& statistics() const { return statistics_; }

  std::size_t bytes() const;

 private:
  struct Search {
    int island = 0;
    double tank = 0.0;        // T; round-off may have left it a little below zero
    double incident = 0.0;    // |â|
    double alpha = 1.0;       // of the last or next commit
    double infeasible = 1.0;  // smallest α found to be so
    double bound = 1.0;       // no feasible α lies above
    double best = -1.0;       // largest feasible α tried
    double previous = 1.0;    // another point of the secant
    double psi_previous = 0.0;
    double slope = 0.0;  // of ψ, last estimate
    int trials = 0;
    bool closed_form = false;
    bool last = false;  // what is committed next is final
  };

  double linear_scaling(const Search& search, const EnergyBook& book, const double* record,
                        const double* b);
  double squares(int island, const double* waves) const;
  double psi(const Search& search, const double* b) const;
  void choose_next(Search& search, double value) const;
  void choose_last(Search& search) const;
  bool settle(Search& search, bool feasible, double value);

  const WaveDiscretisation& waves_;
  IslandParts parts_;
  std::vector<char> affine_;  // by island
  std::vector<char> searching_;
  std::vector<Search> searches_;
  AlignedVector full_;          // â
  std::vector<double> offset_;  // b⁰ of a part
  double alpha_ = 1.0;
  double withheld_J_ = 0.0;
  std::vector<GuardUse> uses_;
  std::int64_t trials_ = 0;
  GuardStatistics statistics_;
};

}  // namespace portwave
