#include "step/sizes/step_levels.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {
namespace {

/// Sizes kept ready: a ladder's rungs, and some that lead up to events.
constexpr std::size_t kMostLevels = 24;

}  // namespace

StepLevels::StepLevels(const System& stepped, double step_s, const WaveCoupling& method,
                       const Anytime& anytime)
    : system_(stepped) {
  levels_.push_back({step_s, Tuner(stepped, step_s, method, anytime), {}, 0});
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

void StepLevels::drop(double step_s) {
  levels_.remove_if([&](const Level& level) { return level.step_s == step_s; });
}

void StepLevels::forget_oldest() {
  const auto is_older = [this](const Level& a, const Level& b) {
    return &a != &*current_ && (&b == &*current_ || a.last_use < b.last_use);
  };
  levels_.erase(std::ranges::min_element(levels_, is_older));
}

void StepLevels::leave(std::span<const double> by_port) {
  current_->tuner.leave(by_port);
  levels_.remove_if([this](const Level& level) { return &level != &*current_; });
}

void StepLevels::leave_others() {
  levels_.remove_if([this](const Level& level) { return &level != &*current_; });
  current_->tuner.check_soon();
}

void StepLevels::leave_others_after_change(std::int64_t steps) {
  levels_.remove_if([this](const Level& level) { return &level != &*current_; });
  current_->tuner.check_after_change(steps);
}

void StepLevels::accept(const std::vector<double>& by_port) {
  current_->tuner.accept(by_port);
  levels_.remove_if([this](const Level& level) { return &level != &*current_; });
}

std::vector<double> StepLevels::chosen_anew() const {
  const Tuner own(system_, current_->step_s, current_->tuner);
  return own.choice().method.waves().impedance;
}

void StepLevels::archive(StateArchive& archive, WaveDiscretisation& waves, const Visit& visit) {
  struct Entry {
    double step_s;
    std::int64_t last_use;
  };
  std::array<Entry, kMostLevels + 1> kept;
  std::uint64_t count = 0;
  for (const Level& level : levels_) {
    if (archive.reads()) break;
    if (&level != &*current_) kept[count++] = {level.step_s, level.last_use};
  }
  std::int64_t uses = uses_;
  archive.values(uses, count);
  archive.expect(count <= kMostLevels, "the number of step sizes in use");
  archive.array(std::span(kept.data(), count));
  kept[count] = {current_->step_s, current_->last_use};
  archive.value(kept[count++]);
  const std::span<const Entry> entries(kept.data(), count);
  archive.expect_counts({uses}, "the number of changes of the step size");
  for (const Entry& entry : entries) {
    archive.expect(entry.step_s > 0.0 && std::isfinite(entry.step_s), "a step size in use");
  }
  const auto is_known = [&](const Level& level) {
    return std::ranges::find(entries, level.step_s, &Entry::step_s) != entries.end();
  };
  if (archive.reads()) {  // the first to be forgotten
    for (Level& level : levels_) level.last_use = -1;
  }
  for (const Entry& entry : entries) {
    if (archive.reads()) {
      const bool is_new = !has(entry.step_s);
      switch_to(entry.step_s, waves);
      visit.switched(entry.step_s, is_new);
    }
    const auto level = std::ranges::find(levels_, entry.step_s, &Level::step_s);
    // In the order of the archive, so that an archive of the result equals it.
    if (archive.reads()) levels_.splice(levels_.end(), levels_, level);
    level->tuner.archive(archive);
    level->last_use = entry.last_use;
    visit.tuned(entry.step_s);
  }
  uses_ = uses;
  if (archive.reads()) levels_.remove_if([&](const Level& level) { return !is_known(level); });
}

void StepLevels::set_iterations(int iterations) {
  for (Level& level : levels_) level.tuner.set_iterations(iterations);
}

}  // namespace portwave
