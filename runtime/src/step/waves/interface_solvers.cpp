#include "step/waves/interface_solvers.hpp"

#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {

bool InterfaceSolvers::are_needed(const WaveCoupling& method) {
  return method.kind == WaveUpdate::interface || !method.interface_islands.empty() ||
         method.rescue_after != 0;
}

InterfaceSolvers::InterfaceSolvers(const WaveDiscretisation& waves, const WaveCoupling& method)
    : waves_(waves), target_(method.tolerance > 0.0 ? method.tolerance : 1e-10), current_(make()) {
  const int islands = waves_.system().island_count();
  for (int i = 0; method.kind == WaveUpdate::interface && i < islands; ++i) use(i);
  for (const int island : method.interface_islands) use(island);
}

std::unique_ptr<InterfaceSolver> InterfaceSolvers::make() const {
  auto solver = std::make_unique<InterfaceSolver>(waves_, target_);
  if (each_ != nullptr) solver->share_with(*each_);
  return solver;
}

void InterfaceSolvers::share_with(const ForEach& each) {
  each_ = &each;
  current_->share_with(each);
  for (const auto& [step_s, solver] : others_) solver->share_with(each);
}

void InterfaceSolvers::use(int island) {
  if (current_->use(island, true)) return;
  throw ConfigError(
      "/method/kind",
      fmt::format("\"interface\": the factors of island {} would take more than 1 GiB", island));
}

bool InterfaceSolvers::is_any_engaged() const {
  for (int i = 0; i < waves_.system().island_count(); ++i) {
    if (current_->engaged(i)) return true;
  }
  return false;
}

void InterfaceSolvers::watch(std::span<const IslandOutcome> outcomes, bool is_any_rescued,
                             std::int64_t step) {
  for (std::size_t i = 0; is_any_rescued && i < outcomes.size(); ++i) {
    if (!outcomes[i].rescued) continue;
    current_->use(static_cast<int>(i), true);
    watch_.hold(static_cast<int>(i), step);
  }
  watch_.pass(step, [this](int island) { current_->use(island, false); });
}

void InterfaceSolvers::change(double old_step_s, const StepLevels& levels) {
  const InterfaceSolver& before = exchange(old_step_s);
  for (int i = 0; i < waves_.system().island_count(); ++i) {
    if (current_->is_used(i) != before.is_used(i)) current_->use(i, before.is_used(i));
  }
  // Solvers for sizes that are no longer prepared would refer to maps that are gone.
  forget_others_but(levels);
}

const InterfaceSolver& InterfaceSolvers::exchange(double old_step_s) {
  std::unique_ptr<InterfaceSolver> before = std::move(current_);
  auto kept = others_.extract(waves_.step_s());
  current_ = kept.empty() ? make() : std::move(kept.mapped());
  return *(others_[old_step_s] = std::move(before));
}

void InterfaceSolvers::archive(StateArchive& archive, double step_s) {
  // Where parts have changed since, the solvers of other sizes are made again when they are needed.
  const auto other = others_.find(step_s);
  const bool is_current = step_s == waves_.step_s();
  bool is_there = is_current || other != others_.end();
  archive.value(is_there);
  if (is_there) return (is_current ? *current_ : *other->second).archive(archive);
  if (archive.reads()) current_ = make();  // of the size that is read
}

}  // namespace portwave
