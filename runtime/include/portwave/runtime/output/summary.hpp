#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "portwave/runtime/step/part_defects.hpp"
#include "portwave/runtime/step/step_agreement.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// A one-page account of a run.
///
/// Without a time budget everything but `threads`, `tasks`, `execution` and wall-clock times (`wall_s` and
/// quantities derived from it, `times`) is the same, bit by bit, for any number of threads, grain and
/// executor.
struct RunSummary {
  /// The events of a watch.
  struct Events {
    std::string name, rising, falling;  ///< as Watch
    EventCount count;
  };

  std::string scenario;
  std::int64_t steps = 0;
  double step_s = 0.0;
  std::optional<StepSizes> sizes;  ///< where steps choose their size; step_s is the largest
  StepSizeStatistics step_sizes;   ///< statistics of the chosen sizes
  StartsAtOdds starts_at_odds;     ///< as Stepper::starts_at_odds
  Impulses impulses;               ///< as Stepper::impulses
  double start_s = 0.0;            ///< simulated time at which the run began
  double time_s = 0.0;             ///< simulated time that it reached
  std::vector<Events> events;      ///< by watch
  std::string ended_by;            ///< name of the watch that ended the run; empty: none did
  bool completed = true;           ///< false: interrupted, or failed, after `steps` steps
  std::vector<std::string>
      notes;               ///< sentences, such as on tables of inputs that the run did not reach
  std::string failure;     ///< what StepError said; empty: the run did not fail
  CouplingMethod method;   ///< as asked for, with the start of iterations that was taken
  int stages = 1;          ///< of a step, with wave coupling
  int damped_parts = 0;    ///< with wave coupling
  std::string integrator;  ///< which parts are damped, and why; empty: none
  MethodChoice choice;     ///< the method used, and why; without waves in words
  std::string remarks;     ///< as Stepper::remarks
  bool follows_state = false;  ///< impedances are tuned to the state of nonlinear parts
  TuningStatistics tuning;     ///< zeros without waves
  GuardStatistics guard;       ///< zeros without a guard
  IterationStatistics iterations;
  CouplingLooks coupling;
  /// The largest of supplied energy, dissipated energy, and the change of the parts' stored energy [J].
  double moved_J = 0.0;
  Certify certify = Certify::energy;
  bool has_ledger = true;  ///< else energy and certificate say nothing
  EnergyTotals energy;
  Certificate certificate;
  std::string worst_passivity_part;  ///< name, empty before the first step
  std::string missed_part;  ///< name of Certificate::missed.part, empty where there is none
  std::string
      ideal_part;  ///< an ideal switch or diode, which may be what a poor run is due to; empty: there is none
  /// The ideal switch that steps open and close farthest from when its input asks for it; empty: none does.
  struct MovedSwitch {
    std::string part;
    SwitchTimes times;
    double share = 0.0;  ///< SwitchTimes::moved_share
  };
  MovedSwitch moved_switch;
  std::string guarded_part;  ///< name of a part of GuardStatistics::worst_island, empty without one
  std::optional<Resolution> resolution;  ///< as Stepper::resolution
  std::string unresolved_part;           ///< name of Resolution::part, empty where all is resolved
  std::string unresolved_name;  ///< the same, with its state or input if it is one: "motor.current"
  bool is_unresolved_damped = false;     ///< damped stages, several, of that whole part
  bool has_unresolved_substeps = false;  ///< that part takes substeps
  bool is_unresolved_contact =
      false;  ///< in its island something springs back: damped steps would stop it
  std::string unresolved_port;  ///< and of its port, as "part.port", of efforts and flows
  std::optional<StepAgreement> agreement;       ///< with finer steps; empty: not compared
  std::vector<std::string> unjudged_parts;      ///< names of Certificate::unjudged_parts
  std::vector<double> metered_J;                ///< what each of them took, net [J]
  std::vector<PartDefects> defects;             ///< as defects_of
  std::vector<std::string> forward_parts;       ///< names of their parts
  std::vector<std::string> unrepeatable_parts;  ///< and of Certificate::unrepeatable_parts
  TimeBudget time;
  std::optional<DeadlineScheduler::Statistics> deadline;  ///< as Stepper::deadline
  bool timed = false;
  StepTimes times;  ///< sums over the steps, if timed
  int threads = 1;
  int tasks = 1;
  Grain grain;
  ExecutorKind executor = ExecutorKind::automatic;  ///< asked for
  std::string execution;                            ///< what ran, as Stepper::execution
  double wall_s = 0.0;                              ///< stepping and recording, without set-up
  double recording_wait_s = 0.0;  ///< the share spent waiting for files slower than the run

