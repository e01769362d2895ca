#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "parallel/island_iteration.hpp"
#include "parallel/island_watch.hpp"
#include "portwave/coupling/waves/interface_solver.hpp"

namespace portwave {

/// The interface solver of a run for the step size in force; those for other sizes are kept with their step maps
/// (StepLevels). An island that was rescued takes the interface update for a number of steps (IslandWatch).
class InterfaceSolvers {
 public:
  /// Whether any island may take the interface update.
  static bool are_needed(const WaveCoupling& method);
  /// Errors: ConfigError if an island is to take the interface update and its factors would be too large.
  InterfaceSolvers(const WaveDiscretisation& waves, const WaveCoupling& method);

  /// Who helps with large solves (InterfaceSolver::share_with). Before any other size is in force.
  void share_with(const ForEach& each);

  /// The solver for the step size in force.
  InterfaceSolver& current() const { return *current_; }
  /// Whether some island takes the interface update in this step.
  bool is_any_engaged() const;
  /// Called between steps; `step` is the number of the next one. Islands that the last step has rescued, by
  /// `outcomes`, go on with the interface update; those whose time is over go back to their own.
  void watch(std::span<const IslandOutcome> outcomes, bool is_any_rescued, std::int64_t step);

  /// Puts the solver of another step size in force, whose step maps are, and returns the present one; null: a new one.
  std::unique_ptr<InterfaceSolver> exchange(std::unique_ptr<InterfaceSolver> other);
  /// Nothing is known of earlier steps any more.
  void restart();
  void archive_watch(StateArchive& archive) {
    watch_.archive(archive, static_cast<std::size_t>(waves_.system().island_count()));
  }

 private:
  std::unique_ptr<InterfaceSolver> make() const;

  const WaveDiscretisation& waves_;
  std::vector<int> islands_;  // that take the interface update from the start
  double target_;
  const ForEach* each_ = nullptr;  // null: nobody helps
  std::unique_ptr<InterfaceSolver> current_;
  IslandWatch watch_;
};

}  // namespace portwave
