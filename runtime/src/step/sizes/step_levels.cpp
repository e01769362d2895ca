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

bool has_impedance(const WaveDiscretisation& waves, std::span<const double> by_port) {
  for (std::size_t i = 0; i < by_port.size(); ++i) {
    const auto wave = static_cast<std::size_t>(waves.wave_of_port(static_cast<int>(i)));
    if (waves.impedance()[wave] != by_port[i]) return false;
  }
  return true;
}

}  // namespace

StepLevels::StepLevels(const System& stepped, double step_s, const WaveCoupling& method,
                       const Anytime& anytime)
    : system_(stepped) {
  levels_.push_back({step_s, Tuner(stepped, step_s, method, anytime), {}, nullptr, 0});
  current_ = levels_.begin();
}

void StepLevels::switch_to(double step_s, const InForce& own) {
  if (step_s == current_->step_s) return;
  const auto before = current_;
  auto next = std::ranges::find(levels_, step_s, &Level::step_s);
  const bool is_new = next == levels_.end();
  try {
    if (is_new) own.put(SingleSteps::without);
    if (is_new) next = make(step_s, own.waves);
    put_in_force(next, own);
    if (is_new) own.put(SingleSteps::arranged);
  } catch (...) {  // there are no steps of this size, or no damped ones
    own.put(SingleSteps::as_they_were);
    if (current_ != before) {
      put_in_force(before, own);
      levels_.erase(next);
    }
    throw;
  }
  next->last_use = ++uses_;
  if (own.interface != nullptr) {
    before->solver = own.interface->exchange(std::move(next->solver));
  }
  if (levels_.size() > kMostLevels) forget_oldest();
}

std::list<StepLevels::Level>::iterator StepLevels::make(double step_s,
                                                        const WaveDiscretisation& waves) {
  Level level{step_s, Tuner(system_, step_s, current_->tuner), {}, nullptr, 0};
  level.maps = waves.prepared_for(step_s, level.tuner.choice().method.waves().impedance);
  levels_.push_back(std::move(level));
  return std::prev(levels_.end());
}

void StepLevels::put_in_force(std::list<Level>::iterator next, const InForce& own) {
  current_->maps = own.waves.exchange(std::move(next->maps));
  current_ = next;
}

void StepLevels::forget_solvers() {
  for (Level& level : levels_) level.solver.reset();
}

void StepLevels::drop_others() {
  levels_.remove_if([this](const Level& level) { return &level != &*current_; });
}

void StepLevels::forget_oldest() {
  const auto is_older = [this](const Level& a, const Level& b) {
    return &a != &*current_ && (&b == &*current_ || a.last_use < b.last_use);
  };
  levels_.erase(std::ranges::min_element(levels_, is_older));
}

void StepLevels::leave(std::span<const double> by_port) {
  current_->tuner.leave(by_port);
  drop_others();
}

void StepLevels::leave_others() {
  drop_others();
  current_->tuner.check_soon();
}

void StepLevels::leave_others_after_change(std::int64_t steps) {
  drop_others();
  current_->tuner.check_after_change(steps);
}

void StepLevels::accept(const std::vector<double>& by_port) {
  current_->tuner.accept(by_port);
  drop_others();
}

std::vector<double> StepLevels::chosen_anew() const {
  const Tuner own(system_, current_->step_s, current_->tuner);
  return own.choice().method.waves().impedance;
}

bool StepLevels::archive(StateArchive& archive, const InForce& own) {
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
  bool is_changed = false;
  std::array<bool, kMostLevels + 1> has_solver = {};
  for (const Entry& entry : entries) {
    if (archive.reads()) {
      is_changed = is_changed || entry.step_s != current_->step_s;
      switch_to(entry.step_s, own);
    }
    const auto level = std::ranges::find(levels_, entry.step_s, &Level::step_s);
    // In the order of the archive, so that an archive of the result equals it.
    if (archive.reads()) levels_.splice(levels_.end(), levels_, level);
    level->tuner.archive(archive);
    level->last_use = entry.last_use;
    if (archive.reads()) {
      const std::vector<double>& wanted = tuner().choice().method.waves().impedance;
      archive.expect(wanted.size() == system_.scalar_ports().size(), "the number of impedances");
      if (!has_impedance(own.waves, wanted)) {
        own.waves.set_impedance(wanted);
        is_changed = true;
        if (own.interface != nullptr) own.interface->current().take_over_maps();
      }
    }
    if (own.interface == nullptr) continue;
    InterfaceSolver* const solver =
        level == current_ ? &own.interface->current() : level->solver.get();
    bool& is_there = has_solver[static_cast<std::size_t>(&entry - entries.data())];
    is_there = solver != nullptr;
    archive.value(is_there);
    archive.expect(is_there || level != current_ || &entry != &entries.back(),
                   "the solver of the step size in force");
    if (is_there) solver->archive(archive);
  }
  for (std::size_t k = 0; k < count && archive.reads(); ++k) {  // made while each was in force
    if (has_solver[k]) continue;
    const auto level = std::ranges::find(levels_, kept[k].step_s, &Level::step_s);
    if (level != levels_.end()) level->solver.reset();
  }
  uses_ = uses;
  if (archive.reads()) levels_.remove_if([&](const Level& level) { return !is_known(level); });
  return is_changed;
}

void StepLevels::set_iterations(int iterations) {
  for (Level& level : levels_) level.tuner.set_iterations(iterations);
}

}  // namespace portwave
