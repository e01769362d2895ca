#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <vector>

#include "parallel/executors/executor.hpp"
#include "portwave/runtime/parallel/partition.hpp"

namespace portwave {

/// How island groups of different size share the time of a step under a deadline: the next evaluation is due where
/// it is expected to remove most of the gap, in joules per second,
///   gain = gap (1 − ρ) / c,
/// with the gap ½|P b̂ − u|² after the last evaluation, the factor ρ by which evaluations have multiplied it of late
/// (a running geometric mean over this step and earlier ones), and the cost c of an evaluation of the group. Before the
/// first evaluation of a step the gap is what earlier steps had before theirs, and grows with the square of the number
/// of steps in which the group was left out. Of equal gains the first group's counts, so that steps in simulated time
/// repeat to the bit. Only for iterations that measure gaps.
///
/// One thread at a time may call it, except that `note` and `leaves_to_others` may be called for different groups by
/// several. Neither allocates.
class GapShares {
 public:
  /// `shares`: of an evaluation of the whole system, by group; their sum is 1. `threads` make evaluations, those of a
  /// group as many as it has tasks; none given: one each.
  explicit GapShares(std::vector<double> shares, int threads = 1, std::vector<int> tasks = {});

  /// Groups whose comparison with one another an evaluation does not notice.
  static constexpr int kMostCompared = 256;

  /// Whether groups are evaluated as often as their gaps deserve in a step with this plan, and not equally often.
  bool is_for(const StepPlan& plan) const {
    return plan.deadline != nullptr && plan.recommit.empty() && plan.rule.checked() && size() > 1;
  }

  int size() const { return static_cast<int>(shares_.size()); }
  double share(int group) const { return shares_[static_cast<std::size_t>(group)]; }

  /// A step begins, with all groups in the heap, in which an evaluation of the whole system takes `round_s` [s] of one
  /// thread.
  void begin(double round_s);
  /// An evaluation of the group was made, and took `took_s`; 0: not measured. `gap_J`: what is left, of its
  /// islands that go on.
  void note(int group, double gap_J, bool goes_on, double took_s = 0.0);
  /// The same, with the gap in these outcomes.
  void note(int group, std::span<const int> islands, std::span<const IslandOutcome> outcomes,
            bool goes_on, double took_s = 0.0);
  /// No further evaluation of the group in this step.
  void leave(int group) { at(group).goes_on.store(false, std::memory_order_relaxed); }
  /// The step is over: groups without an evaluation were left out. What the scheduler of the plan is to learn is the
  /// time of an evaluation of the whole system: those that groups have not made count as made.
  void end(const StepPlan& plan);

  /// Takes out the group with the largest gain, of those that go on; −1: there is none. It comes back by `put_back`.
  /// A heap: of very many small groups the best is found in a time that an evaluation does not notice.
  int take_best();
  void put_back(int group);
  /// After an evaluation of all: puts those that go on into the heap, and no others.
  void sort();
  /// For executors that evaluate groups in turn. Whether this one gains more than any other that goes on.
  bool gains_most(int group) const;
  /// Whether the groups that gain more than this one, until they gain as little, need all of the `left_s` that
  /// each thread has: then it stops, since these executors cannot resume it.
  bool leaves_to_others(int group, double left_s) const;

  bool goes_on(int group) const { return at(group).goes_on.load(std::memory_order_relaxed); }
  /// Expected fall of the gap [J/s].
  double gain(int group) const { return at(group).gain.load(std::memory_order_relaxed); }
  /// Of an evaluation of the group [s].
  double cost_s(int group) const { return at(group).cost_s.load(std::memory_order_relaxed); }
  int evaluations(int group) const { return at(group).evaluations.load(std::memory_order_relaxed); }

 private:
  struct alignas(64) Group {
    std::atomic<double> gain{0.0};
    double gap_J = 0.0;
    std::atomic<double> log_factor{-0.7};  ///< ln ρ: one half before anything is known
    std::atomic<double> cost_s{0.0};
    std::atomic<bool> goes_on{true};
    bool is_known = false;            ///< it has been evaluated in some step
    bool is_measured = false;         ///< its cost has
    double first_J = 0.0;             ///< gap after the first evaluation of a step
    std::atomic<int> evaluations{0};  ///< in this step
    int left_out = 0;                 ///< steps since it was evaluated
  };
  void rate(Group& group, double gap_J);
  bool comes_after(int one, int other) const;
  const Group& at(int group) const { return groups_[static_cast<std::size_t>(group)]; }
  Group& at(int group) { return groups_[static_cast<std::size_t>(group)]; }

  std::vector<double> shares_;
  std::vector<Group> groups_;
  std::vector<int> heap_;
  int threads_;
  std::vector<int> tasks_;
};

/// What each has of the sum of costs.
std::vector<double> shares_of(std::vector<double> costs);
/// The shares of the island groups of a partition, by the costs of its tasks.
std::vector<double> shares_of_groups(const Partition& partition, int groups);

}  // namespace portwave
