#include "parallel/pace.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "parallel/clock.hpp"

namespace portwave {

Pace::Pace(double pace, std::function<bool()> interrupted)
    : pace_(pace), interrupted_(std::move(interrupted)) {}

Pace::Clock::time_point Pace::due(double time_s) const {
  return start_ + std::chrono::duration_cast<Clock::duration>(
                      std::chrono::duration<double>((time_s - first_s_) / pace_));
}

Pace::Clock::time_point Pace::await(double time_s) {
  Clock::time_point now = portwave::Clock::now();
  if (!(pace_ > 0.0)) return now;
  if (!begun_) {
    begun_ = true;
    start_ = now;
    first_s_ = time_s;
  }
  const Clock::time_point due_at = due(time_s);
  if (portwave::Clock::pass_until(due_at)) return std::max(now, due_at);
  // Sleeping is coarse: the last stretch is spun.
  constexpr std::chrono::microseconds kCoarse{100};
  constexpr std::chrono::milliseconds kSlice{50};
  const auto interrupted = [&] { return interrupted_ && interrupted_(); };
  while (now + kCoarse < due_at && !interrupted()) {
    std::this_thread::sleep_until(std::min(due_at - kCoarse, now + kSlice));
    now = portwave::Clock::now();
  }
  while (now < due_at && !interrupted()) now = portwave::Clock::now();
  return now;
}

double Pace::left_s(double time_s, Clock::time_point now) const {
  if (!(pace_ > 0.0)) return std::numeric_limits<double>::infinity();
  return std::chrono::duration<double>(due(time_s) - now).count();
}

}  // namespace portwave
