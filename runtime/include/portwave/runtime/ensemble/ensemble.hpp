#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "portwave/coupling/energy/certificate.hpp"
#include "portwave/coupling/energy/ledger.hpp"
#include "portwave/coupling/method/method_choice.hpp"
#include "portwave/coupling/system/system.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/export.hpp"

// Internal to the library, hence not shown.
namespace portwave {
class Chunk;
}  // namespace portwave

namespace PORTWAVE_EXPORT portwave {

struct EnsembleOptions {
  int threads = 1;                    ///< 1 to kMaxThreads: number that step chunks at a time
  std::shared_ptr<Arena> arena = {};  ///< arena of the threads; null: a private one
  /// Replicas that are stepped together, ≥ 1; 0: as many as fit in cache while every thread is busy. Results
  /// do not depend on it.
  int chunk = 0;
};

struct RolloutOptions {
  int every = 1;  ///< steps from one row of the results to the next, ≥ 1; divides the steps
  /// Called before each step of each chunk, by the thread that steps the chunk, so by several at a time.
  /// Its exception ends the run on all threads and is rethrown.
  std::function<void()> ask = {};
};

/// State of a replica since its run began.
struct ReplicaStatus {
  bool failed = false;  ///< it has stopped, and no longer has a state
  /// Why: "replica 3: " and what Stepper::step would have thrown, or why it could not start.
  std::string error;
  std::string part;  ///< its part that failed; empty: the network, or none
  StepFault fault = StepFault::none;
  std::int64_t steps = 0;       ///< committed; after a failure: number of the failed step, from 0
  std::int64_t iterations = 0;  ///< evaluations of S, all steps
  int max_iterations = 0;       ///< of a step
  std::int64_t not_converged = 0;  ///< steps that ended without meeting a tolerance
  /// The passivity guard's actions; `trials` is not counted where replicas lie in lanes.
  GuardStatistics guard;
};

/// N replicas of one system, each with its own parameters, initial state and inputs, stepped side by
/// side: in the lanes of common batches, and on several threads.
///
/// Each replica has the bits of its own Stepper with `options_of`: states, energies, certificate; whatever
/// the threads and the chunks. A replica whose step fails stops alone: its status says why, its state is NaN
/// from then on, and the others are not affected.
///
/// Replicas lie in lanes where the system is coupled by waves, is one island, takes steps of one
/// size, has impedances that do not follow the state, and where its parts know their energy, repeat
/// their steps and are thread-safe. Otherwise each replica has its own Stepper; `execution` says why. The
/// method is chosen once, for the first replica; the others choose impedances by the same rules.
///
/// Shapes are row-major: N replicas, T steps, n states of the system (all parts in order), m
/// settable inputs (System::settable_inputs).
///
/// Memory is taken at construction, and when a run begins; steps in lanes do not allocate, unless a
/// replica fails. One thread at a time may call it; its callees during a run (parts, inputs, `ask`)
/// cannot step, read or change it: std::logic_error, nothing having changed. If they destroy or move it
/// the program ends with a message.
class Ensemble {
 public:
  /// All replicas alike. Errors: ConfigError of Stepper; for a time budget or watches, which an
  /// ensemble does not have; for settable inputs, but with waves, kick-drift and taylor.
  Ensemble(const System& one, int replicas, const StepperOptions& options,
           const EnsembleOptions& ensemble = {});
  /// Replica i is the result of replica(i): a system of the same shape (parts, ports, states, junctions,
  /// inputs), with parameters, initial states and input functions of its own. It is called once for
  /// each, in order.
  /// Errors: also ConfigError for a system of another shape, and the exceptions of `replica`.
  Ensemble(int replicas, const std::function<System(int)>& replica, const StepperOptions& options,
           const EnsembleOptions& ensemble = {});
  ~Ensemble();
  Ensemble(Ensemble&&) noexcept;
  Ensemble& operator=(Ensemble&&) noexcept;

