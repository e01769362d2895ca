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

/// All that a run needs to be gone on with after its process has gone.
struct Checkpoint {
  std::string run;                  ///< what is stepped, and how: in words of whoever steps it
  Snapshot snapshot;                ///< where it stands
  std::vector<std::byte> recorded;  ///< where its recorders stand: Recorder::archive

  /// The bytes of a file: a head with the version and a checksum, and the members.
  std::vector<std::byte> to_bytes() const;
  /// Errors: std::invalid_argument where they are not whole, were changed, or are of another version.
  static Checkpoint from_bytes(std::span<const std::byte> bytes);
};

/// Where a run that can be gone on with keeps what it has come to: the folder "checkpoint" in that of
/// its results. It holds the last two checkpoints and the results as far as they are written, and is
/// gone when they are complete.
///
/// At whatever instant the process or the machine stops, one of the checkpoints is whole, and the
/// results hold at least what they held when it was made. One process at a time has the folder.
/// Errors: std::runtime_error naming the file and the system's reason, of all members.
class CheckpointFolder {
 public:
  enum class For { a_new_run, going_on };

  /// Makes the folder, with its parents, for a new run. Errors: std::runtime_error also where
  /// another process has it, where it is taken by a run that was not finished, or where there is none
  /// to go on with.
  CheckpointFolder(std::filesystem::path results, For what);
  /// Errors: std::runtime_error where a run that was not finished is in the folder of these results.
  static void refuse_unfinished(const std::filesystem::path& results);
  /// The folder that a run with these results would have for itself, and remove at its end.
  static std::filesystem::path place_in(const std::filesystem::path& results);
  /// Leaves all as it is; of a new run without a checkpoint nothing.
  ~CheckpointFolder();
  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;

  const std::filesystem::path& results() const { return results_; }
  /// Where a file of the results is until it is complete.
  std::filesystem::path meanwhile(const char* name) const { return folder_ / name; }
  bool goes_on() const { return goes_on_; }
  /// Whether there is one; it may be worth nothing.
  bool has_checkpoint() const { return has_checkpoint_; }

  /// Makes it the last one. When this returns it is on the disk; if it throws the one before is still
  /// the last.
  void save(const Checkpoint& checkpoint);
  /// The last one that is whole. `refused`: why those after it are not, a line for each.
  /// Errors: std::runtime_error where none is whole, with the reasons.
  Checkpoint load(std::vector<std::string>& refused);

  /// Gives complete files their names among the results, in this order, and removes those that an
  /// earlier run may have left: then the folder goes. `outcome`: what `finish` gives where the
  /// process stops in between.
  void publish(const std::vector<std::string>& names, const std::vector<std::string>& obsolete,
               const std::string& outcome);
  /// Whether the run had come to `publish`; that is then brought to its end.
  bool finish(std::string& outcome);

 private:
  std::runtime_error nothing_to_go_on_with(const char* why) const;
  void lock();
  void move_to_results(const std::string& list);

  std::filesystem::path results_;
  std::filesystem::path folder_;
  int lock_ = -1;
  int process_;  // that made it: a child of that leaves the folder as it is
  bool goes_on_ = false;
  bool has_checkpoint_ = false;  // whatever it is worth
  bool last_is_whole_ = false;
};

}  // namespace portwave
