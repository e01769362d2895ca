#pragma once

#include <limits>
#include <span>
#include <vector>

#include "portwave/runtime/step/events.hpp"

namespace portwave {

class StateArchive;

/// States of parts in records, and within a step that was tried.
class TriedStates {
 public:
  virtual int size_of(int part) const = 0;
  virtual void get_state(int part, const double* record, double* state) const = 0;
  /// One state of the step that leads to `x`, at θ from 0 to 1.
  virtual double within(int part, int state, double x, double theta) const = 0;
  /// Into how many equal pieces a step is divided, at whose ends states are looked at: as many as find all passages
  /// of what moves as fast as a step may be long.
  virtual int pieces() const { return 1; }
  /// Whether other quantities are known within a step as well as states are: `quantity` then is one of the step that
  /// was tried.
  virtual bool knows_quantities() const { return false; }
  virtual double quantity(const Sensor& /*of*/, double /*theta*/) const { return 0.0; }

 protected:
  ~TriedStates() = default;
};

/// Finds where in an attempted step a state, or another quantity that is known there, passes a watched level, so that
/// the step can be repeated with an end there. Many passages in a short while, as of a contact that chatters, are left
/// to the error of the step.
class CrossingSearch {
 public:
  /// Uses those of `watches` that watch states or quantities that are known. `record`: the initial state. `states` must
  /// outlive it.
  CrossingSearch(const TriedStates& states, std::span<const Watch> watches, double tolerance_s,
                 const double* record);

  bool empty() const { return levels_.empty() && others_.empty(); }
  /// The end of a step, and whether other equations hold after it.
  struct End {
    double time_s = std::numeric_limits<double>::infinity();
    bool changes_equations = false;
  };
  /// The time at which the step from `start_s`, attempted into `next` and taken into the estimate,
  /// should end, a little after a crossing; infinite where it may stay as it is. `usual_s`: the size
  /// of steps in use.
  End end_for(double start_s, double step_s, double usual_s, const double* next);
  /// The step that led to `end_s` was committed.
  void accept(double end_s, const double* record);
  void archive(StateArchive& archive);

 private:
  struct Level {
    int part;
    int state;
    double level;
    bool rising, falling;  ///< which of the two is an event
    bool changes_equations;
    int side = 0;
    double passed_s = -std::numeric_limits<double>::infinity();  ///< last time
  };
  struct QuantityLevel {
    Sensor of;
    Level level;          ///< without part and state
    int side_at_end = 0;  ///< of the attempted step
  };

  const double* state_of(int part, const double* record);
  /// θ just after the first passage in a direction that is asked for; infinite where there is none.
  double first_passage(const Level& level, const double* x) const;
  double first_passage(QuantityLevel& own) const;
  template <class SideAt>
  double first_passage(const Level& level, int before, const SideAt& side_at) const;

  const TriedStates& states_;
  double tolerance_s_;
  std::vector<Level> levels_;  // of states, by part
  std::vector<QuantityLevel> others_;
  std::vector<double> state_;  // scratch
};

}  // namespace portwave
