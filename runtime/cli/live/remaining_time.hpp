#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include <fmt/format.h>

namespace portwave::cli {

/// How long a run will take yet, judged by what its steps have taken so far. Knows no clock: times
/// are passed in, in seconds from the first step's beginning, and do not fall.
///
/// A window of a dynamic iteration is computed in its first step, and its other steps take next to
/// nothing. So it is windows that are counted: one is done when its first step is. Methods without
/// windows have windows of one step.
class RemainingTime {
 public:
  RemainingTime(std::int64_t steps, std::int64_t window_steps)
      : steps_(steps), window_(std::max<std::int64_t>(window_steps, 1)) {}

  /// `done` steps were committed by `now_s`.
  void note(std::int64_t done, double now_s) {
    const std::int64_t work = std::min((done + window_ - 1) / window_ * window_, steps_);
    if (work <= work_) return;
    const double took_s = now_s - at_s_;
    // What was done first also took the time to touch all memory: it counts while there is nothing
    // else.
    const double kept = work_ > 0 && !only_first_ ? std::exp(-took_s / memory_s(now_s)) : 0.0;
    only_first_ = work_ == 0;
    time_s_ = kept * time_s_ + took_s;
    amount_ = kept * amount_ + static_cast<double>(work - work_);
    work_ = work;
    at_s_ = now_s;
  }

  /// Steps per second, lately; nothing before there is evidence: half a second, and three windows
  /// or a twentieth of the run.
  std::optional<double> rate() const {
    constexpr double kEvidence_s = 0.5;
    const bool is_known = at_s_ >= kEvidence_s && (work_ >= 3 * window_ || 20 * work_ >= steps_);
    return is_known && time_s_ > 0.0 ? std::optional(amount_ / time_s_) : std::nullopt;
  }

  /// Falls by a second each second while a window takes no longer than those before it, and rises
  /// slowly where it does. Nothing before there is evidence, and where the last window takes
  /// longer.
  std::optional<double> left_s(double now_s) const {
    const std::optional<double> steps_per_s = rate();
    if (!steps_per_s || work_ >= steps_) return std::nullopt;
    const auto next = static_cast<double>(std::min(window_, steps_ - work_));
    const auto after_next = static_cast<double>(steps_ - work_) - next;
    const double since_s = std::max(now_s - at_s_, 0.0);
    if (since_s <= next / *steps_per_s) return (next + after_next) / *steps_per_s - since_s;
    if (after_next == 0.0) return std::nullopt;
    return after_next * (time_s_ + since_s) / (amount_ + next);
  }

 private:
  /// What is longer ago counts for less: runs get slower and faster.
  static double memory_s(double now_s) { return std::max(5.0, 0.25 * now_s); }

  std::int64_t steps_;
  std::int64_t window_;
  std::int64_t work_ = 0;  ///< steps of the windows that are done
  double at_s_ = 0.0;      ///< when they were
  double time_s_ = 0.0;    ///< of `amount_` steps, lately
  double amount_ = 0.0;
  bool only_first_ = false;  ///< the two are those of the first time that something was noted
};

/// "42 s", "3 min 20 s", "2 h 5 min", "12 days".
inline std::string duration_text(double time_s) {
  constexpr double kMost_s = 1000.0 * 86400.0;
  if (!(time_s < kMost_s)) return "more than 1000 days";
  const auto s = static_cast<std::int64_t>(std::llround(std::max(time_s, 0.0)));
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {} s", s / 60, s % 60);
  if (s < 100 * 3600) return fmt::format("{} h {} min", s / 3600, s % 3600 / 60);
  return fmt::format("{} days", (s + 43200) / 86400);
}

}  // namespace portwave::cli
