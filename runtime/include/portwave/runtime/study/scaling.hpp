#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
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
  /// By task: what a neighbour on another core takes to read its message, in every phase. Tasks are dealt out to
  /// the cores in order and in equal numbers. Empty: nothing.
  std::vector<double> message_ns;
};

/// Σ over tasks of K iterations and the commit, without phase_ns and messages [ns].
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
  std::vector<ExecutorKind> executors = {ExecutorKind::automatic};
  int repetitions = 9;
  std::int64_t steps = 0;  ///< macro-steps of one measurement; 0: chosen, about 50 ms
  Grain grain;
  int cores = 0;  ///< of this machine: more threads are predicted, not measured; 0: ask the system
  /// Where Linux shows its counters of energy.
  std::filesystem::path energy_counters = "/sys/class/powercap";
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
  ExecutorKind executor = ExecutorKind::automatic;  ///< that was asked for
  bool predicted = false;
  double step_s = 0.0;  ///< wall time of a macro-step: median of the repetitions, or predicted
  /// Half the distance of the quartiles over the median, and the extremes; only if measured.
  std::optional<double> spread, fastest_s, slowest_s;
  /// Strong scaling: time on one thread over this time, where measured the median of the
  /// repetitions' ratios. Weak: threads · efficiency.
  double speed_up = 1.0;
  /// Strong: speed_up / threads. Weak: time of the first row over this time, likewise.
  double efficiency = 1.0;
  /// Time of the row with one thread and one `threads`-th of the parts over this time, where there is such a
  /// row; in weak scaling the efficiency.
  std::optional<double> weak_efficiency;
  /// Of the processor packages, median of the repetitions; only if measured and the machine tells it.
  std::optional<double> energy_per_step_J;
  double predicted_step_s = 0.0;    ///< always
  std::optional<StepTimes> phases;  ///< medians, only if measured
  int tasks = 1;
  double imbalance = 1.0;  ///< of the partition for so many threads; 1 when it runs serially
  std::string execution;   ///< as Stepper::execution; "predicted" or "predicted: serial"
  /// One thread does all work although more were asked for. Empty where the clock decides step by step.
  std::optional<bool> fell_back;
  /// Two or more threads with the executor `async` only, measured while tasks are followed.
  std::optional<ScalingLoss> loss = {};

  /// Steps of single parts per second of wall time.
  double parts_steps_per_s() const { return static_cast<double>(size) / step_s; }
  /// Predicted over measured time; empty in rows that were not measured.
  std::optional<double> predicted_over_measured() const {
    return predicted ? std::nullopt : std::optional(predicted_step_s / step_s);
  }
};

/// The inputs of the predictions for one network and executor. A step on one thread is the sum of
/// one_thread_s, shared_s, iterate_s and commit_s, which are measured shares of serial_step_s.
struct ScalingModel {
  std::int64_t size = 0;
  ExecutorKind executor = ExecutorKind::automatic;
  double serial_step_s = 0.0;  ///< measured on one thread, the median
  StepTimes serial_phases;
  double iterations = 0.0;  ///< per step, the mean
  double one_thread_s =
      0.0;  ///< what no second thread helps with: freezing, sums of the ledger, decisions
  double shared_s = 0.0;      ///< loops of guard and ledger over parts, which threads share
  double shared_loops = 0.0;  ///< their number per step
  double iterate_s = 0.0;     ///< of the tasks: evaluations
  double commit_s = 0.0;      ///< of the tasks: commits, also those that the guard asks for again
  double recommits = 0.0;     ///< of the latter, per step
  double phase_ns = 0.0;      ///< StepModel::phase_ns, measured
  int blocks = 0;             ///< of a method without waves: what its threads share
  double lines = 0.0;         ///< cache lines, written by others, that one thread reads after tasks
  /// A message of one cache line between two cores, and what else a phase takes longer there, measured in steps of the
  /// network on two threads; 0 with one core.
  double message_ns = 0.0;
  double line_ns = 0.0;   ///< each further line, likewise
  double start_ns = 0.0;  ///< calling threads to a step or loop and waiting for them, likewise
};

/// A batch of parts of equal shape in the roofline: one port solve of each part on one thread. Counts are those
/// of the kernel b = b⁰ + D a: 2p² + 2p operations for p ports; a, b⁰ and b, and D where it is not
/// the same for all parts.
struct KernelRoof {
  std::int64_t size = 0;  ///< parts of the network
  std::string type;       ///< of the first part
  int parts = 0, ports = 0;
  double flop = 0.0, bytes = 0.0;  ///< per port solve
  double solve_s = 0.0;            ///< per port solve, measured
  double stream_B_per_s = 0.0;     ///< measured where so much data lies

  double intensity() const { return flop / bytes; }
  double flop_per_s() const { return flop / solve_s; }
  /// The roof above it [FLOP/s].
  double roof(double peak_flop_per_s) const;
  bool is_memory_bound(double peak_flop_per_s) const;
};

struct ScalingStudy {
  bool weak = false;
  std::string name;
  int cores = 1;
  int repetitions = 0;
  std::int64_t steps = 0;           ///< macro-steps of one measurement, of the first network
  std::string workers = "threads";  ///< what ScalingRow::threads counts, for the figure
  std::vector<ScalingRow> rows;
  /// The curves for 1 … 32 threads, of weak scaling those of the last network at its fixed size.
  std::vector<ScalingRow> curve;
  std::vector<ScalingModel> models;
  std::string energy_note;       ///< what the energies are, or why there are none
  double peak_flop_per_s = 0.0;  ///< of one thread, without fusing
  /// Batches of linear parts. What nonlinear ones do depends on their iterations, and is not counted.
  std::vector<KernelRoof> kernels;
};

/// A network and the threads it is meant for.
struct SizedScenario {
  Scenario scenario;
  int threads = 1;
};

/// Times the scenario with every thread count and executor. All configurations step through the same
/// steps, one after the other within each repetition, their workers being started before the clock runs.
/// Predictions simulate the step (makespan_ns) with the costs of the parts measured alone, at the sizes that the
/// cores' shares have, and scaled so that one thread takes its measured time; what one thread does beside
/// its tasks is measured and stays with it. What cores cost one another is measured in steps of the network on two
/// threads, which are not those of the rows.
/// Errors: ConfigError ("/threads", "/executors", "/steps", "/repetitions" and the Stepper's); StepError;
/// std::runtime_error when results differ by configuration.
ScalingStudy study_strong_scaling(const Scenario& scenario, const ScalingOptions& options,
                                  const PhaseCallback& listener = {});

/// The same for several networks, one after another: rows of all sizes, executors and threads, in this order.
ScalingStudy study_strong_scaling(std::span<const Scenario> scenarios,
                                  const ScalingOptions& options,
                                  const PhaseCallback& listener = {});

/// The same with one network per thread count. `options.threads` is not used.
ScalingStudy study_weak_scaling(const std::vector<SizedScenario>& scenarios,
                                const ScalingOptions& options, const PhaseCallback& listener = {});

}  // namespace portwave
