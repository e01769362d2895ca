#include "execution/step_levels.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace portwave {
namespace {

/// Sizes kept ready: a ladder's rungs, and some that lead up to events.
constexpr std::size_t kMostLevels = 24;

}  // namespace

StepLevels::StepLevels(const System& stepped, double step_s, const WaveCoupling& method)
    : system_(stepped) {
  levels_.push_back({step_s, Tuner(stepped, step_s, method), {}, 0});
  current_ = levels_.begin();
}

void StepLevels::switch_to(double step_s, WaveDiscretisation& waves) {
  if (step_s == current_->step_s) return;
  const auto next = find_or_make(step_s, waves);
  next->last_use = ++uses_;
  current_->maps = waves.exchange(std::move(next->maps));
  current_ = next;
  if (levels_.size() > kMostLevels) forget_oldest();
}

std::list<StepLevels::Level>::iterator StepLevels::find_or_make(double step_s,
                                                                const WaveDiscretisation& waves) {
  const auto found = std::ranges::find(levels_, step_s, &Level::step_s);
  if (found != levels_.end()) return found;
  Level level{step_s, Tuner(system_, step_s, current_->tuner), {}, 0};
  level.maps = waves.prepared_for(step_s, level.tuner.choice().method.waves().impedance);
  levels_.push_back(std::move(level));
  return std::prev(levels_.end());
}

bool StepLevels::has(double step_s) const {
  return std::ranges::find(levels_, step_s, &Level::step_s) != levels_.end();
}

void StepLevels::forget_oldest() {
  const auto is_older = [this](const Level& a, const Level& b) {
    return &a != &*current_ && (&b == &*current_ || a.last_use < b.last_use);
  };
  levels_.erase(std::ranges::min_element(levels_, is_older));
}

void StepLevels::leave(const std::vector<double>& by_port) {
  current_->tuner.leave(by_port);
  levels_.remove_if([this](const Level& level) { return &level != &*current_; });
}

void StepLevels::set_iterations(int iterations) {
  for (Level& level : levels_) level.tuner.set_iterations(iterations);
}

}  // namespace portwave
