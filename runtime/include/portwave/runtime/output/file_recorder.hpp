#pragma once

#include <filesystem>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>

#include "portwave/runtime/output/recorder.hpp"
#include "portwave/runtime/ranks/followers.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

class CheckpointFolder;

/// A folder for results, created with its parents if missing. Unless kept, it is removed again if it was
/// created here and is empty. One owner at a time has a folder, over all processes.
class OutputFolder {
 public:
  /// Checks before the work whether the files can be written: the folder takes files, and no file name is
  /// taken by a folder.
  /// `read`: the files that the work has read, which its output must not replace.
  /// Errors: std::runtime_error naming the folder or file and the system's reason; also where another process
  /// writes to the folder; ConfigError as refuse_to_overwrite, nothing having been created.
  OutputFolder(std::filesystem::path path, std::initializer_list<const char*> names_of_files,
               std::span<const std::filesystem::path> read = {});
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
  int process_;    // the process that created it: a child process leaves the folder as it is
};

/// The counterpart on ranks other than 0 of rank 0's FileRecorder with RecordingOptions::per_rank, for
/// RankedStepper::follow: it records there and writes the files of that rank. Without per_rank it does
/// nothing. `options`: as on rank 0. Errors: ConfigError.
std::unique_ptr<Follower> make_recording_follower(RecordingOptions options);

/// Removes the hidden files of results that this process has not finished. For a handler of a signal that
/// ends the program: it may be called there.
void remove_unfinished_files() noexcept;

/// Whether results can be written as HDF5: whether portwave was built with it.
bool has_hdf5();

/// Writes the tables of a run into a folder (docs/reference/scenario.md, "What a run writes"):
///
///   trajectory        time_s and the quantities, for the state at t = 0 and for every `every`-th step
///                     or, with `every_s`, at the multiples of it, the quantities then being taken from
///                     the polynomials of the stages.
///   energy            the ledger, a row for t = 0 and for every `every`-th step. Supplied, dissipated
///                     and withheld energies, the mismatch and iterations are sums, the residuals are the
///                     largest, alpha, the step size and the slack the smallest of the steps since the
///                     row before, so that the ledger closes row by row. With `every_s` a row for every
///                     step. Unknown values are left empty (NaN).
///   events            time_s, name and direction of every event, where something is watched.
///   energy_parts, energy_junctions   with RecordingOptions::energies, likewise.
///
/// and beside them `network.json`: the parts, how they are joined and the units of the quantities.
///
/// The folder is made if missing. Rows go to hidden temporary files in it; `finish` moves them to
/// their names when all are complete, so a name never holds half a file. Texts of numbers have 17
/// significant digits and read back to the same double. Recording does not allocate: rows go to a
/// thread that writes them, and where that cannot keep up the run waits, and no row is lost.
/// Errors: ConfigError for invalid options, and where results would replace a file that was read
/// (RecordingOptions::inputs); std::runtime_error naming the file and the system's reason;
/// std::invalid_argument for a format that this build does not have.
class FileRecorder final : public Recorder {
 public:
  FileRecorder(std::filesystem::path folder, RecordingOptions options);
  /// For a run with checkpoints: temporary files are in that folder, which outlives the recorder.
  FileRecorder(CheckpointFolder& folder, RecordingOptions options);
  /// The constructor's check of RecordingOptions::inputs: no file that was read lies in `folder` under the
  /// name of a results file, neither one that a run writes nor one of an earlier run that it removes.
  /// Errors: ConfigError as refuse_to_overwrite; nothing is created.
  static void refuse_inputs(const std::filesystem::path& folder, const RecordingOptions& options);
  /// Without finish: removes the temporary files, and the folder if it was created here. With checkpoints
  /// everything stays as it is.
  ~FileRecorder() override;
  FileRecorder(const FileRecorder&) = delete;
  FileRecorder& operator=(const FileRecorder&) = delete;

  /// The state at t = 0.
  /// Errors: std::invalid_argument where energies of parts are asked for and not known.
  void record_initial(const Stepper& stepper) override;
  void record(const Stepper& stepper, const StepReport& report) override;
  void archive(const Stepper& stepper, StateArchive& archive) override;
  double waited_s() const override;
  /// With the summary as summary.json. It takes its name last and an earlier one is removed first:
  /// where there is a summary.json, the files beside it are of the same run.
  void finish(const RunSummary& summary) override;
  /// The same, with `json` as the text of summary.json.
  void finish(const std::string& json);
  /// Without summary.json.
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace portwave
