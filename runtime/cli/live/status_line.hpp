#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <portwave/runtime/output/progress.hpp>

#include "live/remaining_time.hpp"

namespace portwave::cli {

/// True when stderr is a terminal, where a line may move.
bool stderr_is_terminal();

/// One line on a terminal that says what is being done and for how long. A thread of its own
/// rewrites it, five times a second, so that it moves while a single call takes long; what takes
/// less than that never shows. Nobody else may write to `err` while it is alive and not finished.
class StatusLine {
 public:
  /// Writes nothing, and has no thread, unless `live`.
  StatusLine(std::ostream& err, bool live);
  ~StatusLine() { finish(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  /// Names the work from now on.
  void show(const Phase& phase);
  /// The same as library calls want it; empty unless live.
  PhaseCallback listener();

  /// The work is steps from now on, in windows of `window_steps`.
  void begin_steps(std::int64_t steps, std::int64_t window_steps);
  /// The line shows from now on the share of the work that is done, counted in parts.
  void begin_share(std::int64_t parts);
  /// Costs next to nothing.
  void steps_done(std::int64_t done) { done_.store(done, std::memory_order_relaxed); }

  /// Clears the line for good; `err` is free.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  struct Steps {
    RemainingTime remaining;
    std::int64_t count;
    Clock::time_point start;
    bool is_share = false;
  };

  void run();
  /// The present text of the line. Called with `mutex_` held.
  std::string text(std::size_t width);
  std::string steps_text(Clock::time_point now);

  std::ostream& err_;
  Clock::time_point start_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::string what_ = "starting";
  std::unique_ptr<Steps> steps_;
  std::atomic<std::int64_t> done_ = 0;
  std::thread ticker_;  ///< the last to be made: it uses all the others
};

}  // namespace portwave::cli
