#include "progress.hpp"

#include <ostream>

#include <fmt/core.h>

namespace portwave::cli {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(200);
constexpr const char* kClearLine = "\r\x1b[K";

}  // namespace

Progress::Progress(std::ostream& err, bool live, std::int64_t steps)
    : err_(err), live_(live), steps_(steps), start_(Clock::now()), due_(start_ + kInterval) {}

Progress::~Progress() {
  if (drawn_) err_ << kClearLine << std::flush;
}

void Progress::redraw_when_due(std::int64_t done) {
  const auto now = Clock::now();
  if (now < due_) return;
  due_ = now + kInterval;
  const double rate =
      static_cast<double>(done) / std::chrono::duration<double>(now - start_).count();
  const double left_s = static_cast<double>(steps_ - done) / rate;
  err_ << kClearLine
       << fmt::format("{:3.0f} %  step {} of {}  {:.3g} steps/s  {:.0f} s left",
                      100.0 * static_cast<double>(done) / static_cast<double>(steps_), done, steps_,
                      rate, left_s)
       << std::flush;
  drawn_ = true;
}

}  // namespace portwave::cli
