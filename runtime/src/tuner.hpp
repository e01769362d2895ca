#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "portwave/coupling/tuning.hpp"

namespace portwave {

/// Resolves a method once, and says when its impedances have to follow the state. Decides by step
/// numbers and iteration counts, never by the clock.
class Tuner {
 public:
  /// Errors: ConfigError of choose_method.
  Tuner(const System& system, double step_s, const CouplingMethod& method);

  const MethodChoice& choice() const { return choice_; }

  /// What a step took: a count well above the one after the last tuning asks for a look.
  void observe(std::int64_t steps, int iterations, bool converged);
  /// Before step `steps`: other impedances by scalar port, if some of those in force are off by more
  /// than CouplingMethod::retune_factor.
  std::optional<std::vector<double>> retuned(
      std::int64_t steps, const std::function<std::span<const double>(int part)>& state_of);
  /// They are in force now.
  void accept(const std::vector<double>& by_port) { in_force_ = by_port; }

 private:
  MethodChoice choice_;
  std::optional<PortResponses> responses_;  // while impedances may have to follow
  std::vector<double> in_force_;
  std::int64_t interval_ = 1;
  std::int64_t last_look_ = 0;
  std::int64_t next_look_ = 1;
  int usual_iterations_ = 0;  // fewest since the last tuning
};

}  // namespace portwave
