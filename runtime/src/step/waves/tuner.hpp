#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "portwave/coupling/impedance/tuning.hpp"

namespace portwave {

class StateArchive;

/// Resolves a method once, and decides when its impedances must follow the state: by step numbers and
/// iteration counts, never by the clock.
class Tuner {
 public:
  /// `anytime`: as in choose_method. Errors: ConfigError of choose_method.
  Tuner(const System& system, double step_s, const WaveCoupling& method,
        const Anytime& anytime = {});
  /// For steps of another size: impedances by the rules that `like` has chosen, without trying others. The
  /// predicted rates are those of `like`. Errors: ConfigError if a part has no response.
  Tuner(const System& system, double step_s, const Tuner& like);

  const MethodChoice& choice() const { return choice_; }
  /// Expected evaluations of S in a step: the prediction if a tolerance is to end the iteration, else the
  /// budget.
  int expected_iterations() const;
  bool follows_state() const { return follows_; }
  /// Whether `retuned` has something to do before step `steps`.
  bool is_due(std::int64_t steps) const { return follows_ && steps >= next_check_; }

  /// Notes the effort of a step. A count well above the lowest since the last check, or a missed tolerance,
  /// makes the next check come earlier; a rescued island makes it come at once.
  void observe(std::int64_t steps, int iterations, bool converged, bool rescued);
  /// Called before step `steps`. Checks the impedances if that is due, and returns others, by scalar port, if
  /// some in force are off by more than WaveCoupling::retune_factor.
  std::optional<std::vector<double>> retuned(
      std::int64_t steps, const std::function<std::span<const double>(int part)>& state_of);
  /// What a check does, for the states of the start, to find out what it takes; without any effect.
  void rehearse(const std::function<std::span<const double>(int part)>& state_of);
  /// The new impedances are now in force.
  void accept(const std::vector<double>& by_port) { choice_.method.waves().impedance = by_port; }
  /// The new impedances could not be put in force: the next check comes much later.
  void refuse(std::int64_t steps);
  /// Other impedances were set from outside. They stay in force, and are not checked any more.
  void leave(std::span<const double> by_port);
  void set_iterations(int iterations) { choice_.method.waves().iterations = iterations; }
  /// A part of the system was exchanged. Errors: ConfigError where it has no response, nothing having changed.
  void component_changed(int part) {
    if (responses_) responses_->component_changed(part);
  }
  /// Impedances do not change now; those that follow the state are checked before the next step.
  void check_soon() { next_check_ = responses_ ? 0 : next_check_; }
  /// The same after a part has changed, but not sooner after the last check than an effort that has grown may ask
  /// for one (`observe`): a part may change before every step.
  void check_after_change(std::int64_t steps) {
    if (responses_) next_check_ = std::min(next_check_, std::max(steps, last_check_ + patience_));
  }
  /// Changes made by a run: the impedances in force, the budget, and the time of the next check.
  void archive(StateArchive& archive);

 private:
  MethodChoice choice_;
  bool is_given_ = false;                   // impedances were given, not tuned
  std::optional<PortResponses> responses_;  // if impedances may have to follow the state
  bool follows_ = false;                    // impedances follow the state
  std::int64_t interval_ = 1;
  std::int64_t last_check_ = 0;
  std::int64_t next_check_ = 1;
  std::int64_t patience_ = 1;  // least number of steps from a check to one that `observe` asks for
  int usual_iterations_ = 0;   // fewest since the last check
};

}  // namespace portwave
