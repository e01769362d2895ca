#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "portwave/coupling/energy/certificate.hpp"
#include "portwave/coupling/method/method.hpp"
#include "portwave/coupling/method/number_range.hpp"
#include "portwave/runtime/parallel/arena.hpp"
#include "portwave/runtime/parallel/budget.hpp"
#include "portwave/runtime/parallel/executor_kind.hpp"
#include "portwave/runtime/parallel/grain.hpp"
#include "portwave/runtime/parallel/profile.hpp"
#include "portwave/runtime/ranks/ranks.hpp"
#include "portwave/runtime/signals/signal_graph.hpp"
#include "portwave/runtime/step/events.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Macro-steps that choose their own size, on the ladder step_s·2⁻ᵏ (docs/concepts/step-size.md).
struct StepSizes {
  /// Of the local error of a step, as an amplitude: √ of the energy of the error of a part, beside
  /// the largest energy of motion that a part of its kind in its island has had, or a millionth of
  /// that of any part there. In [1e-13, 0.1].
  double tolerance = 1e-6;
  /// No step of the ladder is shorter [s]; 0: as short as it has to be.
  double smallest_s = 0.0;
  /// A step in which a watched state passes its level ends at most so long after that [s]; 0:
  /// kEventShare of step_s.
  double event_tolerance_s = 0.0;

  static constexpr double kEventShare = 1e-9;
  static NumberRange tolerances() { return {.minimum = 1e-13, .maximum = 0.1}; }
};

/// What becomes of states that violate what rigid joints ask of them, at the start and where an input
/// jumps (docs/concepts/starts.md).
enum class Start {
  consistent,  ///< they are refused: ConfigError at the start, StepError before a step
  as_given,    ///< they are stepped as they are, and Stepper::starts_at_odds tells
};

struct StepperOptions {
  double step_s = 0.01;                 ///< macro-step h > 0; with `sizes` the largest one
  std::optional<StepSizes> sizes = {};  ///< empty: all steps are of size step_s
  double start_s =
      0.0;  ///< time at which the run begins, of any sign; step n ends at start_s + (n + 1) h
  Start start = Start::consistent;
  /// With `sizes`, CouplingMethod::automatic_with_stages(0) also chooses the number of stages, as a scenario file
  /// does that gives none.
  CouplingMethod method = CouplingMethod::automatic();
  /// Sensors, controllers and actuators: sampled before each step, their outputs held over it. Null:
  /// none. Wave coupling only.
  std::shared_ptr<const SignalGraph> signals = {};
  /// With `sizes`: time between samples of the graph [s] > 0; steps end there. With steps of one
  /// size it is sampled before every step, and this is 0.
  double signals_every_s = 0.0;
  /// What is watched for events, beside what parts watch of themselves (Subsystem::state_levels).
  std::vector<Watch> watches = {};
  Certify certify = Certify::energy;
  int threads =
      1;  ///< ≥ 1; with 1, `automatic` is `serial`. Fewer where this user may not have so many
  Grain grain = {};
  ExecutorKind executor = ExecutorKind::automatic;
  /// Whose workers help, as many as `threads` and the arena say at most; null: its own. Not of
  /// `graph` and `barrier`, which are for comparison.
  std::shared_ptr<Arena> arena = {};
  /// Processes that step the system together, this one being one of them; null: this one alone. Results
  /// do not depend on them. Needs `automatic` or `serial`, no `time`, and the same options everywhere.
  std::shared_ptr<Ranks> ranks = {};
  TimeBudget time = {};
  /// Asked while a step waits for its pace, which then begins, and between iterations of a window,
  /// which then fails.
  std::function<bool()> interrupted = {};
  bool timed = false;  ///< fill StepReport::times; always so with a time budget
  /// Look at some steps, for Stepper::profile. Steps are then `timed`; without, it costs nothing.
  std::optional<ProfileOptions> profile = {};
};

}  // namespace portwave
