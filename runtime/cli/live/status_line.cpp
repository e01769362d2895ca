#include "live/status_line.hpp"

#include <algorithm>
#include <ostream>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include <portwave/subsystems/base/printable.hpp>

#include "live/signals_blocked.hpp"

namespace portwave::cli {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(200);
constexpr const char* kClearLine = "\r\x1b[K";

double seconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

/// Characters that fit without the line being wrapped, which could not be cleared.
std::size_t width_of_terminal() {
  constexpr std::size_t kUsual = 80;
  winsize size = {};
  const bool is_known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return (is_known ? size.ws_col : kUsual) - 1;
}

std::string shortened(const std::string& text, std::size_t width) {
  constexpr std::size_t kDots = 3;
  const std::string all = printable(text, text.size());
  return all.size() <= width ? all : printable(text, width - std::min(width, kDots));
}

}  // namespace

bool stderr_is_terminal() { return ::isatty(STDERR_FILENO) == 1; }

StatusLine::StatusLine(std::ostream& err, bool live) : err_(err), start_(Clock::now()) {
  if (live) ticker_ = thread_to_show([this] { run(); });
}

void StatusLine::show(const Phase& phase) {
  if (!ticker_.joinable()) return;
  std::string what = phase.item > 0
                         ? fmt::format("{} {} of {}", phase.what, phase.item, phase.items)
                         : std::string(phase.what);
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
  steps_.reset();
}

PhaseCallback StatusLine::listener() {
  if (!ticker_.joinable()) return {};
  return [this](const Phase& phase) { show(phase); };
}

void StatusLine::begin_steps(std::int64_t steps, std::int64_t window_steps) {
  if (!ticker_.joinable()) return;
  const std::lock_guard lock(mutex_);
  done_ = 0;
  steps_ = std::make_unique<Steps>(Steps{RemainingTime(steps, window_steps), steps, Clock::now()});
}

void StatusLine::begin_share(std::int64_t parts) {
  begin_steps(parts, 1);
  const std::lock_guard lock(mutex_);
  if (steps_) steps_->is_share = true;
}

void StatusLine::finish() {
  if (!ticker_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_one();
  ticker_.join();
}

void StatusLine::run() {
  bool is_drawn = false;
  std::unique_lock lock(mutex_);
  while (!stop_.wait_for(lock, kInterval, [this] { return stopping_; })) {
    const std::string line = kClearLine + text(width_of_terminal());
    lock.unlock();  // a terminal may take its time
    err_ << line << std::flush;
    is_drawn = true;
    lock.lock();
  }
  if (is_drawn) err_ << kClearLine << std::flush;
}

std::string StatusLine::text(std::size_t width) {
  const Clock::time_point now = Clock::now();
  if (steps_) return shortened(steps_text(now), width);
  const std::string time = "  " + duration_text(seconds(now - start_));
  return shortened(what_, width - std::min(width, time.size())) + time;
}

std::string StatusLine::steps_text(Clock::time_point now) {
  const std::int64_t done = done_.load(std::memory_order_relaxed);
  const double now_s = seconds(now - steps_->start);
  steps_->remaining.note(done, now_s);
  std::string line = fmt::format(
      "{:3.0f} %  ", 100.0 * static_cast<double>(done) / static_cast<double>(steps_->count));
  if (!steps_->is_share) line += fmt::format("step {} of {}  ", done, steps_->count);
  const auto rate = steps_->remaining.rate();
  if (rate && !steps_->is_share) line += fmt::format("{:.3g} steps/s  ", *rate);
  line += duration_text(now_s);
  if (const auto left_s = steps_->remaining.left_s(now_s)) {
    line += fmt::format(", {} left", duration_text(*left_s));
  }
  return line;
}

}  // namespace portwave::cli
