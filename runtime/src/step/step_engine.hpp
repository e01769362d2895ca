#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "parallel/activity.hpp"
#include "portwave/coupling/system/step_clock.hpp"
#include "portwave/runtime/ranks/followers.hpp"
#include "portwave/runtime/step/stepper.hpp"

namespace portwave {

class RankTogether;
class StateArchive;

/// What a Stepper steps with: wave coupling, or a method without waves. Here stands what both truly
/// have; what only wave coupling has is a WaveView. The functions are those of Stepper, where they
/// are described; options have been checked.
class StepEngine {
 public:
  /// `step_s`: StepperOptions::step_s.
  explicit StepEngine(double step_s) : step_s_(step_s) {}
  StepEngine(const StepEngine&) = delete;
  StepEngine& operator=(const StepEngine&) = delete;
  virtual ~StepEngine() = default;

  /// One macro-step, all or nothing, of any size > 0.
  /// Errors: StepError; ConfigError where there are no step maps of that size; std::logic_error for
  /// another size than `step_s` without waves.
  virtual StepReport step(double step_s) = 0;
  /// One macro-step, not beyond `limit_s` where steps choose their size: as Stepper says.
  virtual StepReport step_towards([[maybe_unused]] double limit_s) { return step(step_s_); }
  /// As RankedStepper::follow; calls after every step that was made, and for what rank 0 tells.
  struct Hooks {
    std::function<void(const StepReport&)> stepped;
    std::function<void(std::span<const std::byte>)> told;
  };
  virtual void follow(const Hooks&) {}
  /// What ranks that step the system together do; null: one process alone.
  virtual RankTogether* ranks() { return nullptr; }
  /// StepperOptions::step_s.
  double step_s() const { return step_s_; }
  /// Of the stepper, which stays where it is when that is moved.
  Activity& activity() const { return activity_; }
  /// Time and number of the committed steps. Steps are moved on by it, inputs sampled by it.
  virtual const StepClock& clock() const = 0;

  virtual const System& system() const = 0;
  virtual int threads() const = 0;
  virtual int tasks() const = 0;
  virtual const std::string& execution() const = 0;
  virtual const MethodChoice& method() const = 0;
  virtual std::string remarks() const { return {}; }
  /// Null without waves.
  virtual WaveView* waves() { return nullptr; }

  // What is computed when it is asked for is kept, so that these are not const.
  virtual std::span<const double> state(int part) = 0;
  /// Before the first step, asked of this process alone: all ranks have that.
  virtual std::span<const double> first_state(int part) { return state(part); }
  virtual EffortFlow effort_flow(int scalar_port) = 0;
  virtual double storage(int part) = 0;

  /// The settable inputs of the system, by slot; empty without waves.
  virtual std::span<double> settings() { return {}; }
  /// They have jumped.
  virtual void settings_changed() {}

  /// A part of the system has become another one, which stores so much more in the same state [J]. All
  /// or nothing. Errors: as Stepper::set_component.
  virtual void component_changed(int part, double more_J) = 0;
  /// That has failed, and the component is the one that it was.
  virtual void component_restored(int part) = 0;

  virtual bool keeps_ledger() const = 0;
  virtual const EnergyTotals& energy() const = 0;
  virtual const Certificate& certificate() const = 0;
  /// Of a part that it names.
  virtual std::string name_of_part(int number) const { return system().name_of_part(number); }
  virtual const IterationStatistics& iterations() const = 0;
  /// As CouplingLooks::residual, of the last step; nothing where there is a tolerance to be met.
  virtual std::optional<double> coupling_residual() { return std::nullopt; }
  virtual std::optional<DeadlineScheduler::Statistics> deadline() const = 0;
  virtual std::size_t overhead_bytes() const = 0;
  /// Errors: std::logic_error without StepperOptions::profile.
  virtual Profile profile() = 0;
  /// All that the steps to come and the accounts of the run depend on. Times on the clock of the
  /// wall are not among it.
  virtual void archive(StateArchive& archive) = 0;

  /// Null where all steps are of one size.
  virtual const StepSizeStatistics* step_sizes() const { return nullptr; }
  virtual std::optional<Resolution> resolution() const { return std::nullopt; }
  /// Precondition: `step_sizes`, and a time within the last step.
  virtual void state_at(int part, double time_s, std::span<double> state);
  virtual EffortFlow port_at(int scalar_port, double time_s);

 private:
  double step_s_;
  mutable Activity activity_;
};

/// What a channel is now.
double read(StepEngine& engine, const ScalarChannel& channel);

/// Errors: ConfigError.
std::unique_ptr<StepEngine> make_wave_engine(const System& system, const StepperOptions& options);
/// Of a method without waves.
std::unique_ptr<StepEngine> make_network_engine(const System& system,
                                                const StepperOptions& options);

void archive(StateArchive& archive, IterationStatistics& statistics);

/// Adds a step to the statistics, and its window if it begins one. `has_tolerance`: there was one
/// to be met.
void count(const StepReport& report, bool has_tolerance, IterationStatistics& statistics);

}  // namespace portwave
