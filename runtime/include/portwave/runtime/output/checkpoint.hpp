#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "portwave/runtime/step/snapshot.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Everything needed to resume a run after its process has ended.
struct Checkpoint {
  std::string run;                  ///< the system and its options, in the caller's words
  Snapshot snapshot;                ///< state of the run
  std::vector<std::byte> recorded;  ///< state of its recorders: Recorder::archive

  /// The bytes of a file: a header with the version and a checksum, and the members.
  std::vector<std::byte> to_bytes() const;
  /// Errors: std::invalid_argument where they are incomplete, were changed, or are of another version.
  static Checkpoint from_bytes(std::span<const std::byte> bytes);
};

/// The folder "checkpoint" in the results folder of a run that can be resumed. It holds the last two
/// checkpoints and the results written so far, and is removed when they are complete.
///
/// Whenever the process or the machine stops, one of the checkpoints is whole, and the results hold at least
/// the rows that they held at that checkpoint. One process at a time has the folder. Errors of all members:
/// std::runtime_error naming the file and the system's reason.
class CheckpointFolder {
 public:
  enum class For { a_new_run, going_on };

  /// Creates the folder, with its parents, for a new run. Errors: std::runtime_error also where another
  /// process has it, where it belongs to a run that was not finished, or where there is no run to resume.
  CheckpointFolder(std::filesystem::path results, For what);
  /// Errors: std::runtime_error where the folder of these results holds a run that was not finished.
  static void refuse_unfinished(const std::filesystem::path& results);
  /// The folder that a run with these results would reserve, and remove at its end.
  static std::filesystem::path place_in(const std::filesystem::path& results);
  /// Leaves everything as it is; removes the folder of a new run without a checkpoint.
  ~CheckpointFolder();
  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;

  const std::filesystem::path& results() const { return results_; }
  /// The path of a results file until it is complete.
  std::filesystem::path meanwhile(const char* name) const { return folder_ / name; }
  bool goes_on() const { return goes_on_; }
  /// Whether there is a checkpoint; it may be damaged.
  bool has_checkpoint() const { return has_checkpoint_; }

  /// Saves it as the last one. On return it is on the disk; if the call throws, the one before is still the
  /// last.
  void save(const Checkpoint& checkpoint);
  /// The last one that is whole. `refused`: why later ones are not, a line for each.
  /// Errors: std::runtime_error where none is whole, with the reasons.
  Checkpoint load(std::vector<std::string>& refused);

  /// Gives complete files their names among the results, in this order, and removes those of an earlier run:
  /// then the folder is removed. `outcome`: the result of `finish` if the process stops in between.
  void publish(const std::vector<std::string>& names, const std::vector<std::string>& obsolete,
               const std::string& outcome);
  /// Whether the run had reached `publish`; if so, completes it.
  bool finish(std::string& outcome);

 private:
  std::runtime_error nothing_to_go_on_with(const char* why) const;
  void lock();
  void move_to_results(const std::string& list);

  std::filesystem::path results_;
  std::filesystem::path folder_;
  int lock_ = -1;
  int process_;  // the process that created it: a child process leaves the folder as it is
  bool goes_on_ = false;
  bool has_checkpoint_ = false;  // damaged or not
  bool last_is_whole_ = false;
};

}  // namespace portwave
