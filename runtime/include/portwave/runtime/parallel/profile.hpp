#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// StepperOptions::profile: how the time of steps is spent. Some steps are measured: at first all, and from
/// then on every second of these whenever there are more events than are kept.
struct ProfileOptions {
  std::size_t most_events = 100'000;  ///< in the trace
};

/// Time of a thread in the measured steps [s].
struct ProfileWorker {
  double iterate_s = 0.0;   ///< port solves and updates of tasks
  double exchange_s = 0.0;  ///< exchange and residuals, where a tolerance is checked
  double commit_s = 0.0;    ///< commits of tasks
  double waiting_s = 0.0;   ///< the rest of the time between begin and ledger
  double working_s() const { return iterate_s + exchange_s + commit_s; }
};

struct ProfileTask {
  int number = 0;  ///< in the executor; below 0: a task of the serial one, −1 being its first
  int parts = 0;
  std::string first_part;
  double iterate_s = 0.0, exchange_s = 0.0, commit_s = 0.0;
  std::int64_t events = 0;
  double all_s() const { return iterate_s + exchange_s + commit_s; }
};

/// Parts that are solved together, measured alone at the present state.
struct ProfileBatch {
  std::string type;
  int parts = 0;
  double iterate_s = 0.0;  ///< one port solve of each
  double commit_s = 0.0;   ///< one commit of each
};

/// An activity of a thread; times from the first measured step [s].
struct ProfileEvent {
  enum class Kind : std::uint8_t { iterate, exchange, commit, begin, inner, ledger };
  double begin_s = 0.0, end_s = 0.0;
  std::int64_t step = 0;
  int worker = 0;
  int task = 0;  ///< no meaning for the last three kinds, which are of the whole step
  Kind kind = Kind::iterate;
};

/// Sums are over the measured steps.
struct Profile {
  std::int64_t steps = 0, sampled = 0;
  double step_s = 0.0;        ///< within Stepper::step
  double between_s = 0.0;     ///< between steps: recording, and other work of the caller
  double other_step_s = 0.0;  ///< mean of the steps that were not measured; 0: there are none
  double begin_s = 0.0;       ///< inputs and freezing
  double inner_s = 0.0;       ///< iteration
  double ledger_s = 0.0;      ///< commits, guard and ledger
  /// From the first task to the last, where tasks are followed; the rest of the step is one thread's.
  double tasks_s = 0.0;
  /// On one thread, where tasks are followed: loops of guard and ledger that several threads would share,
  /// and how many there were.
  double shared_s = 0.0;
  std::int64_t shared_loops = 0;
  std::int64_t iterations = 0;
  /// Empty where tasks are not followed: executor `graph`, methods without waves.
  std::vector<ProfileWorker> workers = {};
  std::vector<ProfileTask> tasks = {};  ///< those that ran, the longest first
  std::vector<ProfileBatch> batches = {};
  std::vector<ProfileEvent> events = {};  ///< in the order of steps
  std::int64_t dropped_events = 0;        ///< beyond what is kept of a step

  double mean_step_s() const { return sampled > 0 ? step_s / static_cast<double>(sampled) : 0.0; }
  /// Share of the threads' time within steps in which they waited or were idle.
  double waiting_s() const;
  double working_s() const;
  /// Time of the busiest thread over the mean; 1 without threads.
  double imbalance() const;
};

/// For people: some tables, each line ended by a newline.
std::string profile_text(const Profile& profile);
/// For Chrome and Perfetto: the trace event format.
std::string trace_json(const Profile& profile);

}  // namespace portwave
