#pragma once

#include <functional>
#include <span>
#include <vector>

#include "portwave/runtime/step/events.hpp"

namespace PORTWAVE_EXPORT portwave {
struct StepperOptions;
}  // namespace portwave

namespace portwave {

class StateArchive;
class StepEngine;

/// All watches: those of the options, then those of the parts.
std::vector<Watch> watches_of(const System& system, const StepperOptions& options);

/// Finds, after every step, the quantities that have passed their level. It allocates at construction only.
class EventWatch {
 public:
  using Reader = std::function<double(const Watch&)>;

  EventWatch(std::vector<Watch> watches, Reader reader, const System& system);

  std::span<const Watch> watches() const { return watches_; }
  /// The states were set from outside: what jumped then is no event.
  void restart();
  /// Finds the events of the last step, which led from `start_s` to `end_s`.
  void look(StepEngine& engine, double start_s, double end_s);
  /// Events of the last step, in order of time.
  std::span<const Event> events() const { return events_; }
  std::span<const EventCount> counts() const { return counts_; }
  std::size_t bytes() const;
  void archive(StateArchive& archive);

 private:
  double time_of(const Watch& watch, double before, double after, int side, StepEngine& engine,
                 double start_s, double end_s);
  /// At a time within the last step. Precondition: it is known there.
  double value_at(const Watch& watch, StepEngine& engine, double time_s);

  std::vector<Watch> watches_;
  Reader reader_;
  std::vector<double> values_;  // each minus its level
  std::vector<int> sides_;      // last side that was not 0; 0: none yet
  std::vector<Event> events_;
  std::vector<EventCount> counts_;
  std::vector<double> state_;  // scratch
};

/// The side of a level on which a quantity lies, from its value minus that level: 1 above, −1 below, 0 on it.
inline int side_of(double value) { return value > 0.0 ? 1 : value < 0.0 ? -1 : 0; }
inline bool is_side(int side) { return side >= -1 && side <= 1; }

}  // namespace portwave