  int replicas() const;
  int state_size() const;  ///< n
  int input_size() const;  ///< m
  /// Number of the first state of a part among the n.
  int first_state(int part) const;
  /// The system of the first replica.
  const System& system() const;
  const MethodChoice& method() const;
  /// Options with which a Stepper of that replica alone takes the same steps.
  StepperOptions options_of(int replica) const;
  int threads() const;
  int chunks() const;
  bool in_lanes() const;
  /// "40 chunks of up to 256 replicas in lanes", or "each replica by itself: …" and why.
  const std::string& execution() const;

  /// The start of the next run: n doubles, or those of a part. A replica that cannot start there fails when
  /// the run begins.
  /// Errors, nothing having changed: std::out_of_range; std::invalid_argument for another length, and for
  /// numbers that are not finite, naming replicas, parts and states.
  void set_state(int replica, std::span<const double> state);
  void set_state(int replica, int part, std::span<const double> state);
  /// The same of all replicas, [N, n].
  void set_states(std::span<const double> states);
  /// The component of a part of a replica, as of the next run.
  const Component& component(int replica, int part) const;
  /// Replaces it from the next run on, or from now on before the first step. The replica then has the bits of
  /// a Stepper with `options_of`: its impedances are chosen again, by the rules of the ensemble; the others
  /// keep theirs, and the method stays, also where this is the first replica.
  /// Cost: choosing the impedances of one replica; the chunk is built again when the next run begins.
  /// Errors, nothing having changed, naming the replica: std::out_of_range; std::invalid_argument for a
  /// component of another type or shape; ConfigError where it has no step map or impedances.
  void set_component(int replica, int part, std::shared_ptr<const Component> component);
  /// A settable input by slot, for the steps to come. Errors: std::out_of_range;
  /// std::invalid_argument unless it is finite, naming replica and input.
  void set_input(int replica, int slot, double value);
  double input(int replica, int slot) const;

  /// Begins a new run at t = 0, from the initial states, or those that were set. Step maps are kept.
  /// Settable inputs stay as they are.
  void reset();
  /// One macro-step of all replicas that have not failed. With steps that choose their size: all steps up to
  /// the next multiple of step_s.
  void step() { step(1); }
  /// `steps` macro-steps: every chunk takes all of them before the next one does. `ask`: as in
  /// RolloutOptions; if it ends the run, replicas have taken different numbers of steps, and the
  /// next call begins a new run. Errors: std::invalid_argument unless `steps` is from 0 to 2^53.
  void step(std::int64_t steps, const std::function<void()>& ask = {});
  /// A step size is no number of steps.
  template <std::floating_point Size>
  void step(Size) = delete;
  std::int64_t step_index() const;

  /// The state of a replica: n doubles, NaN where it has failed. Errors: std::out_of_range;
  /// std::invalid_argument for another length.
  void get_state(int replica, std::span<double> state) const;
  ReplicaStatus status(int replica) const;
  int failures() const;  ///< replicas that have failed
  Certificate certificate(int replica) const;
  /// With a ledger only (StepperOptions::certify, the guard): zeros without one.
  EnergyTotals energy(int replica) const;

  /// A new run of `steps` macro-steps: x(i, k, :) is the state of replica i after step
  /// (k + 1)·every.
  ///   x0  [N, n], or empty: as `reset`
  ///   u   [N, T, m], u(i, t, :) being held over step t; or empty: inputs stay as they are
  ///   x   [N, T/every, n]
  /// Rows of a replica are NaN from its failure on, and from the first use of an x0 or u of it that is not
  /// finite. The ensemble is then after the last step; if it was ended before, the next call begins a new
  /// run. Nothing is allocated in the loop over the steps. x0 and u are not kept.
  /// Errors: std::invalid_argument for other lengths, saying both.
  void rollout(std::span<const double> x0, std::span<const double> u, int steps,
               std::span<double> x, const RolloutOptions& options = {});

 private:
  struct Impl;
  void expect_to_end() const noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace portwave
