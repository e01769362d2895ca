#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "portwave/coupling/impedance/law_ends.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "step/sizes/crossing_search.hpp"
#include "step/sizes/input_changes.hpp"
#include "step/sizes/input_pulses.hpp"
#include "step/sizes/own_states.hpp"
#include "step/sizes/step_control.hpp"
#include "step/sizes/step_error.hpp"

namespace portwave {

/// The interface of an engine to steps of chosen size: steps that can be tried and taken back.
class StepTrials {
 public:
  virtual ~StepTrials() = default;
  /// Prepares for steps of this size. Errors: ConfigError, nothing having changed.
  virtual void use(double step_s) = 0;
  /// Steps from the present state, at `time_s`, into the next record, without committing the step.
  /// Errors: StepError.
  virtual StepReport attempt(double time_s) = 0;
  /// As `attempt`, with the guard: the step is ready for `commit`.
  virtual StepReport attempt_to_commit(double time_s) = 0;
  /// Commits the attempted step; the time is then `end_s`.
  virtual void commit(StepReport& report, double end_s) = 0;
  /// Continues from the attempted step without committing it, until `restore` is called.
  virtual void go_on() = 0;
  virtual void save() = 0;
  /// Returns to the saved state, which stays saved.
  virtual void restore() = 0;

  /// The error of the attempted step behind its last stage, if one-sided parts change over there.
  virtual LawEnds::Error error_behind_stages() = 0;

  virtual double time_s() const = 0;
  virtual std::int64_t step_index() const = 0;
  virtual const double* record() const = 0;  ///< xⁿ
  virtual const double* next() const = 0;    ///< the attempted step
  virtual const double* incident() const = 0;
};

/// Takes steps whose local error keeps to a tolerance: tries one, estimates its error, and commits it
/// or tries a shorter one (docs/concepts/step-size.md). Without information from earlier steps, at the
/// start and at a kink of an input, a step is first compared with two of half its size.
///
/// Or pieces of a step: in a run of equal steps, one whose error is beyond kRough, as several damped stages overshoot
/// where a part changes over, is taken again in steps whose errors are below kSmooth (`Of::step`). Known kinks and
/// pulses of inputs, and events, do not end such pieces.
class AdaptiveSteps {
 public:
  enum class Of { run, step };
  /// Amplitudes of error, as StepSizes::tolerance, of one step: more is taken in pieces; and of a piece.
  static constexpr double kRough = 0.04, kSmooth = 1e-4;
  /// The same of steps that conserve, whose states are judged beside themselves as well (OwnStates).
  static constexpr double kRoughOfConserving = 0.03;
  /// The options of steps that are taken in pieces. `is_finer`: of about half the size, for a comparison; otherwise the
  /// size of pieces is that of the motion, and the same in steps of any size.
  static StepSizes for_pieces(double step_s, const StageRule& rule, bool is_finer) {
    constexpr double kShortest = 0x1p-50;
    const double finer = is_finer ? std::exp2(-StepErrorEstimate::power(rule)) : 1.0;
    return {.tolerance = kSmooth * finer, .smallest_s = kShortest * step_s};
  }

  /// `waves` is the discretisation of `trials`, `record` its initial state.
  AdaptiveSteps(StepTrials& trials, const WaveDiscretisation& waves, const System& given,
                const StageRule& rule, const StepSizes& sizes, double largest_s,
                const double* record, std::span<const Watch> watches, Of of = Of::run);

  /// Every part is held to the tolerance by itself (StepErrorEstimate). Before the first step.
  void judge_parts() { estimate_.judge_parts(); }

  /// One step, which does not go beyond `limit_s`. Errors: StepError, the state being as before.
  StepReport step(double limit_s);

  /// Of pieces: a step of this size, at most the largest, begins. It is taken as a whole if its error is below kRough.
  void begin_step(double step_s);
  /// Likewise: the present step is taken in pieces.
  bool is_in_pieces() const { return of_ == Of::step && tolerance_ < rough(); }
  /// Likewise: whether they conserve, and states are judged beside themselves as well.
  bool is_of_conserving() const { return own_.has_value(); }
  /// Likewise: the largest error of a piece that no shorter one made smaller, relative to that allowed; 0: none.
  double left_error() const { return left_error_; }
  /// Likewise: that, which is also the tolerance of the options.
  double smooth() const { return smooth_; }

