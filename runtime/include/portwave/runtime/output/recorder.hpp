#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "portwave/runtime/execution/stepper.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// A recorded quantity: a state component ("A.q1") or a port variable ("A.coupling.effort",
/// ".flow", ".incident", ".outgoing", with "[component]" for ports of dimension > 1), or a signal of
/// the signal graph ("pid"), as sampled for the step to come.
struct Observable {
  enum class Kind { state, effort, flow, incident, outgoing, storage, signal };
  std::string label;
  Kind kind = Kind::state;
  int part = 0;  ///< of no meaning for a signal
  /// State component, scalar port of the system, or number of the signal; with the storage of the
  /// part comes that of as many parts after it.
  int index = 0;
  std::string unit;
};

/// Resolves "part.state", "part.port.effort|flow|incident|outgoing" or "part.storage". The
/// component of a wider port is written "part.port.effort[1]" or "part.port[1].effort". On failure
/// appends an issue with the nearest name and returns false. `method`: one that couples without
/// waves has no incident and outgoing ones.
bool resolve_observable(const System& system, const std::string& label, const std::string& where,
                        Observable& out, Issues& issues,
                        MethodKind method = WaveUpdate::douglas_rachford);

/// The same of what a stepper steps, or the name of a signal of its signal graph. To be found once
/// and read many times by `observe`. Errors: std::out_of_range with the nearest name.
Observable find_observable(const Stepper& stepper, const std::string& label);

/// Errors: std::invalid_argument for a wave where the method couples without waves.
double observe(const Stepper& stepper, const Observable& observable);
/// At a time within the last step, by the polynomials of its stages; waves as at its end. Of
/// steppers whose steps choose their size.
double observe_at(const Stepper& stepper, const Observable& observable, double time_s);

class CheckpointFolder;
class StateArchive;
struct RunSummary;

/// Takes in a run as it goes on: files, memory, a live view. Whoever steps calls
///   record_initial    once, before the first step;
///   record            after every step, with its report;
///   finish            once, after the last step, or when the run was interrupted or has failed, with
///                     its summary.
/// One that is destroyed without `finish` leaves nothing half done, but for what checkpoints need.
/// A recorder asks the stepper for what it keeps, and changes nothing. One thread calls it.
/// Errors: std::runtime_error, which ends the run.
class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual void record_initial(const Stepper& stepper) = 0;
  virtual void record(const Stepper& stepper, const StepReport& report) = 0;
  virtual void finish(const RunSummary& summary) = 0;
  /// For checkpoints, between two steps. Writing: puts what was recorded where it outlives the process,
  /// and says where the recorder stands. Reading, in place of record_initial: goes back to there; what
  /// follows is recorded as if it had never stopped. A recorder that keeps nothing does nothing here.
  virtual void archive(const Stepper& stepper, StateArchive& archive);
  /// How long steps have waited for it so far [s], because it takes in less than there is.
  virtual double waited_s() const;
};

/// A folder for results, made with its parents if missing. Unless kept it goes again, if it was
/// made here and is empty. One at a time has a folder, over all processes.
class OutputFolder {
 public:
  /// Finds out before the work whether the files can be written: the folder takes files, and no
  /// name of theirs is taken by a folder.
  /// Errors: std::runtime_error naming the folder or file and the system's reason; also where
  /// somebody else writes to the folder.
  OutputFolder(std::filesystem::path path, std::initializer_list<const char*> names_of_files);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  std::filesystem::path file(const char* name) const { return path_ / name; }
  void keep() { created_ = false; }

 private:
  explicit OutputFolder(std::filesystem::path path);

  void lock();

  std::filesystem::path path_;
  bool created_;
  int lock_ = -1;  // the folder itself, so that no file is left behind
};

/// Writes trajectory.csv (time_s and the observables) and energy.csv (the ledger) of a run, a row
/// for the state at t = 0 and one for every `every`-th step. A row of energy.csv holds the sums of
/// supplied_J, dissipated_J, mismatch_J, guard_withheld_J and iterations, the largest passivity
/// residual and the smallest alpha of the guard over the steps since the row before, so that the
/// ledger closes row by row at any `every`. What is not known is left empty.
///
/// With `every_s` > 0, for steps that choose their size, trajectory.csv has a row for every multiple
/// of it instead, the quantities taken from the polynomials of the stages, and energy.csv one for
/// every step.
///
/// Where something is watched, events.csv has a row for every event: time_s, event (the name of the
/// watch) and direction ("rising", "closes").
///
/// The folder is made if missing. Rows go to hidden temporary files in it; `finish` moves them to
/// their names when all are complete, so a name never holds half a file. Numbers have 17
/// significant digits and read back to the same double. Recording does not allocate: rows go to a
/// thread that makes them text, and where that cannot keep up the run waits, and no row is lost.
/// Errors: std::runtime_error naming the file and the system's reason.
class CsvRecorder final : public Recorder {
 public:
  CsvRecorder(std::filesystem::path folder, std::vector<Observable> observables, int every,
              double every_s = 0.0);
  /// Of a run with checkpoints: temporary files are in that folder, which outlives the recorder.
  CsvRecorder(CheckpointFolder& folder, std::vector<Observable> observables, int every,
              double every_s = 0.0);
  /// Without finish: removes the temporary files, and the folder if it was made here. With
  /// checkpoints all stays as it is.
  ~CsvRecorder() override;
  CsvRecorder(const CsvRecorder&) = delete;
  CsvRecorder& operator=(const CsvRecorder&) = delete;

  /// The state at t = 0.
  void record_initial(const Stepper& stepper) override;
  void record(const Stepper& stepper, const StepReport& report) override;
  void archive(const Stepper& stepper, StateArchive& archive) override;
  double waited_s() const override;
  /// With the summary as summary.json. It takes its name last and an earlier one is removed first:
  /// where there is a summary.json, the files beside it are of the same run.
  void finish(const RunSummary& summary) override;
  /// The same, with `json` as what is written to summary.json.
  void finish(const std::string& json);
  /// Without summary.json.
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Writes `text` to `path` by way of a temporary file in the same folder and a rename.
void write_file_atomically(const std::filesystem::path& path, const std::string& text);

}  // namespace portwave
