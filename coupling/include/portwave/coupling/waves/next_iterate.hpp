#pragma once

#include <span>

#include "portwave/coupling/waves/anderson.hpp"
#include "portwave/coupling/waves/interface_solver.hpp"

namespace portwave {

/// The starting point of the next update after an evaluation of S, island by island. One of
///
///   plain      the update of the waves of the last evaluation,
///   combined   the same for a combination of the last evaluations (Anderson acceleration),
///   solved     the solution of the interface equation (quasi-Newton), permanently or, as a rescue of an
///              island that does not converge, for the rest of the step.
///
/// It also says which evaluation an island commits: a trial of the last two may be rejected.
///
/// A view of the iteration's objects. Different threads may call it for different islands.
class NextIterate {
 public:
  NextIterate() = default;
  /// Null: there is none.
  NextIterate(Acceleration* acceleration, InterfaceSolver* interface)
      : acceleration_(acceleration), interface_(interface) {}

  /// Whether some island may start from anything but its last evaluation.
  bool is_accelerated() const { return acceleration_ != nullptr; }
  bool may_solve() const { return interface_ != nullptr; }
  bool has_trials() const { return is_accelerated() || may_solve(); }
  Acceleration* acceleration() const { return acceleration_; }

  // Once an evaluation is measured. `gap_square` is |P S(u) − u|², `size` |P S(u)|².
  /// Where the evaluation of an island that is solved goes.
  InterfaceSolver::Evaluation trial(int island) const { return interface_->trial(island); }
  void measure(int island, const double* u, const double* exchanged) const {
    interface_->measure(island, u, exchanged);
  }
  /// Whether the evaluation stands.
  bool take(int island, double gap_square, double size) const {
    if (is_solved(island)) return interface_->accept(island, gap_square, size);
    if (acceleration_ == nullptr) return true;
    acceleration_->judge(island, gap_square);
    return acceleration_->sequence(island).stands();
  }
  /// Turns an island whose last evaluation, of `u` to `exchanged`, stands to the interface equation for the rest of
  /// the step. False if that is impossible.
  bool rescue(int island, const double* u, const double* exchanged, double gap_square,
              double size) const {
    if (!interface_->engage(island)) return false;
    if (acceleration_ != nullptr) acceleration_->sequence(island).abandon();
    interface_->measure(island, u, exchanged);
    return interface_->accept(island, gap_square, size);
  }
  /// |P S(u)|² of the first evaluation that the interface equation was solved from; 0: from none, so far.
  double first_size(int island) const {
    return interface_ != nullptr ? interface_->first_size(island) : 0.0;
  }
  /// Makes the next iterate of an island that is solved (InterfaceSolver::advance).
  InterfaceSolver::Effort solve(int island, const double* record,
                                InterfaceSolver::Effort most) const {
    return interface_->advance(island, record, most);
  }
  /// Renews the factors of a solved island for later solves, and makes the next iterate an average. False if it takes none.
  bool renew(int island, const double* record, const double* u, const double* exchanged) const {
    using Effort = InterfaceSolver::Effort;
    if (!interface_->rehearse(island, record, u, exchanged, Effort::renew)) return false;
    interface_->advance(island, record, Effort::average);
    return true;
  }
  /// Combinations that were rejected in this step.
  int rejections(int island) const {
    return acceleration_ != nullptr ? acceleration_->sequence(island).rejections() : 0;
  }

  /// The island takes the interface update in this step.
  bool is_solved(int island) const { return interface_ != nullptr && interface_->engaged(island); }
  /// The same, and it gets to its solution from any waves by one update.
  bool is_affine(int island) const {
    return interface_ != nullptr && interface_->is_affine(island);
  }
  /// Whether the last evaluation stands, or was a trial that is rejected.
  bool stands(int island) const {
    if (is_solved(island)) return interface_->stands(island);
    return acceleration_ == nullptr || acceleration_->sequence(island).stands();
  }
  /// Whether the evaluation in progress is at a trial, which may fail without harm.
  bool on_trial(int island) const {
    return (interface_ != nullptr && interface_->on_trial(island)) ||
           (acceleration_ != nullptr && acceleration_->sequence(island).on_trial());
  }
  /// P S(u) of the last evaluation that stands.
  const double* shadow(int island) const {
    return is_solved(island) ? interface_->shadow(island)
                             : acceleration_->shadow(acceleration_->sequence(island).base());
  }

  // The starting point of an island's next update.
  /// Not plain where there is an acceleration: slots and weights; empty: plain.
  std::span<const AndersonSequence::Term> combination(int island) const {
    const AndersonSequence& sequence = acceleration_->sequence(island);
    if (sequence.plain()) return {};
    return sequence.terms();
  }
  /// Whether the interface equation has made the next iterate, which is then `solution`.
  bool has_solution(int island) const {
    return interface_ != nullptr && interface_->active(island);
  }
  InterfaceSolver::Update solution(int island) const { return interface_->next(island); }

 private:
  Acceleration* acceleration_ = nullptr;
  InterfaceSolver* interface_ = nullptr;
};

}  // namespace portwave
