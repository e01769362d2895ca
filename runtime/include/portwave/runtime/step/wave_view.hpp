#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "portwave/coupling/energy/ledger.hpp"
#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/port.hpp"
#include "portwave/subsystems/nonlinear/switch_steps.hpp"

namespace PORTWAVE_EXPORT portwave {

struct IntegratorChoice;

/// Changes of impedance in the course of a run.
struct TuningStatistics {
  std::int64_t changes = 0;    ///< of any impedance, between two steps
  std::int64_t failures = 0;   ///< attempts that found no impedances, or no step maps for them
  double rescattered_J = 0.0;  ///< sum of the resulting changes of ½|b|²: no energy of the system
};

/// Properties of a run with wave coupling only: waves, impedances, tanks, the passivity guard.
/// `Stepper::waves()` returns it. Ports are scalar ports of the system.
class WaveView {
 public:
  /// Stages of a step; a port has a wave and an impedance at each of them.
  virtual int stages() const = 0;
  /// Which parts are damped, and why: how many, and in words ("": none).
  virtual int damped_parts() const = 0;
  /// Whether any step may dissipate numerically: some parts are damped, or may be in single steps.
  virtual bool may_damp() const = 0;
  virtual std::string integrator() const = 0;
  virtual const IntegratorChoice& integrators() const = 0;
  /// Of an ideal switch: when it was to be closed, and was. Zeros for all else, and on several ranks.
  virtual SwitchTimes switch_times(int part) const = 0;
  /// Incident and outgoing wave [√J] of the last commit at a port, at a stage from 0.
  virtual WavePair waves_at(int scalar_port, int stage) const = 0;
  /// With more than one stage, the waves of the first.
  WavePair waves_at(int scalar_port) const { return waves_at(scalar_port, 0); }
  double incident(int scalar_port) const { return waves_at(scalar_port).incident; }
  double outgoing(int scalar_port) const { return waves_at(scalar_port).outgoing; }

  /// Impedance in force at a port, at a stage from 0.
  virtual double impedance(int scalar_port, int stage) const = 0;
  /// With more than one stage that of the first.
  double impedance(int scalar_port) const { return impedance(scalar_port, 0); }
  /// Other impedances from the next step on, one per scalar port, for all its stages. Effort and
  /// flow of the last step are kept, waves follow, tanks stay as they are, and impedances are no
  /// longer tuned. Allocates.
  /// Errors: ConfigError.
  virtual void set_impedance(std::span<const double> by_port) = 0;
  /// Chooses impedances again by the rules of the method, for the parts as they are now (see
  /// Stepper::set_component); given ones stay. Allocates, and prepares all step maps.
  /// Errors: ConfigError, nothing having changed.
  virtual void tune_again() = 0;
  /// Whether impedances follow the state of nonlinear parts.
  virtual bool follows_state() const = 0;
  virtual const TuningStatistics& tuning() const = 0;

  /// Changes the budget K from the next step on; K ≥ 0. Errors: ConfigError.
  virtual void set_iterations(int iterations) = 0;
  /// Evaluations of S in the last step, by island.
  virtual int iterations_of_island(int island) const = 0;

  /// The guard's actions in the run; null without a guard.
  virtual const GuardStatistics* guard() const = 0;
  /// The guard's actions in the last step, island by island; empty where it did not act.
  virtual std::span<const GuardUse> guard_uses() const = 0;
  /// The energy balance of a part in the last step [J]; with a ledger only, and after a step.
  virtual PartEnergies energies_of(int part) const = 0;
  /// Energy that entered the part through a port in the last step [J]: ½(a² − b²), over all stages.
  double energy_through(int scalar_port) const {
    double energy_J = 0.0;
    for (int stage = 0; stage < stages(); ++stage) {
      const WavePair wave = waves_at(scalar_port, stage);
      energy_J += 0.5 * (wave.incident - wave.outgoing) * (wave.incident + wave.outgoing);
    }
    return energy_J;
  }
  /// T of an island [J]; with a ledger only.
  virtual double tank(int island) const = 0;

 protected:
  ~WaveView() = default;
};

}  // namespace portwave
