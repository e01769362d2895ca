#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "parallel/threads/process_stamp.hpp"
#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {

/// A file that takes its name only when it is complete. Until `publish` its contents are in a
/// hidden file ".<name>.<pid>.part" of the same folder, which the destructor removes, or in one that
/// is said, which stays if it is not published.
///
/// Appending fills a fixed buffer and allocates nothing. A child of the process that made it leaves the
/// file alone.
/// Errors   std::runtime_error naming the file and the system's reason.
class PendingFile {
 public:
  /// Refuses a path that a folder has: it could not be published.
  explicit PendingFile(std::filesystem::path path);
  /// With the contents in `meanwhile`, in the same file system, where they stay. What is there is left
  /// for `archive` to cut where `goes_on`; else it goes.
  PendingFile(std::filesystem::path path, std::filesystem::path meanwhile, bool goes_on);
  ~PendingFile();
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  void append(std::string_view text);
  void append(char c) { append(std::string_view(&c, 1)); }
  /// 17 significant digits: reads back to the same double.
  void append(double value);
  void append(std::int64_t value);

  /// Writing: puts all that was appended on the disk, and notes how long the file is. Reading: the file
  /// goes on from the length that was noted; what was appended since the construction is forgotten. It is
  /// cut when something is written to it: whoever does not go on leaves it as it is.
  void archive(StateArchive& archive);

  /// Writes out and closes the hidden file; no more appending. One that stays is put on the disk.
  void close();
  /// Path of the contents until then.
  const std::filesystem::path& path_meanwhile() const { return hidden_; }
  /// Gives the closed file its name, replacing an earlier file.
  void publish();

 private:
  static constexpr std::size_t kCapacity = 1 << 16;
  static constexpr std::size_t kLongestNumber = 32;

  char* reserve(std::size_t count);
  void flush();
  void cut();
  void sync();
  void write(std::string_view text);
  [[noreturn]] void fail(int error) const;

  ProcessStamp process_;
  std::filesystem::path path_;
  std::filesystem::path hidden_;
  std::unique_ptr<char[]> buffer_;
  std::size_t used_ = 0;
  std::int64_t length_ = -1;  // to go on from; negative: it has been cut there
  int descriptor_ = -1;
  int place_ = -1;  ///< among the hidden files that a signal removes
  bool stays_ = false;
  bool published_ = false;
};

/// Removes hidden temporary files that killed processes have left of a file.
void remove_left_behind(const std::filesystem::path& file);

}  // namespace portwave
