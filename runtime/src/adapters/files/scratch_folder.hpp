#pragma once

#include <filesystem>

namespace portwave::files {

/// A folder of its own for temporary files, which goes with the object.
///
/// A file in it is locked (flock) as long as this process, or one forked from it, lives. A process that is killed
/// leaves its folders behind, unlocked: the first folder of the next process removes them.
class ScratchFolder {
 public:
  /// In the system's folder for temporary files. Errors: ConfigError.
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int lock_ = -1;  ///< none where files cannot be locked
};

/// Removes scratch folders of this user whose processes are gone: those that have a lock which nobody holds. Others
/// stay, also those without a lock: whose they are is not known.
void remove_abandoned_scratch(const std::filesystem::path& parent);

}  // namespace portwave::files
