#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace portwave {

/// A file that takes its name only when it is complete. Until `publish` its contents are in a
/// hidden file ".<name>.<pid>.part" of the same folder, which the destructor removes.
///
/// Appending fills a fixed buffer and allocates nothing.
/// Errors   std::runtime_error naming the file and the system's reason.
class PendingFile {
 public:
  /// Refuses a path that a folder has: it could not be published.
  explicit PendingFile(std::filesystem::path path);
  ~PendingFile();
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  void append(std::string_view text);
  void append(char c) { append(std::string_view(&c, 1)); }
  /// 17 significant digits: reads back to the same double.
  void append(double value);
  void append(std::int64_t value);

  /// Writes out and closes the hidden file; no more appending.
  void close();
  /// Gives the closed file its name, in place of what had it before.
  void publish();

 private:
  static constexpr std::size_t kCapacity = 1 << 16;
  static constexpr std::size_t kLongestNumber = 32;

  char* reserve(std::size_t count);
  void flush();
  void write(std::string_view text);
  [[noreturn]] void fail(int error) const;

  std::filesystem::path path_;
  std::filesystem::path hidden_;
  std::unique_ptr<char[]> buffer_;
  std::size_t used_ = 0;
  int descriptor_ = -1;
  bool published_ = false;
};

}  // namespace portwave
