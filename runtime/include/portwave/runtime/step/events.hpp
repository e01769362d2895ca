#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "portwave/runtime/signals/signal_graph.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// A quantity that is watched: an event happens where it passes a level. It passes from one side to
/// the other; touching the level and going back is no event, nor is leaving it at the start.
struct Watch {
  enum class Direction { rising, falling, both };

  std::string name;
  Sensor of;
  int signal = -1;  ///< ≥ 0: this signal of the signal graph, in place of `of`
  double level = 0.0;
  Direction direction = Direction::both;
  bool changes_equations = false;  ///< a level of a part: other equations hold beyond it
  bool ends_run = false;           ///< calls that make several steps end with that of its event
  std::string rising = "rising", falling = "falling";  ///< the event's name in either direction

  bool wants(bool is_rising) const {
    return direction == Direction::both || (direction == Direction::rising) == is_rising;
  }
};

/// An event that a watch has seen in a step.
struct Event {
  int watch = 0;  ///< in Stepper::watches
  bool rising = true;
  /// The event's time. For a state with chosen step sizes: the root of the polynomial through the stages; the
  /// step ends at most StepSizes::event_tolerance_s later. For a signal: its sample time. Otherwise: on the
  /// straight line between the values at the ends of the step.
  double time_s = 0.0;

  friend constexpr std::array<std::size_t, 1> archive_flags(const Event*) {
    return {offsetof(Event, rising)};
  }
};

/// The events that a watch has seen since the start.
struct EventCount {
  std::int64_t rising = 0, falling = 0;
  double last_s = 0.0;  ///< time of the last event, 0 if there was none

  std::int64_t all() const { return rising + falling; }
};

}  // namespace portwave
