#pragma once

#include <string>
#include <utility>
#include <vector>

#include "adapters/fmi/instance/fmu_instance.hpp"

namespace portwave::fmi {

/// When periodic clocks tick: at start + shift + n interval, n = 0, 1, ... Ticks are at beginnings of steps.
class ClockTicks {
 public:
  explicit ClockTicks(std::vector<ClockUse> clocks) : clocks_(std::move(clocks)) {}

  std::vector<ClockUse>& clocks() { return clocks_; }
  const std::vector<ClockUse>& clocks() const { return clocks_; }
  void start_at(double start_s) { start_s_ = start_s; }
  /// The clocks that tick at the beginning of a step. `refusal`: one ticks within it.
  ClockMask at(double time_s, double step_s, std::string& refusal) const;

 private:
  std::vector<ClockUse> clocks_;
  double start_s_ = 0.0;
};

}  // namespace portwave::fmi
