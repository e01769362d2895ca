#include "step/sizes/size_control.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {
namespace {

/// Difference below which times or steps count as equal, relative to a step.
constexpr double kSameSize = 1e-9;
/// Error at which steps aim, and between which sizes stay.
constexpr double kAimed = 0.3, kLow = 0.1, kHigh = 0.7;
/// Powers of the present and the last error.
constexpr double kOfError = 0.7, kOfLast = 0.4;
/// Least errors that count as the present and as the last one.
constexpr double kLeast = 1e-4, kLeastLast = 0.03;
constexpr double kMostGrowth = 2.0, kMostShrinking = 0.1;

}  // namespace

SizeControl::SizeControl(double first_s, double largest_s, double smallest_s, int power)
    : largest_s_(largest_s),
      // Halving ends where numbers have no digits left.
      smallest_s_(std::max(smallest_s, std::numeric_limits<double>::min())),
      power_(power),
      step_s_(std::clamp(first_s, smallest_s_, largest_s)) {}

SizeControl::Next SizeControl::next(double now_s, double limit_s) const {
  const double left = limit_s - now_s;
  if (std::isinf(left)) return {step_s_, true, false};
  // Far from the origin of time a step is known to the rounding of the time only.
  const double slack =
      kSameSize * step_s_ + 8.0 * std::numeric_limits<double>::epsilon() * std::abs(limit_s);
  if (std::abs(left - step_s_) <= slack) return {left, true, true};
  if (left < step_s_) return {left, false, true};
  if (left < 2.0 * step_s_ - slack) return {0.5 * left, false, false};
  return {step_s_, true, false};
}

bool SizeControl::can_shrink(const Next& step, double now_s) const {
  const double half_s = 0.5 * step.step_s;
  return half_s >= smallest_s_ && now_s + half_s > now_s;
}

void SizeControl::accept(const Next& step, double error) {
  const double own = std::max(error, kLeast), last = last_error_ > 0.0 ? last_error_ : kAimed;
  last_error_ = std::max(own, kLeastLast);
  const bool may_grow = !was_rejected_;
  was_rejected_ = false;
  if (!step.is_whole || (own >= kLow && own <= kHigh)) return;
  double factor =
      std::pow(kAimed / own, kOfError / power_) * std::pow(last / kAimed, kOfLast / power_);
  factor = std::clamp(factor, kMostShrinking, may_grow ? kMostGrowth : 1.0);
  step_s_ = std::clamp(factor * step_s_, smallest_s_, largest_s_);
}

void SizeControl::reject(const Next& step, double error) {
  const double factor =
      std::isfinite(error) ? std::pow(kAimed / std::max(error, 1.0), 1.0 / power_) : 0.25;
  step_s_ = std::max(std::clamp(factor, kMostShrinking, 0.9) * step.step_s, smallest_s_);
  was_rejected_ = true;
  last_error_ = -1.0;
}

void SizeControl::halve(const Next& step) {
  step_s_ = std::max(0.5 * step.step_s, smallest_s_);
  last_error_ = -1.0;
}

void SizeControl::archive(StateArchive& archive) {
  archive.values(step_s_, was_rejected_, last_error_);
  archive.expect(step_s_ > 0.0 && step_s_ <= largest_s_, "the size of the next step");
}

}  // namespace portwave
