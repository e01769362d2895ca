#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Time limits of a macro-step, beside K and the tolerances of the method.
struct TimeBudget {
  /// A step is to be committed within this time of its beginning [s]; 0: no deadline.
  double deadline_s = 0.0;
  /// Simulated time per wall time: step n does not begin before (n − n₀) h / pace after the first
  /// one and is to be committed when the next one is due; 0: as fast as possible.
  double pace = 0.0;

  bool active() const { return deadline_s > 0.0 || pace > 0.0; }
};

/// Why an inner iteration ended.
enum class StopReason : std::uint8_t {
  budget,            ///< K evaluations were made
  tolerance,         ///< the residual tolerance was met on every island
  energy_tolerance,  ///< the energy tolerance was met on every island, or a mixture of the two
  deadline,          ///< time ran out
  /// A dynamic iteration stopped short of its tolerance: rounding keeps the change from falling.
  stalled,
};

/// How many reasons there are.
inline constexpr std::size_t kStopReasons = 5;

/// "budget", "tolerance", "energy_tolerance", "deadline", "round_off".
std::string_view to_string(StopReason reason);

/// What a kind of work takes: mean and spread of its samples, of which later ones count for more. A sample counts up
/// to three spreads off, so that one in which the processor was lost changes little, and a lasting change is learnt
/// from some tens of steps.
class WorkCost {
 public:
  /// Before there are samples, or in place of those there were [s].
  void expect(double guess_s) {
    mean_s_ = guess_s;
    spread_s_ = kGuess * guess_s;
    weight_ = kFirstWeight;
  }
  void add(double sample_s);
  double mean_s() const { return mean_s_; }
  double spread_s() const { return spread_s_; }
  /// Samples are longer a few times in a hundred.
  double most_s() const { return mean_s_ + kSpreads * spread_s_; }

  static constexpr double kSpreads = 2.0;
  static constexpr double kGuess = 0.125;  ///< spread of what was measured a few times, of its mean

 private:
  static constexpr double kFirstWeight = 0.125, kWeight = 1.0 / 32.0;
  double mean_s_ = 0.0, spread_s_ = 0.0, weight_ = kFirstWeight;
};

/// Decides how the time of a macro-step is spent, by mean and spread of what its work has taken: iterations are made
/// while, but for a few times in a hundred, the commit after them ends in time. The clock is read once per chunk of
/// iterations, and chunks shrink towards the deadline. If estimates that may be out of date allow no iteration for some
/// steps, one is tried all the same: after 8 steps, then after twice as many each time that it was indeed too long.
/// Solves that have become too expensive are likewise tried at the cost that they had in the rehearsal. Callers pass
/// times in: the class itself never reads a clock.
///
/// Where waves do not agree the guard acts, which takes as long as some iterations. What it takes after how many is
/// learnt, kept free, and where a step that stops ends late for it, and one that goes on sooner, the step goes on.
/// Where it is late since the processor was lost, it has the time that it would have had.
///
/// Where islands can solve their interface equation a step either does, as often as there is time, or makes
/// plain iterations alone: whichever leaves the smaller residual, as earlier steps have shown. The other is tried
/// now and then, ever more rarely while it stays the worse one.
///
/// One thread at a time may call it, except that `horizon`, `affords` and `took` may be called by several at
/// once.
class DeadlineScheduler {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  /// Prior guesses [s], used until there are measurements.
  DeadlineScheduler(double deadline_s, double iteration_s, double commit_s);

  /// Time for the steps to come [s].
  void set_deadline(double deadline_s) { deadline_s_ = deadline_s; }
  double deadline_s() const { return deadline_s_; }

  /// A macro-step begins. `late_s`: so much after it was due; what the step before ran over is the step's own doing.
  /// `least_s`: time for its iterations and its commit in any case, also where it then ends late [s].
  void begin(Time now, double late_s = 0.0, double least_s = 0.0);
  /// The step to come, or the one under way, has work that no other has had: it analyses a pattern, since a part has
  /// changed in kind. If that takes long it is no preemption.
  void expect_new_work() { has_new_work_ = true; }
  /// Time left in the step [s].
  double left_s(Time now) const {
    return deadline_s_ - std::chrono::duration<double>(now - begin_).count();
  }
  /// Whether work that took `work_s` once, or a few times, still ends in time.
  bool fits(Time now, double work_s) const;
  /// Whether this step solves interface equations, as far as `affords` says.
  bool solves() const { return solves_; }

