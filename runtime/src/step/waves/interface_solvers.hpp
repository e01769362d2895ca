#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "parallel/island_iteration.hpp"
#include "parallel/island_watch.hpp"
#include "portwave/coupling/waves/interface_solver.hpp"
#include "step/sizes/step_levels.hpp"

namespace portwave {

/// The interface solvers of a run, one for each step size, because factors are valid for one step size only.
/// An island that was rescued takes the interface update for a number of steps (IslandWatch).
class InterfaceSolvers {
 public:
  /// Whether any island may take the interface update.
  static bool are_needed(const WaveCoupling& method);
  /// Errors: ConfigError if an island is to take the interface update and its factors would be too large.
  InterfaceSolvers(const WaveDiscretisation& waves, const WaveCoupling& method);

  /// Who helps with large solves (InterfaceSolver::share_with), at all step sizes.
  void share_with(const ForEach& each);

  /// The solver for the step size in force.
  InterfaceSolver& current() const { return *current_; }
  /// Whether some island takes the interface update in this step.
  bool is_any_engaged() const;
  /// Called between steps; `step` is the number of the next one. Islands that the last step has rescued, by
  /// `outcomes`, go on with the interface update; those whose time is over go back to their own.
  void watch(std::span<const IslandOutcome> outcomes, bool is_any_rescued, std::int64_t step);

  /// The step size changed from `old_step_s`; solvers of the other sizes in `levels` are kept.
  void change(double old_step_s, const StepLevels& levels);
  /// Discards the solvers for other step sizes, which are out of date.
  void forget_others() { others_.clear(); }
  void forget_others_but(const StepLevels& levels) {
    std::erase_if(others_, [&](const auto& own) { return !levels.has(own.first); });
  }

  // Parts of the archive of all step sizes (StepLevels::archive).
  /// Makes the solver for the step size in force the current one, and returns the previous one.
  const InterfaceSolver& exchange(double old_step_s);
  void archive(StateArchive& archive, double step_s);
  void archive_watch(StateArchive& archive) {
    watch_.archive(archive, static_cast<std::size_t>(waves_.system().island_count()));
  }

 private:
  std::unique_ptr<InterfaceSolver> make() const;
  void use(int island);

  const WaveDiscretisation& waves_;
  double target_;
  const ForEach* each_ = nullptr;  // null: nobody helps
  std::unique_ptr<InterfaceSolver> current_;
  std::map<double, std::unique_ptr<InterfaceSolver>> others_;  // by step size
  IslandWatch watch_;
};

}  // namespace portwave
