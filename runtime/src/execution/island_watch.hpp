#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {

/// Islands of an automatic run that take the interface update for a while, because the update
/// chosen for them did not come to an end in a step: 64 steps, twice as many after every relapse.
/// By counts, never by the clock.
class IslandWatch {
 public:
  /// Before step `step` the island has been rescued.
  void hold(int island, std::int64_t step) {
    const auto known = std::ranges::find(held_, island, &Held::island);
    Held& held = known != held_.end() ? *known : held_.emplace_back(Held{island});
    held.until = step + held.period;
    held.released = false;
    held.period = std::min(2 * held.period, kLongest);
  }
  /// release(island) for those whose time is over.
  template <class Release>
  void pass(std::int64_t step, const Release& release) {
    for (Held& held : held_) {
      if (held.released || step < held.until) continue;
      held.released = true;
      release(held.island);
    }
  }
  void archive(StateArchive& archive) { archive.vector(held_); }

 private:
  static constexpr std::int64_t kLongest = std::int64_t{1} << 30;
  struct Held {
    int island = 0;
    std::int64_t period = 64;
    std::int64_t until = 0;
    bool released = true;
  };
  std::vector<Held> held_;  // as few as there are relapses
};

}  // namespace portwave
