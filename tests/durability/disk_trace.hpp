#pragma once

#include <string>
#include <vector>

namespace portwave::testing {

/// What this process has asked of the disk since the last `begin`, in order. The linker puts functions
/// of this program in the place of those of the C library (--wrap).
struct DiskCall {
  enum class Kind { write, sync, rename, unlink };
  Kind kind;
  std::string path;  ///< of a file or, of `sync`, also of a folder
  std::string to;    ///< the new name of `rename`
};

void begin_disk_trace();
std::vector<DiskCall> end_disk_trace();

/// From now on the disk takes so many bytes, and is full then; negative: as many as there are.
void limit_disk(long bytes);

/// Files that were given a name while something of them was only in the memory of the system, that is
/// written since the last sync.
std::vector<std::string> renamed_unsynced(const std::vector<DiskCall>& calls);
/// Files that were written to and not synced afterwards.
std::vector<std::string> left_unsynced(const std::vector<DiskCall>& calls);
/// The folders of names that were given or taken away and not synced afterwards.
std::vector<std::string> names_left_unsynced(const std::vector<DiskCall>& calls);

}  // namespace portwave::testing
