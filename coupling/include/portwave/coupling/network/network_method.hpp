#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "portwave/coupling/energy/ledger.hpp"
#include "portwave/coupling/network/condensed.hpp"
#include "portwave/coupling/system/step_clock.hpp"
#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/base/for_each.hpp"
#include "portwave/subsystems/core/step_batch.hpp"

namespace PORTWAVE_EXPORT portwave {

class StateArchive;

/// The report of a step of a method without waves.
struct NetworkStep {
  int iterations = 0;       ///< of the window that the step belongs to; 0 for splitting
  bool converged = false;   ///< a tolerance was met, or there is nothing to converge
  bool stalled = false;     ///< stopped before that: rounding keeps the change from falling further
  bool ends_window = true;  ///< the last step of a window; the next one begins another
  double residual = 0.0;  ///< ‖zᵏ⁺¹ − zᵏ‖/‖zᵏ⁺¹‖ of the last iteration of the window
  /// supplied − dissipated − ΔH is the mismatch, the tank stays 0 and max_passivity_residual_J is
  /// ΔH − supplied.
  StepLedger energy;
  /// The size of the terms of the energies, for tolerances: H before and after, and the energy moved.
  double energy_scale_J = 0.0;
};

/// A step that failed; the method keeps its last committed state.
class NetworkFault : public std::runtime_error {
 public:
  NetworkFault(int part, int iteration, StepFault fault, const std::string& detail = {})
      : std::runtime_error(detail), part_(part), iteration_(iteration), fault_(fault) {}
  int part() const { return part_; }            ///< number in the System; −1: no single one
  int iteration() const { return iteration_; }  ///< −1: before the first
  StepFault fault() const { return fault_; }

 private:
  int part_;
  int iteration_;
  StepFault fault_;
};

/// Steps a condensed system by other means than waves. Memory is taken at construction. Results do
/// not depend on the ForEach.
class NetworkMethod {
 public:
  virtual ~NetworkMethod() = default;

  /// One macro-step, all or nothing. Errors: NetworkFault.
  virtual NetworkStep step(const ForEach& each) = 0;
  /// Called between the iterations of a window; if it returns true the step fails (not_converged,
  /// "interrupted").
  void set_interrupted(std::function<bool()> asked) { interrupted_ = std::move(asked); }
  bool is_interrupted() const { return interrupted_ && interrupted_(); }
  /// The time reached. Inputs are sampled by it.
  virtual const StepClock& clock() const = 0;
  std::int64_t step_index() const { return clock().steps(); }
  /// x of the whole, block by block; valid until the next step.
  virtual std::span<const double> state() const = 0;
  /// x before the last step that succeeded; likewise.
  virtual std::span<const double> previous_state() const = 0;
  /// H of a block [J].
  virtual double storage(int block) const = 0;
  /// An estimate of the work that threads can share [ns]: of a step with splitting, of an iteration with
  /// dynamic iteration.
  virtual double shared_cost_ns() const = 0;
  /// Bodies of the largest parallel phase: the work that threads can share.
  virtual int tasks() const = 0;
  /// Memory of waveforms, states and scratch; step maps apart.
  virtual std::size_t bytes() const = 0;
  /// Findings of a run, for people; empty if there are none.
  virtual std::string remarks() const { return {}; }
  /// The state, and everything on which the steps to come depend.
  virtual void archive(StateArchive& archive) = 0;
  /// Description of the method, for people: chosen parameters, the solution of the coupling.
  virtual std::string description() const = 0;
  /// Goes on from another state of the whole, at the same time. False, and nothing has changed, where that is not
  /// possible.
  virtual bool set_state(std::span<const double> /*x*/) { return false; }
  /// Steps to come are of this size [s]. False, and nothing has changed, where all must be of one size.
  virtual bool set_step([[maybe_unused]] double step_s) { return false; }

 private:
  std::function<bool()> interrupted_;
};

}  // namespace portwave