  /// Total number of iterations that may be done before time must be checked again, `done` of at most
  /// `budget` being done. `done` itself: stop now.
  int horizon(int done, int budget, Time now) const;

  /// Cost of solving an interface equation, beside evaluations: with the existing factors, or with a new
  /// linearisation.
  enum class Solve : std::uint8_t { none, with_factors, new_factors };
  /// The most expensive solve that fits now, before one more iteration.
  Solve affords(Time now) const;
  /// Reports the time of a solve [s]: in a step, or in `rehearse` before the first one.
  void took(Solve what, double time_s) const;
  void rehearse(Solve what, double time_s);

  /// A step that is over.
  struct Outcome {
    int iterations = 0;
    Time inner_end{}, end{};  ///< of the iterations, and of the commit
    double guard_s = 0.0;     ///< time within the commit in which the guard acted [s]
    /// And in which the run was examined, or its impedances were, beside the steps [s].
    double examined_s = 0.0;
    double residual = 0.0;  ///< the largest of an island, at the last evaluation that stands
    bool converged = true;
    bool out_of_time = false;  ///< more time would have meant more iterations
  };
  /// Returns the slack, deadline − duration [s].
  double finish(const Outcome& step);
  /// The step that is over has gone on until `now`, with an examination. Returns its slack [s].
  double extend(Time now);

  /// What the guard takes where nothing is known of it yet [s]; 0: there is none.
  void expect_guard(double guess_s) { guess_of_guard_s_ = guess_s; }

  /// Current estimates [s].
  const WorkCost& iteration() const { return iteration_; }
  const WorkCost& commit() const { return commit_; }
  const WorkCost& start() const { return start_; }  ///< what comes before the first iteration
  const WorkCost& solve(Solve what) const {
    return solve_[what == Solve::new_factors ? 1 : 0].cost;
  }
  double iteration_s() const { return iteration_.mean_s(); }
  double first_iteration_s() const { return weight_of(0, 1) * iteration_s(); }
  double commit_s() const { return commit_.mean_s(); }
  /// Of a step with so many evaluations and, between them, solves with the existing factors.
  double step_s(int evaluations, bool solves) const {
    return weight_of(0, evaluations) * iteration_s() + commit_s() +
           (solves ? std::max(evaluations - 1, 0) * solve_[0].cost.mean_s() : 0.0);
  }

  struct Statistics {
    std::int64_t steps = 0;
    std::int64_t misses = 0;  ///< committed after the deadline
    /// Those among them in which some stretch between two clock readings took so much longer than usual that
    /// only losing the processor explains it.
    std::int64_t preempted_misses = 0;
    /// Of the others: in time but for the time in which the guard acted, or the run was examined.
    std::int64_t guard_misses = 0;
    /// Of the others: in time but for a late beginning, which was due to the step before.
    std::int64_t late_misses = 0;
    /// Of the others: an iteration, or a solve, was tried that did not seem to fit.
    std::int64_t trial_misses = 0;
    /// Mean share of the time that was left in steps that could have used it.
    double unused_share = 0.0;
    double worst_slack_s = 0.0;  ///< the smallest deadline − duration
    /// Slack quantiles over the last steps: 1 %, 50 %, 99 % [s].
    double slack_p01_s = 0.0, slack_p50_s = 0.0, slack_p99_s = 0.0;
    double jitter_s() const { return slack_p99_s - slack_p01_s; }
  };
  Statistics statistics() const;

 private:
  /// The residual that steps of a kind leave: a running mean of its logarithm.
  struct Left {
    double value = 0.0;
    bool is_known = false;
    void add(double sample);
  };
  /// What a solve takes, and took in the rehearsal [s]; and what those of the step have taken.
  struct SolveCost {
    static constexpr int kKept = 8;
    WorkCost cost;
    double rehearsed_s = 0.0;
    std::atomic<double> samples[kKept] = {};
    std::atomic<int> count{0};
    int known() const { return std::min(count.load(std::memory_order_relaxed), kKept); }
  };
  /// What the guard takes where it acts, and in which share of the steps it does: running means.
  struct GuardCost {
    double mean_s = 0.0, share = 0.0;
    bool is_known = false;
    double expected_s() const { return share * mean_s; }
    double usual_s() const { return share > 0.5 ? mean_s : 0.0; }
    void add(double sample_s, bool acts);
  };
  static constexpr int kLeastPatience = 8, kMostPatience = 1024;
  /// Steps until solves, or the other kind of steps, are tried again: without need, and where steps end unconverged.
  static constexpr int kMostPatienceAtRest = 8192, kMostPatienceInNeed = 256;

