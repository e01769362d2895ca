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
  void step(double from_s, double size_s, bool is_whole);

  RunState save() const;
  /// Errors, nothing having changed: std::invalid_argument where the state is not one of this model; ConfigError.
  void restore(const RunState& state);

  const Certificate* certificate() const;

 private:
  /// The system with those parameters that are not the scenario's. Errors: as changed_system.
  System system_with(const std::vector<double>& values) const;
  void build(const std::vector<double>& values);
  Stepper& stepper();
  /// Into a run that began otherwise. Errors: as build, and std::invalid_argument, nothing having changed.
  void restore_anew(const RunState& state);
  void find_variables();
  void make_steps(double end_s);
  void account(const StepReport& report);

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
};

}  // namespace portwave::exported
