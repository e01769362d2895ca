#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "portwave/runtime/output/progress.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/step_agreement.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Repeats a run with finer steps and compares all states at the ends of its steps.
class StepComparison {
 public:
  /// How much of a run is compared: its beginning, by counts, so that a comparison takes about a second at
  /// most; all of it; or nothing.
  enum class Extent { beginning, whole, none };
  /// What a part's motion is beside all energy of its island. Unseen: judged, but so small beside the motion of others
  /// that steps which choose their size follow it neither here nor in the finer run.
  enum class Motion : char { judged, unseen, too_small, rounding };

  /// Of a run of `scenario` with `options`. Both must outlive it, and stay as they are.
  StepComparison(const Scenario& scenario, const StepperOptions& options, Extent extent);

  /// After each step, from the first one on; cheap. A run that is not told whole is stepped again.
  void record(const Stepper& stepper);

  /// Runs the same with finer steps, without a time budget. Empty where there is nothing to compare: nobody
  /// asked, the steps cannot be finer, or the run was interrupted. `steps`: of the run; more than it can have
  /// with chosen steps that were not told. `moved_J`: energy that it supplied or dissipated; less than
  /// rounding of it is not compared.
  /// Errors: StepError and ConfigError of the run itself where it was not told.
  std::optional<StepAgreement> finish(std::int64_t steps, double moved_J = 0.0,
                                      const PhaseCallback& listener = {});

  /// After `finish`, of steps of one size: whether all states are those of a run with steps of half the size and three
  /// damped stages, to a two-hundredth of their ranges, or at every instant to a fiftieth. Two conserving stages leave where it is what decays far faster
  /// than they step, in the run as in the finer one; with damped stages it dies.
  bool holds_with_damped_stages() const;

 private:
  /// What the first finer run leaves open of a state.
  struct Doubt {
    bool is_small = false;     ///< it is too small to be judged by it, or unseen
    double off = 0.0;          ///< it differs there by this of its own range, for some instants
    double off_at_once = 0.0;  ///< likewise, at any instant
    bool is_known =
        false;  ///< two runs of parts that meet the tolerance each agree on how it moves
  };
  using Rows = std::vector<double>;

  /// Enough to be stepped again in quarter steps of three stages.
  bool is_short() const;
  bool is_full() const { return last_step_ >= steps_most_; }
  void keep(const Stepper& stepper);
  void see_waves(const Stepper& stepper);
  void thin_out();
  /// The run itself, without a time budget.
  void run_again(std::int64_t steps);
  StepperOptions finer_options() const;
  std::vector<Motion> motion_of(const Stepper& finer, const std::vector<double>& values) const;
  /// The same with damped stages of the highest order; empty where there are none.
  std::optional<StepperOptions> damped_options() const;
  struct DampedRun {
    Rows rows;
    std::vector<double> ranges;  // by state
  };
  /// In half or in quarter steps.
  DampedRun damped_run(bool in_quarters) const;
  std::pair<double, std::size_t> largest_difference(const DampedRun& other) const;
  void judge_instant(StepAgreement& out) const;
  /// `damps_less`: whether the run with `finer` conserves states that this run damps throughout.
  StepAgreement compare(const StepperOptions& finer, bool& damps_less) const;
  std::optional<StepAgreement> compare_with_damped(bool in_quarters) const;
  std::optional<StepAgreement> second_opinion() const;
  /// Of states that are too small to be judged by the first finer run, or that rest: whether finer runs whose parts
  /// meet the tolerance each agree on how they move, and this run does not. `rows`: of the run with `finer`,
  /// and how its parts move.
  void look_beneath(StepAgreement& out, const StepperOptions& finer, const Rows& rows,
                    const std::vector<Motion>& motion, std::vector<Doubt>& doubts) const;
  /// Rows of another run at the same times; fewer where it is interrupted, fails, or takes far more steps.
  Rows rows_of(const StepperOptions& options, std::vector<Motion>& motion) const;

  const Scenario& scenario_;
  const StepperOptions& options_;
  std::size_t states_ = 0;
  std::int64_t steps_most_ = 0;  // compared; 0: nothing is
  bool is_too_large_ = false;
  bool is_told_whole_ = true;
  bool is_of_first_order_ = false;
  bool has_halved_ = false;  // steps, of itself
  int stages_ = 1;
  std::vector<std::uint64_t> damped_;  // states, by part; empty: none
  std::vector<double> waves_J_;        // the most of a step that was looked at, by island
  double energy_J_ = 0.0;
  double evaluations_ = 0.0;    // per step
  std::int64_t last_step_ = 0;  // told
  std::int64_t stride_ = 1;     // steps between rows that are kept
  std::vector<double> times_;   // of these rows
  std::vector<double> values_;  // states_ of each
};

}  // namespace portwave
