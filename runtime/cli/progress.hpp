#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>

namespace portwave::cli {

/// One line on a terminal that is rewritten as steps are done, at most five times a second.
class Progress {
 public:
  /// Writes nothing unless `live`.
  Progress(std::ostream& err, bool live, std::int64_t steps);
  ~Progress();  ///< clears the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(std::int64_t done) {
    if (live_) redraw_when_due(done);
  }

 private:
  using Clock = std::chrono::steady_clock;

  void redraw_when_due(std::int64_t done);

  std::ostream& err_;
  bool live_;
  std::int64_t steps_;
  Clock::time_point start_;
  Clock::time_point due_;
  bool drawn_ = false;
};

}  // namespace portwave::cli
