#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "portwave/coupling/network/network_model.hpp"
#include "portwave/coupling/network/network_trials.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "step/sizes/crossing_search.hpp"
#include "step/sizes/input_changes.hpp"
#include "step/sizes/input_pulses.hpp"
#include "step/sizes/motion_scales.hpp"
#include "step/sizes/size_control.hpp"

namespace portwave {

/// As AdaptiveSteps for methods without waves: takes steps whose local error keeps to a tolerance. Steps end at jumps
/// and kinks of inputs and where watched states pass their level, and do not pass over pulses of inputs.
class TrialSteps final : private TriedStates {
 public:
  /// `method` and `trials` are one object, `given` is its system; both must outlive it, and so must the model.
  TrialSteps(const NetworkModel& model, NetworkMethod& method, NetworkTrials& trials,
             const StepSizes& sizes, double largest_s, std::span<const Watch> watches);

  /// The largest error of one step, for a method of this order.
  static double tolerance_of_step(const StepSizes& sizes, int order);

  /// One step, which does not go beyond `limit_s`; its size, error and rejections are in the report. Errors:
  /// NetworkFault, the state being as before.
  NetworkStep step(double limit_s, const ForEach& each, StepReport& report);

  /// An input has jumped: the last step says nothing about the growth of errors.
  void inputs_jump() { control_.forget(); }
  /// The states were set from outside.
  void restart();
  /// A part was exchanged: these are the same network with its present parts, in the same state.
  void exchange(const NetworkModel& model, NetworkMethod& method, NetworkTrials& trials);

  const StepSizeStatistics& statistics() const { return statistics_; }
  std::size_t bytes() const { return scales_.bytes(); }
  void archive(StateArchive& archive);

 private:
  static constexpr int kPieces = 64;
  int size_of(int part) const override;
  void get_state(int part, const double* record, double* state) const override;
  double within(int part, int state, double x, double theta) const override;
  /// Taylor series of high order go on for periods.
  int pieces() const override { return kPieces; }
  bool knows_quantities() const override { return true; }
  double quantity(const Sensor& of, double theta) const override;

  bool attempt(const SizeControl::Next& next, double start_s, const ForEach& each, double& error);
  bool ends_at_event(double start_s, double step_s, double end_s);
  void count(double step_s);
  [[noreturn]] void give_up(double step_s, double error) const;

  const NetworkModel* model_;
  NetworkMethod* method_;
  NetworkTrials* trials_;
  double smallest_s_;
  double tolerance_;  // of one step
  double of_whole_;   // its share of the tolerance asked for
  SizeControl control_;
  MotionScales scales_;
  CrossingSearch crossings_;
  InputChanges changes_;
  InputPulses pulses_;
  double event_s_ =
      -std::numeric_limits<double>::infinity();  // where a step is to end for an event
  bool event_changes_ = false;                   // what follows is another motion
  StepSizeStatistics statistics_;
  mutable std::vector<double> effort_, flow_, state_;  // scratch
};

}  // namespace portwave
