#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "portwave/coupling/impedance/tuning.hpp"

namespace portwave {

class StateArchive;

/// Resolves a method once, and decides when its impedances must follow the state. Decides by step
/// numbers and iteration counts, never by the clock.
class Tuner {
 public:
  /// Errors: ConfigError of choose_method.
  Tuner(const System& system, double step_s, const WaveCoupling& method);
  /// For steps of another size, by the choice of `like`: impedances by the same rules, and no other
  /// candidates. Rates are those of `like`. Errors: ConfigError if a part has no response.
  Tuner(const System& system, double step_s, const Tuner& like);

  const MethodChoice& choice() const { return choice_; }
  /// Evaluations of S in a step: the budget, or the prediction if a tolerance is to end it.
  int expected_iterations() const;
  bool follows_state() const { return follows_; }

  /// The effort of a step: a count well above the one after the last check, or a tolerance that was not met,
  /// asks for another check; an island that had to be rescued, for an immediate one.
  void observe(std::int64_t steps, int iterations, bool converged, bool rescued);
  /// Before step `steps`: other impedances by scalar port, if some of those in force are off by
  /// more than WaveCoupling::retune_factor.
  std::optional<std::vector<double>> retuned(
      std::int64_t steps, const std::function<std::span<const double>(int part)>& state_of);
  /// The new impedances are now in force.
  void accept(const std::vector<double>& by_port) { choice_.method.waves().impedance = by_port; }
  /// The new impedances were not available: the next check is a long time off.
  void refuse(std::int64_t steps);
  /// Other impedances are in force, and stay so.
  void leave(std::span<const double> by_port);
  void set_iterations(int iterations) { choice_.method.waves().iterations = iterations; }
  /// A part of the system was exchanged. Impedances stay as they are, until those that follow the state are
  /// checked before the next step.
  void component_changed(const System& system, double step_s);
  /// Changes made by a run: the impedances in force, the budget, and the time of the next check.
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
