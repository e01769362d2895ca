#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "portwave/runtime/execution/stepper.hpp"

namespace portwave {

/// What a Stepper steps with: wave coupling, or a method without waves. Its functions are those of
/// Stepper, where they are described; options have been checked.
class StepEngine {
 public:
  virtual ~StepEngine() = default;

  virtual StepReport step() = 0;

  virtual const System& system() const = 0;
  virtual double step_s() const = 0;
  virtual std::int64_t steps() const = 0;  ///< committed
  virtual int threads() const = 0;
  virtual int tasks() const = 0;
  virtual const std::string& execution() const = 0;

  // What is computed when somebody looks is kept, so that these are not const.
  virtual std::span<const double> state(int part) = 0;
  virtual EffortFlow effort_flow(int scalar_port) = 0;
  virtual WavePair waves(int scalar_port) const = 0;
  virtual double storage(int part) = 0;

  virtual void set_iterations(int iterations) = 0;
  virtual void set_impedance(std::span<const double> by_port) = 0;
  virtual double impedance(int scalar_port) const = 0;
  virtual const MethodChoice& method() const = 0;
  virtual std::string remarks() const { return {}; }
  virtual bool follows_state() const = 0;
  virtual const TuningStatistics& tuning() const = 0;
  virtual std::span<const GuardUse> guard_uses() const = 0;
  virtual const GuardStatistics& guard() const = 0;
  virtual double tank(int island) const = 0;

  virtual bool keeps_ledger() const = 0;
  virtual const EnergyTotals& energy() const = 0;
  virtual const Certificate& certificate() const = 0;
  virtual const IterationStatistics& iterations() const = 0;
  virtual int iterations_of_island(int island) const = 0;
  virtual DeadlineScheduler::Statistics deadline() const = 0;
  virtual std::size_t overhead_bytes() const = 0;
};

/// Errors: ConfigError.
std::unique_ptr<StepEngine> make_wave_engine(const System& system, const StepperOptions& options);
/// Of a method without waves.
std::unique_ptr<StepEngine> make_network_engine(const System& system,
                                                const StepperOptions& options);

/// Adds a step to the statistics, and its window if it begins one. `has_tolerance`: there was one to be
/// met.
void count(const StepReport& report, bool has_tolerance, IterationStatistics& statistics);

}  // namespace portwave
