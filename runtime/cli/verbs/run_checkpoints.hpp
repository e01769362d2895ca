#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <portwave/runtime/output/checkpoint.hpp>
#include <portwave/runtime/output/recorder.hpp>

#include "line/commands.hpp"

namespace portwave::cli {

using Recorders = std::vector<std::unique_ptr<Recorder>>;

/// The time that a run has taken so far, summed over the processes that continued one another.
class RunClock {
 public:
  double wall_s() const;
  void add(const StepTimes& step);
  const StepTimes& times() const { return times_; }
  /// Passes the times on to the process that continues the run.
  void archive(StateArchive& archive);

 private:
  using Clock = std::chrono::steady_clock;
  double before_s_ = 0.0;
  Clock::time_point start_ = Clock::now();
  StepTimes times_;
};

/// The checkpoints of a run.
class RunCheckpoints {
 public:
  /// `run`: the description of the run in a checkpoint.
  RunCheckpoints(CheckpointFolder& folder, CheckpointEvery every, std::string run);

  /// Whether a checkpoint is due. Costs next to nothing.
  bool is_due(std::int64_t step_index) const;
  void save(const Stepper& stepper, Recorders& recorders, RunClock& clock);
  /// Brings all to where they were.
  static void restore(const Checkpoint& checkpoint, Stepper& stepper, Recorders& recorders,
                      RunClock& clock);

  const CheckpointFolder& folder() const { return folder_; }
  /// Step of the last one.
  std::int64_t step_index() const { return checkpoint_.snapshot.step_index(); }

 private:
  CheckpointFolder& folder_;
  CheckpointEvery every_;
  Checkpoint checkpoint_;  // its memory is used again
  std::chrono::steady_clock::time_point last_;
};

}  // namespace portwave::cli
