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

/// Decides how the time of a macro-step is spent. Costs are running quantiles over earlier steps, so that a
/// preempted step does not spoil the estimate; the clock is read once per chunk of iterations, and chunks shrink
/// towards the deadline. If estimates that may be out of date allow no iteration for some steps, one is tried
/// all the same: after 8 steps, then after twice as many each time that it was indeed too long. Solves that have
/// become too expensive are likewise tried at the cost that they had in the rehearsal. Callers pass times in: the
/// class itself never reads a clock.
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
  /// `aside_s`: own work after the commit, for which time is kept where there is enough.
  void begin(Time now, double late_s = 0.0, double aside_s = 0.0);
  /// Time left in the step [s].
  double left_s(Time now) const {
    return deadline_s_ - std::chrono::duration<double>(now - begin_).count();
  }
  /// Whether work that usually takes `work_s` still ends in time.
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

  /// Current estimates [s].
  double iteration_s() const { return iteration_.value; }
  double commit_s() const { return commit_.value; }
  /// Of a step with so many evaluations and, between them, solves with the existing factors.
  double step_s(int evaluations, bool solves) const {
    return evaluations * iteration_s() + commit_s() +
           (solves ? std::max(evaluations - 1, 0) * solve_[0].cost.value : 0.0);
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
  /// Quantile of the last kWindow samples, recomputed every few samples.
  struct RunningQuantile {
    static constexpr int kWindow = 128;
    double level = 0.9;
    double value = 0.0;
    double prior = 0.0;  ///< a guess, as good as a sample at first
    std::vector<double> samples;
    std::int64_t count = 0;
    std::vector<double> sorted;

    void begin_with(double guess) { value = prior = guess; }
    void add(double sample);
    /// The next sample is the first, and as good as the one after it.
    void forget(double guess) {
      samples.clear();
      count = 0;
      prior = guess;
    }
  };

  /// The residual that steps of a kind leave: a running mean of its logarithm.
  struct Left {
    double value = 0.0;
    bool is_known = false;
    void add(double sample);
  };
  /// What a solve takes, and took in the rehearsal [s].
  struct SolveCost {
    RunningQuantile cost;
    double rehearsed_s = 0.0;
  };
  static constexpr int kLeastPatience = 8, kMostPatience = 1024;
  /// Steps until solves, or the other kind of steps, are tried again: without need, and where steps end unconverged.
  static constexpr int kMostPatienceAtRest = 8192, kMostPatienceInNeed = 256;

  void learn(int iterations, double inner_s);
  void learn_kind(const Outcome& step);
  void choose_kind(Time now);
  bool may_solve(Time now) const;
  double solve_s(int what) const;
  bool learn_solves(const Outcome& step);
  void count_miss(const Outcome& step, double inner_s, double commit_s, double slack_s);
  void note_slack(double slack_s);
  double left_for_iterations(Time now) const;
  double left_for_solves(Time now) const;
  double commit_reserve() const;

  double deadline_s_;
  Time begin_{};
  double own_late_s_ = 0.0;     // what the step before ran over
  bool late_by_loss_ = false;   // since the processor was lost in it
  bool was_preempted_ = false;  // the last step that was missed
  double aside_s_ = 0.0;
  double last_slack_s_ = 0.0;
  int starved_ = 0;  // consecutive steps without an iteration
  int patience_ = kLeastPatience;
  bool is_trial_ = false;  // the step may make one that does not seem to fit
  // State of the step: the last clock reading, and whether a chunk of iterations took far too long.
  mutable std::atomic<Time> last_check_{};
  mutable std::atomic<int> last_done_{0};
  mutable std::atomic<bool> lost_time_{false};
  RunningQuantile iteration_, quick_iteration_, commit_, usual_commit_, guard_;
  // Solves: cost of each; total and longest in this step.
  SolveCost solve_[2];
  bool is_solve_trial_ = false;  // they may take what they took in the rehearsal
  int until_solve_ = kLeastPatience, solve_patience_ = kLeastPatience;
  mutable std::atomic<double> solved_s_{0.0}, most_[2] = {};
  mutable std::atomic<double> seen_solved_s_{0.0};  // at the last clock reading
  // Kinds of steps: plain, solving.
  Left left_[2];
  bool prefers_solves_ = true, solves_ = true;
  bool is_of_other_kind_ = false;  // the step is a trial of the other kind
  int until_other_ = kLeastPatience,
      other_patience_ = kLeastPatience;  // steps until the other is tried
  std::int64_t steps_ = 0;
  Statistics counted_;
  double unused_ = 0.0;  // sum of shares
  std::int64_t could_use_ = 0;
  std::vector<double> slack_;
};

}  // namespace portwave
