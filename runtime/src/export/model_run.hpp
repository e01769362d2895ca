#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "export/exported_model.hpp"
#include "portwave/runtime/output/recorder.hpp"
#include "portwave/runtime/scenario/part_recipes.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/snapshot.hpp"
#include "portwave/runtime/step/stepper.hpp"

namespace portwave::exported {

/// A value that is not taken, or a step that is not possible; the run stands as it was.
class Refusal : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// All that a run is at a time.
struct RunState {
  bool is_running = false;
  double start_s = 0.0;
  std::vector<double> values;        ///< of inputs and parameters, by variable; others 0
  std::vector<double> start_values;  ///< those that the run began with
  std::vector<double> integrals;     ///< by variable; others 0
  Snapshot snapshot;                 ///< empty unless the run has begun

  std::vector<std::byte> to_bytes(const std::string& token) const;
  /// Errors: std::invalid_argument where bytes are incomplete, damaged, or of another model.
  static RunState from_bytes(std::span<const std::byte> bytes, const ExportedModel& model);
};

/// A run of an exported model: what an instance of its FMU is. A communication step takes as few equal
/// macro-steps as keep each at most the scenario's; with steps that choose their size, those up to its end.
/// With one thread, so that many instances can go side by side.
/// Thread-safety  one thread at a time.
class ModelRun {
 public:
  /// `folder`: that of the files that the scenario names. Errors: ConfigError.
  ModelRun(ExportedModel model, const std::filesystem::path& folder);

  const ExportedModel& model() const { return model_; }

  /// The time at which the run begins, before it does.
  void set_start(double start_s);
  /// From now on there are outputs, those of the start values; these may still be changed, and the run begins
  /// anew then. Errors: ConfigError for parameters that are not allowed, or do not go together.
  void prepare();
  /// From now on there are steps. Errors: as prepare.
  void begin();
  bool is_running() const { return is_running_; }
  /// Back to the start values and the start time of the scenario, before the run.
  void reset();

  double time_s() const;
  /// Errors: Refusal where there are no outputs yet; std::out_of_range.
  double value(std::size_t variable);
  /// Errors: std::out_of_range; Refusal for one that cannot be set, values that are not finite, or parameters
  /// that are not allowed.
  void set_value(std::size_t variable, double value);
  /// From `from_s`, where the run has to be. Errors: std::invalid_argument for a step that there cannot be; Refusal
  /// for one that this run cannot take; StepError, the steps before it standing unless `is_whole`: then nothing
  /// has changed.
  /// Whether an event of the scenario ends the run (Watch::ends_run): the run then stands at the end of the
  /// macro-step in which it happened, or with `is_whole` at the end of the whole step.
  bool step(double from_s, double size_s, bool is_whole);
  /// The last macro-step was one in which such an event happened; null: it was not.
  const Watch* ending_watch() const;

  /// What the values of `unknowns` after the last step would change by, had inputs and parameters been others during
  /// it: their directional derivative along `seed`, one number for each of `knowns`, all else being as it was at
  /// its start. By central differences of the whole communication step, as long as two orders agree. Takes the step
  /// 5 to 29 times, and leaves the run as it is.
  /// Errors: std::invalid_argument for unknowns that are no outputs, knowns that cannot be set, and lengths that
  /// differ; std::out_of_range; Refusal where there was no step since the start or since a state was restored, and
  /// where the outputs have no derivative there.
  std::vector<double> directional_derivative(std::span<const std::size_t> unknowns,
                                             std::span<const std::size_t> knowns,
                                             std::span<const double> seed);
  /// For each of `knowns`, what the sum of `unknowns`, weighted by `seed`, would change by. Cost and errors: a
  /// directional derivative for each of them.
  std::vector<double> adjoint_derivative(std::span<const std::size_t> unknowns,
                                         std::span<const std::size_t> knowns,
                                         std::span<const double> seed);

  RunState save() const;
  /// Errors, nothing having changed: std::invalid_argument where the state is not one of this model; ConfigError.
  void restore(const RunState& state);

  const Certificate* certificate() const;

 private:
  /// The step that was taken last, from a state that is still known.
  struct LastStep {
    bool is_known = false;
    bool is_whole = false;
    double from_s = 0.0, size_s = 0.0;
    RunState before;
  };
  void save_to(RunState& out) const;
  bool take_step(double from_s, double size_s, bool is_whole);
  /// The unknowns after the last step, taken with other values of the knowns; nothing where it cannot be taken.
  std::optional<std::vector<double>> taken_otherwise(const LastStep& step,
                                                     std::span<const std::size_t> unknowns,
                                                     std::span<const std::size_t> knowns,
                                                     const std::vector<double>& values);
  /// The system with those parameters that are not the scenario's. Errors: as changed_system.
  System system_with(const std::vector<double>& values) const;
  void build(const std::vector<double>& values);
  Stepper& stepper();
  /// Into a run that began otherwise. Errors: as build, and std::invalid_argument, nothing having changed.
  void restore_anew(const RunState& state);
  void find_variables();
  bool make_steps(double end_s, bool stops_at_ends);
  /// Whether an event ends the run with this macro-step.
  bool account(const StepReport& report);

  ExportedModel model_;
  Scenario scenario_;
  double own_start_s_;  ///< of the scenario
  bool is_running_ = false, is_stale_ = true;
  std::vector<double> values_, start_values_, integrals_;
  std::optional<Stepper> stepper_;
  // By variable, once the stepper is there.
  std::vector<InputSlot> inputs_;
  std::vector<std::optional<Quantity>> quantities_;
  Snapshot before_;
  LastStep last_;
};

}  // namespace portwave::exported