  /// Takes a comparison with finer steps. Of a whole run it overrules the suspicion that damped steps take too
  /// much, and any of motion that is rounding.
  void take(std::optional<StepAgreement> compared);
  /// The steps resolve the motion, as far as examined.
  bool is_resolved() const { return !resolution || resolution->kind == Resolution::Kind::resolved; }
  /// All that was measured kept its limits: the certificate holds, or is conditional since there are parts that do not
  /// know their energy, and for no other reason.
  bool holds_as_measured() const;
  /// A phrase for everything that keeps the run from being well: it failed, the certificate does not
  /// hold as measured, steps missed their tolerance or were changed noticeably by the guard, the steps do not
  /// resolve the motion or finer ones lead elsewhere, the coupling is poor, or states at odds were stepped as they were.
  std::vector<std::string> shortcomings() const;
  /// The run has no defects: the condition of `portwave run --strict`.
  bool is_all_well() const { return shortcomings().empty(); }
  /// Share of the moved energy that is in no entry of the account; 0 where that is rounding. Steps of several
  /// stages integrate energies numerically that are no polynomials; too long ones leave something out.
  double missing_share() const;
  static constexpr double kMissing = 1e-3;  ///< more than this is no account
  /// Share of the moved energy that was lost or gained between the parts; 0 where that is rounding.
  double mismatch_share() const;
  static constexpr double kPoorMismatch = 0.05;
  /// The largest PartDefects::share, of parts that cannot take their steps back.
  double defect_share() const;
  /// Its place in `forward_parts`; −1: no part has defects.
  int worst_forward_part() const;
  /// Of the time between two changes of a switch: farther than this its changes are not those asked for.
  static constexpr double kFarMoved = 0.05;
  /// Where most are where they should be, in pieces of steps of several stages.
  static constexpr double kFarMovedOfStages = 0.02;
  bool is_switch_moved() const {
    return moved_switch.share > (stages > 1 ? kFarMovedOfStages : kFarMoved);
  }
  /// Share of the steps that a time budget left without an evaluation: parts then have the waves of the step
  /// before, and what they disagree about is not known.
  double blind_share() const;
  /// The mismatch, the share of defects, or that of steps without an evaluation is more than kPoorMismatch.
  bool is_coupled_poorly() const {
    return mismatch_share() > kPoorMismatch || blind_share() > kPoorMismatch ||
           defect_share() > kPoorMismatch;
  }
  double steps_per_s() const { return static_cast<double>(steps) / wall_s; }
  /// Simulated time per wall time: above 1 is faster than real time.
  double real_time_factor() const { return (time_s - start_s) / wall_s; }
};

/// Collects the summary of the run so far of `stepper`, built with `options`. `times`: the sum of the
/// times of its step reports.
RunSummary summarize(std::string scenario, const StepperOptions& options, const Stepper& stepper,
                     double wall_s, const StepTimes& times = {});

/// The smallest number of iterations that at least the share `level` of the windows (steps with
/// wave coupling) did not exceed; 0 before the first step. Counts that share the histogram's last
/// entry are taken for the largest.
int iteration_quantile(const IterationStatistics& iterations, double level);

/// The summary as summary.json holds it; numbers that are not finite become null.
nlohmann::ordered_json summary_json(const RunSummary& summary);

/// The summary as people read it: a few lines, each ended by a newline. Names are made safe for a
/// terminal: control characters are escaped.
std::string summary_text(const RunSummary& summary);

/// The library's version, "major.minor.patch".
std::string_view version();

}  // namespace portwave
