#include "step/sizes/step_control.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {
namespace {

/// Difference below which times or steps count as equal, relative to a step.
constexpr double kSame = 1e-9;
/// Share of the tolerance at which the next step is aimed.
constexpr double kAim = 0.5;
constexpr int kStepsBeforeGrowth = 3;
/// After a rejection; more if growing has just proved too much.
constexpr int kLeastPatience = 8, kMostPatience = 128;
/// Most rungs that one rejection goes down.
constexpr int kMostRungs = 6;

}  // namespace

StepControl::StepControl(double largest_s, double smallest_s, int power)
    : largest_s_(largest_s),
      // Halving ends where numbers have no digits left.
      smallest_s_(std::max(smallest_s, std::numeric_limits<double>::min())),
      power_(power),
      step_s_(largest_s) {}

StepControl::Next StepControl::next(double now_s, double limit_s) const {
  const double left = limit_s - now_s;
  if (std::isinf(left)) return {step_s_, true, false};
  // Far from the origin of time a step is known to the rounding of the time only.
  const double slack =
      kSame * step_s_ + 8.0 * std::numeric_limits<double>::epsilon() * std::abs(limit_s);
  if (std::abs(left - step_s_) <= slack) return {step_s_, true, true};
  if (left < step_s_) return {left, false, true};
  if (left < 2.0 * step_s_ - slack) return {0.5 * left, false, false};
  return {step_s_, true, false};
}

bool StepControl::can_have(double step_s) const {
  return step_s > 0.0 && step_s <= largest_s_ * (1.0 + kSame);
}

void StepControl::accept(const Next& step, double error) {
  // The extrapolated error of the next step of this size.
  double expected = error;
  if (last_error_ > 0.0 && error > 0.0) {
    expected *= std::sqrt(std::clamp(error / last_error_, 0.25, 4.0));
  }
  last_error_ = error;
  ++since_change_;
  ++since_rejection_;
  if (step.reaches_limit) {
    position_ = 0;
  } else if (step.on_ladder) {
    ++position_;
  }
  if (!step.on_ladder) return;
  if (expected > 1.0) {
    take_back_growth();
    return shrink(1);
  }
  const bool is_calm = since_change_ >= kStepsBeforeGrowth && since_rejection_ >= patience_;
  const bool has_rung = position_ % 2 == 0 && 2.0 * step_s_ <= largest_s_ * (1.0 + kSame);
  if (!is_calm || !has_rung || expected * std::exp2(power_) > kAim) return;
  step_s_ *= 2.0;
  position_ /= 2;
  since_change_ = 0;
  has_grown_ = true;
  last_error_ =
      -1.0;  // the first estimate after a change, over steps of both sizes, is a large one
}

void StepControl::reject(const Next& step, double error) {
  take_back_growth();
  if (!step.on_ladder) shrink_below(step.step_s);
  const double wanted = std::log2(std::max(error, 1.0) / kAim) / power_;
  const bool is_known = std::isfinite(wanted);
  shrink(is_known ? std::clamp(static_cast<int>(std::ceil(wanted)), 1, kMostRungs) : kMostRungs);
  last_error_ = -1.0;
}

/// The next growth waits, and longer if the last one has just proved too much.
void StepControl::take_back_growth() {
  since_rejection_ = 0;
  const bool was_rash = has_grown_ && since_change_ < kMostPatience / 2;
  patience_ = was_rash ? std::clamp(2 * patience_, kLeastPatience, kMostPatience) : kLeastPatience;
}

/// To the first rung that is no longer than a step that was not on the ladder.
void StepControl::shrink_below(double step_s) {
  while (step_s_ > step_s * (1.0 + kSame)) {
    step_s_ *= 0.5;
    position_ *= 2;
  }
}

void StepControl::archive(StateArchive& archive) {
  archive.values(step_s_, position_, since_change_, since_rejection_, patience_, has_grown_,
                 last_error_);
  archive.expect(can_have(step_s_), "the size of the next step");
  archive.expect(patience_ >= 0 && patience_ <= kMostPatience,
                 "the number of steps before the next growth");
  archive.expect_counts({since_change_, since_rejection_}, "the number of steps since a change");
}

void StepControl::shrink(int rungs) {
  for (int i = 0; i < rungs && can_shrink(); ++i) {
    step_s_ *= 0.5;
    position_ *= 2;
  }
  since_change_ = 0;
  has_grown_ = false;
}

}  // namespace portwave
