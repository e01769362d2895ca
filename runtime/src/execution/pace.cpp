#include "execution/pace.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace portwave {

Pace::Pace(double interval_s, std::function<bool()> interrupted)
    : interval_s_(interval_s), interrupted_(std::move(interrupted)) {}

Pace::Clock::time_point Pace::due(std::int64_t step) const {
  return start_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
                      interval_s_ * static_cast<double>(step - first_)));
}

Pace::Clock::time_point Pace::await(std::int64_t step) {
  Clock::time_point now = Clock::now();
  if (!(interval_s_ > 0.0)) return now;
  if (!begun_) {
    begun_ = true;
    start_ = now;
    first_ = step;
  }
  const Clock::time_point due_at = due(step);
  // Sleeping is coarse: the last stretch is spun.
  constexpr std::chrono::microseconds kCoarse{100};
  constexpr std::chrono::milliseconds kSlice{50};
  const auto interrupted = [&] { return interrupted_ && interrupted_(); };
  while (now + kCoarse < due_at && !interrupted()) {
    std::this_thread::sleep_until(std::min(due_at - kCoarse, now + kSlice));
    now = Clock::now();
  }
  while (now < due_at && !interrupted()) now = Clock::now();
  return now;
}

double Pace::left_s(std::int64_t step, Clock::time_point now) const {
  if (!(interval_s_ > 0.0)) return std::numeric_limits<double>::infinity();
  return std::chrono::duration<double>(due(step + 1) - now).count();
}

}  // namespace portwave
