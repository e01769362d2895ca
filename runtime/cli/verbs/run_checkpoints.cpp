#include "verbs/run_checkpoints.hpp"

#include <cmath>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <portwave/subsystems/base/state_archive.hpp>

namespace portwave::cli {
namespace {

/// The same members in the same order, whether they are written or read.
void archive(StateArchive& bytes, const Stepper& stepper, Recorders& recorders, RunClock& clock) {
  clock.archive(bytes);
  for (const auto& recorder : recorders) recorder->archive(stepper, bytes);
}

}  // namespace

double RunClock::wall_s() const {
  return before_s_ + std::chrono::duration<double>(Clock::now() - start_).count();
}

void RunClock::add(const StepTimes& step) {
  times_.begin_s += step.begin_s;
  times_.iterate_s += step.iterate_s;
  times_.commit_s += step.commit_s;
}

void RunClock::archive(StateArchive& archive) {
  double so_far_s = wall_s();
  archive.values(so_far_s, times_);
  if (!archive.reads()) return;
  for (const double time_s : {so_far_s, times_.begin_s, times_.iterate_s, times_.commit_s}) {
    archive.expect(time_s >= 0.0 && std::isfinite(time_s), "the time that the run has taken");
  }
  before_s_ = so_far_s;
  start_ = Clock::now();
}

RunCheckpoints::RunCheckpoints(CheckpointFolder& folder, CheckpointEvery every, std::string run)
    : folder_(folder), every_(every), last_(std::chrono::steady_clock::now()) {
  checkpoint_.run = std::move(run);
}

bool RunCheckpoints::is_due(std::int64_t step_index) const {
  if (every_.steps > 0) return step_index % every_.steps == 0;
  const auto passed = std::chrono::steady_clock::now() - last_;
  return std::chrono::duration<double>(passed).count() >= every_.wall_s;
}

void RunCheckpoints::save(const Stepper& stepper, Recorders& recorders, RunClock& clock) {
  stepper.snapshot(checkpoint_.snapshot);
  StateArchive writer = StateArchive::writer(checkpoint_.recorded);
  archive(writer, stepper, recorders, clock);
  writer.finish();
  folder_.save(checkpoint_);
  last_ = std::chrono::steady_clock::now();
}

void RunCheckpoints::restore(const Checkpoint& checkpoint, Stepper& stepper, Recorders& recorders,
                             RunClock& clock) {
  try {
    stepper.restore(checkpoint.snapshot);
    StateArchive reader = StateArchive::reader(checkpoint.recorded);
    archive(reader, stepper, recorders, clock);
    reader.finish();
  } catch (const std::logic_error& error) {  // what is in it is of no run, or of another one
    throw std::invalid_argument(
        fmt::format("the run cannot continue from the checkpoint: {}", error.what()));
  }
}

}  // namespace portwave::cli