  /// An input has jumped: earlier steps say nothing about the next one.
  void restart();
  /// As `restart`, after an impulse has changed states.
  void states_jumped() {
    restart();
    crossings_.accept(trials_.time_s(), trials_.record());
  }

  /// The required accuracy of an attempt's inner iteration: a gap [J] or, before any motion to compare with,
  /// a residual at the level of round-off.
  static constexpr double kResidualTolerance = 1e-13;
  double gap_tolerance_J() const {
    const double amplitude = kOfCoupling * tolerance_;
    return amplitude * amplitude * estimate_.smallest_scale_J();
  }

  const StepSizeStatistics& statistics() const { return statistics_; }
  const StepErrorEstimate& estimate() const { return estimate_; }
  std::size_t bytes() const { return estimate_.bytes(); }
  void archive(StateArchive& archive);

 private:
  /// Share of the tolerance available to the coupling.
  static constexpr double kOfCoupling = 0.02;
  /// Number of rungs that steps go down because their coupling does not converge. If a budget of iterations
  /// is too small for all of these, steps are taken as they are.
  static constexpr int kMostForCoupling = 6;

  double rough() const { return own_ ? kRoughOfConserving : kRough; }
  double error_of_own(OwnStates::Beside beside) {
    return own_ && !is_in_pieces() ? own_->error(trials_.next(), beside) : 0.0;
  }
  void resume();
  std::optional<StepReport> take_jump();
  void find_first_step(double limit_s);
  bool hides_pulse(double step_s);
  bool ends_at_event(double start_s, double step_s, double end_s);
  StepReport attempt_halves(double whole_s, double& error);
  bool try_step(const StepControl::Next& next, double end_s, StepReport& report);
  bool is_coupled(const StepReport& report) const;
  bool has_to_shrink(const StepReport& report, double step_s, double& error);
  void reject(const StepControl::Next& next, double error);
  void reject_size(const StepControl::Next& next, double error);
  void count(const StepReport& report);
  [[noreturn]] void give_up(double step_s, double error) const;
  [[noreturn]] void fail(const std::string& why) const;
  void expect_progress(double start_s, double end_s);
  void expect_more_than_rounding(double step_s, bool is_rounding);

  Of of_;
  StepTrials& trials_;
  const System& names_of_;
  double largest_s_;
  double smallest_s_;
  double share_;      // of the tolerance, for one step
  double tolerance_;  // of one step
  double smooth_;     // the same of pieces
  int order_;
  StepControl control_;
  StepErrorEstimate estimate_;
  /// For the search of crossings.
  struct States final : TriedStates {
    States(const WaveDiscretisation& waves_, const StepErrorEstimate& estimate_)
        : waves(waves_), estimate(estimate_) {}
    int size_of(int part) const override {
      return waves.batch(waves.slot(part).batch).batch->state_size();
    }
    void get_state(int part, const double* record, double* state) const override {
      waves.get_state(part, record, state);
    }
    double within(int part, int state, double x, double theta) const override {
      return estimate.taken_at(part, state, x, theta);
    }
    const WaveDiscretisation& waves;
    const StepErrorEstimate& estimate;
  };
  States states_;
  CrossingSearch crossings_;
  double event_s_;                       // where a step is to end for an event
  bool event_changes_ = false;           // what follows is another motion
  std::optional<InputChanges> changes_;  // of a run
  std::optional<InputPulses> pulses_;    // likewise
  std::optional<OwnStates> own_;         // of steps that conserve and may be taken in pieces
  std::optional<InputChanges> jumps_;    // likewise
  bool has_first_step_ = false;          // found, since the last kink
  double first_error_ = 0.0;             // relative to the tolerance
  int compared_ = 0;                     // steps to come that it speaks for
  double resumed_s_ = 0.0;               // the size before a way that is shorter; 0: none
  int for_coupling_ = 0;                 // rungs gone down for it, since a step was taken
  double least_for_coupling_s_ = 0.0;    // no step is made shorter than this for it
  AlignedVector coarse_;
  std::size_t record_size_;
  std::int64_t standing_ = 0;  // steps that did not change the time
  int rounded_ = 0;  // tiny ones whose errors were rounding, since the last one that was not tiny
  double left_error_ = 0.0;
  StepSizeStatistics statistics_;
};

}  // namespace portwave