  void learn(int iterations, double inner_s);
  void learn_kind(const Outcome& step);
  void choose_kind(Time now);
  bool may_try_other() const;
  bool may_solve(Time now) const;
  double solve_s(int what) const;
  bool learn_solves(const Outcome& step);
  void count_miss(const Outcome& step, double inner_s, double commit_s, double slack_s);
  void note_slack(double slack_s);
  /// In steps that go on for so many evaluations, and may converge with the last; and in those that end unconverged.
  const GuardCost& guard(int evaluations) const {
    return guard_[std::min(evaluations, kCounts - 1)];
  }
  const GuardCost& guard_at_stop(int evaluations) const {
    return guard_at_stop_[std::min(evaluations, kCounts - 1)];
  }
  void learn_guard(const Outcome& step);
  double lost_s(Time now) const;
  /// Of evaluations after so many, in units of one that is not the first of its step.
  double weight_of(int done, int more) const {
    return more + (done == 0 && more > 0 ? first_.mean_s() - 1.0 : 0.0);
  }
  double end_s(double weight, double solve_s) const;
  bool goes_on(int done, int budget, double solve_s, Time now, double& extra_s) const;

  double deadline_s_;
  Time begin_{};
  double own_late_s_ = 0.0;     // what the step before ran over
  bool late_by_loss_ = false;   // since the processor was lost in it
  bool was_preempted_ = false;  // the last step that was missed
  bool has_new_work_ = false;
  double last_slack_s_ = 0.0;
  double least_s_ = 0.0;  // that the step has in any case
  int starved_ = 0;       // consecutive steps without an iteration
  int patience_ = kLeastPatience;
  bool is_trial_ = false;  // the step may make one that does not seem to fit
  // State of the step: the last clock reading, and whether a chunk of iterations took far too long.
  mutable std::atomic<Time> last_check_{}, first_check_{};
  mutable std::atomic<int> last_done_{0}, granted_{0};
  mutable std::atomic<int> starts_{0};  // island groups that have begun by themselves
  bool is_one_start_ = false;           // in the last step: all evaluations are of the whole system
  mutable std::atomic<bool> lost_time_{false}, has_begun_{false};
  // Time in which the processor was lost, or so it seems, before the last clock reading [s]; and what is given to the
  // step beyond its deadline, since it ends late whatever it does [s].
  mutable std::atomic<double> lost_s_{0.0}, extra_s_{0.0};
  WorkCost start_, iteration_, commit_;
  WorkCost first_;  // what the first evaluation of a step takes, over any other: caches are cold
  mutable std::atomic<double> first_took_s_{0.0};  // in this step, where it was timed by itself
  bool knows_start_ = false, knows_first_ = false;
  static constexpr int kCounts = 16;
  GuardCost guard_[kCounts], guard_at_stop_[kCounts];  // by evaluations
  double guess_of_guard_s_ = 0.0;
  // Solves: cost of each kind; total in this step.
  mutable SolveCost solve_[2];
  bool is_solve_trial_ = false;  // they may take what they took in the rehearsal
  int until_solve_ = kLeastPatience, solve_patience_ = kLeastPatience;
  mutable std::atomic<double> solved_s_{0.0};
  mutable std::atomic<double> seen_solved_s_{0.0};  // at the last clock reading
  // Kinds of steps: plain, solving.
  Left left_[2];
  bool prefers_solves_ = true, solves_ = true;
  bool is_of_other_kind_ = false;  // the step is a trial of the other kind
  std::int64_t since_other_ = 0;   // steps without convergence since the last trial
  int until_other_ = kLeastPatience,
      other_patience_ = kLeastPatience;  // steps until the other is tried
  std::int64_t steps_ = 0;
  Statistics counted_;
  double unused_ = 0.0;  // sum of shares
  std::int64_t could_use_ = 0;
  std::vector<double> slack_;
};

}  // namespace portwave
