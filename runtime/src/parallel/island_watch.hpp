#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {

/// Islands of an automatic run that take the interface update for a number of steps, because the update
/// chosen for them did not converge in time: 64 steps, and twice as many after every relapse. It counts steps
/// and never reads the clock.
class IslandWatch {
 public:
  /// Holds an island that was rescued in the step before `step`.
  void hold(int island, std::int64_t step) {
    const auto known = std::ranges::find(held_, island, &Held::island);
    Held& held = known != held_.end() ? *known : held_.emplace_back(Held{island});
    held.until = step + held.period;
    held.released = false;
    held.period = std::min(2 * held.period, kLongest);
  }
  /// Calls release(island) for every held island whose time is over at step `step`.
  template <class Release>
  void pass(std::int64_t step, const Release& release) {
    for (Held& held : held_) {
      if (held.released || step < held.until) continue;
      held.released = true;
      release(held.island);
    }
  }
  /// `islands`: how many there are.
  void archive(StateArchive& archive, std::size_t islands) {
    archive.vector(held_);
    archive.expect(held_.size() <= islands, "the number of islands that are held");
    for (const Held& held : held_) {
      archive.expect(held.island >= 0 && static_cast<std::size_t>(held.island) < islands,
                     "the number of an island");
      archive.expect(held.period >= 1 && held.period <= kLongest, "how long an island is held");
      archive.expect_counts({held.until}, "the step until which an island is held");
    }
  }

 private:
  static constexpr std::int64_t kLongest = std::int64_t{1} << 30;
  struct Held {
    int island = 0;
    std::int64_t period = 64;
    std::int64_t until = 0;
    bool released = true;

    friend constexpr std::array<std::size_t, 1> archive_flags(const Held*) {
      return {offsetof(Held, released)};
    }
  };
  std::vector<Held> held_;  // one for each island that was ever rescued
};

}  // namespace portwave
