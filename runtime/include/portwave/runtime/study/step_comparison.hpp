#pragma once

#include <cstdint>
#include <optional>
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
  /// What a part's motion is beside all energy of its island.
  enum class Motion : char { judged, too_small, rounding };

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

 private:
  bool is_full() const { return last_step_ >= steps_most_; }
  void keep(const Stepper& stepper);
  void thin_out();
  /// The run itself, without a time budget.
  void run_again(std::int64_t steps);
  StepperOptions finer_options() const;
  std::vector<Motion> motion_of(const Stepper& finer, const std::vector<double>& values) const;
  StepAgreement compare(const StepperOptions& finer) const;
  /// Of states that are too small to be judged by themselves, or that rest: whether finer runs whose parts meet the
  /// tolerance each agree on how they move, and this run does not. `finer_values`: rows of the run with `finer`.
  void look_beneath(StepAgreement& out, const StepperOptions& finer,
                    const std::vector<double>& finer_values,
                    const std::vector<bool>& is_too_small) const;

  const Scenario& scenario_;
  const StepperOptions& options_;
  std::size_t states_ = 0;
  std::int64_t steps_most_ = 0;  // compared; 0: nothing is
  bool is_too_large_ = false;
  bool is_told_whole_ = true;
  bool is_of_first_order_ = false;
  double energy_J_ = 0.0;
  double evaluations_ = 0.0;    // per step
  std::int64_t last_step_ = 0;  // told
  std::int64_t stride_ = 1;     // steps between rows that are kept
  std::vector<double> times_;   // of these rows
  std::vector<double> values_;  // states_ of each
};

}  // namespace portwave
