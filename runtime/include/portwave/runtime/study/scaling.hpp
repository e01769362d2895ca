#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// A macro-step as its simulation sees it: tasks, each with K inner iterations and a commit. A task
/// begins iteration k, and the commit, when it and all its neighbours have done the iteration
/// before.
struct StepModel {
  std::vector<double> iterate_ns;            ///< by task: one inner iteration, ≥ 0
  std::vector<double> commit_ns;             ///< by task, ≥ 0
  std::vector<std::vector<int>> neighbours;  ///< by task; symmetric, without the task itself
  /// By task: tasks with the same number also wait for one another after every iteration, as they do when a
  /// tolerance is checked. Empty: no task does.
  std::vector<int> waits_with;
  int iterations = 0;     ///< K ≥ 0
  double phase_ns = 0.0;  ///< overhead of every phase of a task with neighbours
};

/// Σ over tasks of K iterations and the commit, without phase_ns [ns].
double work_ns(const StepModel& model);

/// When the last commit ends if each of `workers` ≥ 1 cores, whenever it is free, takes the ready task that
/// is farthest behind, the lowest number first. No time passes between a task's end and the beginning of
/// tasks that waited for it, so the result is a little optimistic. Deterministic.
/// Errors: std::invalid_argument when neighbours are not symmetric and the step can not end.
double makespan_ns(const StepModel& model, int workers);

/// Largest over mean cost of the workers' shares, the tasks being dealt out in order and in equal
/// numbers; 1 is perfect. 1 without any cost.
double imbalance(const StepModel& model, int workers);

struct ScalingOptions {
  std::vector<int> threads = {1, 2, 4};  ///< of strong scaling; 1 is always among them
  int repetitions = 9;
  std::int64_t steps = 0;  ///< macro-steps of one measurement; 0: chosen, about 50 ms
  Grain grain;
  ExecutorKind executor = ExecutorKind::automatic;
  int cores = 0;  ///< of this machine: more threads are predicted, not measured; 0: ask the system
};

/// Shares of the time of all threads. With the efficiency they add up to about 1.
struct ScalingLoss {
  double one_thread = 0.0;  ///< while one thread freezes inputs or keeps the ledger
  double waiting = 0.0;     ///< among the tasks: too few of them, or one for another
  double more_work = 0.0;   ///< tasks take longer than on one thread: caches, messages, cut batches
  double imbalance = 1.0;   ///< work of the busiest thread over the mean
  std::int64_t steps = 0;   ///< steps measured
};

/// One configuration: measured, or predicted where the machine has too few cores.
struct ScalingRow {
  std::int64_t size = 0;  ///< parts
  int threads = 1;
  bool predicted = false;
  double step_s = 0.0;  ///< wall time of a macro-step: median of the repetitions, or predicted
  /// Half the distance of the quartiles over the median, and the extremes; only if measured.
  std::optional<double> spread, fastest_s, slowest_s;
  /// Strong scaling: time on one thread over this time, where measured the median of the
  /// repetitions' ratios. Weak: threads · efficiency.
  double speed_up = 1.0;
  /// Strong: speed_up / threads. Weak: time of the first row over this time, likewise.
  double efficiency = 1.0;
  double predicted_step_s = 0.0;    ///< always
  std::optional<StepTimes> phases;  ///< medians, only if measured
  int tasks = 1;
  double imbalance = 1.0;  ///< of the partition for so many threads; 1 when it runs serially
  std::string execution;   ///< as Stepper::execution; "predicted" or "predicted: serial"
  /// One thread does all work although more were asked for. Empty where the clock decides step by step.
  std::optional<bool> fell_back;
  /// Two or more threads with the executor `async` only, measured while tasks are followed.
  std::optional<ScalingLoss> loss = {};
};

/// The inputs of the predictions for one network.
struct ScalingModel {
  std::int64_t size = 0;
  double serial_step_s = 0.0;  ///< measured on one thread, the median
  StepTimes serial_phases;
  double iterations = 0.0;     ///< per step, the mean
  double commit_tail_s = 0.0;  ///< share of the commit that stays on one thread
  double phase_ns = 0.0;       ///< StepModel::phase_ns, measured
};

struct ScalingStudy {
  bool weak = false;
  std::string name;
  int cores = 1;
  int repetitions = 0;
  std::int64_t steps = 0;  ///< macro-steps of one measurement
  std::vector<ScalingRow> rows;
  /// The curve for 1 … 32 threads, of weak scaling that of the last network at its fixed size.
  std::vector<ScalingRow> curve;
  std::vector<ScalingModel> models;
};

/// A network and the threads it is meant for.
struct SizedScenario {
  Scenario scenario;
  int threads = 1;
};

/// Times the scenario with every thread count. All configurations step through the same steps, one
/// after the other within each repetition, their workers being started before the clock runs.
/// Predictions simulate the step (makespan_ns) with the costs of the parts measured alone, scaled
/// so that one thread takes its measured time; freezing and the ledger stay serial.
/// Errors: ConfigError ("/threads", "/steps", "/repetitions" and the Stepper's); StepError;
/// std::runtime_error when results differ by configuration.
ScalingStudy study_strong_scaling(const Scenario& scenario, const ScalingOptions& options,
                                  const PhaseCallback& listener = {});

/// The same with one network per thread count. `options.threads` is not used.
ScalingStudy study_weak_scaling(const std::vector<SizedScenario>& scenarios,
                                const ScalingOptions& options, const PhaseCallback& listener = {});

}  // namespace portwave
