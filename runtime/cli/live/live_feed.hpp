#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <portwave/runtime/report/live.hpp>

#include "live/remaining_time.hpp"

namespace portwave::cli {

/// What a live view says of a run, some lines that each end with a newline. `share`: of the run, done;
/// `rate`: steps per second lately; `left_s`: until its end, as far as is known.
struct LiveProgress {
  std::string title = {};
  std::int64_t steps = 0;  ///< in all; 0: as many as it takes
  double end_s = 0.0;
  double share = 0.0, wall_s = 0.0;
  std::optional<double> rate = {}, real_time_factor = {}, left_s = {};
  double iterations = 0.0;  ///< per step lately
};
std::string live_panel(const LiveProgress& progress, const LiveFacts& facts, std::size_t width);
/// The same on one line, for files.
std::string live_line(const LiveProgress& progress, const LiveFacts& facts);

/// Shows a run while it goes on: a panel that is rewritten in place on a terminal, ten times a second at
/// most; elsewhere a line every second. Samples for it, and for a page, are taken by the thread that
/// steps, when they are wanted: a step that is not looked at costs the reading of a flag.
class LiveFeed {
 public:
  enum class Show { nothing, panel, lines };

  /// `page`: null where there is none. A run that is gone on with begins at `first`.
  LiveFeed(std::ostream& err, Show show, std::string title, std::int64_t steps, double start_s,
           double end_s, std::int64_t first, LiveReport* page);
  ~LiveFeed() { finish(); }
  LiveFeed(const LiveFeed&) = delete;
  LiveFeed& operator=(const LiveFeed&) = delete;

  void step(const Stepper& stepper, const StepReport& report) {
    if (wanted_.load(std::memory_order_relaxed)) take(stepper, report);
  }
  /// Clears the panel for good; `err` is free.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;

  void take(const Stepper& stepper, const StepReport& report);
  void run();
  void show();
  LiveProgress progress(const LiveFacts& facts, double now_s);

  std::ostream& err_;
  Show show_;
  std::string title_;
  std::int64_t steps_;
  double start_s_, end_s_;
  std::int64_t first_;
  LiveReport* page_;
  Clock::time_point start_;
  std::atomic<bool> wanted_ = true;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::optional<LiveFacts> facts_;  // the last ones
  // Used by the thread that shows.
  RemainingTime remaining_;
  std::optional<LiveFacts> shown_;
  double shown_s_ = 0.0, line_s_ = -1e300;
  std::size_t lines_ = 0;  // of the panel that stands there
  double iterations_ = 0.0;
  std::thread ticker_;  // the last one
};

}  // namespace portwave::cli
