#include "step/waves/interface_solvers.hpp"

#include <numeric>
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
    : waves_(waves),
      islands_(method.interface_islands),
      target_(method.tolerance > 0.0 ? method.tolerance : 1e-10) {
  if (method.kind == WaveUpdate::interface) {
    islands_.resize(at(waves.system().island_count()));
    std::iota(islands_.begin(), islands_.end(), 0);
  }
  restart();
}

void InterfaceSolvers::restart() {
  current_ = make();
  watch_ = {};
  for (const int island : islands_) {
    if (current_->use(island, true)) continue;
    throw ConfigError(
        "/method/kind",
        fmt::format("\"interface\": the factors of island {} would take more than 1 GiB", island));
  }
}

std::unique_ptr<InterfaceSolver> InterfaceSolvers::make() const {
  auto solver = std::make_unique<InterfaceSolver>(waves_, target_);
  if (each_ != nullptr) solver->share_with(*each_);
  return solver;
}

void InterfaceSolvers::share_with(const ForEach& each) {
  each_ = &each;
  current_->share_with(each);
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

std::unique_ptr<InterfaceSolver> InterfaceSolvers::exchange(
    std::unique_ptr<InterfaceSolver> other) {
  std::unique_ptr<InterfaceSolver> before =
      std::exchange(current_, other != nullptr ? std::move(other) : make());
  for (int i = 0; i < waves_.system().island_count(); ++i) {
    if (current_->is_used(i) != before->is_used(i)) current_->use(i, before->is_used(i));
  }
  return before;
}

}  // namespace portwave
