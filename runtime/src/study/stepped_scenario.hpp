#pragma once

#include <optional>

#include "portwave/coupling/system/derived_systems.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "step/staged_run.hpp"
#include "step/stepper_options.hpp"

namespace portwave {

/// Errors: ConfigError where steps choose their size.
inline void refuse_chosen_steps(const Scenario& scenario) {
  if (!scenario.options.sizes) return;
  throw ConfigError("/time/step",
                    "here all steps are of one size; give it one:\n"
                    "--set '/time={\"step_s\": 0.01, \"end_s\": 10}'");
}

/// For runs that are compared with a solution that knows no impulses: states at odds are refused.
inline Start start_beside_a_reference(const StepperOptions& options) {
  return options.start == Start::consistent ? Start::refuse : options.start;
}

/// Errors: ConfigError where signals drive inputs. What a study compares with takes them as functions
/// of time.
inline void refuse_signals(const Scenario& scenario) {
  if (scenario.options.signals == nullptr) return;
  throw ConfigError("/signals",
                    "this study takes inputs as functions of time only, and here signals drive "
                    "some of them: \"portwave run\" and \"study scaling\" sample them");
}

/// A scenario as waves step it: as it is, or with more than one stage that of the staged system, to
/// which impedances and rates belong. Nothing is observed of it.
class SteppedScenario {
 public:
  /// `scenario` must outlive it. Errors: ConfigError of staged_system.
  explicit SteppedScenario(const Scenario& scenario) : given_(scenario) {
    refuse_chosen_steps(scenario);
    if (!scenario.options.method.couples_by_waves()) return;
    const bool is_staged =
        scenario.options.method.waves().stages != 1 || has_substeps(scenario.system);
    if (is_staged) refuse_signals(scenario);
    StepperOptions options = scenario.options;
    options.method.waves().stages = chosen_stages(scenario.system, options);
    StagedRun run(scenario.system, options);
    if (run.is_as_given()) return;
    options = run.options();
    options.method.waves().stages = 1;
    options.method.waves().by_stepped_port = false;
    staged_.emplace(Scenario{scenario.name, run.take_stepped(), std::move(options), scenario.steps,
                             scenario.end_s});
  }

  SteppedScenario(const SteppedScenario&) = delete;
  SteppedScenario& operator=(const SteppedScenario&) = delete;

  const Scenario& get() const { return staged_ ? *staged_ : given_; }

 private:
  const Scenario& given_;
  std::optional<Scenario> staged_;
};

}  // namespace portwave
