#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "portwave/coupling/impedance/tuning.hpp"

namespace portwave {

class StateArchive;

/// Resolves a method once, and says when its impedances have to follow the state. Decides by step
/// numbers and iteration counts, never by the clock.
class Tuner {
 public:
  /// Errors: ConfigError of choose_method.
  Tuner(const System& system, double step_s, const WaveCoupling& method);
  /// For steps of another size, by what `like` has chosen: impedances by the same rules, and no
  /// look at others. Rates are those of `like`. Errors: ConfigError where a part has no response.
  Tuner(const System& system, double step_s, const Tuner& like);

  const MethodChoice& choice() const { return choice_; }
  /// Evaluations of S in a step: the budget, or what is predicted if a tolerance is to end it.
  int expected_iterations() const;
  bool follows_state() const { return follows_; }

  /// What a step took: a count well above the one after the last look, or a tolerance that was not
  /// met, asks for another look; an island that had to be rescued, for one at once.
  void observe(std::int64_t steps, int iterations, bool converged, bool rescued);
  /// Before step `steps`: other impedances by scalar port, if some of those in force are off by
  /// more than WaveCoupling::retune_factor.
  std::optional<std::vector<double>> retuned(
      std::int64_t steps, const std::function<std::span<const double>(int part)>& state_of);
  /// They are in force now.
  void accept(const std::vector<double>& by_port) { choice_.method.waves().impedance = by_port; }
  /// They could not be had: the next look is a long time off.
  void refuse(std::int64_t steps);
  /// Others are in force, and stay so.
  void leave(std::span<const double> by_port);
  void set_iterations(int iterations) { choice_.method.waves().iterations = iterations; }
  /// A part of the system has become another one. Impedances stay as they are, until those that
  /// follow the state are looked at before the next step.
  void component_changed(const System& system, double step_s);
  /// What a run has changed: the impedances in force, the budget, and when it looks again.
  void archive(StateArchive& archive);

 private:
  MethodChoice choice_;
  bool is_given_ = false;                   // the impedances
  std::optional<PortResponses> responses_;  // where impedances may have to follow
  bool follows_ = false;                    // they do
  std::int64_t interval_ = 1;
  std::int64_t last_check_ = 0;
  std::int64_t next_check_ = 1;
  std::int64_t patience_ = 1;  // steps between a look that found nothing and one that is asked for
  int usual_iterations_ = 0;   // fewest since the last look
};

}  // namespace portwave
